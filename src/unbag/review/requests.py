"""Answers of people, as the page sends them: checked, and completed by what was there before."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from unbag._messages import words
from unbag.tables.answers import STATE_NAMES, STATES, LabelChange, TagChange
from unbag.tagging import BACKGROUND_NAME, UNKNOWN_MARK, is_word_for_none, normal_spelling

from .state import BACKGROUND, UNKNOWN

if TYPE_CHECKING:
    from .session import Session

#: Longest name of a new class.
LONGEST_CLASS = 100
#: Why a page asks for a tag; then "it is right" is an answer as well.
ABOUT_TAG = "tag"

#: Fields of an `Answer`; None if a request changes nothing.
Fields = dict[str, Any] | None


class Refused(Exception):
    """A request cannot be granted."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_request(request: Any) -> None:
    """Raise `Refused` if a request has no known kind, or values that the log cannot hold."""
    if not isinstance(request, dict):
        raise Refused(422, "an answer is an object")
    kind = request.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(422, f"kind must be one of {', '.join(KINDS)}")
    seconds = request.get("seconds")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 <= seconds < 1e7):
        raise Refused(422, "seconds must be a number")
    asked = request.get("asked")
    if asked is not None and not (isinstance(asked, str) and len(asked) <= 40):
        raise Refused(422, "asked must be a short text")


# Labels of instances.


def label(session: "Session", request: dict[str, Any], b: int) -> Fields:
    """Give an instance a label, or none."""
    place = _instance(session, request, b)
    name = None if request.get("label") is None else _known_label(session, request)
    i = session.rows(b).start + place
    if name == session.text(session.pins[i]) == session.text(session.said[i]):
        return None
    tags = () if name is None else _needed_tags(session, b, [name])
    change = _label_change(session, b, place, name)
    return {"labels": (change,), "tags": (*tags, *_needless_tags(session, b, i))}


def accept(session: "Session", request: dict[str, Any], b: int) -> Fields:
    """Accept the most likely label of every instance that has none yet."""
    if request.get("revision") != session.revision(b):
        raise Refused(409, "the labels have changed since: look at them again")
    pins, best = session.pins[session.rows(b)], session.posterior(b).argmax(axis=1)
    names = {place: session.text(int(best[place])) for place in (pins == UNKNOWN).nonzero()[0]}
    if not names:
        return None
    labels = tuple(_label_change(session, b, int(place), name) for place, name in names.items())
    return {"labels": labels, "tags": _needed_tags(session, b, [*names.values()])}


def _instance(session: "Session", request: dict[str, Any], b: int) -> int:
    place = request.get("instance")
    if type(place) is not int or not 0 <= place < session.bags.sizes[b]:
        raise Refused(422, f"there is no such {words().instance} in this {words().bag}")
    return place


def _known_label(session: "Session", request: dict[str, Any]) -> str:
    name = request.get("label")
    if not isinstance(name, str) or session.column(name) == -1:
        raise Refused(422, "there is no such class: make it first")
    return name


def _label_change(session: "Session", b: int, place: int, name: str | None) -> LabelChange:
    i = session.rows(b).start + place
    previous = session.text(session.said[i])
    guess = probability = None
    row = session.posterior(b)[place]
    if previous is None and name is not None:
        guess, probability = session.text(int(row.argmax())), round(float(row.max()), 4)
    elif i in session.checked:
        # The guess is that of the first answer.
        guess, probability = session.checked[i].guess, session.checked[i].probability
    own_id = None if session.ids is None else session.ids[i]
    return LabelChange(place, name, previous, guess, probability, own_id)


def _needed_tags(session: "Session", b: int, labels: Sequence[str | None]) -> tuple[TagChange, ...]:
    """Return the tags that a bag needs, for an instance of it to have these labels."""
    columns = {name: session.column(name) for name in labels if name is not None}
    return tuple(
        TagChange(name, "present", STATE_NAMES[int(session.tags[b, column])])
        for name, column in columns.items()
        if column >= 0 and session.tags[b, column] != 1
    )


def _needless_tags(session: "Session", b: int, i: int) -> tuple[TagChange, ...]:
    """Return the tag that a bag has only because of this instance, which loses that label now."""
    column = int(session.pins[i])
    if column < 0 or session.tags[b, column] != 1:
        return ()
    name, bag = session.names[column], str(session.bags.ids[b])
    if (session.pins[session.rows(b)] == column).sum() > 1:
        return ()
    changes = [
        (answer.kind, change)
        for answer in session.done
        if answer.bag == bag
        for change in answer.tags
        if change.label == name
    ]
    if not changes or changes[-1][0] == "tag":
        return ()
    return (TagChange(name, changes[-1][1].previous, "present"),)


# Tags of bags.


