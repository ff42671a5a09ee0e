"""Figures that are not the paper's: found, explained, judged."""

import pytest

from made_results import figure, make_results
from unbag_reproduce import Ledger, Plan, find_study
from unbag_reproduce.claims import judge_all
from unbag_reproduce.differences import (
    all_differences,
    differences_section,
    same_section,
    settings_alone_section,
)
from unbag_reproduce.explanations import CONJECTURE, UNEXPLAINED, known_explanations
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.studies import STUDIES
from unbag_reproduce.verdicts import (
    IN_PART,
    ITEMS,
    NOT,
    REPRODUCED,
    UNFINISHED,
    judge_item,
    verdicts_section,
)


def differences_of(out, *records, **tables):
    make_results(out, "inductive", inductive_accuracy=list(records), **tables)
    return all_differences(Recorded(out))


@pytest.mark.parametrize(
    ("method", "ours", "n_found"),
    [("SIM", 51.9, 0), ("SIM", 52.1, 1), ("SIM", 47.9, 1), ("MLR", 51.4, 0), ("MLR", 51.6, 1)],
)
def test_what_is_not_near_is_found(tmp_path, method, ours, n_found):
    assert len(differences_of(tmp_path, figure(method, ours, 50.0))) == n_found


@pytest.mark.parametrize(
    ("record", "kind", "words"),
    [
        (figure("MLR", 47.0, 50.0), "more steps", "MLR, 200 steps, reaches 49.5"),
        (figure("SIM", 47.0, 50.0, draw_std=1.6), "draws of letters", "(1.6 each)"),
        (figure("SIM", 47.0, 50.0, draw_std=1.4), UNEXPLAINED, UNEXPLAINED),
        # Folds scatter more than their means do.
        (figure("SIM", 47.0, 50.0, std=9.0, published_std=9.0), UNEXPLAINED, UNEXPLAINED),
    ],
)
def test_tables_explain_by_themselves(tmp_path, record, kind, words):
    more = figure("MLR, 200 steps", 49.5, 50.0)
    (found,) = differences_of(tmp_path, record, more)
    assert found.explained_by == kind
    assert words in found.why


def test_more_steps_that_are_not_near_explain_nothing(tmp_path):
    (found,) = differences_of(
        tmp_path, figure("MLR", 47.0, 50.0), figure("MLR, L-BFGS to the end", 48.4, 50.0)
    )
    assert found.explained_by == UNEXPLAINED


@pytest.mark.parametrize(("ours", "more"), [(51.9, 51.2), (51.8, 48.3), (48.0, 51.5)])
def test_what_leaves_more_than_half_of_a_difference_explains_nothing(tmp_path, ours, more):
    (found,) = differences_of(
        tmp_path, figure("MLR", ours, 50.0), figure("MLR, 200 steps", more, 50.0)
    )
    assert found.explained_by == UNEXPLAINED


@pytest.mark.parametrize(("std", "kind"), [(1.1, "folds drawn anew"), (1.0, UNEXPLAINED)])
def test_folds_drawn_anew_explain_what_they_do_by_themselves(tmp_path, std, kind):
    make_results(tmp_path, "partitions", partitions=[figure("SIM", 48.0, std=std)])
    (found,) = differences_of(tmp_path, figure("SIM", 47.0, 50.0))
    assert found.explained_by == kind


@pytest.mark.parametrize(
    ("by_measure", "by_hamming", "words"),
    [
        (17.2, 20.9, "tuned by the measure itself, MIMLNN reaches 17.2"),
        (20.9, 17.2, "tuned by Hamming loss, MIMLNN reaches 17.2"),
    ],
)
def test_the_other_of_two_ways_to_tune_explains(tmp_path, by_measure, by_hamming, words):
    place = {"data": "letter-frost", "measure": "ranking_loss"}
    make_results(
        tmp_path, "bag-level",
        bag_level_measure=[figure("MIMLNN", by_measure, 15.7, **place)],
        bag_level_hamming=[figure("MIMLNN", by_hamming, 15.7, **place)],
    )  # fmt: skip
    (found,) = all_differences(Recorded(tmp_path))
    assert found.explained_by == "other tuning"
    assert words in found.why


