"""Figures that are not the paper's: found, explained or open, judged."""

import pytest

from made_results import figure, make_results
from unbag_reproduce import Ledger, Plan, find_study
from unbag_reproduce.claims import judge_all
from unbag_reproduce.differences import (
    all_findings,
    counted,
    differences_page,
    same_section,
    settings_alone_section,
)
from unbag_reproduce.explanations import EXPLAINED, OPEN, REPRODUCED, known_explanations
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.studies import STUDIES
from unbag_reproduce.verdicts import ITEMS, UNFINISHED, judge_item, verdicts_section


def findings_of(out, *records, **tables):
    make_results(out, "inductive", inductive_accuracy=list(records), **tables)
    return all_findings(Recorded(out))


@pytest.mark.parametrize("method", ["SIM", "MLR", "dummy"])
@pytest.mark.parametrize(
    ("ours", "status"), [(51.4, REPRODUCED), (51.6, OPEN), (48.6, REPRODUCED), (48.4, OPEN)]
)
def test_a_figure_is_reproduced_within_a_point_and_a_half_whosever_it_is(
    tmp_path, method, ours, status
):
    (found,) = findings_of(tmp_path, figure(method, ours, 50.0))
    assert found.status == status


def test_more_steps_than_published_explain_nothing(tmp_path):
    """They remove the difference, but the paper has 50: no cause is known."""
    (found,) = findings_of(
        tmp_path, figure("MLR", 47.0, 50.0), figure("MLR, 200 steps", 49.5, 50.0)
    )
    assert found.status == OPEN
    assert "MLR, 200 steps, reaches 49.5; the paper has 50" in found.why


@pytest.mark.parametrize(
    ("deviation", "is_scatter"),
    [({"draw_std": 1.2}, True), ({"draw_std": 0.5}, False), ({}, False)],
)
def test_scatter_is_said_and_explains_nothing(tmp_path, deviation, is_scatter):
    """A deviation of five draws, 4 degrees of freedom: 3.0 is 2.78 * sqrt(6 / 5) times 0.985."""
    record = figure("SIM", 47.0, 50.0, data="letter-frost", **deviation)
    make_results(tmp_path, "inductive", data=("letter-frost",), inductive_accuracy=[record])
    (found,) = all_findings(Recorded(tmp_path))
    assert (found.status, found.within_scatter) == (OPEN, is_scatter)
    assert ("open, scatter" in differences_page([found])) == is_scatter


@pytest.mark.parametrize(("std", "is_scatter"), [(0.9, True), (0.8, False)])
def test_folds_drawn_anew_say_how_far_means_scatter(tmp_path, std, is_scatter):
    """Six partitions, 5 degrees of freedom: 3.0 is 2.57 * sqrt(2) times 0.825."""
    make_results(tmp_path, "partitions", partitions=[figure("SIM", 48.0, std=std)])
    (found,) = findings_of(tmp_path, figure("SIM", 47.0, 50.0))
    assert found.within_scatter == is_scatter


def test_the_other_of_two_ways_to_tune_is_no_explanation(tmp_path):
    place = {"data": "letter-frost", "measure": "ranking_loss"}
    make_results(
        tmp_path, "bag-level", data=("letter-frost",),
        bag_level_measure=[figure("MIMLNN", 20.9, 15.7, **place)],
        bag_level_hamming=[figure("MIMLNN", 17.2, 15.7, **place)],
    )  # fmt: skip
    (found,) = all_findings(Recorded(tmp_path))
    assert found.status == OPEN
    assert found.why.startswith("tuned by Hamming loss, it reaches 17.2")


def with_ledger(out, scores, name="msrcv2"):
    """A ledger of SIM in which each alpha has one accuracy and Hamming loss."""
    plan, comparison = Plan((name,)), find_study("inductive").comparison
    ledger = Ledger(out, "inductive")
    with ledger.writing():
        for setting in comparison.methods["sim"].grids["standard"]:
            accuracy, loss = scores(setting["alpha"])
            for draws in comparison.tuning_units(plan, name, "sim", setting):
                for unit in draws:
                    ledger.add(unit, {"inductive_accuracy": accuracy, "hamming_loss": loss})


