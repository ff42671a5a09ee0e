"""Features as they were decoded, in a file without a name: decoded once, and read many times.

A fit goes over all features at each iteration. To decode Parquet and to put its columns side by
side takes about as long as the mathematics; to read the same bytes again takes a fraction of that.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._platform import temporary_folder

# Where compression saves more than this, reading the compressed file may be faster.
LEAST_RATIO = 0.5
# How much more room there must be than features need.
ROOM = 1.25


class FeatureScratch:
    """Features of bags in a temporary file.

    Parameters
    ----------
    file : binary file
        To be read and written, and closed when there is no room for more.
    offsets : ndarray of int of shape (n_bags + 1,)
    n_features : int
    dtype : numpy.dtype
    """

    def __init__(
        self, file: Any, offsets: NDArray[np.intp], n_features: int, dtype: np.dtype
    ) -> None:
        self._file = file
        self._offsets = offsets
        self._row: tuple[int, np.dtype] = n_features, dtype
        self._is_here: NDArray[np.bool_] = np.zeros(len(offsets) - 1, dtype=bool)

    def has(self, first: int, last: int) -> bool:
        """Return whether the bags from `first` to before `last` are here."""
        return bool(self._is_here[first:last].all())

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return the features of bags that are here."""
        n_features, dtype = self._row
        start, stop = self._offsets[[first, last]].tolist()
        X = np.empty((stop - start, n_features), dtype)
        self._file.seek(start * n_features * dtype.itemsize)
        flat: Any = X.reshape(-1).view(np.uint8)
        room, done = memoryview(flat), 0
        while done < len(room):
            read = self._file.readinto(room[done:])
            if not read:
                raise OSError("The file of decoded features has been cut short.")
            done += read
        return X

    def write(self, first: int, last: int, X: NDArray[Any]) -> None:
        """Keep the features of some bags; where there is no room, all are forgotten."""
        if self._file.closed:
            return
        n_features, dtype = self._row
        try:
            self._file.seek(int(self._offsets[first]) * n_features * dtype.itemsize)
            self._file.write(X.reshape(-1).view(np.uint8))
            self._file.flush()
        except OSError:
            self._is_here[:] = False
            with suppress(OSError):
                self._file.close()
        else:
            self._is_here[first:last] = True


def scratch_folder(n_bytes: int, packed_bytes: int) -> Path | None:
    """Return where decoded features may be kept; None if they had better be decoded each time.

    Parameters
    ----------
    n_bytes, packed_bytes : int
        What the features take, and what they take in their files.
    """
    folder = temporary_folder()
    is_worth_it = packed_bytes > LEAST_RATIO * n_bytes
    has_room = shutil.disk_usage(folder).free > ROOM * n_bytes
    return folder if is_worth_it and has_room else None
