"""What a page asks for, as an answer for the log: checked, with what was there before."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from unbag.io.answers import STATE_NAMES, STATES, LabelChange, TagChange
from unbag.tagging import BACKGROUND_NAME, UNKNOWN_MARK, normal_spelling

from .state import BACKGROUND, UNKNOWN

if TYPE_CHECKING:
    from .session import Session

#: Longest name of a new class.
LONGEST_CLASS = 100
#: Why a tag is asked for; then it is an answer that the tag is right, too.
ABOUT_TAG = "tag"

#: The fields of an `Answer` that a request determines; None if it changes nothing.
Made = dict[str, Any] | None


class Refused(Exception):
    """A request cannot be granted.

    Attributes
    ----------
    status : int
        As HTTP has it: 404 for what is not there, 409 for what is not so any more, 422 for what
        makes no sense.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_request(request: Any) -> None:
    """Raise `Refused` if a request has no kind that there is, or the wrong things for the log."""
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


def _made(session: "Session", b: int | None, **changes: Any) -> dict[str, Any]:
    return {"bag": None if b is None else str(session.bags.ids[b]), **changes}


# Labels of instances.


def label(session: "Session", request: dict[str, Any], b: int) -> Made:
    """Give an instance a label, or none."""
    place = _instance(session, request, b)
    name = None
    if request.get("label") is not None:
        name = _known_label(session, request)
    i = int(session.bags.offsets[b]) + place
    if name == session.pin_text(i):
        return None
    tags = () if name is None else _needed_tags(session, b, [name])
    tags = (*tags, *_needless_tags(session, b, i))
    return _made(session, b, labels=(_label_change(session, b, place, name),), tags=tags)


def accept(session: "Session", request: dict[str, Any], b: int) -> Made:
    """Accept the likeliest label of every instance that has none yet."""
    if request.get("revision") != session.revision(b):
        raise Refused(409, "the labels have changed since: look at them again")
    first = int(session.bags.offsets[b])
    best = session.posterior(b).argmax(axis=1).tolist()
    labels = tuple(
        _label_change(session, b, place, session.text(column))
        for place, column in enumerate(best)
        if session.pins[first + place] == UNKNOWN
    )
    if not labels:
        return None
    named = [each.label for each in labels if each.label is not None]
    return _made(session, b, labels=labels, tags=_needed_tags(session, b, named))


def _instance(session: "Session", request: dict[str, Any], b: int) -> int:
    place = request.get("instance")
    if type(place) is not int or not 0 <= place < session.bags.sizes[b]:
        raise Refused(422, "there is no such instance in this bag")
    return place


def _known_label(session: "Session", request: dict[str, Any]) -> str:
    name = request.get("label")
    if not isinstance(name, str) or session.column(name) == -1:
        raise Refused(422, "there is no such class: make it first")
    return name


def _label_change(session: "Session", b: int, place: int, name: str | None) -> LabelChange:
    i = int(session.bags.offsets[b]) + place
    previous = session.pin_text(i)
    guess = probability = None
    row = session.posterior(b)[place]
    if previous is None and name is not None:
        guess, probability = session.text(int(row.argmax())), round(float(row.max()), 4)
    elif i in session.checked:
        # Another answer about what was guessed before anybody knew.
        guess, probability, _ = session.checked[i]
    own_id = None if session.ids is None else session.ids[i]
    return LabelChange(place, name, previous, guess, probability, own_id)


def _needed_tags(session: "Session", b: int, labels: Sequence[str]) -> tuple[TagChange, ...]:
    """Return the tags that a bag needs, for an instance of it to have these labels."""
    found = []
    for name in dict.fromkeys(labels):
        column = session.column(name)
        if column >= 0 and session.tags[b, column] != 1:
            previous = STATE_NAMES[int(session.tags[b, column])]
            found.append(TagChange(name, "present", previous))
    return tuple(found)


def _needless_tags(session: "Session", b: int, i: int) -> tuple[TagChange, ...]:
    """Return the tag that only an instance gave its bag which is about to lose that label."""
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


