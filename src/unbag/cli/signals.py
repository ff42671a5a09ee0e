"""What Ctrl-C and SIGTERM do to a command."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from unbag._platform import STOP_SIGNALS, send_soon

if TYPE_CHECKING:
    from types import CodeType


class StopSignals:
    """What Ctrl-C and SIGTERM do to a command; `received` is the signal that stops it.

    While it runs, the first of them raises KeyboardInterrupt, so that what is half-written is
    removed; a second one ends the process at once. So does the first one while modules are
    imported, when nothing is written yet: an exception that is raised in the middle of an import
    may be lost, or come out as something else.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._raises = False
        self._hook_code: CodeType | None = None

    @property
    def exit_code(self) -> int:
        """The code that a shell gives for a program that this signal has ended."""
        return 128 + (self.received or signal.SIGINT)

    def answer(self) -> Callable[[], None]:
        """Answer the signals from now on; return what undoes that."""
        hook = sys.unraisablehook
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                # A program in the background may be meant to ignore them.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, self._stop)

            def answer_lost(lost):
                if not self._raise_later(lost):
                    hook(lost)

            sys.unraisablehook, self._hook_code = answer_lost, answer_lost.__code__

        def undo():
            sys.unraisablehook = hook
            for number, handler in before.items():
                signal.signal(number, handler)

        return undo

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise KeyboardInterrupt at the first signal."""
        self.received, self._raises = None, True
        try:
            yield
        finally:
            self._raises = False

    @contextmanager
    def ending(self) -> Iterator[None]:
        """End the process at the first signal, in the middle of `raised` too."""
        raises, self._raises = self._raises, False
        try:
            yield
        finally:
            self._raises = raises

    def _stop(self, number, frame):
        if self._raises and self.received is None:
            if self._is_in_hook(frame):
                # There, the exception would be lost once more.
                send_soon(number)
                return
            self.received = number
            raise KeyboardInterrupt
        with suppress(OSError):
            os.write(2, b"unbag: stopped.\n")
        os._exit(128 + number)

    def _is_in_hook(self, frame):
        while frame is not None and frame.f_code is not self._hook_code:
            frame = frame.f_back
        return frame is not None

    def _raise_later(self, lost):
        """Send a signal again whose exception was lost where none can be raised; return whether."""
        if self.received is None or not issubclass(lost.exc_type, KeyboardInterrupt):
            return False
        number, self.received = self.received, None
        send_soon(number)
        return True


stop_signals: StopSignals = StopSignals()
