"""What the library logs, shown to people on stderr."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from .main import messages


class NoteHandler(logging.Handler):
    """Print what is logged as a line on stderr, unless only results are wanted."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        messages.note(self.format(record))


@contextmanager
def log_shown() -> Iterator[None]:
    """Show what is logged at level INFO, such as that kernels are being compiled."""
    logger, handler = logging.getLogger("unbag"), NoteHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
