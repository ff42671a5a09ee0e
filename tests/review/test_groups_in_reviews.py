"""Tags that name several classes, in a review: inference, questions, striking, and files."""

import csv
import json

import numpy as np
import pytest

import unbag
from oracle import enumerate_bag
from review.command import Command
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.cli.evaluate import group_names
from unbag.corrections import corrected
from unbag.review import next_questions
from unbag.review.log import AnswerLog
from unbag.review.requests import Refused
from unbag.review.session import Session
from unbag.tables import Roles
from unbag.tables.answers import corrected_tags, read_answers
from unbag.tables.table import open_source
from unbag.tagging import Tagging
from unbag.taxonomy import Taxonomy

NAMES = ["blue", "green", "red"]


@pytest.fixture(scope="module")
def vague(colours):
    """Coloured points of which some bags are tagged with a group, and a model."""
    indicator, groups = colours.labels.indicator.copy(), [[] for _ in colours.bags]
    for b in range(0, len(colours.bags), 2):
        if indicator[b, 0] == 1:
            indicator[b, :2], groups[b] = 0, [[0, 1]]
    labels = LabelSets(indicator, NAMES, groups=groups)
    return labels, ORLogisticRegression(background=False).fit(colours.bags, labels)


@pytest.fixture
def session(begin, vague):
    labels, model = vague
    return begin(labels=labels, model=model)


def group_bag(session):
    """Return a bag of a few instances with a group."""
    return next(b for b in session.groups if 2 <= session.bags.sizes[b] <= 6)


def tags_of(session, b):
    return {each["label"]: each["state"] for each in session.bag_view(b)["tags"]}


def enumerated(session, b, y, groups, pinned):
    """Return posteriors of a bag by enumeration of all labellings."""
    scores = np.log(session.model.predict_instances_proba(session.bags[b : b + 1]))
    return enumerate_bag(scores, np.array(y), np.array(pinned), groups)[1]


def test_a_group_is_among_the_tags_and_in_the_inference(session):
    b = group_bag(session)
    view = session.bag_view(b)["tags"]
    [shown] = [each for each in view if each["label"] == "blue/green"]
    assert shown["text"] == "blue or green"
    assert shown["state"] == "present"
    assert not {"blue", "green"} & {each["label"] for each in view}
    assert shown["expected"] >= 0.999
    size = int(session.bags.sizes[b])
    found = enumerated(session, b, session.tags[b], [[0, 1]], [-1] * size)
    np.testing.assert_allclose(session.posterior(b)[:, :3], found, atol=1e-9)


def test_an_answer_is_inferred_with_the_group(session):
    b = group_bag(session)
    size = int(session.bags.sizes[b])
    found = session.answer({"kind": "label", "bag": b, "instance": 0, "label": "red"})
    assert found["bag"]["instances"][0]["pin"] == "red"
    y = [-1, -1, 1]
    expected = enumerated(session, b, y, [[0, 1]], [2, *[-1] * (size - 1)])
    np.testing.assert_allclose(session.posterior(b)[:, :3], expected, atol=1e-9)
    session.answer({"kind": "label", "bag": b, "instance": 1, "label": "blue"})
    # Now the group is implied by one of its classes.
    assert tags_of(session, b) == {"blue": "present", "red": "present", "blue/green": "present"}
    assert not session.bag_view(b)["impossible"]


def test_an_instance_of_no_class_of_a_group_can_make_it_impossible(session):
    b = group_bag(session)
    for place in range(int(session.bags.sizes[b])):
        session.answer({"kind": "label", "bag": b, "instance": place, "label": "red"})
    assert session.bag_view(b)["impossible"]


def test_a_group_can_be_struck_marked_as_unsure_and_put_back(session):
    b = group_bag(session)
    before = session.posterior(b).copy()
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "absent"})
    assert session.states(b, b + 1)[0, :2].tolist() == [0, 0]
    assert session.posterior(b)[:, :2].max() == 0
    assert tags_of(session, b)["blue/green"] == "absent"
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "unknown"})
    assert session.states(b, b + 1)[0, :2].tolist() == [-1, -1]
    assert session.model_labels(b, b + 1).groups is None
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "present"})
    np.testing.assert_array_equal(session.posterior(b), before)
    for _ in range(3):
        session.answer({"kind": "undo", "answer": session.done[-1].number})
    np.testing.assert_array_equal(session.posterior(b), before)
    assert not session.done


