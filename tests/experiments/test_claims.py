"""Claims of the paper's text, looked up in tables and judged."""

import pytest

from made_results import figure, make_results
from unbag.experiments.claims import (
    FAILS,
    HOLDS,
    IN_PART,
    MISSING_DATA,
    NOT_MADE,
    UNKNOWN,
    claims,
    claims_section,
    is_met,
    judge,
    judge_all,
)
from unbag.experiments.plan import PAPER_DATA
from unbag.experiments.quantities import QUANTITIES, Reading
from unbag.experiments.recorded import Recorded

HOW = {"near", "between", "above", "below", "at_most", "as_published"}
OF = {"study": "inductive", "table": "accuracy", "method": "MLR"}


def claim(**entries):
    return {"section": "6", "on": "Table 3", "says": "so", "data": ["msrcv2"], "of": OF, **entries}


@pytest.mark.parametrize("each", claims(), ids=lambda each: f"{each['section']}: {each['says']}")
def test_every_claim_can_be_looked_up(each):
    assert {"section", "on", "says", "of", "expect"} <= each.keys()
    assert each.get("quantity", "difference") in QUANTITIES
    assert set(each["expect"]) | set(each.get("weaker", {})) <= HOW
    assert set(each.get("data", [])) <= set(PAPER_DATA)
    assert {"study", "table"} <= each["of"].keys()
    assert ("against" in each) == (each.get("quantity", "difference") in ("difference", "ratio"))


def test_there_are_claims_on_data_that_cannot_be_had():
    unknown = [each for each in claims() if set(each.get("data", "?")) <= set(MISSING_DATA)]
    assert len(unknown) > 5


@pytest.mark.parametrize(
    ("ours", "expect", "weaker", "verdict"),
    [
        ((60.0, 50.0), {"near": 9}, None, HOLDS),  # within two points
        ((60.0, 55.0), {"near": 9}, None, IN_PART),  # only the direction
        ((50.0, 60.0), {"near": 9}, None, FAILS),
        ((60.0, 50.0), {"between": [5, 8]}, None, HOLDS),
        ((60.0, 50.0), {"above": 0}, None, HOLDS),
        ((50.0, 60.0), {"above": 0}, None, FAILS),
        ((60.0, 59.0), {"at_most": 3}, None, HOLDS),
        ((60.0, 50.0), {"at_most": 3}, {"at_most": 11}, IN_PART),
        ((60.0, 50.0), {"near": {"msrcv2": 10}}, None, HOLDS),
    ],
)
def test_a_difference_is_judged(tmp_path, ours, expect, weaker, verdict):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", ours[0]), figure("SIM", ours[1])])
    asked = claim(against={"method": "SIM"}, expect=expect)
    if weaker:
        asked["weaker"] = weaker
    assert judge(asked, Recorded(tmp_path)).verdict == verdict


def test_less_is_better_for_losses(tmp_path):
    losses = [
        figure("MLR", 4.0, measure="hamming_loss"),
        figure("SIM", 9.0, measure="hamming_loss"),
    ]
    make_results(tmp_path, "inductive", accuracy=losses)
    found = judge(claim(against={"method": "SIM"}, expect={"above": 0}), Recorded(tmp_path))
    assert (found.verdict, found.ours) == (HOLDS, "msrcv2 5.0")


def test_the_papers_own_tables_stand_beside_what_its_text_says(tmp_path):
    records = [figure("MLR", 60.0, 54.8), figure("SIM", 50.0, 46.7), figure("LSB-CMM", 49.0, 45.4)]
    make_results(tmp_path, "inductive", accuracy=records)
    asked = claim(against={"method": ["SIM", "LSB-CMM"]}, expect={"between": [9, 9]}, unit="points")
    found = judge(asked, Recorded(tmp_path))
    assert found.verdict == HOLDS
    assert found.ours == "msrcv2 10.0 to 11.0 points"
    assert found.why == "2 of 2 as said; in the paper's own tables 2 of 2 (msrcv2 8.1 to 9.4)."


CURVE = [
    {"data": "msrcv2", "method": "MLR", "percent": percent, "ours": ours}
    for percent, ours in ((1, 10.0), (2, 20.0), (4, 40.0), (8, 39.0))
]


@pytest.mark.parametrize(
    ("quantity", "more", "value"),
    [
        ("figure", {"of": {**OF, "percent": 4}}, "40.0"),
        ("ratio", {"of": {**OF, "percent": 4}, "against": {"percent": 2}}, "2.0"),
        ("spread", {}, "30.0"),
        ("fall", {"over": "percent"}, "1.0"),
        ("exponent", {"over": "percent", "to": 4}, "1.0"),
        ("linearity", {"over": "percent", "to": 4}, "100.0"),
        ("settled", {"over": "percent", "at": [1, 2, 4]}, "33.3"),
    ],
)
def test_quantities(tmp_path, quantity, more, value):
    make_results(tmp_path, "inductive", accuracy=CURVE)
    found = judge(claim(quantity=quantity, expect={"above": 0}, **more), Recorded(tmp_path))
    assert found.ours == f"msrcv2 {value}"


def test_bold_cells_are_counted_here_and_in_the_paper(tmp_path):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", 60.0, bold=True)])
    found = judge(
        claim(
            quantity="bold", expect={"as_published": True},
            published=["inductive", "accuracy", "data", "method"],
        ),
        Recorded(tmp_path),
    )  # fmt: skip
    assert (found.verdict, found.ours) == (HOLDS, "msrcv2 100.0")
    assert "in the paper msrcv2 100.0" in found.why


def test_what_was_never_reached_is_not_below_anything():
    assert not is_met({"below": 100}, Reading("msrcv2", float("inf")), "figure")


@pytest.mark.parametrize(
    ("data", "level", "verdict", "why"),
    [
        (["voc12"], "standard", UNKNOWN, "Voc12: data not here."),
        (["letter-frost"], "standard", NOT_MADE, "`unbag reproduce inductive` makes it."),
        (["msrcv2"], "quick", NOT_MADE, "`unbag reproduce inductive` makes it."),
        (["msrcv2", "hja"], "standard", HOLDS, "1 of 1 as said. Without HJA bird."),
    ],
)
def test_what_is_not_there_is_said(tmp_path, data, level, verdict, why):
    make_results(tmp_path, "inductive", level=level, accuracy=[figure("MLR", 60.0)])
    found = judge(claim(quantity="figure", data=data, expect={"above": 0}), Recorded(tmp_path))
    assert (found.verdict, found.why) == (verdict, why)


def test_without_any_results_nothing_holds(tmp_path):
    found = judge_all(Recorded(tmp_path))
    assert {each.verdict for each in found} == {NOT_MADE, UNKNOWN}
    assert "not made yet" in claims_section(found)
