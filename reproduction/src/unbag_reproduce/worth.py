"""What we had to guess, because the paper does not say it, and what each guess is worth.

Every figure comes from a table or ledger of a finished experiment; a guess whose experiment was not
made is not listed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from unbag.model_selection.methods import METHODS

from .differences import OTHER_READING, TABLES, cells
from .explanations import LONGER, NEAR, settings_alone
from .recorded import Recorded
from .unit import Values

#: How data sets are called in short.
SHORT = {
    "hja-union": "HJA", "msrcv2": "MSRC v2", "letter-carroll": "Carroll", "letter-frost": "Frost",
}  # fmt: skip
MLR, SLR = METHODS["mlr"].title, METHODS["slr"].title


@dataclass(frozen=True)
class Guess:
    """Something that the paper leaves open.

    Parameters
    ----------
    what : str
        What it does not say.
    taken : str
        What our tables have.
    worth : str
        What another choice changes, in points.
    where : str
        The experiment that measured it.
    """

    what: str
    taken: str
    worth: str
    where: str


def by_data(figures: Iterable[tuple[str, float]], sign: str = "+") -> str:
    """Write figures of data sets.

    Examples
    --------
    >>> by_data([("hja-union", -19.04), ("msrcv2", 0.26)])
    'HJA -19.0, MSRC v2 +0.3'
    """
    return ", ".join(f"{SHORT.get(name, name)} {value:{sign}.1f}" for name, value in figures)


def changes(
    recorded: Recorded, where: Values, entry: str, taken: str, other: str
) -> list[tuple[str, float]]:
    """Return by how much another choice differs from ours, for each data set."""
    found = {
        choice: {each["data"]: each["ours"] for each in recorded.find({**where, entry: choice})}
        for choice in (taken, other)
    }
    return [(name, found[other][name] - ours) for name, ours in found[taken].items()
            if name in found[other]]  # fmt: skip


def scaling(recorded: Recorded) -> str:
    """Measure what scaling of features is worth to MLR and SLR."""
    said = []
    for other in ("from zero to one", "as they are"):
        where = {"study": "guesses", "table": "guesses-scaling"}
        of_model, of_bound = (
            changes(recorded, {**where, "method": method}, "scaling", "standardised", other)
            for method in (MLR, SLR)
        )
        if of_model and of_bound:
            lost = [-change for _, change in of_bound]
            said.append(
                f"{other}: {MLR} {by_data(of_model)} ({SLR} {-min(lost):.0f} to {-max(lost):.0f})"
            )
    return "; ".join(said)


def columns(recorded: Recorded) -> str:
    """Measure what standardising kernel columns is worth."""
    where = {"study": "dictionary", "table": "dictionary-columns"}
    found = changes(recorded, where, "columns", "standardised", "as they are")
    return f"as they are: {by_data(found)} (3 folds of HJA and MSRC v2)" if found else ""


def line_search(recorded: Recorded) -> str:
    """Measure how far MLR and SLR move with the constants of the line search."""
    said = []
    for method in (MLR, SLR):
        records = recorded.find({"study": "guesses", "table": "guesses-search", "method": method})
        spans: dict[str, list[float]] = {}
        for record in records:
            spans.setdefault(record["data"], []).append(record["ours"])
        moved = [
            f"{SHORT.get(name, name)} {min(each) - each[0]:+.1f} to {max(each) - each[0]:+.1f}"
            for name, each in spans.items()
        ]
        if moved:
            said.append(f"{method}: {', '.join(moved)}")
    return "; ".join([*said, *as_in_the_book(recorded)])


def as_in_the_book(recorded: Recorded) -> list[str]:
    """Say how near MLR comes where each search starts at 1, as in the book that the paper cites."""
    counts = []
    for title in ("alpha 0.3, beta 0.5, start 1", "alpha 0.3, beta 0.5"):
        where = {"study": "guesses", "table": "guesses-search", "method": MLR, "search": title}
        gaps = [
            each["difference"]
            for each in recorded.find(where)
            if each.get("difference") is not None
        ]
        counts.append((sum(abs(gap) <= NEAR for gap in gaps), len(gaps)))
    if not all(n_all for _, n_all in counts):
        return []
    book, ours = (f"{n_near} of {n_all}" for n_near, n_all in counts)
    return [
        f"with the same alpha and beta, but each search started at 1, as in the book that it "
        f"cites, {book} of {MLR}'s figures in Table 3 are within {NEAR:g} points, instead of {ours}"
    ]


def epochs(recorded: Recorded) -> str:
    """Measure what more epochs are worth to MIMLfast."""
    where = {"study": "wider", "table": "wider", "measure": "inductive accuracy"}
    found = recorded.find({**where, "method": METHODS["mimlfast"].title})
    gains = [(each["data"], each["gain"]) for each in found]
    return f"tuned, from 3 to 1,000: {by_data(gains)}" if gains else ""


def steps_of_bound(recorded: Recorded) -> str:
    """Measure what 200 steps in place of 50 are worth to MLR and SLR."""
    said = "; ".join(
        f"{method}: {by_data(found)}"
        for method in (MLR, SLR)
        if (found := by_other_steps(recorded, method, LONGER[method][0]))
    )
    return f"200 steps: {said}" if said else ""


def solver(recorded: Recorded) -> str:
    """Measure what L-BFGS is worth to MLR, without a penalty and with that of unbag's default."""
    titles = {
        METHODS["mlr-end"].title: "L-BFGS to the end",
        METHODS["unbag"].title: "L-BFGS with a penalty, alpha 1, unbag's default",
    }
    return "; ".join(
        f"{words}: {by_data(found)}"
        for title, words in titles.items()
        if (found := by_other_steps(recorded, MLR, title))
    )


