"""Tables of words on disk, and a way to run commands as a user does."""

import numpy as np
import pytest

from shared_fixtures import run
from toys import ROLES, word_lines

__all__ = ["model", "run", "words"]


@pytest.fixture
def words(tmp_path):
    """A table of words, its rows shuffled all over the file."""
    header, *lines = word_lines()
    order = np.random.default_rng(1).permutation(len(lines))
    path = tmp_path / "words.csv"
    path.write_text("\n".join([header, *(lines[i] for i in order)]) + "\n")
    return path


@pytest.fixture
def model(words, run):
    """A model fitted to the words."""
    path = words.with_name("m.unbag")
    code, _, errors = run("fit", words, *ROLES, "-o", path, "--max-iter", "30")
    assert code == 0, errors
    return path