def tag(session: "Session", request: dict[str, Any], b: int) -> Made:
    """Say of a tag whether it is right, wrong, or unknown."""
    state, name = request.get("state"), request.get("label")
    if not isinstance(state, str) or state not in STATES:
        raise Refused(422, f"state must be one of {', '.join(STATES)}")
    group = session.groups.get(b, {}).get(name) if isinstance(name, str) else None
    if group is None:
        name = _known_label(session, request)
        columns = (session.column(name),)
        if columns[0] == BACKGROUND:
            raise Refused(422, "background is no tag")
        before = int(session.states(b, b + 1)[0, columns[0]])
        stored = int(session.tags[b, columns[0]])
        if state == "unknown":
            _check_not_struck(session, b, columns[0])
    else:
        name, columns, before, stored = group.name, group.columns, group.state, group.state
    if state == "absent":
        for column in columns:
            _check_not_labelled(session, b, column)
    if before == STATES[state]:
        # That it is right is an answer, where that was the question.
        if request.get("asked") != ABOUT_TAG:
            return None
        return _made(session, b, tags=(TagChange(name, state, STATE_NAMES[stored]),))
    # To undo it brings back what was stored: the rest follows from groups.
    change = TagChange(name, state, STATE_NAMES[stored])
    if group is None and state == "absent":
        return _made(session, b, tags=(change, *_left_of_groups(session, b, columns[0])))
    return _made(session, b, tags=(change,))


def _check_not_labelled(session: "Session", b: int, column: int) -> None:
    n_pinned = int((session.pins[session.rows(b)] == column).sum())
    if n_pinned:
        raise Refused(
            409, f"{n_pinned} instances of this bag are labelled {session.names[column]}: change "
            "them first",
        )  # fmt: skip


def _check_not_struck(session: "Session", b: int, column: int) -> None:
    """Raise `Refused` if a class cannot be unknown, since its group was struck out."""
    groups = [each for each in session.groups.get(b, {}).values() if column in each.columns]
    if groups and all(each.state == 0 for each in groups):
        raise Refused(
            409, f"{session.names[column]} is one of the classes of the tag {groups[0].name}, "
            "which was struck out: put that tag back first",
        )  # fmt: skip


def _left_of_groups(session: "Session", b: int, column: int) -> tuple[TagChange, ...]:
    """Return what becomes of the tags of several classes, one of which is not there.

    Of two classes, the other one is there then. Of more, the tag would need another name.
    """
    found = []
    for group in session.groups.get(b, {}).values():
        if group.state != 1 or column not in group.columns:
            continue
        others = [c for c in group.columns if c != column]
        if len(others) != 1:
            raise Refused(
                409, f"{session.names[column]} is one of the {len(group.columns)} classes of the "
                f"tag {group.name}, and no tag by itself: strike the whole tag, or label the "
                "instances",
            )  # fmt: skip
        state = STATE_NAMES[int(session.tags[b, others[0]])]
        if state != "present":
            found.append(TagChange(session.names[others[0]], "present", state))
        found.append(TagChange(group.name, "absent", "present"))
    return tuple(found)


# The rest.


def new_class(session: "Session", request: dict[str, Any], b: int | None) -> Made:
    """Make a class, for an instance or for later."""
    name = checked_name(session, request.get("label"))
    if b is None or request.get("instance") is None:
        return _made(session, b, classes=(name,))
    place = _instance(session, request, b)
    previous = "unknown" if session.open[b] else "absent"
    return _made(
        session, b, classes=(name,), labels=(_label_change(session, b, place, name),),
        tags=(TagChange(name, "present", previous),),
    )  # fmt: skip


def checked_name(session: "Session", given: Any) -> str:
    """Return the name of a new class in its normal spelling, if tables can hold it."""
    if not isinstance(given, str):
        raise Refused(422, "a class needs a name")
    name = normal_spelling(given)
    if not name or len(name) > LONGEST_CLASS:
        raise Refused(422, f"a class needs a name of 1 to {LONGEST_CLASS} characters")
    if not name.isprintable() or name.startswith((UNKNOWN_MARK, "(")) or session.delimiter in name:
        raise Refused(
            422, f"the name of a class must not begin with {UNKNOWN_MARK} or (, nor contain "
            f"{session.delimiter} or control characters",
        )  # fmt: skip
    folded = {each.casefold() for each in (*session.classes, BACKGROUND_NAME)}
    if name.casefold() in folded:
        raise Refused(409, f"there is a class {name} already")
    return name


def skip(session: "Session", request: dict[str, Any], b: int) -> Made:
    """Answer neither now nor later: an instance, or the question about a tag."""
    name = request.get("label")
    if name is not None:
        if name not in session.groups.get(b, {}):
            name = _known_label(session, request)
        return _made(session, b, skipped_tag=name)
    if request.get("instance") is None:
        return _made(session, b)
    return _made(session, b, skipped=_instance(session, request, b))


def undo(session: "Session", request: dict[str, Any], _: int | None) -> Made:
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


KINDS: dict[str, Callable[..., Made]] = {
    "label": label, "accept": accept, "tag": tag, "class": new_class, "skip": skip, "undo": undo,
}  # fmt: skip
