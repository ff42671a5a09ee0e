"""Choices that the paper leaves open, and their worth: scaling of features, lengths of steps.

The published model and its bound are fitted with 50 gradient steps on features that are
standardised, brought from zero to one, or left as they are; and, on standardised ones, by other
line searches. Other guesses are measured where they belong: the page of results puts them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from unbag.model_selection import inductive_accuracy
from unbag.paper.mlr import SEARCH
from unbag_reproduce.comparison import fit_and_measure, fit_fold, measured
from unbag_reproduce.data import load_fold
from unbag_reproduce.figures import Figure, comparison_figure
from unbag_reproduce.ledger import Results
from unbag_reproduce.methods import METHODS
from unbag_reproduce.plan import Plan, Study
from unbag_reproduce.published import published_figure
from unbag_reproduce.statistics import spread
from unbag_reproduce.tables import Table, beside, comparison_table, record_cell
from unbag_reproduce.unit import Unit, Values, task

COMPARED = ("mlr", "slr")
ACCURACY = "inductive_accuracy"
#: How features may be scaled, by the title of a column; the first is what the other tables have.
SCALINGS: dict[str, Values] = {
    "standardised": {},
    "from zero to one": {"scaling": "minmax"},
    "as they are": {"scaling": None},
}


@dataclass(frozen=True)
class Search:
    """Constants of a backtracking line search, in Boyd and Vandenberghe's words.

    A step is multiplied by `beta` until it gains the share `alpha` of what the gradient predicts. A
    search begins with the length `start`; None is four times the last step.
    """

    alpha: float
    beta: float
    start: float | None = None

    @property
    def title(self) -> str:
        """Its constants in words."""
        start = "" if self.start is None else f", start {self.start:g}"
        return f"alpha {self.alpha:g}, beta {self.beta:g}{start}"

    def condition(self) -> Values:
        """Return it as units of work have it."""
        return {"alpha": self.alpha, "beta": self.beta, "start": self.start}


OURS = Search(*SEARCH)
#: The paper cites their book, which has alpha from 0.01 to 0.3, beta from 0.1 to 0.8, and start 1.
SEARCHES = (
    OURS, Search(0.01, 0.5), Search(0.3, 0.8), Search(0.01, 0.8), Search(0.3, 0.5, 1.0),
    Search(0.01, 0.5, 1.0), Search(0.01, 0.1, 1.0),
)  # fmt: skip


#: A setting of the model, or a line search.
Choice = Values | Search


@task
def fit_searched(unit: Unit) -> dict[str, float]:
    """Fit to the training bags of a fold by another line search, and measure on its test bags."""
    search = Search(**unit.condition)
    model = METHODS[unit.method].model(unit.setting, unit.seed)
    return fit_and_measure(
        model.set_params(search=(search.alpha, search.beta, search.start)), *load_fold(unit),
        lambda model, X, y: {ACCURACY: inductive_accuracy(model, X)},
    )  # fmt: skip


def units_of(plan: Plan, name: str, method: str, choice: Choice) -> list[list[Unit]]:
    """Return the fits by one choice: for each fold, a list over draws."""
    if isinstance(choice, dict):
        return plan.units(fit_fold, name, method, choice)
    if choice == OURS:
        # What the other tables have.
        return plan.units(fit_fold, name, method, {})
    return plan.units(fit_searched, name, method, {}, choice.condition())


def units(plan: Plan, ledger: Results | None = None) -> list[Unit]:
    """List all fits, one data set before the next."""
    found = [
        unit
        for name, method in product(plan.data, COMPARED)
        for choice in (*SCALINGS.values(), *SEARCHES)
        for draws in units_of(plan, name, method, choice)
        for unit in draws
    ]
    return list(dict.fromkeys(found))


def records_of(
    plan: Plan, ledger: Results, kind: str, choices: Mapping[str, Choice]
) -> list[Values]:
    """Return a record for each data set, method and choice."""
    records = []
    for name, method in product(plan.data, COMPARED):
        known = published_figure("inductive", "accuracy", name, method).get("mean")
        for title, choice in choices.items():
            values = measured(ledger, units_of(plan, name, method, choice), ACCURACY)
            found = spread(values)
            ours = found.pop("ours")
            records.append(
                {
                    "data": name, "method": METHODS[method].title, kind: title,
                    **beside(ours, known, **found),
                }
            )  # fmt: skip
    return records


def nearest(records: list[Values], kind: str) -> str:
    """Say how far from the paper each choice is on average."""
    away: dict[str, list[float]] = {}
    for record in records:
        if record["difference"] is not None:
            away.setdefault(record[kind], []).append(abs(record["difference"]))
    if not away:
        return ""
    listed = "; ".join(f"{choice} {np.mean(each):.1f}" for choice, each in away.items())
    return f"Mean distance to the published figures, in points: {listed}."


def guess_table(plan: Plan, ledger: Results, kind: str, title: str, note: str) -> Table:
    """Make the table of one guess."""
    choices = SCALINGS if kind == "scaling" else {each.title: each for each in SEARCHES}
    records = records_of(plan, ledger, kind, choices)
    return comparison_table(
        f"guesses-{kind}",
        title,
        records,
        [
            f"{note} {nearest(records, kind)}",
        ],
        row=lambda record: f"{record['data']}, {record['method']}",
        column=kind,
        write=record_cell,
    )


def present(plan: Plan, ledger: Results) -> list[Table | Figure]:
    """Make a table of each guess, and a figure of the scalings."""
    scalings = guess_table(
        plan, ledger, "scaling", "Instance accuracy (%), bag labels not known, by how features are "
        "scaled", "50 gradient steps from zero, without a penalty. Standardised: by the mean and "
        "deviation of the training instances, as in all other tables of MLR and SLR.",
    )  # fmt: skip
    searches = guess_table(
        plan, ledger, "search", "Instance accuracy (%), bag labels not known, by the constants of "
        "the line search", "50 gradient steps on standardised features. A step is multiplied by "
        "beta until it gains alpha times what the gradient predicts. The book that the paper cites "
        "has alpha from 0.01 to 0.3, beta from 0.1 to 0.8, and starts each search at 1; ours "
        "starts at four times the last step unless a column says otherwise.",
    )  # fmt: skip
    figure = comparison_figure(
        "guesses",
        "Effect of scaling features",
        [
            {**record, "row": f"{record['method']}, {record['scaling']}"}
            for record in scalings.records
        ],
        x_label="instance accuracy, %",
        row="row",
    )
    return [scalings, searches, figure]


STUDY = Study(
    "guesses",
    "choices that the paper leaves open: scaling of features, line search",
    units=units,
    present=present,
    listed=("guesses-search",),
    remarks="""\
Scaling of features is the largest of all guesses. Standardised features come near the paper's
figures on all four data sets. That is evidence that the paper standardised them, and no more.

None of the seven line searches gives both of the paper's figures on HJA within a point. With alpha
0.3, beta 0.5 and a start at 1, MLR comes nearer on three of the four data sets. So the reason why
MLR and SLR fall short on HJA is open ([convergence](#convergence)).
""",
)
