"""The first page: what guesses are worth, what is open, and what networks reach elsewhere."""

import json
from pathlib import Path

import pytest

from made_results import figure, make_results
from unbag_reproduce import find_study, front, reproduce
from unbag_reproduce.busy import BusyClock
from unbag_reproduce.differences import all_findings
from unbag_reproduce.elsewhere import KEPT, other_data_section, other_folds_section
from unbag_reproduce.front import (
    best_rivals,
    cells_figure,
    ends_note,
    front_page,
    is_tied_with_noisy_or,
    new_line,
    open_points,
    six_rows,
    sources_note,
)
from unbag_reproduce.page import how_timed
from unbag_reproduce.readme import readme_table
from unbag_reproduce.recorded import Recorded
from unbag_reproduce.reproduce import ABOUT, LOAD
from unbag_reproduce.worth import guesses, guesses_section


def test_a_guess_is_listed_with_what_it_is_worth_once_that_is_measured(tmp_path):
    assert guesses_section(Recorded(tmp_path)) == ""
    records = [
        {"data": "hja-union", "method": method, "scaling": scaling, "ours": ours}
        for method, figures in (("MLR", (70.7, 51.7, 25.6)), ("SLR", (72.7, 60.9, 25.7)))
        for scaling, ours in zip(
            ("standardised", "from zero to one", "as they are"), figures, strict=True
        )
    ]
    make_results(tmp_path, "guesses", data=("hja-union",), guesses_scaling=records)
    (found,) = guesses(Recorded(tmp_path))
    assert found.worth == (
        "from zero to one: MLR HJA -19.0 (SLR -12 to -12); as they are: MLR HJA -45.1 "
        "(SLR -47 to -47)"
    )


def test_another_solver_stands_beside_the_published_steps(tmp_path):
    """Rows of an experiment that is made anyway."""
    records = [
        figure("MLR", 70.7, 72.3), figure("MLR, L-BFGS to the end", 71.6, 72.3),
        figure("MLR, unbag's default", 72.6),
    ]  # fmt: skip
    make_results(tmp_path, "inductive", inductive_accuracy=records[:1])
    assert guesses(Recorded(tmp_path)) == []
    make_results(tmp_path, "inductive", inductive_accuracy=records)
    (found,) = guesses(Recorded(tmp_path))
    assert found.where == "inductive"
    assert found.worth == (
        "L-BFGS to the end: MSRC v2 +0.9; "
        "L-BFGS with a penalty, alpha 1, unbag's default: MSRC v2 +1.9"
    )


def test_the_best_rival_is_named_beside_the_best_published_one(tmp_path):
    rivals = [figure("SIM", 48.0, 46.7), figure("MIMLfast", 47.0, 47.6), figure("SLR", 60.0, 60.2)]
    make_results(tmp_path, "inductive", inductive_accuracy=rivals)
    helped = [figure("SIM, context", 61.0), figure("MIMLfast, kernel", 52.0)]
    make_results(tmp_path, "beyond", beyond_rivals=helped)
    assert best_rivals(Recorded(tmp_path)) == {"msrcv2": "SIM 61.0 (MIMLfast 47.6)"}


def test_the_table_has_six_rows_and_says_what_tests_tell(tmp_path):
    plain = [figure("MLR", 54.0, 54.8), figure("SIM", 48.0, 46.7), figure("SLR", 60.0, 60.2)]
    make_results(tmp_path, "inductive", inductive_accuracy=plain)
    make_results(tmp_path, "kernel", kernel=[figure("MLR", 60.0, 61.0)])
    rows = ("penalty, context, kernel", "network, encoding and distillation chosen")
    ours = [
        {"data": "msrcv2", "variant": row, "ours": 70.0, "best_published": 61.0} for row in rows
    ]
    tests = [
        figure("SIM, context", 61.0),
        figure(rows[0], 70.0, verdict="tied"),
        figure(rows[1], 70.0, verdict="better"),
    ]
    make_results(tmp_path, "beyond", beyond_accuracy=ours, beyond_rivals=tests)
    text = six_rows(Recorded(tmp_path))
    assert text.count("\n| ") == 7
    assert "| MLR, the paper's model |  | 54.0 (54.8) |" in text
    assert "our kernel: tied on MSRC v2. Our network: better on MSRC v2." in text


