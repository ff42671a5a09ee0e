"""Figures in the words around the tables: each is what the committed results say.

Tables, claims and verdicts are written from results. Remarks are written by hand: every sentence of
theirs with a figure stands here with what recomputes it, or as a sentence without a measurement.
"""

import re
from pathlib import Path

import pytest

from unbag_reproduce import STUDIES, find_study, published_figure
from unbag_reproduce.front import KNOWN
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.studies.convergence import END_TITLE

RECORDED = Recorded(Path(__file__).parents[2] / "docs" / "results")
LETTERS = ("letter-carroll", "letter-frost")
DATA = ("hja-union", "msrcv2", *LETTERS)
FIGURE = re.compile(r"\d|\bpoints?\b|fifth|\b(?:one|two|six|nine|ten) (?:instances|points)")


def one(study, table, column="ours", **where):
    """The figure that a table has at one place."""
    (found,) = RECORDED.find({"study": study, "table": table, **where})
    return found[column]


def accuracy(data, method, column="ours"):
    return one("inductive", "inductive-accuracy", column, data=data, method=method)


def gains(names, method, more):
    return [accuracy(name, f"{method}, {more}") - accuracy(name, method) for name in names]


def within(values, low, high):
    """Whether the rounded ends of some figures are those that a text has."""
    return (round(min(values)), round(max(values))) == (low, high)


def more_steps_come_near():
    away = [
        accuracy("hja-union", f"{method}, 200 steps", "difference") for method in ("MLR", "SLR")
    ]
    return max(map(abs, away)) <= 1


def more_steps_on_letters():
    change = [abs(each) for m in ("MLR", "SLR") for each in gains(LETTERS, m, "200 steps")]
    lost = [-each for m in ("MLR", "SLR") for each in gains(LETTERS, m, "L-BFGS to the end")]
    return max(change) <= 1 and within(lost, 6, 8)


def searches_miss_hja():
    records = RECORDED.find({"study": "guesses", "table": "guesses-search", "data": "hja-union"})
    away = {}
    for record in records:
        away.setdefault(record["search"], []).append(abs(record["difference"]))
    return len(away) == 7 and all(max(each) > 1 for each in away.values())


def other_scalings_lose():
    records = RECORDED.find({"study": "guesses", "table": "guesses-scaling"})
    others = [each for each in records if each["scaling"] != "standardised"]
    return len(others) == 16 and all(each["difference"] < -10 for each in others)


def nearer_from_one():
    def gaps(search):
        place = {"study": "guesses", "table": "guesses-search", "method": "MLR", "search": search}
        return {each["data"]: abs(each["difference"]) for each in RECORDED.find(place)}

    ours, book = gaps("alpha 0.3, beta 0.5"), gaps("alpha 0.3, beta 0.5, start 1")
    return len(ours) == 4 and sum(book[name] < gap for name, gap in ours.items()) == 3


def likelihood(data, steps):
    return one("convergence", "convergence-likelihood", data=data, steps=steps)


def four_fifths():
    def share(name):
        start, here, end = (likelihood(name, each) for each in (1.0, 50.0, END_TITLE))
        return (here - start) / (end - start)

    return all(0.75 <= share(name) <= 0.85 for name in DATA)


def lost_at_the_end():
    lost = [-each for m in ("MLR", "SLR") for each in gains(LETTERS, m, "L-BFGS to the end")]
    return round(max(lost)) == 8


def instances_per_weight():
    def count(name, quantity):
        return one("datasets", "datasets", data=name, quantity=quantity)

    shares = [
        round(count(name, "instances") / (count(name, "classes") * count(name, "features")))
        for name in DATA
    ]
    return shares[0] == 10 and set(shares[1:]) <= {1, 2}


def quasi_newton():
    def short_of_published(name, method):
        known = accuracy(name, method, "published")
        return known - one(
            "convergence", "convergence-accuracy", data=name, method=f"{method} by L-BFGS", steps=50
        )

    near, far = (
        [short_of_published(name, method) for name in names for method in ("MLR", "SLR")]
        for names in (("hja-union", "msrcv2"), LETTERS)
    )
    return max(map(abs, near)) <= 1 and within(far, 1, 7)


def bags_on_hja(method):
    records = RECORDED.find(
        {"study": "bag-level", "table": "bag-level-hamming", "data": "hja-union", "method": method}
    )
    assert len(records) == 5
    return [
        each["difference"] * (-1 if each["measure"] == "average_precision" else 1)
        for each in records
    ]


def distance(data, kind, measure, column="difference"):
    titles = {"authors": "maximal Hausdorff (the authors')", "least": "minimal Hausdorff",
              "mean": "average Hausdorff"}  # fmt: skip
    return one("distances", "distances", column, data=data, method=titles[kind], measure=measure)


MEASURES = ("hamming_loss", "ranking_loss", "average_precision", "one_error", "coverage")


def far_measures(data, kind):
    return {each for each in MEASURES if abs(distance(data, kind, each)) > 2}


def by_the_authors_distance():
    return (far_measures(LETTERS[0], "authors"), far_measures(LETTERS[1], "authors")) == (
        {"one_error", "coverage"},
        {"average_precision", "one_error"},
    )


def by_the_least_distance():
    return round(distance(LETTERS[0], "least", "average_precision")) == 9


