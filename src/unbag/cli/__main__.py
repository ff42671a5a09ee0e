"""``python -m unbag.cli`` is the same as ``unbag``."""

from .app import main

main()
