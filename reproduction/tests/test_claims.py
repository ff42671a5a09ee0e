"""Claims of the paper's text, looked up in tables and judged."""

from pathlib import Path

import pytest

from made_results import figure, make_results
from unbag_reproduce.claims import (
    DIRECTION_ONLY,
    FAILS,
    HOLDS,
    IN_PART,
    MISSING_DATA,
    MOSTLY,
    UNKNOWN,
    completed,
    is_met,
    judge,
    read_claims,
    verdict_of,
)
from unbag_reproduce.plan import PAPER_DATA
from unbag_reproduce.quantities import Reading
from unbag_reproduce.recorded import Recorded

HOW = {"near", "between", "above", "below", "at_most", "as_published"}
CLAIMS, WORDS = read_claims()["claim"], read_claims()["words"]
COMMITTED = Recorded(Path(__file__).parents[2] / "docs" / "results")
#: Quantities that compare two things.
COMPARING = ("difference", "excess", "ratio", "share")
OF = {"study": "inductive", "table": "accuracy", "method": "MLR"}


def claim(**entries):
    return {"section": "6", "on": "Table 3", "says": "so", "data": ["msrcv2"], "of": OF, **entries}


@pytest.mark.parametrize("each", CLAIMS, ids=lambda each: f"{each['section']}: {each['says']}")
def test_every_claim_can_be_looked_up(each):
    if "of" not in each:
        assert each["note"]  # why it cannot be checked
        return
    claim = completed(each)
    assert set(claim["expect"]) | set(claim["direction"] or {}) <= HOW
    assert set(each.get("data", [])) <= {*PAPER_DATA, *MISSING_DATA}
    assert ("against" in each) == (each.get("quantity", "difference") in COMPARING)
    # A word of degree is judged by its own rule. Cells are bold by a test: "significantly".
    said = [word for word in WORDS if word in each["says"]]
    if said and each.get("quantity") != "bold":
        assert each["expect"] in said or "or better" in each["says"]
    if set(each.get("data", "?")) <= set(MISSING_DATA):
        return
    # What misses a number may have its direction; Table 10 has counts.
    is_number = claim["expect"].keys() & {"near", "between"}
    if is_number and each.get("quantity") in ("figure", None) and each["on"] != "Table 10":
        assert claim["direction"]
    assert judge(each, COMMITTED).ours


@pytest.mark.parametrize(
    ("ours", "expect", "direction", "verdict"),
    [
        ((60.0, 50.0), {"near": 9}, None, HOLDS),  # within two points
        ((60.0, 55.0), {"near": 9}, None, DIRECTION_ONLY),
        ((50.0, 60.0), {"near": 9}, None, FAILS),
        ((60.0, 50.0), {"between": [5, 8]}, None, HOLDS),
        ((60.0, 50.0), {"above": 0}, None, HOLDS),
        ((50.0, 60.0), {"above": 0}, None, FAILS),
        ((60.0, 59.0), {"at_most": 3}, None, HOLDS),
        ((60.0, 50.0), {"at_most": 3}, None, FAILS),  # a change has no direction
        ((60.0, 50.0), {"at_most": 3}, {"at_most": 11}, DIRECTION_ONLY),
        ((60.0, 58.0), "comparable", None, HOLDS),
        ((60.0, 58.0), "clearly", None, DIRECTION_ONLY),
        ((60.0, 50.0), {"near": {"msrcv2": 10}}, None, HOLDS),
    ],
)
def test_a_difference_is_judged(tmp_path, ours, expect, direction, verdict):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", ours[0]), figure("SIM", ours[1])])
    asked = claim(against={"method": "SIM"}, expect=expect, unit="points")
    if direction:
        asked["direction"] = direction
    assert judge(asked, Recorded(tmp_path)).verdict == verdict


@pytest.mark.parametrize(("ours", "verdict"), [(60.0, HOLDS), (40.0, UNKNOWN)])
def test_what_cannot_refute_a_claim_may_still_bear_it_out(tmp_path, ours, verdict):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", ours)])
    bound = claim(quantity="figure", expect={"above": 50}, cannot_refute=True)
    found = judge(bound, Recorded(tmp_path))
    assert (found.verdict, found.ours) == (verdict, f"MSRC v2 {ours:.1f}")


