"""The state of a review: exact after each answer, and the same again from its log."""

from contextlib import suppress

import numpy as np
import pytest

from oracle import enumerate_bag
from toys import make_colours
from unbag import BagContext, BagPipeline, Bags, LabelSets, ORLogisticRegression
from unbag.review.session import Refused, Session
from unbag.tables import DataError

RED = {"kind": "label", "bag": 4, "instance": 0, "label": "red", "seconds": 2.0}


def enumerated(prior, y):
    """Posterior of the instances of a bag, by listing all labellings."""
    return enumerate_bag(np.log(prior), y)[1]


def state(session):
    """All that a review knows."""
    return [session.bag_view(b) for b in range(len(session.bags))], session.tags.tolist()


def doubtful(session):
    """A bag of several instances and several tags, and its least certain instance."""
    session.survey()
    sizes = np.repeat(session.bags.sizes, session.bags.sizes)
    n_tags = np.repeat((session.tags == 1).sum(axis=1), session.bags.sizes)
    i = int(np.argmax(np.where((sizes > 2) & (n_tags > 1), session.overview.entropy, -1)))
    b = int(np.searchsorted(session.bags.offsets, i, side="right")) - 1
    return b, i - int(session.bags.offsets[b])


def test_posteriors_after_an_answer_are_those_of_the_model(begin, colours):
    session = begin()
    b, place = doubtful(session)
    label = session.names[np.flatnonzero(session.tags[b] == 1)[0]]
    session.answer({"kind": "label", "bag": b, "instance": place, "label": label})
    known = [None] * int(session.bags.sizes[b])
    known[place] = label
    expected = colours.model.annotate_proba(colours.bags[[b]], colours.labels[[b]], known)
    np.testing.assert_allclose(session.posterior(b)[:, :-1], expected, atol=1e-12)
    np.testing.assert_allclose(session.posterior(b).sum(axis=1), 1)
    rows = slice(colours.bags.offsets[b], colours.bags.offsets[b + 1])
    np.testing.assert_array_equal(
        session.overview.best[rows], session.posterior(b).argmax(axis=1)
    )  # fmt: skip


def test_an_answer_says_what_changed_in_its_bag(begin):
    session = begin()
    b, place = doubtful(session)
    before = session.posterior(b).copy()
    label = session.names[np.argsort(-before[place])[1]]
    found = session.answer({"kind": "label", "bag": b, "instance": place, "label": label})
    after = session.posterior(b)
    moved = np.flatnonzero(
        (before.argmax(axis=1) != after.argmax(axis=1))
        | (np.abs(after.max(axis=1) - before[np.arange(len(after)), after.argmax(axis=1)]) >= 0.01)
    )
    assert [each["place"] for each in found["changed"]] == moved.tolist()
    assert place in moved
    pinned = found["bag"]["instances"][place]
    assert (pinned["pin"], pinned["choices"][0]) == (label, [label, 1.0])


@pytest.mark.parametrize("with_context", [False, True])
@pytest.mark.parametrize(("kind", "label"), [("class", "violet"), ("label", "background")])
def test_an_instance_of_no_class_of_the_model_leaves_the_tags_to_the_others(
    begin, colours, kind, label, with_context
):
    model = colours.model
    if with_context:
        # The context stays that of the whole bag.
        model = BagPipeline([("context", BagContext(0.3)), ("model", ORLogisticRegression())])
        model.fit(colours.bags, colours.labels)
    session = begin(model=model)
    b, place = doubtful(session)
    found = session.answer({"kind": kind, "bag": b, "instance": place, "label": label})["bag"]
    rest = np.delete(np.arange(colours.bags.sizes[b]), place)
    prior = model.predict_instances_proba(colours.bags[[b]])[rest]
    expected = enumerated(prior, colours.labels.indicator[b])
    np.testing.assert_allclose(session.posterior(b)[rest][:, :3], expected, atol=1e-9)
    assert found["instances"][place]["pin"] == label
    assert found["instances"][place]["background"] == (label == "background")
    tags = {each["label"]: each["state"] for each in found["tags"]}
    assert tags.get("violet", "absent") == ("present" if kind == "class" else "absent")


