"""Tests of what needs PyTorch; where it is not installed, they are skipped."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'unbag[torch]'")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param
