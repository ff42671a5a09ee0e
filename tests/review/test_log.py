"""The log of a review: what is confirmed is there, and what is there is the truth."""

import errno
import json
import os
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array

from platforms import posix_only
from unbag import Bags, LabelSets
from unbag.review.log import AnswerLog, LogError
from unbag.tables import DataError
from unbag.tables.answers import (
    Answer,
    LabelChange,
    TagChange,
    corrected_tags,
    is_log,
    parsed_answers,
    read_answers,
)


def appended(log, label="red", **more):
    """Append an answer about one instance."""
    change = LabelChange(0, label, None, "blue", 0.4)
    return log.append(
        lambda number, time: Answer(number, time, 1.5, "label", "bag 0", (change,), **more),
        lambda other: None,
    )


def test_an_answer_comes_back_as_it_was_written(begin):
    log = begin().log
    tags = (TagChange("red", "present", "absent"),)
    written = appended(log, tags=tags, classes=("red ",), asked="random")
    read = read_answers(log.path)
    assert read.answers == [written]
    assert (read.broken, read.is_torn) == ([], False)
    assert read.standing().labels == {("bag 0", 0): "red"}
    assert read.standing().tags == {("bag 0", "red"): "present"}
    assert is_log(log.path)
    line = json.loads(log.path.read_text().splitlines()[1])
    assert {"time", "seconds", "kind", "labels"} <= line.keys()
    assert line["labels"][0]["previous"] is None


@pytest.mark.parametrize("name", ["Käuzchen", "ears\nlines\ttabs", "half \udc80", '"quoted\\"'])
def test_any_text_comes_back(begin, name):
    log = begin().log
    appended(log, name)
    assert read_answers(log.path).standing().labels == {("bag 0", 0): name}


def test_a_torn_last_line_is_left_out_and_said_and_the_next_answer_is_kept(begin, colours):
    log = begin().log
    appended(log, "red")
    appended(log, "green")
    whole = log.path.read_bytes()
    last = whole.rindex(b'{"answer"')
    for end in (last + 1, last + 40, len(whole) - 2):
        log.path.write_bytes(whole[:end])
        read = read_answers(log.path)
        assert [each.labels[0].label for each in read.answers] == ["red"]
        assert read.is_torn
        assert "incomplete" in read.notes()[0]
        with AnswerLog(log.path, colours.bags, "colours.csv") as again:
            appended(again, "blue")
        read = read_answers(log.path)
        assert [each.labels[0].label for each in read.answers] == ["red", "blue"]
        assert read.broken == [3]
        assert "lines that cannot be read" in read.notes()[0]
        assert not read.is_torn


def test_a_line_that_lacks_only_its_end_counts(begin, colours):
    log = begin().log
    appended(log, "red")
    log.path.write_bytes(log.path.read_bytes()[:-1])
    assert read_answers(log.path).notes() == []
    with AnswerLog(log.path, colours.bags, "colours.csv") as again:
        assert appended(again, "blue").number == 2
    assert [each.number for each in read_answers(log.path).answers] == [1, 2]


def test_rows_that_have_changed_places_are_noticed(begin, colours):
    read = begin().log.read
    bags = colours.bags
    assert read.notes(bags) == []
    order = np.arange(bags.n_instances)
    order[:2] = [1, 0]
    moved = Bags(bags.X[order], bags.offsets, ids=bags.ids)
    assert "changed places within a bag" in read.notes(moved)[0]
    sparse_log = begin("sparse.jsonl", bags=Bags(csr_array(bags.X), bags.offsets, ids=bags.ids)).log
    assert sparse_log.read.notes(Bags(csr_array(moved.X), bags.offsets, ids=bags.ids))


def test_two_programs_write_to_one_log_and_know_of_each_other(begin):
    first, second = begin(), begin()
    place = {"kind": "label", "bag": 3, "instance": 0, "seconds": 1}
    one = first.answer({**place, "label": "red"})
    other = second.answer({**place, "label": "blue"})
    assert [one["answer"], other["answer"]] == [1, 2]
    first.take_in_others()
    assert first.bag_view(3)["instances"][0]["pin"] == "blue"
    changes = [each.labels[0] for each in read_answers(first.log.path).answers]
    assert [(each.previous, each.label) for each in changes] == [(None, "red"), ("red", "blue")]


