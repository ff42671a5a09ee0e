"""Guesses, because the paper does not say what we had to know; and what each is worth.

Every figure comes from a table or ledger of a finished experiment.
"""

from collections.abc import Callable, Iterable

from .differences import TABLES, cells
from .explanations import LONGER, settings_alone
from .methods import METHODS
from .recorded import Recorded
from .studies.guesses import SCALINGS
from .tables import DATA, NEAR, markdown_table

MLR, SLR, DUMMY = (METHODS[name].title for name in ("mlr", "slr", "dummy"))


def by_data(figures: Iterable[tuple[str, float]], sign: str = "+") -> str:
    """Write figures of data sets.

    Examples
    --------
    >>> by_data([("hja-union", -19.04), ("msrcv2", 0.26)])
    'HJA -19.0, MSRC v2 +0.3'
    """
    return ", ".join(f"{DATA[name]} {value:{sign}.1f}" for name, value in figures)


def entries(recorded: Recorded, table: str, entry: str, **where: object) -> dict[str, float]:
    """Return an entry of the records of a table, by data set; its experiment begins its name."""
    study = "bag-level" if table.startswith("bag-level") else table.split("-")[0]
    found = recorded.find({"study": study, "table": table, **where})
    return {each["data"]: each[entry] for each in found}


def changes(
    recorded: Recorded, table: str, column: str, taken: str, other: str, **where: object
) -> list[tuple[str, float]]:
    """Return by how much another choice in a column differs from ours, for each data set."""
    ours, theirs = (
        entries(recorded, table, "ours", **where, **{column: choice}) for choice in (taken, other)
    )
    return [(name, theirs[name] - value) for name, value in ours.items() if name in theirs]


def scaling_rows(recorded: Recorded) -> list[list[str]]:
    """Return rows of the accuracies of MLR and SLR by how features are scaled."""
    rows = []
    for method in (MLR, SLR):
        for scaling in SCALINGS:
            where = {"method": method, "scaling": scaling}
            reached = entries(recorded, "guesses-scaling", "ours", **where)
            rows.append([method, scaling, *(f"{reached[name]:.1f}" for name in DATA)])
    return rows


def lost_by_scaling(recorded: Recorded) -> tuple[float, float]:
    """Return the least and the most points that MLR loses on features not standardised."""
    taken, *others = SCALINGS
    lost = [
        -change
        for other in others
        for _, change in changes(recorded, "guesses-scaling", "scaling", taken, other, method=MLR)
    ]
    return min(lost), max(lost)


def columns(recorded: Recorded) -> str:
    """Measure the effect of standardising kernel columns."""
    found = changes(recorded, "dictionary-columns", "columns", "standardised", "as they are")
    return f"as they are: {by_data(found)}"


def line_search(recorded: Recorded) -> str:
    """Measure how far MLR moves with the constants of the line search."""
    ours = entries(recorded, "guesses-search", "ours", method=MLR, search=SEARCH)
    found = recorded.find({"study": "guesses", "table": "guesses-search", "method": MLR})
    moved = [each["ours"] - ours[each["data"]] for each in found]
    near = {
        search: sum(abs(gap) <= NEAR for gap in gaps)
        for search in (SEARCH, f"{SEARCH}, start 1")
        for gaps in [
            entries(recorded, "guesses-search", "difference", method=MLR, search=search).values()
        ]
    }
    return (
        f"MLR: {min(moved):+.1f} to {max(moved):+.1f}; from 1, as in the book that it cites, "
        f"{near[f'{SEARCH}, start 1']} figures of MLR in Table 3 are reproduced instead of "
        f"{near[SEARCH]}"
    )


def epochs(recorded: Recorded) -> str:
    """Measure the effect of more epochs on MIMLfast."""
    method = METHODS["mimlfast"].title
    gains = entries(recorded, "wider", "gain", measure="inductive accuracy", method=method)
    return f"tuned, from 3 to 1,000: {by_data(gains.items())}"


