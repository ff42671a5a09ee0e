"""Verdicts on tables and figures: what stands in, what counts, and what says nothing."""

import pytest

from made_results import figure, make_results
from unbag_reproduce.claims import (
    DIRECTION_ONLY,
    FAILS,
    HOLDS,
    MOSTLY,
    NOT_MADE,
    UNKNOWN,
    Judgement,
)
from unbag_reproduce.claims import IN_PART as HOLDS_IN_PART
from unbag_reproduce.differences import all_findings
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.verdicts import ITEMS, OPEN, REPRODUCED, UNFINISHED, judge_item


def judged(out, title, judgements=()):
    item = next(each for each in ITEMS if each.title == title)
    recorded = Recorded(out)
    return judge_item(item, recorded, list(judgements), all_findings(recorded))


@pytest.fixture
def paper(monkeypatch):
    """A paper that has MLR and SIM, and no more."""
    cells = {"mlr": {"mean": 50.0}, "sim": {"mean": 48.0}}
    monkeypatch.setattr("unbag_reproduce.verdicts.published_figure", lambda *_: cells)


@pytest.mark.parametrize(
    ("title", "study", "table", "more", "n_data"),
    [
        ("Table 2", "datasets", "datasets", {"quantity": "bags"}, 6),
        ("Table 10", "pruning", "pruning_ratio", {"of": "counted steps of FAST"}, 4),
    ],
)
def test_hja_union_is_said_to_stand_for_hja_bird(tmp_path, title, study, table, more, n_data):
    same = {"ours": 548, "published": 548, "difference": 0, **more}
    records = [{"data": "msrcv2", **same}, {"data": "hja-union", **same}]
    make_results(tmp_path, study, **{table: records[:1]})
    assert judged(tmp_path, title).why.endswith(f"1 of {n_data} data sets.")
    make_results(tmp_path, study, **{table: records})
    assert judged(tmp_path, title).why.endswith(f"2 of {n_data} data sets, HJA union for HJA bird.")


def test_who_is_best_is_not_said_of_a_method_alone(tmp_path, paper):
    alone = [figure("MLR", 50.5, 50.0), figure("SLR", 55.5, 55.0)]
    make_results(tmp_path, "inductive", inductive_accuracy=alone)
    assert "The best" not in judged(tmp_path, "Table 3").why
    contest = [
        figure(name, ours, ours, data="hja-union") for name, ours in (("MLR", 5), ("SIM", 4))
    ]
    make_results(tmp_path, "inductive", inductive_accuracy=[*alone, *contest])
    assert "in 1 of 1 comparisons" in judged(tmp_path, "Table 3").why


def by_each_tuning(sim):
    return [
        [figure(name, ours, published, measure="one_error", tuned_by=tuned_by)
         for name, ours, published in (("MLR", 50.0, 50.0), ("SIM", reached, 48.0))]
        for tuned_by, reached in zip(("each measure", "Hamming loss"), sim, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reached", "verdict", "n_near"),
    [((48.0, 48.0), REPRODUCED, 2), ((48.0, 60.0), REPRODUCED, 1), ((60.0, 48.0), OPEN, 2)],
)
def test_where_tuning_is_left_open_one_reading_counts_and_the_other_is_said(
    tmp_path, paper, reached, verdict, n_near
):
    by_measure, by_loss = by_each_tuning(reached)
    make_results(tmp_path, "bag-level", bag_level_measure=by_measure, bag_level_hamming=by_loss)
    found = judged(tmp_path, "Table 7")
    assert found.verdict == verdict
    assert f"tuned by Hamming loss, {n_near} of 2 are reproduced." in found.why
    make_results(tmp_path, "bag-level", bag_level_measure=by_measure[:1])
    assert judged(tmp_path, "Table 7").verdict == UNFINISHED


@pytest.mark.parametrize(
    ("readings", "verdict", "words"),
    [
        ([HOLDS, MOSTLY, UNKNOWN], REPRODUCED, "2 can be checked: holds 1, mostly holds 1."),
        ([HOLDS, HOLDS_IN_PART], OPEN, "holds 1, holds in part 1."),
        ([HOLDS, HOLDS_IN_PART, DIRECTION_ONLY], OPEN, "3 can be checked"),
        ([FAILS, NOT_MADE], OPEN, "1 can be checked: does not hold 1."),
    ],
)
def test_a_picture_is_open_unless_all_readings_hold(tmp_path, readings, verdict, words):
    found = judged(tmp_path, "Figure 8", [Judgement({"on": "Figure 8"}, each) for each in readings])
    assert found.verdict == verdict
    assert words in found.why
    assert found.why.endswith("HJA union stands for HJA bird.")