def by_the_mean_distance():
    gaps = [
        one("bag-level", "bag-level-measure", data=name, method="MLR", measure="average_precision")
        - distance(name, "mean", "average_precision", "ours")
        for name in LETTERS
    ]
    return max(gaps) <= 6


def violated(data, kind, method, probability):
    return one(
        "violations", f"violations-{kind}", data=data, method=f"MLR, {method}",
        probability=probability,
    )  # fmt: skip


def learnt_rates():
    gained = [
        violated(data, kind, learnt, p) - violated(data, kind, "labels required", p)
        for kind, learnt in (("added", "false learnt"), ("removed", "missed learnt"))
        for data in DATA
        for p in (0, 0.3)
    ]
    return min(gained) >= -0.35


def won_back():
    def shares(data, kind, learnt):
        start, required = (violated(data, kind, "labels required", p) for p in (0, 0.3))
        return round(violated(data, kind, learnt, 0.3) - required), round(start - required)

    return shares("letter-frost", "added", "false learnt") == (2, 16) and shares(
        "msrcv2", "removed", "missed learnt"
    ) == (10, 13)


def optional_is_better():
    return all(
        violated("hja-union", "added", "labels optional", p)
        > violated("hja-union", "added", "false learnt", p)
        for p in (0.2, 0.3)
    )


def come_out_as_missed():
    found = one(
        "violations", "violations-removed", "missed_percent", data="hja-union", probability=0,
        method="MLR, missed learnt",
    )  # fmt: skip
    return round(found, 1) == 58.5


#: Beginnings of sentences with figures, and what says that these are right.
MEASURED = {
    "with 200 steps both come within a point of them": more_steps_come_near,
    "On the letters 200 steps change a point at most": more_steps_on_letters,
    "None of the seven line searches that were tried": searches_miss_hja,
    "With alpha 0.3 and beta 0.5, but started at 1": nearer_from_one,
    "With 50 gradient steps on features as they are": other_scalings_lose,
    "In ours it has gone about four fifths of the way": four_fifths,
    "On the letters it costs accuracy, up to 8 points": lost_at_the_end,
    "HJA has ten instances for each weight": instances_per_weight,
    "50 steps of L-BFGS give the published figures": quasi_newton,
    "MLR and SLR fall short on HJA in all five measures with 50 steps": lambda: all(
        each > 0 for method in ("MLR", "SLR") for each in bags_on_hja(method)
    ),
    "with 200 they are within a point": lambda: all(
        abs(each) <= 1 for method in ("MLR", "SLR") for each in bags_on_hja(f"{method}, 200 steps")
    ),
    "By the authors' own, Letter Carroll comes out within two points": by_the_authors_distance,
    "By the minimal one Letter Frost comes near": by_the_least_distance,
    "By the average distance MIMLNN comes within six points": by_the_mean_distance,
    "A rate that is learnt, where it is the rate of what is wrong": learnt_rates,
    "at p = 0.3 from about 2 of 16 lost points": won_back,
    "On HJA union with labels added, the learnt rate": optional_is_better,
    "on HJA union 58.5 % of the instances": come_out_as_missed,
}
#: Those whose figures are settings, parts of names, or of the paper.
NOT_MEASURED = (
    "MLR and SLR take 50 gradient steps", "The paper fixes 50 iterations",
    "What is left of the way changes little on MSRC v2", "The paper reports its figures with 50",
    "The paper does not say in 6.4", "On HJA and MSRCv2 it would be the first class",
    "they hold the old ones, all but alpha 0.03", "The difference of two such means",
    "on the letters, where ours are means over five draws", "1.1 is taken",
    "The paper gives its epochs only for kernels, 100", "500 of MLR and SLR (else 50)",
    "what features are divided by, which the paper does not give here, is 1",
)  # fmt: skip


@pytest.mark.parametrize("study", STUDIES)
def test_every_figure_of_a_remark_is_recomputed(study):
    words = " ".join(find_study(study).remarks.replace("**Take care**: ", "").split())
    for sentence in re.split(r"(?<=[.:;])\s+", words):
        if FIGURE.search(sentence):
            known = [each for each in (*MEASURED, *NOT_MEASURED) if sentence.startswith(each)]
            assert len(known) == 1, f"nothing says that this is so: {sentence}"


@pytest.mark.parametrize("sentence", MEASURED)
def test_what_is_quoted_is_what_committed_results_say(sentence):
    everything = " ".join(" ".join(find_study(name).remarks.split()) for name in STUDIES)
    assert sentence in everything
    assert MEASURED[sentence]()


def test_what_the_first_page_says_of_hja_is_what_committed_results_say():
    """`unbag_reproduce.front.KNOWN`: near after 100 steps, and not after 50."""
    assert "within 1.5 points after 100 steps" in KNOWN["MLR"]
    assert KNOWN["SLR"] == " On HJA the same holds as for MLR."
    for method in ("MLR", "SLR"):
        found = published_figure("inductive", "accuracy", "hja-union", method.lower())["mean"]
        place = {"study": "convergence", "table": "convergence-accuracy", "data": "hja-union"}
        gaps = {
            each["steps"]: abs(each["ours"] - found)
            for each in RECORDED.find({**place, "method": method})
        }
        assert gaps[100.0] <= 1.5 < gaps[50.0]