def test_settings_that_the_paper_lacks_explain(tmp_path):
    with_ledger(tmp_path, lambda alpha: (56.0 if alpha > 1e-3 else 51.0, 10.0))
    (found,) = findings_of(tmp_path, figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"))
    assert found.status == EXPLAINED
    assert found.why.endswith("alone (6 settings) reach 51.0")
    assert counted([found]) == "0 reproduced, 1 explained, 0 open"


@pytest.mark.parametrize("reached", [53.5, 51.6])
def test_what_leaves_a_difference_explains_nothing(tmp_path, reached):
    with_ledger(tmp_path, lambda alpha: (56.0 if alpha > 1e-3 else reached, 10.0))
    (found,) = findings_of(tmp_path, figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"))
    assert found.status == OPEN
    text = settings_alone_section(Recorded(tmp_path))
    assert f"| SIM | the paper's values of alpha | {reached} (50.0) |" in text


def test_a_cause_that_spoils_another_figure_explains_nothing(tmp_path):
    """The same settings on another data set would be seven points off."""
    scores = {"msrcv2": (56.0, 51.0), "hja-union": (62.0, 55.0)}
    for name, (best, published_alphas) in scores.items():
        with_ledger(
            tmp_path,
            lambda alpha, best=best, own=published_alphas: (best if alpha > 1e-3 else own, 10.0),
            name,
        )
    records = [
        figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"),
        figure("SIM", 62.0, 62.0, data="hja-union", tuned_by="instance accuracy"),
    ]
    far, near = findings_of(tmp_path, *records)
    assert (far.status, near.status) == (OPEN, REPRODUCED)
    assert far.why.endswith("take other figures of this method away from the paper's")


def test_a_verdict_says_what_is_near_only_beyond_the_published_settings(tmp_path):
    with_ledger(tmp_path, lambda alpha: (50.5 if alpha > 1e-3 else 47.0, 10.0))
    found = findings_of(tmp_path, figure("SIM", 50.5, 50.0, tuned_by="instance accuracy"))
    verdict = judge_item(item("Table 3"), Recorded(tmp_path), [], found)
    assert "1 reproduced only outside the paper's grid (SIM)" in verdict.why


def test_a_conjecture_is_no_explanation(tmp_path):
    record = figure("dummy", 16.9, 18.9, data="letter-carroll", measure="hamming_loss")
    make_results(tmp_path, "bag-level", bag_level_measure=[record])
    (found,) = all_findings(Recorded(tmp_path))
    assert found.status == OPEN
    assert found.why.startswith("a conjecture: ")


def test_settings_that_hold_the_best_of_all_explain_nothing(tmp_path):
    with_ledger(tmp_path, lambda alpha: (51.0 if alpha > 1e-3 else 51.5, 10.0))
    (found,) = findings_of(tmp_path, figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"))
    assert found.status == OPEN
    assert "51.5 * (50.0)" in settings_alone_section(Recorded(tmp_path))


def test_near_ties_are_named(tmp_path):
    with_ledger(
        tmp_path, lambda alpha: (56.0 if alpha > 1e-5 else 48.0, 10.0 if alpha > 1e-5 else 10.4)
    )
    make_results(
        tmp_path, "inductive",
        inductive_hamming=[figure("SIM", 56.0, 51.0, tuned_by="Hamming loss")],
    )  # fmt: skip
    (found,) = all_findings(Recorded(tmp_path))
    assert found.status == OPEN
    assert "reach 48.0 to 56.0" in found.why


def test_the_same_figure_in_two_tables_counts_twice_and_is_listed_once(tmp_path):
    record = figure("MLR", 47.0, 50.0)
    found = findings_of(tmp_path, record, inductive_hamming=[record])
    assert counted(found) == "0 reproduced, 0 explained, 2 open"
    assert differences_page(found).count("| msrcv2 | MLR |") == 1


def test_known_explanations_are_of_experiments_and_methods_that_there_are():
    known = known_explanations()
    methods = {m.title for m in find_study("bag-level").comparison.methods.values()}
    assert {each["method"] for each in known["narrower"]} <= methods
    assert {each.get("study", "inductive") for each in known["explanation"]} <= set(STUDIES)
    assert {of["study"] for each in known["same"] for of in each["of"]} <= set(STUDIES)


def test_one_thing_of_several_experiments_has_its_figures_side_by_side(tmp_path):
    make_results(tmp_path, "kernel", kernel=[figure("MLR", 65.7, data="letter-carroll")])
    assert same_section(Recorded(tmp_path)) == ""
    curve = {"data": "letter-carroll", "line": "K-MLR", "percent": 100, "ours": 73.6}
    make_results(tmp_path, "dictionary", dictionary_accuracy=[curve])
    text = same_section(Recorded(tmp_path))
    assert "all draws of letters | 65.7 |" in text
    assert "one draw of letters | 73.6 |" in text


def item(title):
    return next(each for each in ITEMS if each.title == title)


@pytest.mark.parametrize(
    ("records", "verdict", "words"),
    [
        ([figure("MLR", 50.5, 50.0), figure("SIM", 49.0, 48.0)], REPRODUCED, "2 reproduced, 0"),
        ([figure("MLR", 48.0, 50.0), figure("SIM", 49.0, 48.0)], OPEN, "in 0 of 1 comparisons"),
        ([figure("MLR", 40.0, 50.0), figure("SIM", 40.0, 48.0)], OPEN, "-10.0 (MLR, msrcv2)"),
    ],
)
def test_a_table_is_judged_by_its_cells(tmp_path, monkeypatch, records, verdict, words):
    findings = findings_of(tmp_path, *records)
    paper = {"mlr": {"mean": 50.0}, "sim": {"mean": 48.0}}
    monkeypatch.setattr("unbag_reproduce.verdicts.published_figure", lambda *_: paper)
    found = judge_item(item("Table 3"), Recorded(tmp_path), [], findings)
    assert found.verdict == verdict
    assert words in found.why
    assert "1 of 7 data sets" in found.why


def test_a_table_that_lacks_cells_is_not_finished(tmp_path):
    findings = findings_of(tmp_path, figure("MLR", 54.8, 54.8))
    found = judge_item(item("Table 3"), Recorded(tmp_path), [], findings)
    assert found.verdict == UNFINISHED
    assert found.why.startswith("1 of 6 figures are there.")


def test_counts_must_come_out_as_printed(tmp_path):
    right = {"data": "msrcv2", "quantity": "bags", "ours": 591, "published": 591, "difference": 0}
    make_results(tmp_path, "datasets", datasets=[right, {**right, "difference": 1}])
    found = judge_item(item("Table 2"), Recorded(tmp_path), [], [])
    assert (found.verdict, found.why) == (OPEN, "1 of 2 figures as printed; 1 of 6 data sets.")


def test_pictures_are_judged_by_what_the_text_reads_from_them(tmp_path):
    curve = [
        {"data": "letter-carroll", "line": "K-MLR", "percent": percent, "ours": ours}
        for percent, ours in ((50, 70.0), (100, 71.0))
    ]
    make_results(tmp_path, "dictionary", dictionary_accuracy=curve)
    recorded = Recorded(tmp_path)
    found = judge_item(item("Figure 12"), recorded, judge_all(recorded), [])
    assert found.verdict == REPRODUCED
    assert "1 can be checked: holds 1." in found.why


def test_verdicts_of_nothing(tmp_path):
    recorded = Recorded(tmp_path)
    text = verdicts_section(recorded, judge_all(recorded), [])
    assert "| [Table 3](#inductive) | not made yet |" in text
    assert "| [Figure 9](#training-size) | cannot be checked |" in text
