"""``python -m unbag.cli`` is the same as ``unbag``."""

from .main import main

main()