def test_undo_brings_back_what_a_class_was_by_itself(session, colours):
    b = group_bag(session)
    labels, before = session_labels(session, colours), session.tags.copy()
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "absent"})
    struck = session.label_sets().to_sets()
    session.answer({"kind": "tag", "bag": b, "label": "blue", "state": "present"})
    assert session.states(b, b + 1)[0, :2].tolist() == [1, 0]
    session.answer({"kind": "undo", "answer": session.done[-1].number})
    np.testing.assert_array_equal(session.tags, before)
    assert session.label_sets().to_sets() == struck
    tags = read_answers(session.log.path).standing().tags
    assert corrected_tags(labels, colours.bags, tags).to_sets() == struck
    session.answer({"kind": "undo", "answer": session.done[-1].number})
    np.testing.assert_array_equal(session.tags, before)
    assert session.label_sets().to_sets() == labels.to_sets()


def test_a_class_of_a_struck_group_cannot_be_unknown(session):
    b = group_bag(session)
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "absent"})
    with pytest.raises(Refused, match="tag blue/green, which was struck out: put") as refused:
        session.answer({"kind": "tag", "bag": b, "label": "blue", "state": "unknown"})
    assert refused.value.status == 409
    assert len(session.done) == 1
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "present"})
    session.answer({"kind": "tag", "bag": b, "label": "blue", "state": "present"})
    session.answer({"kind": "tag", "bag": b, "label": "blue", "state": "unknown"})
    assert session.states(b, b + 1)[0, 0] == -1


def test_a_group_of_which_an_instance_is_labelled_is_not_struck(session):
    b = group_bag(session)
    session.answer({"kind": "label", "bag": b, "instance": 0, "label": "green"})
    with pytest.raises(Refused, match="1 instances of this bag are labelled green"):
        session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "absent"})


def test_of_two_classes_the_other_one_is_there(session, colours):
    b = group_bag(session)
    session.answer({"kind": "tag", "bag": b, "label": "green", "state": "absent"})
    assert tags_of(session, b)["blue"] == "present"
    assert session.states(b, b + 1)[0, 1] == 0
    # A fit that learns from the log takes it the same way.
    read = read_answers(session.log.path)
    corrected = corrected_tags(session_labels(session, colours), colours.bags, read.standing().tags)
    assert corrected[b] == session.label_sets()[b]


def session_labels(session, colours):
    """Return the label sets before anybody answered."""
    groups = [[list(each.columns) for each in session.groups.get(b, {}).values()]
              for b in range(len(colours.bags))]  # fmt: skip
    indicator = colours.labels.indicator.copy()
    for b in session.groups:
        indicator[b, :2] = 0
    return LabelSets(indicator, NAMES, groups=groups)


def test_of_three_classes_one_cannot_be_struck_alone(begin, colours):
    groups = [[[0, 1, 2]], *([[]] * (len(colours.bags) - 1))]
    indicator = colours.labels.indicator.copy()
    indicator[0] = 0
    session = begin(labels=LabelSets(indicator, NAMES, groups=groups))
    with pytest.raises(Refused, match="one of the 3 classes of the tag blue/green/red") as refused:
        session.answer({"kind": "tag", "bag": 0, "label": "red", "state": "absent"})
    assert refused.value.status == 409
    assert not session.done
    assert not session.is_tag_open(0, "red")


def overlapping(colours, *, is_open):
    """Return label sets in which the first bag has the groups blue/green and green/red."""
    indicator, is_first = colours.labels.indicator.copy(), np.arange(len(colours.bags)) == 0
    indicator[0] = -1
    groups = [[[0, 1], [1, 2]] if first else [] for first in is_first]
    return LabelSets(indicator, NAMES, is_first & is_open, groups)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("other", ["absent", "unknown", "present"])
def test_overlapping_groups_are_struck_alike_in_session_and_corrections(
    begin, colours, is_open, other
):
    labels = overlapping(colours, is_open=is_open)
    session = begin(labels=labels)
    session.answer({"kind": "tag", "bag": 0, "label": "green/red", "state": other})
    session.answer({"kind": "tag", "bag": 0, "label": "blue/green", "state": "absent"})
    expected = [0, 0, 0] if other == "absent" else [0, -1, -1]
    assert session.states(0, 1)[0].tolist() == expected
    tags = read_answers(session.log.path).standing().tags
    corrected = corrected_tags(labels, colours.bags, tags)
    assert corrected.indicator[0].tolist() == expected
    assert corrected.to_sets() == session.label_sets().to_sets()
    assert session.bag_view(0)["open"] == is_open


