"""Answers that contradict each other or their table: set aside, counted, and the rest goes on."""

import json
import os
import warnings
from contextlib import suppress

import numpy as np
import pyarrow.csv as csv
import pytest

import unbag
from review.conftest import NAMES, write_colours
from unbag import LabelSets, out_of_core
from unbag.cli.evaluate import group_names
from unbag.corrections import corrected
from unbag.review.exporting import write_corrected
from unbag.review.refitting import Refitting
from unbag.review.session import Refused
from unbag.tables import Roles
from unbag.tables.table import open_source
from unbag.tagging import Tagging

ROLES = Roles(bag="recording", labels="tags", features=("x", "y"), any_of="/")
SEED = int(os.environ.get("UNBAG_SEED", "0"))


def goes_on(session):
    """Check that all that a review does is done."""
    session.survey()
    assert session.choosing_error is None
    assert session.is_surveyed
    for b in range(len(session.bags)):
        session.bag_view(b)
    refitting = Refitting(session, 1)
    refitting.run()
    assert refitting.error is None


def one_tag(colours):
    """Return a bag of three instances or more with one tag, that tag, and another class."""
    n_tags = colours.labels.indicator.sum(axis=1)
    b = int(np.flatnonzero((n_tags == 1) & (colours.bags.sizes > 2))[0])
    tag = int(colours.labels.indicator[b].argmax())
    return b, NAMES[tag], NAMES[(tag + 1) % 3]


def without_line(path, number):
    """Damage a line of a log."""
    lines = path.read_bytes().split(b"\n")
    lines[number] = lines[number][:-9]
    path.write_bytes(b"\n".join(lines))


def test_a_damaged_line_that_set_a_tag_disables_nothing(begin, colours):
    b, _, other = one_tag(colours)
    session = begin()
    for place in range(2):
        session.answer({"kind": "label", "bag": b, "instance": place, "label": other})
    without_line(session.log.path, 1)
    session = begin()
    goes_on(session)
    assert session.contradictions() == [(str(colours.bags.ids[b]), other)]
    assert f"(1): {other} in bag" in session.notes()[0]
    shown = session.bag_view(b)["instances"]
    assert [(each["pin"], each["aside"]) for each in shown[:2]] == [(None, None), (None, other)]
    # Labelled again, it brings its tag; undone, it is as before; removed, nothing is left of it.
    again = session.answer({"kind": "label", "bag": b, "instance": 1, "label": other})
    assert session.notes() == []
    assert session.bag_view(b)["instances"][1]["pin"] == other
    session.answer({"kind": "undo", "answer": again["answer"]})
    assert session.contradictions()
    session.answer({"kind": "label", "bag": b, "instance": 1, "label": None})
    assert session.contradictions() == []
    assert begin().contradictions() == []


def test_tags_that_were_edited_later_disable_nothing(begin, colours, tmp_path):
    b, tag, other = one_tag(colours)
    session = begin()
    session.answer({"kind": "label", "bag": b, "instance": 0, "label": tag})
    session.answer({"kind": "label", "bag": b, "instance": 1, "label": "background"})
    indicator = colours.labels.indicator.copy()
    indicator[b] = [name == other for name in NAMES]
    session = begin(labels=LabelSets(indicator, NAMES))
    goes_on(session)
    assert session.contradictions() == [(str(colours.bags.ids[b]), tag)]
    assert session.status()["labelled"] == 1
    # The tag that comes back brings the label with it.
    session.answer({"kind": "tag", "bag": b, "label": tag, "state": "present"})
    assert session.contradictions() == []
    assert session.known()[colours.bags.offsets[b]] == tag


def test_a_class_that_another_tab_has_undone_is_there_again_if_it_is_used(begin, colours):
    b, _, _ = one_tag(colours)
    session = begin()
    made = session.answer({"kind": "class", "label": "violet"})["answer"]
    session.answer({"kind": "undo", "answer": made})
    assert "violet" not in session.classes
    labelled = session.answer({"kind": "label", "bag": b, "instance": 0, "label": "violet"})
    assert "violet" in session.classes
    goes_on(session)
    assert session.label_sets().classes.tolist() == [*NAMES, "violet"]
    session.answer({"kind": "undo", "answer": labelled["answer"]})
    assert session.label_sets().classes.tolist() == NAMES
    goes_on(begin())


