"""The log of a review: every answer is on disk before anybody is told that it is.

A line is written at the end of the file by one call, and then synchronised. Two programs may write
to one log: each locks it while it writes, and takes in the lines of the other before. So the
numbers of answers are distinct, and what an answer says was there before was there. The format, and
reading, are in `unbag.io.answers`.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from unbag._files import DataError, PathLike, unwritable
from unbag._platform import locked_file, open_to_append, sync_folder
from unbag.bags import Bags
from unbag.io.answers import (
    Answer,
    ReadAnswers,
    check_same_bags,
    header_of,
    is_torn_header,
    parsed_answers,
    read_answers,
)


class LogError(Exception):
    """An answer could not be put on disk; the message says why. Nothing is claimed to be there."""


class AnswerLog:
    """The log of a review, open for more answers.

    Parameters
    ----------
    path : str or path
        A log that is there must be about these bags; a new one is made.
    bags : Bags
    table : str or path
        The table, whose name the log remembers.

    Attributes
    ----------
    read : ReadAnswers
        What the log held when it was opened.
    was_torn : bool
        Whether it held only a part of its first line, as after a crash, and was begun anew.
    n_answers : int
        How many lines with answers there are, those of other programs included.
    """

    def __init__(self, path: PathLike, bags: Bags, table: PathLike) -> None:
        self.path: Path = Path(path)
        try:
            self._descriptor = open_to_append(self.path)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            with locked_file(self._descriptor):
                begun = self.path.read_bytes()
                self.was_torn: bool = is_torn_header(begun)
                if self.was_torn:
                    # A crash while the log was made: nobody has answered yet.
                    os.ftruncate(self._descriptor, 0)
                if not begun or self.was_torn:
                    self._write(_line(header_of(bags, table)))
                    sync_folder(self.path.resolve().parent)
                self.read: ReadAnswers = read_answers(self.path)
                check_same_bags(self.read, bags)
                self._size = os.fstat(self._descriptor).st_size
                self._is_open = not self.path.read_bytes().endswith(b"\n")
        except LogError as error:
            self.close()
            raise DataError(str(error)) from error
        except BaseException:
            self.close()
            raise
        self.n_answers: int = max((each.number for each in self.read.answers), default=0)

    def notes(self, bags: Bags | None = None) -> list[str]:
        """Say what was wrong with the log when it was opened; see `ReadAnswers.notes`."""
        begun = f"{self.path}: its first line was incomplete, as after a crash, and is made anew; "
        torn = [f"{begun}there was no answer."] if self.was_torn else []
        return [*torn, *self.read.notes(bags)]

    def append(
        self, make: Callable[[int, str], Answer | None], take_in: Callable[[Answer], object]
    ) -> Answer | None:
        """Put an answer on disk; a LogError says why that cannot be done.

        Parameters
        ----------
        make : callable
            Called with the number and the time of the answer, while nobody else can write. None if
            there is nothing to say after all.
        take_in : callable
            Called before with each answer that another program has written meanwhile.

        Returns
        -------
        Answer or None
            When this is returned, it is on disk.
        """
        with locked_file(self._descriptor):
            for other in self._others():
                take_in(other)
            answer = make(self.n_answers + 1, now())
            if answer is None:
                return None
            line = _line(answer.as_json())
            # A line that a crash has left open is ended, so that this one stands by itself.
            self._write(b"\n" + line if self._is_open else line)
            self._is_open = False
            self._size = os.fstat(self._descriptor).st_size
            self.n_answers = answer.number
        return answer

    def take_in_others(self, take_in: Callable[[Answer], object]) -> None:
        """Call back with each answer that another program has written since."""
        with locked_file(self._descriptor):
            for other in self._others():
                take_in(other)

    def _others(self) -> list[Answer]:
        """Read what another program has written."""
        size = os.fstat(self._descriptor).st_size
        if size < self._size:
            raise LogError(
                f"{self.path} has become shorter: somebody has changed it. Start the review again."
            )
        if size == self._size:
            return []
        try:
            with self.path.open("rb") as file:
                file.seek(self._size)
                added = file.read(size - self._size)
        except OSError as error:
            raise LogError(f"{self.path} cannot be read: {error.strerror}.") from error
        answers, _ = parsed_answers(added.split(b"\n"), 1)
        self._is_open = not added.endswith(b"\n")
        self._size = size
        self.n_answers = max([self.n_answers, *(each.number for each in answers)])
        return answers

    def _write(self, line: bytes) -> None:
        """Write a line at the end, and wait until it is on disk; else leave the file as it was."""
        size = os.fstat(self._descriptor).st_size
        try:
            if not self._is_there():
                raise OSError(2, "it has been moved or removed")
            written = os.write(self._descriptor, line)
            if written < len(line):
                raise OSError(28, "no space left on the device")
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise LogError(f"{self.path}: not saved, {error.strerror or error}.") from error

    def _is_there(self) -> bool:
        """Return whether the name still is that of the open file."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; all answers are on disk already."""
        with suppress(OSError):
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(value: dict[str, Any]) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a character, as names of files may have it.
        return json.dumps(value, allow_nan=False).encode() + b"\n"


def now() -> str:
    """Return the time, in UTC, to a millisecond."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    return time.replace("+00:00", "Z")