def test_a_group_has_the_name_that_the_table_has_for_it(begin, colours):
    tagging = Tagging.of(taxonomy=Taxonomy.of({"blue": "cold", "green": "cold"}))
    cells = [{"cold"} if b == 4 else each for b, each in enumerate(colours.labels.to_sets())]
    raw = LabelSets.parse(cells)
    labels = raw.with_groups_of(tagging, NAMES)
    names = tagging.names_of_groups(raw.classes.tolist(), NAMES)
    session = begin(labels=labels, group_names=names)
    [shown] = session.bag_view(4)["tags"]
    assert (shown["text"], shown["members"]) == ("cold", ["blue", "green"])
    session.answer({"kind": "tag", "bag": 4, "label": "cold", "state": "unknown"})
    # The table as it was, corrected, and then read.
    tags = read_answers(session.log.path).standing().tags
    corrected = corrected_tags(raw, colours.bags, tags).with_groups_of(tagging, NAMES)
    assert corrected.to_sets() == session.label_sets().to_sets()


@pytest.mark.parametrize("state", ["absent", "unknown", "present"])
@pytest.mark.parametrize("tags", [{"cold"}, {"chilly"}, {"chilly", "cold"}])
def test_a_group_with_two_names_is_corrected_under_that_of_the_bag(begin, colours, tags, state):
    parents = {"blue": "cold", "green": "cold", "cold": "chilly"}
    tagging = Tagging.of(taxonomy=Taxonomy.of(parents))
    cells = colours.labels.to_sets()
    cells[4], cells[5], cells[6] = tags, {"cold"}, {"chilly"}
    raw = LabelSets.parse(cells)
    tagged = raw.classes.tolist()
    session = begin(
        labels=raw.with_groups_of(tagging, NAMES),
        group_names=tagging.names_of_groups(tagged, NAMES),
    )
    [shown] = session.bag_view(4)["tags"]
    session.answer({"kind": "tag", "bag": 4, "label": shown["label"], "state": "absent"})
    session.answer({"kind": "tag", "bag": 4, "label": shown["label"], "state": state})
    changes = read_answers(session.log.path).standing().tags
    for stands_for in (
        tagging.classes_of_groups(tagged), tagging.classes_of_groups(tagged, NAMES),
    ):  # fmt: skip
        corrected = corrected_tags(raw, colours.bags, changes, stands_for)
        if state == "present":
            assert corrected.to_sets() == raw.to_sets()
        read = corrected.with_groups_of(tagging, NAMES)
        assert read.to_sets() == session.label_sets().to_sets()


def test_what_is_only_partly_known_gives_a_group_no_name():
    parents = {"blue": "cold", "green": "cold", "cold": "chilly", "white": "chilly"}
    tagging = Tagging.of(taxonomy=Taxonomy.of(parents))
    names = tagging.names_of_groups(["chilly", "cold"], NAMES)
    assert names == {frozenset({"blue", "green"}): "cold"}


def test_a_review_with_groups_goes_on_where_it_was(begin, vague, session):
    labels, model = vague
    b = group_bag(session)
    session.answer({"kind": "tag", "bag": b, "label": "blue/green", "state": "absent"})
    again = begin(labels=labels, model=model)
    assert tags_of(again, b) == tags_of(session, b)
    np.testing.assert_array_equal(again.posterior(b), session.posterior(b))


def test_questions_know_groups(vague, colours, rng):
    """The expected gain is that of enumeration: groups tie instances together, too."""
    X = [[0.0], [9.0], [0.4], [8.8], [4.4], [4.6], [4.5]]
    bags = Bags(X, [0, 2, 4, 7])
    labels = LabelSets([[1, 0, 1], [1, 0, 1], [0, 0, 1]], NAMES, groups=[[], [], [[0, 1]]])
    model = ORLogisticRegression(background=False, alpha=0.1).fit(bags, labels)
    questions = next_questions(model, bags, labels, strategy="gain", n_questions=3)
    scores = np.log(model.predict_instances_proba(bags[2:3]))
    y, groups = np.array([0, 0, 1]), [[0, 1]]

    def entropy(proba):
        return -(proba * np.log2(np.where(proba > 0, proba, 1.0))).sum()

    prior = enumerate_bag(scores, y, None, groups)[1]
    gains = []
    for i in range(3):
        after = 0.0
        for c in range(3):
            pinned = np.full(3, -1)
            pinned[i] = c
            if prior[i, c] > 1e-6:
                after += prior[i, c] * entropy(enumerate_bag(scores, y, pinned, groups)[1])
        gains.append(entropy(prior) - after)
    place = questions.bags.tolist().index(2)
    assert questions.gains[place] == pytest.approx(max(gains), abs=2e-2)