VAGUE = Tagging.of(any_of="/", none=["nothing"], rename={"purple": "violet"})


@pytest.mark.parametrize(
    "name", ["blue/red", "new/blue", "none", "Nothing", "unknown", "silence", "half \ud83d"]
)
def test_a_class_has_no_name_that_tables_read_otherwise(begin, name):
    session = begin(tagging=VAGUE)
    log = session.log.path.read_bytes()
    for request in ({}, {"bag": 0, "instance": 0}):
        with pytest.raises(Refused) as refused:
            session.answer({"kind": "class", "label": name, **request})
        assert refused.value.status == 422
    assert session.log.path.read_bytes() == log


def test_a_class_has_its_new_name_and_none_of_a_group_in_the_table(begin, colours):
    groups = [[[0, 1]] if b == 4 else [] for b in range(len(colours.bags))]
    labels = LabelSets(colours.labels.indicator, NAMES, groups=groups)
    session = begin(labels=labels, tagging=VAGUE, group_names={frozenset(NAMES[:2]): "cold"})
    with pytest.raises(Refused, match="choose another name"):
        session.answer({"kind": "class", "label": "cold"})
    session.answer({"kind": "class", "label": "purple"})
    assert session.classes == [*NAMES, "violet"]
    with pytest.raises(Refused, match="there is a class violet already"):
        session.answer({"kind": "class", "label": "purple"})


def made_by_hand(number, bag, name, kind="class", **more):
    return json.dumps({
        "answer": number, "time": "", "seconds": 1, "kind": kind, "bag": bag, "classes": [name],
        "labels": [{"instance": 0, "label": name}],
        "tags": [{"label": name, "state": "present", "previous": "absent"}], **more,
    })  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["blue/red", "new/blue", "Nothing", "(none)", "(unknown)", "half \ud83d", "a\nb", "blue|red",
     "?red", "['red']", 20_000 * "x"],
)  # fmt: skip
def test_an_answer_of_before_that_names_no_class_is_set_aside(begin, colours, name, tmp_path):
    session = begin(tagging=VAGUE)
    nowhere = [{"instance": 999, "label": "red"}]
    lines = [made_by_hand(1, "bag 4", name), made_by_hand(2, "gone", "red"),
             made_by_hand(3, "bag 5", "red", labels=nowhere)]  # fmt: skip
    with session.log.path.open("a") as file:
        file.write("\n".join(lines) + "\n")
    session = begin(tagging=VAGUE)
    goes_on(session)
    assert set(session.contradictions()) >= {("bag 4", name), ("gone", "red"), ("bag 5", "red")}
    assert session.classes == NAMES
    assert session.answer({"kind": "label", "bag": 4, "instance": 0, "label": "red"})["answer"] == 4
    assert session.bag_view(4)["instances"][0]["pin"] == "red"


def test_a_class_that_an_undone_answer_brings_back_is_a_class(begin, colours):
    """The line that made it is damaged, and nothing is known of the tags of its bag."""
    session = begin(labels=None)
    session.answer({"kind": "class", "bag": 4, "instance": 0, "label": "violet"})
    after = session.answer({"kind": "label", "bag": 4, "instance": 0, "label": "red"})
    session.answer({"kind": "undo", "answer": after["answer"]})
    without_line(session.log.path, 1)
    session = begin(labels=None)
    assert session.bag_view(4)["instances"][0]["pin"] == "violet"
    assert session.classes == session.label_sets().classes.tolist() == [*NAMES, "violet"]
    session = begin(labels=colours.labels)
    goes_on(session)
    assert session.contradictions() == [("bag 4", "violet")]