def test_the_committee_stands_for_our_network_once_it_is_made(tmp_path):
    network, committee = "network, encoding and distillation chosen", "committee, today's default"
    names = ("msrcv2", "letter-frost")

    def text_with(made):
        ours = [
            {"data": name, "variant": row, "ours": figure, "best_published": 61.0}
            for row, figure, names_of_row in (
                ("penalty, context, kernel", 68.0, names), (network, 70.0, names),
                (committee, 72.0, made),
            )
            for name in names_of_row
        ]  # fmt: skip
        tests = [figure(network, 70.0, verdict="tied"), figure(committee, 72.0, verdict="better")]
        make_results(tmp_path, "beyond", data=names, beyond_accuracy=ours, beyond_rivals=tests)
        recorded = Recorded(tmp_path)
        return six_rows(recorded), new_line(recorded), readme_table(tmp_path)

    rows, new, readme = text_with(names[:1])
    assert "| our network (eight of one kind; today's default is a committee) |  | 70.0 |" in rows
    assert "our network: tied on MSRC v2" in rows
    assert "A network adds +9.0 to +9.0 points; but its defaults" in new
    assert "72.0" not in readme
    rows, new, readme = text_with(names)
    assert "| our network (today's default, a committee) |  | 72.0 |  | 72.0 |" in rows
    assert "70.0" not in rows
    assert "our network: better on MSRC v2" in rows
    assert "a committee, adds +11.0 to +11.0 points. But what it is made of" in new
    assert "| our network, today's default: a committee |  | **72.0** |  | **72.0** |" in readme
    assert "70.0" not in readme


@pytest.mark.parametrize(("context", "says"), [(8.0, True), (4.0, False)])
def test_a_rival_at_the_end_of_what_was_tried_is_named(tmp_path, context, says):
    setting = {"context": context, "width": 1.0, "alpha": 0.1}
    rivals = [figure("SIM", 61.0, setting=setting), figure("SLR", 90.0, setting=setting)]
    make_results(tmp_path, "beyond", beyond_rivals=rivals)
    note = ends_note(Recorded(tmp_path))
    assert (
        note.endswith("([what was tried](#beyond)): SIM on MSRC v2 (context).")
        if says
        else not note
    )


def test_what_is_open_is_counted_by_method(tmp_path):
    records = [figure("SIM", 47.0, 50.0), figure("MLR", 50.0, 50.0)]
    make_results(tmp_path, "inductive", inductive_accuracy=records)
    recorded = Recorded(tmp_path)
    found = all_findings(recorded)
    text = open_points(recorded, [], found)
    assert "Of 2 figures: 1 reproduced, 0 explained, 1 open" in text
    largest = "the largest difference is -3.0 (inductive accuracy, MSRC v2)."
    scatter = "0 of them within what folds and letters vary by"
    assert f"- **SIM**: 1 of 1 figures are open, {scatter}; {largest}" in text
    assert "**MLR**" not in text
    page = front_page(recorded, [], found, picture="cells.png", pages=["- one"])
    assert "- **Reproduced.** On the four data sets that are available, 1 of 2 figures" in page
    assert "(0 of 0" not in page
    assert "and 1, some in every table, are open." in page


def test_times_say_how_they_were_taken():
    timed, other = find_study("pruning"), find_study("inductive")
    assert how_timed(other, {}) == ""
    assert "whose load was not kept" in how_timed(timed, {})
    assert "at a load of 1.1 (1: this experiment alone)" in how_timed(timed, {LOAD: 1.1})


def test_the_load_of_the_machine_is_kept_with_what_it_was_measured_for(tmp_path, monkeypatch):
    monkeypatch.setattr(BusyClock, "load", lambda clock: 3.5)
    reproduce("stability", level="quick", out=tmp_path)
    monkeypatch.setattr(BusyClock, "load", lambda clock: 9.5)
    reproduce("stability", level="quick", out=tmp_path, work=False)
    assert json.loads((tmp_path / "stability" / ABOUT).read_text())[LOAD] == 3.5


def test_the_page_says_which_version_made_what_it_shows(monkeypatch):
    """Of one experiment: all by this version, none of it, and nothing said where nothing is old."""
    committed = Path(__file__).parents[2] / "docs" / "results"
    monkeypatch.setattr(front, "STUDIES", ["stability"])
    recorded = Recorded(committed)
    n_units = len(recorded.units("stability"))
    marks = {recorded.ledger("stability")._records[unit.key]["sources"] for unit in
             recorded.units("stability")}  # fmt: skip
    (mark,) = marks
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: mark)
    assert sources_note(Recorded(committed)) == ""
    monkeypatch.setattr("unbag_reproduce.sources.fingerprint", lambda task: "other")
    said = sources_note(Recorded(committed))
    assert said.startswith(f"Sources: {n_units} of the {n_units} fits that these pages show were ")
    assert "drawn at random" not in said  # it was not this version that did them again
    # Where tables show none of what is old, and this version did some of it again.
    monkeypatch.setattr(Recorded, "shown", lambda recorded, study: [])
    monkeypatch.setattr(front, "is_by_these_sources", lambda found: True)
    said = sources_note(Recorded(committed))
    assert said.startswith("Sources: all 0 fits that these pages show were made by this version")
    assert "20 finished units of work of 1 experiments, drawn at random, none of them " in said
    assert "20 agree to the last digit." in said