def test_the_command_reviews_exports_and_learns(run, tmp_path, monkeypatch):
    pytest.importorskip("uvicorn", reason="the extra review is not installed")
    monkeypatch.chdir(tmp_path)
    tags = ["owl", "wren", "owl", "wren|tit", "owl/wren", "tit", "owl/wren|tit", "wren/eagle"]
    pitches = [1, 4, 1.2, 3.9, 2.6, 9, 8.8, 3]
    rows = "".join(
        f"{night},{cell},{pitch}\n{night},{cell},{pitch + 0.1}\n"
        for night, (cell, pitch) in enumerate(zip(tags, pitches, strict=True))
    )
    (tmp_path / "t.csv").write_text(f"night,tags,pitch\n{rows}")
    roles = ("--bag", "night", "--labels", "tags", "--any-of", "/")
    assert run("fit", "t.csv", *roles, "-o", "m.unbag")[0] == 0
    with Command(tmp_path, table="t.csv") as review:
        found = review.ask("bags/4")["tags"]
        assert [(each["label"], each["text"]) for each in found] == [("owl/wren", "owl or wren")]
        answer = {"kind": "tag", "bag": 6, "label": "owl/wren", "state": "absent"}
        struck = review.ask("answers", answer)["bag"]["tags"]
        assert {each["label"]: each["state"] for each in struck} == {
            "tit": "present", "owl/wren": "absent",
        }  # fmt: skip
    assert run("review", "m.unbag", "t.csv", "--export", "out.csv")[0] == 0
    with (tmp_path / "out.csv").open() as file:
        cells = [row["tags"] for row in csv.DictReader(file)][::2]
    # Only what was corrected is another one.
    assert cells == [*tags[:3], "tit|wren", *tags[4:6], "tit", tags[7]]
    code, out, _ = run(
        "fit", "t.csv", *roles, "--corrections", "t.csv.answers.jsonl", "-o", "n.unbag", "--json"
    )
    assert code == 0
    assert json.loads(out)["bags"] == len(tags)


def test_a_tag_under_another_name_is_struck_in_files_and_fits(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tags = ["owl", "hawk", "owl/hawk", "hawk/owl", "tit", "tit|hawk/owl"]
    rows = "".join(
        f"{b},{cell},{pitch}\n{b},{cell},{pitch + 0.1}\n"
        for b, (cell, pitch) in enumerate(zip(tags, [1, 4, 1.2, 3.9, 9, 8.8], strict=True))
    )
    (tmp_path / "t.csv").write_text(f"night,tags,pitch\n{rows}")
    model = unbag.fit("t.csv", bag="night", labels="tags", any_of="/")
    model.save("m.unbag")
    with open_source("t.csv") as source:
        data = source.read(Roles(bag="night", labels="tags", any_of="/"))
    labels = data.labels.with_groups_of(data.roles.tagging, model.classes_)
    names = group_names(data, model.classes_)
    with AnswerLog("t.csv.answers.jsonl", data.bags, "t.csv") as log:
        session = Session(model, data.bags, labels, log, group_names=names)
        # Both spellings have one name on the page.
        [name] = session.groups[5]
        assert [*session.groups[2], *session.groups[3]] == [name, name]
        for b in (2, 5):
            session.answer({"kind": "tag", "bag": b, "label": name, "state": "absent"})
    assert run("review", "m.unbag", "t.csv", "--export", "out.csv")[0] == 0
    with (tmp_path / "out.csv").open() as file:
        cells = [row["tags"] for row in csv.DictReader(file)][::2]
    assert cells == ["owl", "hawk", "(none)", "hawk/owl", "tit", "tit"]
    tags = corrected("t.csv.answers.jsonl", data).labels
    assert tags.to_sets()[2:] == [set(), {unbag.AnyOf("hawk", "owl")}, {"tit"}, {"tit"}]
