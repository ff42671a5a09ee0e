"""Tables that are read and written a few rows at a time."""

import pytest

from small_tables import in_chunks


@pytest.fixture(params=[1, 40, 1 << 20])
def chunks(request):
    """Let a chunk of rows take so many bytes."""
    with in_chunks(request.param):
        yield
