"""Models to files and back: files of data, which run no code.

``model.save(path)`` writes a model and `load` reads it; `read_header` says what is in a file, and
`load_with_header` does both. Files have the layout of safetensors (`unbag.models.container`) and
hold what is listed in one table (`unbag.models.kinds`).
"""

from .container import read_header, save
from .kinds import ModelFileError
from .loading import load, load_with_header

__all__ = ["ModelFileError", "load", "load_with_header", "read_header", "save"]