def tag(session: "Session", request: dict[str, Any], b: int) -> Fields:
    """Say of a tag whether it is right, wrong, or unknown."""
    state, name = request.get("state"), request.get("label")
    if not isinstance(state, str) or state not in STATES:
        raise Refused(422, f"state must be one of {', '.join(STATES)}")
    group = session.groups.get(b, {}).get(name) if isinstance(name, str) else None
    if group is None:
        name = _known_label(session, request)
        column = session.column(name)
        if column == BACKGROUND:
            raise Refused(422, "background cannot be a tag")
        columns, stored = (column,), int(session.tags[b, column])
        now = int(session.states(b, b + 1)[0, column])
        if state == "unknown":
            _check_not_struck(session, b, column)
    else:
        name, columns, stored = group
        now = stored
    if state == "absent":
        for column in columns:
            _check_not_labelled(session, b, column)
    # "It is right" is an answer only where that was the question.
    if now == STATES[state] and request.get("asked") != ABOUT_TAG:
        return None
    # An undo restores the stored state; the rest follows from groups.
    tags = [TagChange(name, state, STATE_NAMES[stored])]
    if group is None and state == "absent" and now != 0:
        tags += _left_of_groups(session, b, columns[0])
    return {"tags": tuple(tags)}


def _check_not_labelled(session: "Session", b: int, column: int) -> None:
    n_pinned = int((session.pins[session.rows(b)] == column).sum())
    if n_pinned:
        raise Refused(
            409, f"{n_pinned} {words().instances} of this {words().bag} are labelled "
            f"{session.names[column]}: change them first",
        )  # fmt: skip


def _check_not_struck(session: "Session", b: int, column: int) -> None:
    """Raise `Refused` if a class cannot be unknown, since its group was struck out."""
    groups = [each for each in session.groups.get(b, {}).values() if column in each.columns]
    if groups and all(each.state == 0 for each in groups):
        raise Refused(
            409, f"{session.names[column]} is one of the classes of the tag {groups[0].name}, "
            "which was struck out: put that tag back first",
        )  # fmt: skip


def _left_of_groups(session: "Session", b: int, column: int) -> list[TagChange]:
    """Return how the tags of several classes change when one of the classes is struck out.

    If a tag names two classes, the other one is left. If it names more, it would need a new name.
    """
    found = []
    for group in session.groups.get(b, {}).values():
        if group.state != 1 or column not in group.columns:
            continue
        others = [c for c in group.columns if c != column]
        if len(others) != 1:
            raise Refused(
                409, f"{session.names[column]} is one of the {len(group.columns)} classes of the "
                f"tag {group.name}, and not a tag by itself: strike the whole tag, or label the "
                f"{words().instances}",
            )  # fmt: skip
        found += _needed_tags(session, b, [session.names[others[0]]])
        found.append(TagChange(group.name, "absent", "present"))
    return found


# The rest.


def new_class(session: "Session", request: dict[str, Any], b: int | None) -> Fields:
    """Make a class, for an instance or for later."""
    name = checked_name(session, request.get("label"))
    if b is None or request.get("instance") is None:
        return {"classes": (name,)}
    change = _label_change(session, b, _instance(session, request, b), name)
    tag = TagChange(name, "present", "unknown" if session.open[b] else "absent")
    return {"classes": (name,), "labels": (change,), "tags": (tag,)}


def checked_name(session: "Session", given: Any) -> str:
    """Return the name of a new class in its normal spelling, if tables can hold it."""
    if not isinstance(given, str):
        raise Refused(422, "a class needs a name")
    name = session.tagging.name(normal_spelling(given))
    if not name or len(name) > LONGEST_CLASS:
        raise Refused(422, f"a class needs a name of 1 to {LONGEST_CLASS} characters")
    is_marked = name.startswith((UNKNOWN_MARK, "(")) or name.endswith(UNKNOWN_MARK)
    if not name.isprintable() or is_marked or session.delimiter in name:
        raise Refused(
            422, f"the name of a class must not begin with ( or {UNKNOWN_MARK}, nor end with "
            f"{UNKNOWN_MARK}, nor contain {session.delimiter} or control characters",
        )  # fmt: skip
    folded = {each.casefold() for each in (*session.classes, BACKGROUND_NAME)}
    if name.casefold() in folded:
        raise Refused(409, f"there is a class {name} already")
    if is_word_for_none(name) or not session.can_be_class(name):
        raise Refused(
            422,
            f"tables read {name} as a group of classes, or as none of them: choose another name",
        )
    return name


def skip(session: "Session", request: dict[str, Any], b: int) -> Fields:
    """Note that an instance, or a tag, is not to be asked about again."""
    name = request.get("label")
    if name is not None:
        is_group = isinstance(name, str) and name in session.groups.get(b, {})
        return {"skipped_tag": name if is_group else _known_label(session, request)}
    if request.get("instance") is None:
        return {}
    return {"skipped": _instance(session, request, b)}


def undo(session: "Session", request: dict[str, Any], _: int | None) -> Fields:
    """Take the last answer back."""
    number = request.get("answer")
    if type(number) is not int:
        raise Refused(422, "answer must be the number of an answer")
    if not session.done or session.done[-1].number != number:
        raise Refused(409, "this is not the last answer: look again")
    last = session.done[-1]
    labels = tuple(
        LabelChange(each.instance, each.previous, each.label, id=each.id)
        for each in reversed(last.labels)
    )
    tags = tuple(TagChange(each.label, each.previous, each.state) for each in reversed(last.tags))
    return {"bag": last.bag, "labels": labels, "tags": tags, "undoes": number}


KINDS: dict[str, Callable[..., Fields]] = {
    "label": label, "accept": accept, "tag": tag, "class": new_class, "skip": skip, "undo": undo,
}  # fmt: skip
