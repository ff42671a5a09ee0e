"""The devices that losses are tested on: the same tests on all of them."""

import pytest


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU to test on")
    return request.param