def test_answers_after_the_largest_number_are_not_lost(begin):
    session = begin()
    with session.log.path.open("a") as file:
        file.write(made_by_hand(2**53 - 1, "bag 4", "red") + "\n")
    session.answer({"kind": "label", "bag": 5, "instance": 0, "label": "red"})
    session = begin()
    session.answer({"kind": "label", "bag": 5, "instance": 1, "label": "red"})
    assert [each.number for each in session.done] == [2**53 - 1, 1, 2]
    assert [each.number for each in begin().done] == [2**53 - 1, 1, 2]


@pytest.mark.parametrize("name", ["classes", "labels", "tags"])
@pytest.mark.parametrize("value", ["violet", None, 3, {"violet": "red"}])
def test_a_line_with_other_things_in_place_of_a_list_is_left_out(begin, name, value):
    session = begin()
    with session.log.path.open("a") as file:
        file.write(made_by_hand(1, "bag 4", "red", **{name: value}) + "\n")
    session = begin()
    assert session.log.read.broken == [2]
    assert session.classes == NAMES


def test_old_names_of_classes_in_a_log_are_read_as_in_a_fit(begin):
    session = begin()
    session.answer({"kind": "class", "bag": 4, "instance": 0, "label": "purple"})
    session = begin(tagging=VAGUE)
    assert session.bag_view(4)["instances"][0]["pin"] == "violet"
    assert session.contradictions() == []
    goes_on(session)


def test_known_labels_of_a_table_that_are_no_class_are_set_aside(begin, colours):
    known = np.full(colours.bags.n_instances, None, dtype=object)
    known[:2] = ["Noise", "violet"]
    session = begin(known=known)
    goes_on(session)
    assert session.contradictions() == [("bag 0", "Noise")]
    assert session.known()[1] == "violet"


def written(folder, colours, cells=None):
    """Write the table of coloured points, with other tags if there are any."""
    path = write_colours(folder, colours)
    if cells is not None:
        lines = path.read_text().splitlines()
        rows = [line.split(",") for line in lines]
        for row in rows[1:]:
            row[1] = cells.get(row[0], row[1])
        path.write_text("\n".join(map(",".join, rows)) + "\n")
    return path


VAGUE_TAGS = [*NAMES, "red|blue", "green|blue/red", "blue/green", "green/blue", "(none)", "?red"]


def read(table):
    """Read a table as a fit does, and as a review does."""
    with open_source(table) as source:
        data = source.read(ROLES)
    assert data.labels is not None
    tags = data.labels.with_groups_of(data.roles.tagging, NAMES)
    of_groups = {"group_names": group_names(data, NAMES), "tagging": data.roles.tagging}
    return data, {"bags": data.bags, "labels": tags, **of_groups}


def answer_at_random(session, rng, step):
    b = int(rng.integers(6))
    place = {"bag": b, "instance": int(rng.integers(session.bags.sizes[b]))}
    names = session.names
    name = [*names, "background", None][rng.integers(len(names) + 2)]
    request = {"kind": "label", "label": name, **place}
    chance = rng.random()
    if chance < 0.3:
        tags = [*names, *session.groups.get(b, ())]
        state = str(rng.choice(["present", "absent", "unknown"]))
        request = {"kind": "tag", "bag": b, "label": str(rng.choice(tags)), "state": state}
    elif chance < 0.4:
        request = {"kind": "class", "label": f"new {step}", **place}
    elif chance < 0.5 and session.done:
        request = {"kind": "undo", "answer": session.done[-1].number}
    with suppress(Refused):
        session.answer(request)


