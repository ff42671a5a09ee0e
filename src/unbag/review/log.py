"""The log of a review: every answer is on disk before the page shows it as saved.

A line is written at the end of the file by one call, and then synchronised. Two programs may write
to one log: each locks it while it writes, and first takes in the lines of the other. So answers
have distinct numbers, and the previous state in an answer is the true one. `unbag.tables.answers`
has the format, and reads logs.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self

from unbag._files import MOST_NUMBER, DataError, PathLike, existing_file, unwritable
from unbag._platform import locked_file, open_to_append, sync_folder
from unbag.bags import Bags
from unbag.tables.answers import (
    Answer,
    ReadAnswers,
    check_same_bags,
    header_of,
    is_torn_header,
    parsed_answers,
    read_answers,
)


class LogError(Exception):
    """An answer could not be put on disk, for the reason in the message."""


class AnswerLog:
    """The log of a review, open for more answers."""

    def __init__(self, path: PathLike, bags: Bags, table: PathLike) -> None:
        self.path: Path = Path(path)
        if self.path.exists():
            # Opening a pipe would wait for a reader.
            existing_file(self.path)
        try:
            self._descriptor = open_to_append(self.path)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            with locked_file(self._descriptor):
                begun = self.path.read_bytes()
                self.was_torn: bool = is_torn_header(begun)
                is_new = not begun or self.was_torn
                if is_new:
                    # A crash while the log was made may have left a part of its first line.
                    os.ftruncate(self._descriptor, 0)
                    self._write(_line(header_of(bags, table)))
                    sync_folder(self.path.resolve().parent)
                self.read: ReadAnswers = read_answers(self.path)
                check_same_bags(self.read, bags)
                self._size = os.fstat(self._descriptor).st_size
                self._is_open = not is_new and not begun.endswith(b"\n")
        except LogError as error:
            self.close()
            raise DataError(str(error)) from error
        except BaseException:
            self.close()
            raise
        self._numbers: set[int] = {each.number for each in self.read.answers}

    def notes(self, bags: Bags | None = None) -> list[str]:
        """Say what was wrong with the log when it was opened; see `ReadAnswers.notes`."""
        torn = (
            f"{self.path}: its first line was incomplete, as after a crash, and is written again; "
            "it held no answer."
        )
        return [torn] * self.was_torn + self.read.notes(bags)

    def append(
        self, make: Callable[[int, str], Answer | None], take_in: Callable[[Answer], object]
    ) -> Answer | None:
        """Put an answer on disk; a LogError says why that cannot be done."""
        with locked_file(self._descriptor):
            for other in self._others():
                take_in(other)
            answer = make(self._next_number(), now())
            if answer is None:
                return None
            line = _line(answer.as_json())
            # If a crash has left a line open, a new one begins.
            self._write(b"\n" + line if self._is_open else line)
            self._is_open = False
            self._size = os.fstat(self._descriptor).st_size
            self._numbers.add(answer.number)
        return answer

    def _next_number(self) -> int:
        """Return a number that no answer has, and that can be read again."""
        number = max(self._numbers, default=0) + 1
        if number < MOST_NUMBER:
            return number
        # A damaged line holds the largest one.
        return next(each for each in count(1) if each not in self._numbers)

    def take_in_others(self, take_in: Callable[[Answer], object]) -> None:
        """Call back with each answer that another program has written since."""
        self.append(lambda *_: None, take_in)

    def _others(self) -> list[Answer]:
        """Read what another program has written."""
        size = os.fstat(self._descriptor).st_size
        if size < self._size:
            raise LogError(
                f"{self.path} has become shorter: another program has changed it. Start the review "
                "again."
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
        self._numbers |= {each.number for each in answers}
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
        """Return whether the open file still has this name."""
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
        # File names may contain half a character.
        return json.dumps(value, allow_nan=False).encode() + b"\n"


def now() -> str:
    """Return the time, in UTC, to a millisecond."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    return time.replace("+00:00", "Z")