@pytest.mark.parametrize(
    ("n_met", "n", "verdict"),
    [
        (60, 60, HOLDS), (47, 60, MOSTLY), (16, 20, MOSTLY), (14, 16, MOSTLY), (8, 10, MOSTLY),
        (3, 4, MOSTLY), (2, 3, IN_PART), (1, 4, IN_PART), (0, 4, FAILS),
    ],
)  # fmt: skip
def test_verdicts_follow_from_the_share_of_the_figures_alone(n_met, n, verdict):
    met = [True] * n_met + [False] * (n - n_met)
    assert verdict_of(met, has_direction=False) == verdict
    assert verdict_of(met, has_direction=True) == (verdict if n_met else DIRECTION_ONLY)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"against": {"method": "SIM"}, "expect": {"near": 14}, "unit": "points"},
         "0 of 1 within 2 points of 14; above 0."),
        ({"quantity": "figure", "expect": {"near": {"msrcv2": 9.2}}, "direction": {"above": 1}},
         "0 of 1 within 25 % of 9.2; above 1."),
        ({"against": {"method": "SIM"}, "expect": {"between": [9, 12]}, "unit": "points"},
         "1 of 1 within 2 points of 9 to 12."),
        ({"against": {"method": "SIM"}, "expect": "similar"}, "0 of 1 at most 3 either way."),
        ({"quantity": "figure", "expect": {"below": 100}}, "1 of 1 below 100."),
    ],
)  # fmt: skip
def test_what_is_asked_of_figures_stands_with_them(tmp_path, entries, words):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", 60.0), figure("SIM", 50.0)])
    assert judge(claim(**entries), Recorded(tmp_path)).why == words


def test_the_few_that_are_not_as_said_are_named(tmp_path):
    rivals = [figure("SIM", 50.0), figure("MIMLfast", 50.0), figure("LSB-CMM", 60.1)]
    make_results(
        tmp_path, "inductive", accuracy=[figure("MLR", 60.0), figure("MLR", 61.0), *rivals]
    )
    asked = claim(against={"method": ["SIM", "MIMLfast", "LSB-CMM"]}, expect={"above": 0})
    found = judge(asked, Recorded(tmp_path))
    assert found.why == "5 of 6 above 0, not MLR against LSB-CMM on MSRC v2."


def test_figures_to_read_a_claim_with_stand_beside_it(tmp_path):
    records = [figure("MLR", 2.2), figure("SIM", 4.8)]
    make_results(tmp_path, "inductive", accuracy=records)
    asked = claim(
        quantity="figure", expect={"near": 9.2}, unit="times", note="So it is.",
        beside={"label": "SIM alone", "of": {"method": "SIM"}},
    )  # fmt: skip
    found = judge(asked, Recorded(tmp_path))
    assert found.ours == "MSRC v2 2.2 times"
    assert found.why == "0 of 1 within 25 % of 9.2. SIM alone: MSRC v2 4.8 times. So it is."


def test_how_many_are_as_another_reading_asks_stands_beside_a_claim(tmp_path):
    records = [figure("MLR", 60.0, 54.0), figure("SIM", 50.0, 53.0), figure("LSB-CMM", 64.0, 60.0)]
    make_results(tmp_path, "inductive", accuracy=records)
    asked = claim(
        against={"method": ["SIM", "LSB-CMM"]}, expect="comparable", unit="points",
        beside={"label": "Less than 3 points worse", "expect": {"above": -3.0}},
    )  # fmt: skip
    found = judge(asked, Recorded(tmp_path))
    assert found.verdict == FAILS
    assert found.why == (
        "0 of 2 at most 3 either way; in the paper's own tables 1 of 2 (MSRC v2 -6.0 to 1.0). "
        "Less than 3 points worse: 1 of 2, in the paper's own tables 1 of 2."
    )


def test_less_is_better_for_losses(tmp_path):
    losses = [
        figure("MLR", 4.0, measure="hamming_loss"),
        figure("SIM", 9.0, measure="hamming_loss"),
    ]
    make_results(tmp_path, "inductive", accuracy=losses)
    found = judge(claim(against={"method": "SIM"}, expect={"above": 0}), Recorded(tmp_path))
    assert (found.verdict, found.ours) == (HOLDS, "MSRC v2 5.0")


def test_the_papers_own_tables_stand_beside_what_its_text_says(tmp_path):
    records = [figure("MLR", 60.0, 54.8), figure("SIM", 50.0, 46.7), figure("LSB-CMM", 49.0, 45.4)]
    make_results(tmp_path, "inductive", accuracy=records)
    asked = claim(against={"method": ["SIM", "LSB-CMM"]}, expect={"between": [9, 9]}, unit="points")
    found = judge(asked, Recorded(tmp_path))
    assert found.verdict == HOLDS
    assert found.ours == "MSRC v2 10.0 to 11.0 points"
    assert found.why == (
        "2 of 2 within 2 points of 9 to 9; in the paper's own tables 2 of 2 (MSRC v2 8.1 to 9.4)."
    )


@pytest.mark.parametrize(("once", "n_own"), [(True, 1), (False, 2)])
def test_one_table_of_the_paper_beside_two_of_ours_counts_once(tmp_path, once, n_own):
    records = [figure("MLR", 60.0, 54.8), figure("SIM", 50.0, 46.7)]
    make_results(tmp_path, "inductive", by_measure=records, by_loss=records)
    of = {**OF, "table": ["by-measure", "by-loss"]}
    asked = claim(of=of, against={"method": "SIM"}, expect={"above": 0}, one_published_table=once)
    found = judge(asked, Recorded(tmp_path))
    assert found.why.startswith(f"2 of 2 above 0; in the paper's own tables {n_own} of {n_own} (")


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
        ("exponent", {"over": "percent", "to": 4}, "1.00"),
        ("exponent", {"over": "percent"}, "0.69"),
        ("factor", {"over": "percent", "to": 2}, "2.00"),
        ("linearity", {"over": "percent", "to": 4}, "100.0"),
        ("settled", {"over": "percent", "at": [1, 2, 4]}, "33.3"),
    ],
)
def test_quantities(tmp_path, quantity, more, value):
    make_results(tmp_path, "inductive", accuracy=CURVE)
    found = judge(claim(quantity=quantity, expect={"above": 0}, **more), Recorded(tmp_path))
    assert found.ours == f"MSRC v2 {value}"


