"""Work that is done unit by unit: what disturbs it, and what is left of it when it is stopped."""

import warnings
from dataclasses import dataclass

import pytest
from sklearn.exceptions import ConvergenceWarning

from unbag.fitting.solvers import InterruptedFitWarning
from unbag.model_selection import work
from unbag.model_selection.ledger import Ledger, Work


@dataclass(frozen=True)
class Worrying(Work):
    """Work that warns, and then gives a result."""

    category: type[Warning]

    def describe(self):
        return {"category": self.category.__name__}

    def result(self):
        warnings.warn("worried", self.category, stacklevel=1)
        return {"worried": True}


@dataclass(frozen=True)
class Square(Work):
    number: int

    def describe(self):
        return {"number": self.number}

    def result(self):
        return {"square": self.number**2}


def test_fits_that_end_at_their_last_iteration_do_not_warn_and_others_do():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert work.do(Worrying(ConvergenceWarning)) == {"worried": True}
        with pytest.raises(UserWarning, match="worried"):
            work.do(Worrying(UserWarning))


def test_half_a_fit_is_no_result(tmp_path):
    unit = Worrying(InterruptedFitWarning)
    with pytest.raises(KeyboardInterrupt):
        work.do(unit)
    ledger = Ledger(tmp_path / "ledger")
    with pytest.raises(KeyboardInterrupt), ledger.writing():
        work.run([unit], ledger)
    assert not list(ledger.folder.iterdir()), "an empty ledger is left behind"


def test_only_what_is_not_done_yet_is_done(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing():
        assert work.run([Square(1), Square(2)], ledger) == 2
        assert work.run(map(Square, range(4)), ledger) == 2
        assert work.run(map(Square, range(4)), ledger) == 0
    again = Ledger(tmp_path)
    assert [again[Square(number)]["square"] for number in range(4)] == [0, 1, 4, 9]


@pytest.mark.parametrize("n_jobs", [0, -1])
def test_a_number_of_processes_is_at_least_one(n_jobs):
    with pytest.raises(ValueError, match=f"at least 1, a number of processes; got {n_jobs}"):
        work.check_process_count(n_jobs)