@pytest.mark.parametrize(
    ("of_best_width", "kind"),
    [
        ({"ours": 73.0}, "other kernel widths"),
        ({"ours": 70.9, "draw_std": 2.5}, "other kernel widths and draws"),
        ({"ours": 70.9}, UNEXPLAINED),
    ],
)
def test_one_kernel_width_is_explained_where_the_best_one_is(tmp_path, of_best_width, kind):
    best = figure("MLR", of_best_width.pop("ours"), 74.0, data="letter-frost", **of_best_width)
    make_results(tmp_path, "kernel", kernel=[best])
    curve = {"data": "letter-frost", "line": "K-MLR", "percent": 100, "measure": "accuracy"}
    figures = {"ours": 69.1, "published": 74.0, "difference": -4.9}
    make_results(tmp_path, "dictionary", dictionary_accuracy=[curve | figures])
    (*_, found) = all_differences(Recorded(tmp_path))
    assert (found.cell.study, found.explained_by) == ("dictionary", kind)


def with_ledger(out, scores):
    """A ledger of SIM on MSRC v2 in which each alpha has one accuracy and Hamming loss."""
    plan, comparison = Plan(("msrcv2",)), find_study("inductive").comparison
    ledger = Ledger(out, "inductive")
    with ledger.writing():
        for setting in comparison.methods["sim"].grids["standard"]:
            accuracy, loss = scores(setting["alpha"])
            for draws in comparison.tuning_units(plan, "msrcv2", "sim", setting):
                for unit in draws:
                    ledger.add(unit, {"inductive_accuracy": accuracy, "hamming_loss": loss})