def test_the_epochs_of_mimlfast_are_a_guess(tmp_path):
    records = [
        {"data": name, "method": "MIMLfast", "measure": "inductive accuracy", "ours": 50.5,
         "gain": gain}
        for name, gain in (("msrcv2", 2.58), ("letter-frost", 0.0))
    ]  # fmt: skip
    make_results(tmp_path, "wider", wider=records)
    (found,) = guesses(Recorded(tmp_path))
    assert found.worth == "tuned, from 3 to 1,000: MSRC v2 +2.6, Frost +0.0"


def test_the_picture_has_every_figure(tmp_path):
    pytest.importorskip("matplotlib")
    records = [figure("SIM", 47.0, 50.0), figure("MLR", 50.0, 50.0), figure("MLR", 40.0, 41.0)]
    make_results(tmp_path, "inductive", inductive_accuracy=records)
    drawn = cells_figure(all_findings(Recorded(tmp_path))).draw()
    for axis in drawn.axes:
        dots = [each for each in axis.collections if each.get_label() in ("SIM", "MLR")]
        assert sum(len(each.get_offsets()) for each in dots) == len(records)


@pytest.fixture
def kept(tmp_path):
    """Where results are, and what writes down what the benchmark beside them has kept."""
    out = tmp_path / "docs" / "results"
    for folder in (out, (tmp_path / KEPT).parent):
        folder.mkdir(parents=True)
    return out, lambda rows: (tmp_path / KEPT).write_text("\n".join(map(json.dumps, rows)))


def test_other_data_are_read_where_a_benchmark_left_them(kept):
    out, keep = kept
    assert other_data_section(out) == ""
    rows = [
        {"data": name, "method": method, "seed": seed, "new": new + seed}
        for name, figures in (("words 5 50", (80, 70, 75)), ("tails", (70, 75, 90)),
                              ("hja-union", (1, 2, 3)))
        for method, new in zip(("linear", "kernel", "network"), figures, strict=True)
        for seed in (0, 1)
    ]  # fmt: skip
    sure = [[0, 0.0, 0]] * 9
    rows += [
        {"data": "tails", "method": "committee", "seed": seed, "new": 89.0 + seed, "given": 95.0,
         "bins new": [*sure, [1, 1.0, seed]]}
        for seed in (0, 1)
    ]  # fmt: skip
    keep(rows)
    text = other_data_section(out)
    # Sure of both, and right once.
    assert "| tails | 70.5 (2) | 75.5 (2) | 90.5 (2) | 89.5 (2) | 95.0 | 50.0 |" in text
    assert "| words 5 50 | 80.5 (2) | 70.5 (2) | 75.5 (2) |  |  |  |" in text
    assert (
        "on 1 of 2 of them, and the committee is within 1 point of the best of all on 1 of 1"
        in (text)
    )
    keep([{**row, "new": 89.4} if row["method"] == "committee" else row for row in rows])
    assert "best of all on 0 of 1" in other_data_section(out)
    assert "hja-union" not in text


def test_models_stand_beside_the_committee_on_the_same_folds(kept):
    out, keep = kept
    assert other_folds_section(out) == ""
    unsure = [[0, 0.0, 0]] * 5 + [[2, 1.0, 1]] + [[0, 0.0, 0]] * 4

    def row(method, seed, new, **more):
        return {"data": "letter-frost", "method": method, "seed": seed, "new": new, "given": 90.0,
                **more}  # fmt: skip

    keep(
        [
            *(row("committee", seed, 70.0 + seed, **{"bins new": unsure}) for seed in (0, 1, 10)),
            *(row("linear", seed, 60.0) for seed in (1, 10, 11)),
            row("network", 0, 65.0), row("network", 1, 65.0, **{"bins new": unsure}),
            row("told", 0, 99.0),
            {"data": "tails", "method": "committee", "seed": 0, "new": 1.0, "given": 1.0},
        ]
    )  # fmt: skip
    assert other_folds_section(out).splitlines()[6:] == [
        "| letter-frost, linear | 2 | 2 | 60.0 (75.5) | 90.0 (90.0) |  |  |",
        "| letter-frost, networks of one kind | 1 | 2 | 65.0 (70.5) | 90.0 (90.0) "
        "| 0.0 (0.0; 1 folds) |  |",
        "| letter-frost, committee | 2 | 3 | 73.7 | 90.0 | 0.0 |  |",
        "| letter-frost, committee, told every instance's label | 1 | 1 | 99.0 (70.0) |  |  |  |",
    ]


@pytest.mark.parametrize(
    ("verdicts", "expected"), [(("tied", "tied"), True), (("tied", "worse"), False)]
)
def test_a_tie_with_noisy_or_is_said_only_where_every_test_says_so(tmp_path, verdicts, expected):
    loss = {"loss": "noisy-or of the softmax", "measure": "label sets known"}
    records = [
        {**loss, "data": name, "verdict": each}
        for name, each in zip(("msrcv2", "hja-union"), verdicts, strict=True)
    ]
    make_results(tmp_path, "beyond", beyond_losses=records)
    assert is_tied_with_noisy_or(Recorded(tmp_path)) is expected
