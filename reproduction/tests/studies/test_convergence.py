from unbag_reproduce.plan import Plan
from unbag_reproduce.studies.convergence import fit_steps, units_of


def test_more_steps_make_training_label_sets_likelier_and_fifty_are_the_published_ones():
    found = [
        fit_steps(units_of(Plan(("letter-frost",), "quick"), "letter-frost", "mlr", setting)[0][0])
        for setting in ({"n_steps": 5}, {"n_steps": 50}, {}, {"n_steps": 100})
    ]
    few, as_published, default, many = (each["log_likelihood"] for each in found)
    assert few < as_published == default < many
