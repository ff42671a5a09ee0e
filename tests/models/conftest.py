"""A fitted pipeline, where to write it, and a file of it."""

import pytest

from toys import fitted_pipeline


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.unbag"


@pytest.fixture(scope="session")
def pipeline():
    return fitted_pipeline()


@pytest.fixture
def saved(pipeline, path):
    """A sound file of a pipeline."""
    pipeline.save(path)
    return path