def test_questions_see_the_context_of_whole_bags(begin, colours, monkeypatch):
    model = BagPipeline([("context", BagContext(0.3)), ("model", ORLogisticRegression())])
    session = begin(model=model.fit(colours.bags, colours.labels))
    b, place = doubtful(session)
    session.answer({"kind": "class", "bag": b, "instance": place, "label": "violet"})
    asked = []
    monkeypatch.setattr(
        "unbag.review.session.chosen_questions", lambda *args, **_: asked.extend(args[:1]) or []
    )
    session.choose_questions()
    rest = np.delete(np.arange(colours.bags.n_instances), colours.bags.offsets[b] + place)
    expected = session.posteriors(0, len(colours.bags))[rest][:, :3]
    np.testing.assert_allclose(asked[0].posterior, expected, atol=1e-12)


def test_undo_takes_everything_back(begin):
    session = begin()
    answers = [
        RED, {**RED, "label": "background"}, {**RED, "label": None},
        {"kind": "tag", "bag": 4, "label": "red", "state": "unknown"},
        {"kind": "class", "bag": 4, "instance": 1, "label": "violet"},
        {"kind": "accept", "bag": 5}, {"kind": "skip", "bag": 6, "instance": 0},
    ]  # fmt: skip
    states = []
    for request in answers:
        states.append(session.tags.copy())
        pins = session.pins.copy()
        if request["kind"] == "accept":
            request = {**request, "revision": session.bag_view(5)["revision"]}
        done = session.answer(request)["answer"]
        assert done is not None
        undone = session.answer({"kind": "undo", "answer": done})
        assert undone["answer"] == done + 1
        np.testing.assert_array_equal(session.pins, pins)
        before = states[-1]
        np.testing.assert_array_equal(session.tags[:, : before.shape[1]], before)
        session.answer(request if request["kind"] != "accept" else {
            **request, "revision": session.bag_view(5)["revision"]
        })  # fmt: skip


def test_a_review_goes_on_where_it_was(begin, colours):
    rng = np.random.default_rng(3)
    session = begin()
    for step in range(60):
        b = int(rng.integers(len(session.bags)))
        kind = ["label", "label", "tag", "class", "undo", "accept", "skip"][rng.integers(7)]
        request = {"kind": kind, "bag": b, "seconds": float(rng.random())}
        if kind in ("label", "class"):
            request["instance"] = int(rng.integers(session.bags.sizes[b]))
        if kind == "label":
            request["label"] = [*session.names, "background", None][
                rng.integers(len(session.names) + 2)
            ]
        if kind == "class":
            request["label"] = f"new {step}"
        if kind == "tag":
            request["label"] = str(rng.choice(session.names))
            request["state"] = str(rng.choice(["present", "absent", "unknown"]))
        if kind == "accept":
            request["revision"] = session.bag_view(b)["revision"]
        if kind == "undo":
            request["answer"] = session.done[-1].number if session.done else 0
        # What is refused, such as striking a tag that an instance has, changes nothing.
        with suppress(Refused):
            session.answer(request)
    assert len(session.log.path.read_text().splitlines()) > 40
    again = begin()
    first, second = state(session), state(again)
    for one, other in zip(first[0], second[0], strict=True):
        one.pop("revision"), other.pop("revision")
    assert first == second
    assert session.names == again.names
    assert session.done == again.done
    assert session.checked == again.checked


def test_a_label_brings_its_tag_and_takes_it_away_again(begin):
    session = begin()
    b = int(np.flatnonzero((session.tags == 1).sum(axis=1) == 1)[0])
    absent = session.names[int(np.flatnonzero(session.tags[b] == 0)[0])]
    present = session.names[int(np.flatnonzero(session.tags[b] == 1)[0])]
    before = session.tags[b].copy()
    place = {"kind": "label", "bag": b, "instance": 0}
    session.answer({**place, "label": absent})
    assert session.tags[b, session.names.index(absent)] == 1
    session.answer({**place, "label": present})
    np.testing.assert_array_equal(session.tags[b], before)


def test_a_tag_that_an_instance_has_cannot_be_struck(begin):
    session = begin()
    session.answer({**RED})
    with pytest.raises(Refused, match="labelled red") as refused:
        session.answer({"kind": "tag", "bag": 4, "label": "red", "state": "absent"})
    assert refused.value.status == 409


