"""Tables of words on disk, and a way to run commands as a user does."""

import shutil

import numpy as np
import pytest

from toys import ROLES, word_lines
from unbag.cli import main

__all__ = ["model", "words"]


def write_words(path):
    """Write a table of words, its rows shuffled all over the file."""
    header, *lines = word_lines()
    order = np.random.default_rng(1).permutation(len(lines))
    path.write_text("\n".join([header, *(lines[i] for i in order)]) + "\n")
    return path


@pytest.fixture
def words(tmp_path):
    """A table of words."""
    return write_words(tmp_path / "words.csv")


@pytest.fixture(scope="session")
def fitted_model(tmp_path_factory):
    """A model fitted to the words, for all tests."""
    table = write_words(tmp_path_factory.mktemp("fitted") / "words.csv")
    path = table.with_name("m.unbag")
    with pytest.raises(SystemExit) as left:
        main(["fit", str(table), *ROLES, "-o", str(path), "--max-iter", "30"])
    assert not left.value.code
    return path


@pytest.fixture
def model(words, fitted_model):
    """A model fitted to the words, beside them."""
    return shutil.copy(fitted_model, words.with_name("m.unbag"))