def test_a_full_disk_is_said_and_nothing_is_claimed(begin, monkeypatch):
    session = begin()
    session.answer({"kind": "label", "bag": 0, "instance": 0, "label": "red"})
    content = session.log.path.read_bytes()
    write = os.write

    def half(descriptor, line):
        return write(descriptor, line[: len(line) // 2])

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = session.bag_view(1)
    for name, failing in (("write", half), ("write", full), ("fsync", full)):
        with monkeypatch.context() as patched:
            patched.setattr(f"os.{name}", failing)
            with pytest.raises(LogError, match=r"not saved, .*space left"):
                session.answer({"kind": "label", "bag": 1, "instance": 0, "label": "red"})
        assert session.log.path.read_bytes() == content
        assert session.bag_view(1) == before
    session.answer({"kind": "label", "bag": 1, "instance": 0, "label": "red"})
    assert len(read_answers(session.log.path).answers) == 2


@pytest.mark.skipif(os.name != "posix", reason="Windows removes no open file")
def test_a_log_that_has_gone_takes_no_more_answers(begin):
    session = begin()
    session.answer({"kind": "label", "bag": 0, "instance": 0, "label": "red"})
    session.log.path.rename(session.log.path.with_name("moved"))
    with pytest.raises(LogError, match="moved or removed"):
        session.answer({"kind": "label", "bag": 1, "instance": 0, "label": "red"})


def test_a_log_of_another_table_is_refused(begin, colours, tmp_path):
    begin()
    others = Bags(colours.bags.X, colours.bags.offsets)
    with pytest.raises(DataError, match="about other bags"):
        AnswerLog(tmp_path / "answers.jsonl", others, "others.csv")


def test_what_is_confirmed_is_read_again_however_long_it_is(begin):
    log, name = begin().log, "a name of a hundred letters" + 73 * "x"
    labels = tuple(LabelChange(i, name, None, name, 0.5) for i in range(260_000))
    log.append(lambda number, time: Answer(number, time, 1.0, "accept", "bag 0", labels), print)
    assert log.path.stat().st_size > 64 << 20
    read = read_answers(log.path)
    assert (len(read.answers[0].labels), read.broken) == (260_000, [])


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"{}", b"null", b"\xff\xfe", b'{"answer": 1}', b"[" * 10_000,
        b'{"answer": -1, "time": "", "seconds": 1, "kind": "label"}',
        b'{"answer": 1, "time": "", "seconds": "x", "kind": "label"}',
        b'{"answer": 1, "time": "", "seconds": 1, "kind": "label", "labels": [3]}',
        b'{"answer": 1, "time": "", "seconds": 1, "kind": "label", "labels": 7}',
        b'{"answer": 1, "time": "", "seconds": 1, "kind": "tag", "tags": [{"label": "a", '
        b'"state": "maybe", "previous": "absent"}]}',
        b'{"answer": 1, "time": "", "seconds": 1%s, "kind": "label"}' % (b"0" * 400),
        b'{"answer": 1%s, "time": "", "seconds": 1, "kind": "label"}' % (b"0" * 400),
    ],
)  # fmt: skip
def test_damaged_lines_are_counted(line):
    assert parsed_answers([line], 2) == ([], [2])


def test_tags_are_corrected_and_new_classes_come_last():
    bags = Bags(np.zeros((3, 1)), [0, 1, 2, 3], ids=["a", "b", "c"])
    labels = LabelSets([[1, 0], [0, 1], [-1, -1]], ["owl", "wren"], [False, False, True])
    changes = {("a", "owl"): "unknown", ("b", "tit"): "present", ("gone", "owl"): "present"}
    found = corrected_tags(labels, bags, changes)
    assert found.classes.tolist() == ["owl", "wren", "tit"]
    assert found.indicator.tolist() == [[-1, 0, 0], [0, 1, 1], [-1, -1, -1]]
    assert corrected_tags(labels, bags, {}) is labels
    assert corrected_tags(None, bags, {("a", "owl"): "present"}).indicator.tolist() == [
        [1], [-1], [-1],
    ]  # fmt: skip


def test_a_class_that_was_taken_back_is_none_of_the_next_fit(begin, colours):
    session = begin()
    session.answer({"kind": "class", "bag": 0, "instance": 0, "label": "violet"})
    session.answer({"kind": "undo", "answer": 1})
    tags = read_answers(session.log.path).standing().tags
    corrected = corrected_tags(colours.labels, colours.bags, tags)
    assert corrected.classes.tolist() == session.label_sets().classes.tolist()


@pytest.mark.parametrize("length", [1, 10, 17, 40, -1])
def test_a_log_of_which_only_a_part_of_the_first_line_is_there_is_begun_anew(
    begin, colours, length
):
    path = begin().log.path
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    assert is_log(path)
    with pytest.raises(DataError, match=r"holds no answer: its first line is incomplete"):
        read_answers(path)
    with AnswerLog(path, colours.bags, "colours.csv") as log:
        assert path.read_bytes() == whole
        [note] = log.notes(colours.bags)
        assert "first line was incomplete" in note
        appended(log)
    with AnswerLog(path, colours.bags, "colours.csv") as log:
        assert log.notes(colours.bags) == []
        assert len(log.read.answers) == 1


@pytest.mark.parametrize("content", [b"night,tags\n1,owl", b"night", b'{"tags": 1}'])
def test_a_file_that_is_no_log_is_left_alone(tmp_path, colours, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a log of answers"):
        AnswerLog(path, colours.bags, "colours.csv")
    assert path.read_bytes() == content


@posix_only
def test_a_pipe_is_no_log_and_is_not_waited_for(tmp_path, colours):
    os.mkfifo(path := tmp_path / "answers.jsonl")
    faults = []

    def begin():
        with pytest.raises(DataError) as refused:
            AnswerLog(path, colours.bags, "colours.csv")
        faults.append(str(refused.value))

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    thread.join(20)
    assert len(faults) == 1
    assert "is not a regular file" in faults[0]