def test_striking_a_tag_changes_the_posteriors(begin):
    session = begin()
    b, _ = doubtful(session)
    label = session.names[int(np.flatnonzero(session.tags[b] == 1)[0])]
    found = session.answer({"kind": "tag", "bag": b, "label": label, "state": "absent"})
    assert session.posterior(b)[:, session.names.index(label)].max() == 0
    struck = [each for each in found["bag"]["tags"] if each["label"] == label]
    assert [each["state"] for each in struck] == ["absent"]
    assert found["changed"]


def test_tags_that_cannot_be_right_are_said(begin):
    session = begin()
    b = int(np.flatnonzero(session.bags.sizes == 2)[0])
    assert not session.bag_view(b)["impossible"]
    for name in ("blue", "green", "red"):
        session.answer({"kind": "tag", "bag": b, "label": name, "state": "present"})
    assert session.bag_view(b)["impossible"]


def test_accepting_is_refused_when_the_labels_are_others_by_now(begin):
    session = begin()
    old = session.bag_view(4)["revision"]
    session.answer({**RED})
    with pytest.raises(Refused, match="changed since"):
        session.answer({"kind": "accept", "bag": 4, "revision": old})
    new = session.bag_view(4)["revision"]
    found = session.answer({"kind": "accept", "bag": 4, "revision": new})
    assert all(each["pin"] for each in found["bag"]["instances"])


@pytest.mark.parametrize(
    "request_",
    [
        None, 3, [], {}, {"kind": "label"}, {"kind": ["label"]}, {"kind": "label", "bag": "4"},
        {"kind": "label", "bag": -1}, {"kind": "label", "bag": 10**9}, {**RED, "bag": True},
        {**RED, "instance": -1}, {**RED, "instance": 1e3}, {**RED, "instance": None},
        {**RED, "label": "no class"}, {**RED, "label": 3}, {**RED, "label": ["red"]},
        {**RED, "seconds": "long"}, {**RED, "seconds": -1}, {**RED, "seconds": float("nan")},
        {**RED, "seconds": 10**400},
        {**RED, "asked": "x" * 99}, {"kind": "tag", "bag": 0, "label": "red", "state": "maybe"},
        {"kind": "tag", "bag": 0, "label": "background", "state": "present"},
        {"kind": "accept", "bag": 0}, {"kind": "accept", "bag": 0, "revision": ["0.0"]},
        {"kind": "undo", "answer": 0}, {"kind": "undo", "answer": "1"}, {"kind": "undo"},
        {"kind": "class", "bag": 0, "label": "a|b"}, {"kind": "class", "bag": 0, "label": " "},
        {"kind": "class", "bag": 0, "label": "Red"}, {"kind": "class", "bag": 0, "label": "a\nb"},
        {"kind": "class", "bag": 0, "label": "?red"}, {"kind": "class", "label": "x" * 101},
        {"kind": "class", "bag": 0, "label": "background"},
    ],
)  # fmt: skip
def test_what_makes_no_sense_changes_nothing(begin, request_):
    session = begin()
    before, log = state(session), session.log.path.read_bytes()
    with pytest.raises(Refused) as refused:
        session.answer(request_)
    assert 400 <= refused.value.status < 500
    assert state(session) == before
    assert session.log.path.read_bytes() == log


def test_known_labels_of_the_table_are_there_from_the_beginning(begin, colours):
    known = np.full(colours.bags.n_instances, None, dtype=object)
    known[:3] = colours.truth[:3]
    session = begin(known=known)
    assert session.known()[:4].tolist() == [*colours.truth[:3], None]
    assert session.status()["labelled"] == 3
    assert session.bag_view(0)["instances"][0]["given"]


def test_a_table_without_labels_can_be_reviewed(begin):
    session = begin(labels=None)
    view = session.bag_view(0)
    assert view["open"]
    assert view["tags"] == []
    session.answer({**RED, "bag": 0})
    assert session.bag_view(0)["tags"][0]["label"] == "red"


def test_labels_that_the_model_does_not_know_are_kept(begin, colours):
    indicator = np.column_stack([colours.labels.indicator, np.ones(len(colours.bags), np.int8)])
    session = begin(labels=LabelSets(indicator, [*colours.labels.classes, "violet"]))
    assert session.names[-1] == "violet"
    expected = colours.model.annotate_proba(colours.bags, colours.labels)
    found = np.vstack([session.posterior(b) for b in range(len(colours.bags))])
    np.testing.assert_allclose(found[:, :3], expected, atol=1e-12)
    assert np.isin("violet", session.label_sets().classes)