def test_a_curve_may_be_over_entries_that_begin_with_a_number(tmp_path):
    times = {"2 labels": 1.0, "4 labels": 4.0, "6 labels": 16.0}
    records = [{"method": "MLR", "labels": k, "ours": time} for k, time in times.items()]
    make_results(tmp_path, "inductive", accuracy=records)
    asked = claim(data=[""], quantity="factor", over="labels", expect={"near": 2})
    found = judge(asked, Recorded(tmp_path))
    assert (found.verdict, found.ours, found.tally) == (HOLDS, "2.00", "1 of 1 within 25 % of 2")


def test_rivals_are_apart_within_each_table(tmp_path):
    tables = {
        name: [figure("SIM", best - 2.0, 40.0), figure("MIMLfast", best, 41.0)]
        for name, best in (("by_accuracy", 60.0), ("by_loss", 50.0))
    }
    make_results(tmp_path, "inductive", **tables)
    of = {**OF, "table": ["by-accuracy", "by-loss"], "method": ["SIM", "MIMLfast"]}
    found = judge(claim(of=of, quantity="spread", expect="comparable"), Recorded(tmp_path))
    assert found.ours == "MSRC v2 2.0"
    assert found.why == "2 of 2 at most 3; in the paper's own tables 2 of 2 (MSRC v2 1.0)."


def test_an_excess_is_how_much_more_one_is_ahead_here_than_elsewhere(tmp_path):
    leads = {"msrcv2": (60.0, 50.0, 54.0, 40.0), "hja-union": (70.0, 68.0, 74.0, 71.0)}
    records = [
        figure(method, ours, published, data=data)
        for data, (ours, of_rival, published, published_of_rival) in leads.items()
        for method, ours, published in (
            ("MLR", ours, published), ("SIM", of_rival, published_of_rival),
        )
    ]  # fmt: skip
    make_results(tmp_path, "inductive", accuracy=records)
    asked = claim(
        quantity="excess", against={"method": "SIM"}, than="hja-union", expect="especially"
    )
    found = judge(asked, Recorded(tmp_path))
    assert (found.verdict, found.ours) == (HOLDS, "MSRC v2 8.0")
    assert found.why == "1 of 1 above 3; in the paper's own tables 1 of 1 (MSRC v2 11.0)."


def test_a_share_is_of_parts_in_one_table_and_a_whole_in_another(tmp_path):
    steps = [
        {"data": "msrcv2", "method": method, "milliseconds": time}
        for method, time in (("priors", 10.0), ("FAST", 20.0))
    ]
    make_results(tmp_path, "complexity", time=steps)
    make_results(tmp_path, "pruning", time=[{"data": "msrcv2", "line": "FAST", "ours": 1.8}])
    asked = claim(
        quantity="share", of={"study": "complexity", "table": "time", "method": ["priors", "FAST"]},
        column="milliseconds", times=[50, 0.9, 0.001],
        against={"study": "pruning", "table": "time", "line": "FAST"}, expect={"above": 50},
    )  # fmt: skip
    found = judge(asked, Recorded(tmp_path))
    assert (found.verdict, found.ours) == (HOLDS, "MSRC v2 75.0")


def test_bold_cells_are_counted_here_and_in_the_paper(tmp_path):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", 60.0, bold=True)])
    found = judge(
        claim(
            quantity="bold", expect={"as_published": True},
            published=["inductive", "accuracy", "data", "method"],
        ),
        Recorded(tmp_path),
    )  # fmt: skip
    assert (found.verdict, found.ours) == (HOLDS, "MSRC v2 100.0")
    assert found.why == "1 of 1 at least as much as in the paper: there MSRC v2 100.0."


def test_what_was_never_reached_is_not_below_anything():
    assert not is_met({"below": 100}, Reading("msrcv2", float("inf")), "%")


@pytest.mark.parametrize(
    ("data", "verdict", "why"),
    [
        (["voc12"], UNKNOWN, "Voc12: data not here."),
        (["msrcv2", "hja"], HOLDS, "1 of 1 above 0. Without HJA bird."),
    ],
)
def test_what_is_not_there_is_said(tmp_path, data, verdict, why):
    make_results(tmp_path, "inductive", accuracy=[figure("MLR", 60.0)])
    found = judge(claim(quantity="figure", data=data, expect={"above": 0}), Recorded(tmp_path))
    assert (found.verdict, found.why) == (verdict, why)
