"""One way from a `random_state` to random numbers."""

import numpy as np
import pytest

from unbag._random import generator


def first_numbers(random_state):
    return generator(random_state).integers(2**62, size=3).tolist()


@pytest.mark.parametrize(
    "seed", [int, np.int64, np.random.RandomState, np.random.SeedSequence, np.random.default_rng]
)
def test_the_same_seed_gives_the_same_numbers(seed):
    assert first_numbers(seed(3)) == first_numbers(seed(3))
    assert first_numbers(seed(3)) != first_numbers(seed(4))


def test_numbers_stay_the_same_and_those_of_an_int_are_numpys():
    assert first_numbers(3) == np.random.default_rng(3).integers(2**62, size=3).tolist()
    assert first_numbers(np.random.RandomState(3)) == [
        1097830045408215000,
        2036078362756802719,
        114433682148800786,
    ]


@pytest.mark.parametrize("state", [None, np.random.default_rng(3), np.random.RandomState(3)])
def test_states_go_on_and_none_is_another_each_time(state):
    assert first_numbers(state) != first_numbers(state)


@pytest.mark.parametrize("wrong", ["3", 1.5, -1])
def test_what_is_no_seed_is_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        generator(wrong)