def test_a_bag_without_tags_holds_background(begin, colours):
    indicator = colours.labels.indicator.copy()
    indicator[2] = 0
    session = begin(labels=LabelSets(indicator, colours.labels.classes))
    assert (session.posterior(2)[:, -1] == 1).all()


def test_questions_go_on_until_everything_is_labelled(begin, colours):
    session = begin()
    assert session.next_question() is None
    session.survey()
    seen = set()
    for _ in range(colours.bags.n_instances):
        question = session.next_question()
        if question is None:
            break
        assert question.instance not in seen
        seen.add(question.instance)
        place = question.instance - int(session.bags.offsets[question.bag])
        label = str(colours.truth[question.instance])
        request = {"kind": "label", "bag": question.bag, "instance": place, "label": label}
        session.answer({**request, "asked": question.strategy})
    assert seen
    assert (session.known()[list(seen)] == colours.truth[list(seen)]).all()


def test_the_gallery_shows_a_class_with_its_precision(begin, colours):
    session = begin()
    session.survey()
    found = session.gallery("red", "typical", 0, 5)
    shares = [each["probability"] for each in found["instances"]]
    assert shares == sorted(shares, reverse=True)
    assert found["precision"] == {"checked": 0, "right": 0, "threshold": None}
    for place, each in enumerate(found["instances"][:4]):
        label = "red" if place else "blue"
        session.answer({
            "kind": "label", "bag": each["bag"], "instance": each["place"], "label": label,
        })  # fmt: skip
    assert session.precision("red")["checked"] == 4
    assert session.precision("red")["right"] == 3
    doubtful_first = session.gallery("red", "doubtful", 0, 5)["instances"]
    assert doubtful_first[0]["probability"] <= shares[-1]
    with pytest.raises(Refused):
        session.gallery("no class", "typical", 0, 5)


def test_the_session_goes_on_with_a_better_model(begin, colours):
    from unbag.review.refitting import Refitting

    session = begin()
    session.survey()
    refitting = Refitting(session, every=3)
    assert not refitting.start()
    for b in range(3):
        session.answer({"kind": "class", "bag": b, "instance": 0, "label": f"violet {b}"})
        refitting.start_if_due()
    refitting.wait(60)
    assert refitting.status()["error"] is None
    assert session.model_number == 1
    assert {"violet 0", "violet 1", "violet 2"} <= set(session.model.classes_)
    assert session.bag_view(0)["instances"][0]["pin"] == "violet 0"
    np.testing.assert_allclose(session.posterior(5).sum(axis=1), 1)
    known = session.model_known(slice(0, 1))
    assert known.tolist() == ["violet 0"]


def test_a_fit_forgets_an_answer_that_was_taken_back(begin):
    from unbag.review.refitting import Refitting

    session = begin()
    refitting = Refitting(session, every=0)
    number = session.answer({**RED})["answer"]
    assert refitting.start()
    refitting.wait(60)
    session.answer({"kind": "undo", "answer": number})
    assert refitting.n_new == 1
    assert refitting.start()
    refitting.wait(60)
    assert session.model_number == 2


def test_without_chosen_questions_the_least_certain_are_asked(begin, monkeypatch, caplog):
    session = begin()
    monkeypatch.setattr("unbag.review.session.chosen_questions", lambda *_, **__: 1 / 0)
    session.survey()
    session.choose_questions()
    assert session.next_question().strategy == "entropy"
    assert caplog.text.count("division by zero") == 1


def test_rows_in_another_order_are_refused_by_their_ids(begin, colours):
    ids = [f"call {i}" for i in range(colours.bags.n_instances)]
    first = begin(ids=ids)
    first.answer({**RED})
    assert state(begin(ids=ids)) == state(first)
    row = int(colours.bags.offsets[4])
    ids[row], ids[row + 1] = ids[row + 1], ids[row]
    with pytest.raises(DataError, match=f"'call {row}' .* rows are in another order"):
        begin(ids=ids)


def test_what_was_skipped_is_not_asked_again_after_a_restart(begin):
    session = begin()
    session.survey()
    asked = session.next_question()
    place = asked.instance - int(session.bags.offsets[asked.bag])
    session.answer({"kind": "skip", "bag": asked.bag, "instance": place})
    again = begin()
    again.survey()
    assert asked.instance not in [each.instance for each in again.questions]
    assert again.next_question() is not None
    again.answer({"kind": "undo", "answer": 1})
    assert asked.instance not in again.skipped


