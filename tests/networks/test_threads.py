import pytest
import torch

from unbag.torch.threads import MULTIPLICATIONS, in_parallel, limited_threads


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


def test_shares_cover_all_rows_once(three_threads):
    array = torch.zeros(2, 500, 1000)

    def count(start, stop):
        array.reshape(1000, 1000)[start:stop] += 1

    in_parallel(count, array)
    assert bool((array == 1).all())
