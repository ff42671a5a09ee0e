import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# numba's cache does not notice a change in a kernel that another module's kernel calls.
# A folder per state of the sources does.
sources = Path(__file__).parents[1] / "src" / "unbag"
digest = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(sources.rglob("*.py"))))
os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    str(Path(tempfile.gettempdir()) / f"unbag-numba-{os.getuid()}" / digest.hexdigest()[:16]),
)

settings.register_profile("unbag", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("unbag")

SEED = 20240615


def pytest_report_header():
    return f"seed of the random tests: {SEED}"


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)