def test_others_are_asked_for_when_the_least_certain_of_each_bag_was_skipped(begin):
    session = begin()
    session.survey(choose=False)
    entropy = session.overview.entropy
    for b in range(len(session.bags)):
        own = entropy[session.bags.offsets[b] : session.bags.offsets[b + 1]]
        session.answer({"kind": "skip", "bag": b, "instance": int(own.argmax())})
    session.questions.clear()
    assert session.next_question().strategy == "entropy"


def test_a_fit_that_fails_leaves_the_review_as_it_is(begin, monkeypatch):
    from unbag.review.refitting import Refitting

    session = begin()
    monkeypatch.setattr(ORLogisticRegression, "fit", lambda *_, **__: 1 / 0)
    refitting = Refitting(session, every=1)
    session.answer({**RED})
    refitting.start_if_due()
    refitting.wait(60)
    assert "division by zero" in refitting.status()["error"]
    assert session.model_number == 0
    session.answer({**RED, "label": "blue"})


def test_a_long_bag_is_answered_in_a_table_of_many(tmp_path):
    """Time depends on the bag, not on the table."""
    from time import perf_counter

    from unbag.review.log import AnswerLog

    rng = np.random.default_rng(0)
    n_classes, size = 10, 50
    model = None
    seconds = []
    for n_bags in (40, 4000):
        label = rng.integers(0, n_classes, n_bags * size)
        X = np.eye(n_classes)[label] * 3 + rng.normal(size=(len(label), n_classes))
        bags = Bags(X, np.arange(n_bags + 1) * size)
        y = np.zeros((n_bags, n_classes), int)
        y[np.repeat(np.arange(n_bags), size), label] = 1
        labels = LabelSets(y, [f"c{c}" for c in range(n_classes)])
        if model is None:
            model = ORLogisticRegression(max_iter=5).fit(bags, labels)
        with AnswerLog(tmp_path / f"{n_bags}.jsonl", bags, "t.csv") as log:
            session = Session(model, bags, labels, log)
            session.survey(choose=False)
            times = []
            for b in range(20):
                started = perf_counter()
                session.answer({"kind": "label", "bag": b, "instance": 0, "label": "c3"})
                times.append(perf_counter() - started)
            seconds.append(min(times))
    assert seconds[1] < 10 * seconds[0]


def tag_question(session):
    """A question whether a class is in a bag, as if it had just been chosen."""
    tags = np.flatnonzero(session.tags[0] == 1)
    session.suspicious[0, session.names[tags[0]]] = {
        "bag": session.bags.ids[0], "class": session.names[tags[0]], "tagged": True, "p_wrong": 0.6,
    }  # fmt: skip
    return {"bag": 0, "label": session.names[tags[0]]}


def test_a_tag_that_was_skipped_is_not_asked_again_after_a_restart(begin):
    session = begin()
    session.survey()
    asked = tag_question(session)
    assert session.is_tag_open(*asked.values())
    session.answer({"kind": "skip", **asked})
    assert not session.is_tag_open(*asked.values())
    again = begin()
    tag_question(again)
    assert not again.is_tag_open(*asked.values())
    again.answer({"kind": "undo", "answer": 1})
    assert again.is_tag_open(*asked.values())


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_suspicious_tag_is_asked_again_when_its_answer_is_undone(begin, state):
    session = begin()
    label = session.names[int(np.flatnonzero(session.tags[0] == 1)[0])]
    session.suspicious[0, label] = {}
    view = session.bag_view(0)["tags"]
    session.answer({"kind": "tag", "bag": 0, "label": label, "state": state, "asked": "tag"})
    assert not session.is_tag_open(0, label)
    session.answer({"kind": "undo", "answer": session.done[-1].number})
    assert session.is_tag_open(0, label)
    assert session.bag_view(0)["tags"] == view
    assert session.corrections_of_tags() == {}
    # Of two answers, the first still stands.
    for state in ("absent", "present"):
        session.answer({"kind": "tag", "bag": 0, "label": label, "state": state, "asked": "tag"})
    session.answer({"kind": "undo", "answer": session.done[-1].number})
    assert not session.is_tag_open(0, label)
    assert session.corrections_of_tags() == {("bag 0", label): "absent"}


