"""``python -m unbag_reproduce``."""

from .program import main

main()