@pytest.mark.filterwarnings("ignore:.* in fewer than three bags", "ignore:.* without any other")
@pytest.mark.parametrize(
    "seed",
    [pytest.param(SEED + n, marks=[pytest.mark.slow] if n >= 4 else []) for n in range(12)],
)
def test_a_fit_sets_aside_what_the_page_sets_aside(begin, colours, tmp_path, seed):
    """A log is damaged and its table edited at random; page and fit learn from the same labels."""
    rng = np.random.default_rng(seed)

    def drawn():
        return {f"bag-{b}.wav": str(rng.choice(VAGUE_TAGS)) for b in range(6)}

    cells = drawn()
    _, given = read(written(tmp_path, colours, cells))
    session = begin("damaged.jsonl", **given)
    for step in range(60):
        answer_at_random(session, rng, step)
    n_lines = len(session.log.path.read_bytes().splitlines())
    for number in rng.choice(np.arange(1, n_lines), n_lines // 4, replace=False).tolist():
        without_line(session.log.path, number)
    table = written(tmp_path, colours, cells | dict(list(drawn().items())[: rng.integers(6)]))
    data, given = read(table)
    session = begin("damaged.jsonl", **given)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = corrected(session.log.path, data)
    goes_on(session)
    learnt = session.label_sets()
    assert found.known is not None
    assert found.labels is not None
    assert found.known.tolist() == session.known().tolist()
    labels = found.labels
    classes = sorted({*labels.classes.tolist(), *learnt.classes.tolist()})
    assert labels.reindex(classes).to_sets() == learnt.reindex(classes).to_sets()
    aside = [str(each.message) for each in said if "set aside" in str(each.message)]
    assert aside == session.notes()
    write_corrected([tmp_path / "out.csv"], session, data)
    with warnings.catch_warnings():
        # The log is damaged, and some bags are impossible.
        warnings.simplefilter("ignore")
        unbag.fit(table, roles=ROLES, corrections=session.log.path)
        unbag.fit(tmp_path / "out.csv", roles=ROLES)


# Known labels that no tag of the bag names.


@pytest.mark.filterwarnings("ignore:.* in fewer than three bags")
def test_a_fit_takes_a_known_label_for_a_tag_as_the_page_does(begin, colours, tmp_path):
    b, _, other = one_tag(colours)
    first = int(colours.bags.offsets[b])
    table = written(tmp_path, colours)
    lines = table.read_text().splitlines()
    lines[0] += ",known_label"
    lines[1:] = [f"{line}," for line in lines[1:]]
    lines[1 + first] += other
    lines[2 + first] += "violet"
    (corrections := tmp_path / "corrected.csv").write_text("\n".join(lines) + "\n")
    message = rf"2 known labels.*such as '{other}' in bag bag-{b}\.wav.* tagged with violet"
    with pytest.warns(UserWarning, match=message):
        model = unbag.fit(table, roles=ROLES, corrections=corrections)
    with pytest.warns(UserWarning, match=message):
        same = unbag.fit(corrections, roles=ROLES)
    csv.read_csv(corrections).to_pandas().to_parquet(stored := tmp_path / "corrected.parquet")
    on_disk = unbag.ORLogisticRegression(background="auto")
    with pytest.warns(UserWarning, match=message):
        out_of_core.fit(on_disk, stored, roles=ROLES)
    assert on_disk.class_counts_.tolist() == model.class_counts_.tolist()
    np.testing.assert_array_equal(model.coef_, same.coef_)
    known = np.full(colours.bags.n_instances, None, dtype=object)
    known[first : first + 2] = [other, "violet"]
    session = begin(known=known)
    assert set(model.classes_) == set(session.label_sets().classes)
    counts = dict(zip(model.classes_.tolist(), model.class_counts_.tolist(), strict=True))
    states = session.label_sets()
    assert counts == dict(zip(states.classes, (states.indicator == 1).sum(axis=0), strict=True))


@pytest.mark.filterwarnings("ignore:.* in fewer than three bags")
def test_a_misspelt_known_label_is_said(colours, tmp_path):
    table = written(tmp_path, colours)
    lines = table.read_text().splitlines()
    lines[0] += ",known_label"
    lines[1:] = [f"{line}," for line in lines[1:]]
    lines[1] += "gren"
    table.write_text("\n".join(lines) + "\n")
    with pytest.warns(UserWarning, match="no bag is tagged with gren.* Did you mean 'green'"):
        unbag.fit(table, roles=ROLES)
