"""Saving and loading models, in files that contain data and run no code.

``model.save(path)`` writes a model, `load` reads it, and `read_header` describes a file. Files have
the layout of safetensors (`unbag.models.container`); `unbag.models.kinds` lists what they may
contain.
"""

from .container import read_header
from .kinds import ModelFileError
from .loading import load

__all__ = ["ModelFileError", "load", "read_header"]
