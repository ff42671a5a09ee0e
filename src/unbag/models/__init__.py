"""Saving and loading models, in files that contain data and run no code.

``model.save(path)`` writes a model and `load` reads it; `read_header` describes a file, and
`load_with_header` does both. Files have the layout of safetensors (`unbag.models.container`);
`unbag.models.kinds` lists what they may contain.
"""

from .container import read_header, save
from .kinds import ModelFileError
from .loading import load, load_with_header

__all__ = ["ModelFileError", "load", "load_with_header", "read_header", "save"]
