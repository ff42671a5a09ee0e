"""A process of its own that reads variables of a MATLAB file by SciPy.

SciPy's compiled reader trusts what a file declares, so that a damaged one can crash the process.
It writes to standard output the first variable that is too large, if any, and values by name.
"""

import pickle
import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat, whosmat

from unbag._platform import limit_memory

# Of these classes, and of integers, an entry takes eight bytes, or as many in a file.
LARGE = ("double", "single", "logical", "sparse", "cell")
#: What the process may take, besides what is read.
MEMORY = 4 << 30


def readable(value: Any) -> Any:
    """Return a value without types of SciPy, which are read as nothing but a type void."""
    if sparse.issparse(value):
        # Before an index that lies outside is followed.
        value.check_format(full_check=True)
        return sparse.csc_array(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind == "V":
        return np.empty((1, 1), dtype="V1")
    value = np.asarray(value)
    if value.dtype == object:
        cells = np.empty(value.shape, dtype=object)
        for place in np.ndindex(value.shape):
            cells[place] = readable(value[place])
        return cells
    return value


def main(path: str, most_bytes: str, *names: str) -> None:
    """Write the first variable that is too large, and the values of some."""
    warnings.simplefilter("ignore")
    # Nothing is lost without a word.
    warnings.simplefilter("error", np.exceptions.ComplexWarning)
    limit_memory(MEMORY + 8 * int(most_bytes))
    sizes = [
        (name, 8 * int(np.prod(shape, dtype=object)))
        for name, shape, kind in whosmat(path)
        if name in names and (kind in LARGE or kind.startswith(("int", "uint")))
    ]
    large = next((each for each in sizes if each[1] > int(most_bytes)), None)
    values = {} if large else loadmat(path, variable_names=names, mat_dtype=True, spmatrix=False)
    kept = {name: readable(value) for name, value in values.items() if name in names}
    sys.stdout.buffer.write(pickle.dumps((large, kept), protocol=5))


if __name__ == "__main__":
    main(*sys.argv[1:])
