"""How many threads torch may use."""

import pytest
import torch

from unbag.torch.training import MULTIPLICATIONS, limited_threads


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_little_work_is_done_by_one_thread(three_threads):
    for n_multiplications, n_threads in ((MULTIPLICATIONS - 1, 1), (MULTIPLICATIONS, 3)):
        with limited_threads(n_multiplications):
            assert torch.get_num_threads() == n_threads
        assert torch.get_num_threads() == 3


def test_threads_are_given_back_after_an_error(three_threads):
    with pytest.raises(KeyboardInterrupt), limited_threads(1):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 3