def by_other_steps(recorded: Recorded, method: str, title: str) -> list[tuple[str, float]]:
    """Return by how much other steps of a method differ from the published ones, by data set."""
    where = {"study": "inductive", "table": "inductive-accuracy"}
    return changes(recorded, where, "method", method, title)


def scaling_of_rivals(recorded: Recorded) -> str:
    """Measure by how much the better of two scalings of features helps rivals."""
    tables = {
        **dict.fromkeys(("MIMLfast", "LSB-CMM"), ("Table 3", "inductive_accuracy")),
        **dict.fromkeys(("MIMLSVM", "MIMLNN"), ("Table 7", "average_precision")),
    }
    said = []
    for method, (title, measure) in tables.items():
        apart = []
        for cell in cells(recorded, *TABLES[title]):
            if (cell.row, cell.measure) == (method, measure):
                reached = [each.reached for each in settings_alone(recorded, cell)]
                if len(reached) > 1:
                    apart.append((cell.record["data"], max(reached) - min(reached)))
        if apart:
            said.append(f"{method}: {by_data(apart, '')}")
    return "; ".join(said)


def dummy(recorded: Recorded) -> str:
    """Measure how far constant answers are from the published Hamming loss of the dummy."""
    titles = {
        "those of more than half of the bags": "by the paper's definition",
        "the most frequent": "the most frequent class",
    }
    said = []
    for answer, title in titles.items():
        where = {"study": "bag-level", "table": "bag-level-constant", "answer": answer}
        found = [(each["data"], each["difference"]) for each in recorded.find(where)]
        if found:
            said.append(f"{title}: {by_data(found)}")
    return f"ours minus published: {'; '.join(said)}" if said else ""


def tuning(recorded: Recorded) -> str:
    """Count how near the two readings of Table 7 come to the paper."""
    readings = [cells(recorded, *place) for place in (TABLES["Table 7"], OTHER_READING)]
    if not all(readings):
        return ""
    by_measure, by_loss = (sum(cell.is_near for cell in each) for each in readings)
    return (
        f"{by_measure} of {len(readings[0])} figures within {NEAR:g} points; tuned by Hamming loss "
        f"{by_loss}"
    )


def drawing(recorded: Recorded) -> str:
    """Measure how far means of MLR move with folds, and letters, drawn anew."""
    place = {"study": "partitions", "table": "partitions", "method": MLR}
    found = [(each["data"], each["std"]) for each in
             recorded.find({**place, "measure": "inductive accuracy"})]  # fmt: skip
    return f"deviation of MLR's mean: {by_data(found, '')}" if found else ""


#: What the paper leaves open, what we took, what that is worth, and where; the largest first. The
#: last is no guess, but what people ask next.
GUESSES: tuple[tuple[str, str, Callable[[Recorded], str], str], ...] = (
    (
        "How features are scaled, for MLR and SLR", "standardised on the training instances",
        scaling, "guesses",
    ),
    ("Whether kernel columns are scaled", "standardised", columns, "dictionary"),
    ("How features are scaled, for rivals", "both ways, the better one after the fact",
     scaling_of_rivals, "differences"),
    ("How many epochs MIMLfast has without a kernel", "10, its authors' number", epochs, "wider"),
    ("What its dummy answered (Hamming loss): its stated rule does not fit its figures",
     "the most frequent class", dummy, "bag-level"),
    ("Its folds, and which pictures spell its words", "ten folds; five draws of the letters",
     drawing, "partitions"),
    ("How SLR was fitted; when MLR counts as settled", "50 steps, as MLR has", steps_of_bound,
     "convergence"),
    (
        "The line search: it names backtracking, but no constants",
        "alpha 0.3, beta 0.5, from four times the last step", line_search, "guesses",
    ),
    ("By what Table 7 was tuned", "by each measure", tuning, "bag-level"),
    (
        "No guess: another solver, or a penalty, for MLR",
        "50 gradient steps without a penalty, as it says", solver, "inductive",
    ),
)  # fmt: skip


def guesses(recorded: Recorded) -> list[Guess]:
    """Return what had to be guessed, as far as experiments have measured what that is worth."""
    found = [
        Guess(what, taken, measure(recorded), where) for what, taken, measure, where in GUESSES
    ]
    return [each for each in found if each.worth]


def guesses_section(recorded: Recorded) -> str:
    """Write what had to be guessed, in Markdown; empty if nothing was measured."""
    found = guesses(recorded)
    if not found:
        return ""
    return "\n".join(
        [
            "## What we had to guess",
            "",
            "What the paper leaves open, what we chose, and what another choice changes, in points "
            "unless a row says otherwise. MLR and SLR take 50 gradient steps where nothing else is "
            "said. Of MIMLSVM and MIMLNN, the figures are of average precision, and scaling means "
            "instances brought to length one.",
            "",
            "| the paper leaves open | we chose | what another choice changes |",
            "|---|---|---|",
            *(
                f"| {each.what} | {each.taken} | {each.worth} ([{each.where}](#{each.where})) |"
                for each in found
            ),
            "",
        ]
    )