def test_settings_beyond_the_published_grid_explain(tmp_path):
    with_ledger(tmp_path, lambda alpha: (56.0 if alpha > 1e-3 else 51.0, 10.0))
    (found,) = differences_of(tmp_path, figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"))
    assert found.explained_by == "other settings"
    assert found.why.endswith("alone (6 settings) reach 51.0")


def test_settings_that_do_not_explain_are_named(tmp_path):
    with_ledger(tmp_path, lambda alpha: (56.0 if alpha > 1e-3 else 53.5, 10.0))
    (found,) = differences_of(tmp_path, figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"))
    assert found.explained_by == UNEXPLAINED
    assert found.why.endswith("; the paper's values of alpha alone reach 53.5 where all reach 56.0")
    text = settings_alone_section(Recorded(tmp_path))
    assert "| SIM | the paper's values of alpha | 53.5 (50.0) |" in text


def test_a_verdict_says_what_is_near_only_beyond_the_published_settings(tmp_path):
    with_ledger(tmp_path, lambda alpha: (50.5 if alpha > 1e-3 else 47.0, 10.0))
    near = figure("SIM", 50.5, 50.0, tuned_by="instance accuracy")
    differences = differences_of(tmp_path, near)
    (table_3,) = (item for item in ITEMS if item.title == "Table 3")
    verdict = judge_item(table_3, Recorded(tmp_path), [], differences)
    assert (
        "1 of 1 cells within 1.5 points, 1 of them only at settings that the paper lacks (SIM)"
        in (verdict.why)
    )


def test_a_conjecture_is_no_explanation(tmp_path):
    record = figure("dummy", 16.9, 18.9, data="letter-carroll", measure="hamming_loss")
    make_results(tmp_path, "bag-level", bag_level_measure=[record])
    found = all_differences(Recorded(tmp_path))
    assert found[0].explained_by == CONJECTURE
    assert "1; 1 by a conjecture." in differences_section(found)
    (table_7,) = (item for item in ITEMS if item.title == "Table 7")
    assert (
        "of dummy 0 of 1 so or explained" in judge_item(table_7, Recorded(tmp_path), [], found).why
    )


def test_settings_that_hold_the_best_of_all_explain_nothing(tmp_path):
    with_ledger(tmp_path, lambda alpha: (51.0 if alpha > 1e-3 else 51.5, 10.0))
    (found,) = differences_of(tmp_path, figure("SIM", 56.0, 50.0, tuned_by="instance accuracy"))
    assert found.explained_by == UNEXPLAINED
    assert "alone reach" not in found.why
    assert "51.5 * (50.0)" in settings_alone_section(Recorded(tmp_path))


def test_near_ties_explain_what_was_tuned_by_another_measure(tmp_path):
    with_ledger(
        tmp_path, lambda alpha: (56.0 if alpha > 1e-5 else 48.0, 10.0 if alpha > 1e-5 else 10.4)
    )
    make_results(
        tmp_path, "inductive",
        inductive_hamming=[figure("SIM", 56.0, 51.0, tuned_by="Hamming loss")],
    )  # fmt: skip
    (found,) = all_differences(Recorded(tmp_path))
    assert found.explained_by == "ties among settings"
    assert "reach 48.0 to 56.0" in found.why


def test_words_are_the_last_resort_and_may_say_that_nothing_is_known(tmp_path):
    record = figure("MIMLNN", 40.0, 50.0, data="letter-frost", measure="average_precision")
    make_results(tmp_path, "bag-level", bag_level_measure=[record])
    (found,) = all_differences(Recorded(tmp_path))
    assert found.explained_by == UNEXPLAINED
    assert found.why.startswith("unexplained: ")


def test_the_same_figure_in_two_tables_is_listed_once(tmp_path):
    record = figure("MLR", 47.0, 50.0)
    assert len(differences_of(tmp_path, record, inductive_hamming=[record])) == 1


def test_the_list_counts_by_what_explains(tmp_path):
    text = differences_section(
        differences_of(
            tmp_path, figure("SIM", 47.0, 50.0), figure("MIMLfast", 44.0, 50.0, draw_std=4)
        )
    )
    assert "2; 1 by draws of letters, 1 unexplained." in text
    assert "| [inductive-accuracy](#inductive) | msrcv2 | SIM | inductive accuracy | 47.0 |" in text


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
        ([figure("MLR", 50.5, 50.0), figure("SIM", 49.0, 48.0)], REPRODUCED, "2 of 2 cells within"),
        ([figure("MLR", 48.0, 50.0), figure("SIM", 49.0, 48.0)], IN_PART, "in 0 of 1 comparisons"),
        ([figure("MLR", 40.0, 50.0), figure("SIM", 40.0, 48.0)], NOT, "-10.0 (MLR, msrcv2)"),
    ],
)
def test_a_table_is_judged_by_its_cells(tmp_path, monkeypatch, records, verdict, words):
    differences = differences_of(tmp_path, *records)
    paper = {"mlr": {"mean": 50.0}, "sim": {"mean": 48.0}}
    monkeypatch.setattr("unbag_reproduce.verdicts.published_figure", lambda *_: paper)
    found = judge_item(item("Table 3"), Recorded(tmp_path), [], differences)
    assert found.verdict == verdict
    assert words in found.why
    assert "1 of 7 data sets" in found.why


def test_a_table_that_lacks_cells_is_not_finished(tmp_path):
    differences = differences_of(tmp_path, figure("MLR", 54.8, 54.8))
    found = judge_item(item("Table 3"), Recorded(tmp_path), [], differences)
    assert found.verdict == UNFINISHED
    assert found.why.startswith("1 of 6 cells are there.")


def test_counts_must_come_out_as_printed(tmp_path):
    right = {"data": "msrcv2", "quantity": "bags", "ours": 591, "published": 591, "difference": 0}
    make_results(tmp_path, "datasets", datasets=[right, {**right, "difference": 1}])
    found = judge_item(item("Table 2"), Recorded(tmp_path), [], [])
    assert (found.verdict, found.why) == (IN_PART, "1 of 2 figures as printed; 1 of 6 data sets.")


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