def test_undo_leaves_the_tags_that_known_labels_give(begin, colours):
    b = int(np.flatnonzero((colours.labels.indicator == 0).any(axis=1))[0])
    label = str(colours.labels.classes[colours.labels.indicator[b].argmin()])
    known = np.full(colours.bags.n_instances, None, dtype=object)
    known[colours.bags.offsets[b]] = label
    session = begin(known=known)
    given = session.corrections_of_tags()
    assert given == {(f"bag {b}", label): "present"}
    session.answer({"kind": "tag", "bag": b, "label": label, "state": "unknown"})
    session.answer({"kind": "undo", "answer": session.done[-1].number})
    assert session.corrections_of_tags() == given


def test_that_a_suspicious_tag_is_right_is_an_answer(begin):
    session = begin()
    asked = tag_question(session)
    found = session.answer({"kind": "tag", **asked, "state": "present", "asked": "tag"})
    assert found["answer"] == 1
    assert not session.is_tag_open(*asked.values())
    again = begin()
    tag_question(again)
    assert not again.is_tag_open(*asked.values())
    # Where nobody has asked, it says nothing.
    other = {**asked, "bag": 1, "label": session.names[int(session.tags[1].argmax())]}
    assert session.answer({"kind": "tag", **other, "state": "present"})["answer"] is None


def tags_asked(session):
    """The tags that the next questions are about."""
    tags = [each for each in session.questions if each.column >= 0]
    return {(each.bag, session.names[each.column]) for each in tags}


def test_tags_that_look_wrong_are_asked_by_themselves(begin):
    """Tags of which no instance is, in bags of one class."""
    bags, y = make_colours(np.random.default_rng(1), n_bags=60, spread=0.6)
    y = y.copy()
    wrong = np.flatnonzero((y.sum(axis=1) == 1) & (bags.sizes > 2))[:3]
    added = [int(np.flatnonzero(y[b] == 0)[0]) for b in wrong]
    y[wrong, added] = 1
    bags, labels = Bags(bags.X, bags.offsets), LabelSets(y, ["blue", "green", "red"])
    model = ORLogisticRegression(background=False).fit(bags, labels)
    session = begin(bags=bags, labels=labels, model=model)
    session.survey()
    assert all(each.column < 0 for each in session.questions)
    session.check_tags()
    suspected = {(int(b), session.names[c]) for b, c in zip(wrong, added, strict=True)}
    assert suspected & session.suspicious.keys()
    asked = tags_asked(session)
    assert asked
    assert asked <= session.suspicious.keys()
    b, label = min(asked)
    session.answer({"kind": "tag", "bag": b, "label": label, "state": "absent", "asked": "tag"})
    session.choose_questions()
    assert (b, label) not in tags_asked(session)


def test_tags_of_few_bags_or_of_many_instances_are_not_checked(begin, colours, monkeypatch):
    monkeypatch.setattr("unbag.review.session.MOST_CHECKED", colours.bags.n_instances - 1)
    monkeypatch.setattr("unbag.review.session.check_labels", None)
    session = begin()
    session.check_tags()
    assert session.suspicious == {}


def test_an_answer_of_a_new_class_is_settled_before_the_next_fit(begin):
    session = begin()
    b, place = doubtful(session)
    row = int(session.bags.offsets[b]) + place
    before = session.status()["wrong"]["share"]
    session.answer({"kind": "class", "bag": b, "instance": place, "label": "violet"})
    session.choose_questions()
    assert row not in [each.instance for each in session.questions]
    # It was the least certain of all, and is counted no longer.
    assert session.status()["wrong"]["share"] < before
    assert all(session.pins[each.instance] == -1 for each in session.questions if each.column < 0)


def test_the_gallery_shows_what_others_have_answered(begin):
    first, second = begin(), begin()
    for session in (first, second):
        session.survey(choose=False)
    shown = first.gallery("red", "typical", 0, 5)["instances"][0]
    second.answer(
        {"kind": "label", "bag": shown["bag"], "instance": shown["place"], "label": "blue"}
    )
    first.take_in_others()
    rows = [each["row"] for each in first.gallery("red", "typical", 0, 1000)["instances"]]
    assert shown["row"] not in rows
    found = first.gallery("blue", "typical", 0, 1000)["instances"]
    assert [each["pin"] for each in found if each["row"] == shown["row"]] == ["blue"]
