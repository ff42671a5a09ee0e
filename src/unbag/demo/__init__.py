"""Demos that need no data: digits in bags, calls in recordings, things in pictures, activities.

Each makes or loads what it needs, learns from labels of bags alone, and says how many instances it
labels right, since it knows the truth.
"""
