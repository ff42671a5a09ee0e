"""Work that is done unit by unit: what disturbs it, and what is left of it when it is stopped."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from unbag.fitting.linear import InterruptedFitWarning
from unbag_reproduce import work
from unbag_reproduce.ledger import Ledger
from unbag_reproduce.unit import Unit

CATEGORIES = {
    each.__name__: each for each in (ConvergenceWarning, UserWarning, InterruptedFitWarning)
}


def warn(unit):
    warnings.warn("worried", CATEGORIES[unit.method], stacklevel=1)
    return {"worried": True}


def square(unit):
    return {"square": unit.fold**2}


def worrying(category):
    return Unit(warn, method=category.__name__)


def squares(*numbers):
    return [Unit(square, fold=number) for number in numbers]


def test_fits_that_end_at_their_last_iteration_do_not_warn_and_others_do():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert work.do(worrying(ConvergenceWarning)) == {"worried": True}
        with pytest.raises(UserWarning, match="worried"):
            work.do(worrying(UserWarning))


def test_half_a_fit_is_no_result(tmp_path):
    unit = worrying(InterruptedFitWarning)
    with pytest.raises(KeyboardInterrupt):
        work.do(unit)
    ledger = Ledger(tmp_path / "ledger")
    with pytest.raises(KeyboardInterrupt), ledger.writing():
        work.run([unit], ledger)
    assert not list(ledger.folder.iterdir()), "an empty ledger is left behind"


def test_only_what_is_not_done_yet_is_done(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing():
        assert work.run(squares(1, 2), ledger) == 2
        assert work.run(squares(0, 1, 2, 3), ledger) == 2
        assert work.run(squares(0, 1, 2, 3), ledger) == 0
    again = Ledger(tmp_path)
    assert [again[each]["square"] for each in squares(0, 1, 2, 3)] == [0, 1, 4, 9]
