"""Synthetic recordings, pictures and signals, for benchmarks and tests, with the truth about them.

``python benchmarks/make_media.py`` writes some to try `unbag extract` with.
"""