def steps(recorded: Recorded) -> str:
    """Measure the effect of 200 steps instead of 50 on MLR and SLR."""
    found = (
        f"{method} {by_data(by_other_steps(recorded, method, LONGER[method][0]))}"
        for method in (MLR, SLR)
    )
    return f"200 steps: {'; '.join(found)}"


def solver(recorded: Recorded) -> str:
    """Measure the effect of L-BFGS on MLR, without a penalty and with unbag's default."""
    return "; ".join(
        f"{words}: {by_data(by_other_steps(recorded, MLR, METHODS[name].title))}"
        for name, words in (("mlr-end", "L-BFGS to the end"), ("unbag", "unbag's default"))
    )


def by_other_steps(recorded: Recorded, method: str, title: str) -> list[tuple[str, float]]:
    """Return by how much other steps of a method differ from the published ones, by data set."""
    return changes(recorded, "inductive-accuracy", "method", method, title)


def scaling_of_rivals(recorded: Recorded) -> str:
    """Measure by how much the better of two scalings of features helps rivals."""
    tables = {
        "MIMLfast": ("Table 3", "inductive_accuracy"),
        "LSB-CMM": ("Table 3", "inductive_accuracy"),
        "MIMLSVM": ("Table 7", "average_precision"),
        "MIMLNN": ("Table 7", "average_precision"),
    }
    said = []
    for method, (title, measure) in tables.items():
        apart = [
            max(reached) - min(reached)
            for cell in cells(recorded, *TABLES[title])
            if (cell.row, cell.measure) == (method, measure)
            for reached in [[each.reached for each in settings_alone(recorded, cell)]]
        ]
        said.append(f"{method} {min(apart):.1f} to {max(apart):.1f}")
    return f"apart by: {', '.join(said)}"


def dummy(recorded: Recorded) -> str:
    """Measure how far constant answers are from the published Hamming loss of the dummy."""
    titles = {
        "those of more than half of the bags": "by the paper's definition",
        "the most frequent": "the most frequent class",
    }
    return "ours minus published, " + "; ".join(
        f"{title}: "
        + by_data(entries(recorded, "bag-level-constant", "difference", answer=answer).items())
        for answer, title in titles.items()
    )


def drawing(recorded: Recorded) -> str:
    """Measure how far means of MLR move with folds, and letters, drawn again."""
    found = entries(recorded, "partitions", "std", method=MLR, measure="inductive accuracy")
    return f"MLR's mean deviates by {by_data(found.items(), '')}"


#: The line search of the other tables.
SEARCH = "alpha 0.3, beta 0.5"
#: What the paper leaves open, what we took, what another choice changes, and the experiment that
#: says it; the largest first. The last is not a guess, but what people ask next.
GUESSES: tuple[tuple[str, str, Callable[[Recorded], str], str], ...] = (
    ("scaling of kernel columns", "standardised", columns, "dictionary"),
    ("scaling of features, for rivals", "the better of two, after the fact", scaling_of_rivals,
     "differences"),
    ("epochs of MIMLfast without a kernel", "10, its authors' number", epochs, "wider"),
    ("the dummy's answer: its stated rule does not fit its Hamming loss", "the most frequent class",
     dummy, "bag-level"),
    ("folds, and which pictures spell the words", "ten folds; five draws", drawing, "partitions"),
    ("how SLR was fitted, and when MLR has settled", "50 steps", steps, "convergence"),
    ("constants of the line search", f"{SEARCH}, from four times the last step", line_search,
     "guesses"),
    ("not a guess: another solver for MLR", "50 gradient steps, as in the paper", solver,
     "inductive"),
)  # fmt: skip


def guesses_section(recorded: Recorded) -> str:
    """Write what had to be guessed, in Markdown."""
    rows = [
        [what, taken, f"{measure(recorded)} ([{where}](#{where}))"]
        for what, taken, measure, where in GUESSES
    ]
    return (
        "Other things that the paper leaves open, our choice, and what another choice changes, in "
        "points of instance accuracy (MIMLSVM and MIMLNN: average precision).\n\n"
        + markdown_table(["the paper leaves open", "we chose", "another choice"], rows)
    )
