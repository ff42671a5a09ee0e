"""The mechanism that all kinds of media share, tried on files of numbers."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import unbag
from toy_kind import Lines
from unbag import tables
from unbag.extract.extraction import extract, summary
from unbag.tables import DataError, Roles
from unbag.tables.extracted import Facts, extracted_facts


@pytest.fixture
def folder(tmp_path):
    """Files of numbers, with tags."""
    made = tmp_path / "in"
    (made / "deep").mkdir(parents=True)
    for number in range(8):
        (made / f"f{number}.num").write_text(f"{number}\n{number + 10}\n")
    (made / "deep" / "f9.num").write_text("9\n")
    (made / "notes.txt").write_text("not a number")
    (tmp_path / "tags.csv").write_text(
        "file,tags\n" + "".join(f"f{number}.num,low|high\n" for number in range(10))
    )
    return made


def tags_of(folder, text=None, **roles):
    """The table of tags, and how it is read."""
    path = folder.parent / "tags.csv"
    if text is not None:
        path.write_text(text)
    return path, Roles(**roles)


def done(folder):
    """Names of files that were read, in the order of reading."""
    log = folder.parent / "log.txt"
    return log.read_text().split() if log.exists() else []


def facts_of(path):
    with tables.table.open_source(path) as source:
        return extracted_facts(source)


def test_a_table_needs_no_option(folder, tmp_path):
    output = tmp_path / "t.parquet"
    result = extract(Lines(), folder, output, *tags_of(folder))
    assert (result.files, result.instances, result.failed) == (9, 17, {})
    assert result.other_files == {".txt": 1}
    table = pq.read_table(output)
    assert table.column_names == ["file", "value", "id", "tags"]
    assert table.column("id").to_pylist()[:3] == ["deep/f9.num#1", "f0.num#1", "f0.num#2"]
    # In the order of names, wherever files lie.
    assert table.column("file").to_pylist()[:2] == ["deep/f9.num", "f0.num"]
    read = tables.read(output)
    assert (read.roles.bag, read.roles.labels, read.roles.features) == ("file", "tags", ("value",))
    assert [set(labels) for labels in read.labels.to_sets()] == [{"low", "high"}] * 9
    facts = facts_of(output)
    assert (facts.kind, facts.version) == ("lines", unbag.__version__)
    assert facts.settings == {"factor": 1.0}
    assert not (tmp_path / ".t.parquet.parts").exists()


def test_what_a_person_names_wins_over_what_the_file_stores(folder, tmp_path):
    output = tmp_path / "t.parquet"
    extract(Lines(), folder, output, *tags_of(folder))
    read = tables.read(output, Roles(bag="tags", carry=["file"]), need_labels=False)
    assert (read.roles.bag, read.roles.labels, read.roles.media) == ("tags", None, None)


def test_processes_do_not_change_the_table(folder, tmp_path):
    seen = []
    extract(Lines(), folder, tmp_path / "one.parquet", *tags_of(folder))
    extract(
        Lines(), folder, tmp_path / "two.parquet", *tags_of(folder), n_jobs=2,
        on_file=lambda *each: seen.append(each),
    )  # fmt: skip
    one, two = ((tmp_path / f"{name}.parquet").read_bytes() for name in ("one", "two"))
    assert one == two
    assert [each[2] for each in seen].sort() == sorted(set(done(folder))).sort()
    assert seen[-1][0] == seen[-1][1] == sum(p.stat().st_size for p in folder.rglob("*.num"))


def test_progress_is_told_within_files(folder, tmp_path):
    seen = []
    extract(
        Lines(), folder, tmp_path / "t.parquet", *tags_of(folder),
        on_progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    sizes = [path.stat().st_size for path in folder.rglob("*.num")]
    assert seen == sorted(seen)
    assert len(seen) == 2 * len(sizes)
    assert {total for _, total in seen} == {sum(sizes)}
    assert seen[-1][0] == sum(sizes)


def test_files_that_fail_are_named_and_the_others_are_there(folder, tmp_path):
    (folder / "f3.num").write_text("three")
    (folder / "f4.num").write_text("bug")
    faults = []
    result = extract(
        Lines(), folder, tmp_path / "t.parquet", *tags_of(folder),
        on_file=lambda done, total, name, fault: faults.append((name, fault)),
    )  # fmt: skip
    assert list(result.failed) == ["f3.num", "f4.num"]
    assert "f3.num is damaged: could not convert" in result.failed["f3.num"]
    assert "internal error (RuntimeError: this should not happen)" in result.failed["f4.num"]
    assert dict(faults)["f3.num"] == result.failed["f3.num"]
    assert f"instances of {result.files - 2} files." in summary(result, "files")[0]
    assert facts_of(result.output).failed == result.failed
    assert result.instances == 13


def test_a_file_that_cannot_be_opened_fails_alone(folder, tmp_path):
    (folder / "gone.num").symlink_to(tmp_path / "nowhere")
    result = extract(Lines(), folder, tmp_path / "t.parquet")
    assert "gone.num cannot be read: No such file" in result.failed["gone.num"]
    assert result.instances == 17


def test_nothing_is_written_where_nothing_is_found(folder, tmp_path):
    for path in folder.rglob("*.num"):
        path.write_text("")
    with pytest.raises(DataError, match=r"Nothing was found in any of 9 files of lines"):
        extract(Lines(), folder, tmp_path / "t.parquet")
    for path in folder.rglob("*.num"):
        path.write_text("x")
    with pytest.raises(DataError, match="None of 9 files of lines could be read; the first"):
        extract(Lines(), folder, tmp_path / "t.parquet")
    assert not list(tmp_path.glob("t.parquet*"))


def test_bags_without_instances_are_listed_and_not_rows(folder, tmp_path, caplog):
    (folder / "f3.num").write_text("")
    (folder / "f4.num").write_text("")
    (folder / "deep" / "f9.num").write_text("9\n19\n")
    tags = tags_of(folder, "file,tags\nf4,(none)\n" + "".join(
        f"f{number},low|{'high' if number % 2 else ''}\n" for number in (0, 1, 2, 3, 5, 6, 7, 9)
    ))  # fmt: skip
    result = extract(Lines(), folder, tmp_path / "t.parquet", *tags)
    assert result.without_instances == ["f3.num", "f4.num"]
    assert result.tagged_without_instances == ["f3.num"]
    assert "1 of them has tags, and no fit will learn from it: f3.num" in " ".join(
        summary(result, "files")
    )
    with caplog.at_level("INFO", logger="unbag"):
        unbag.fit(result.output)
    assert "nothing was found in them: 1 files of lines with tags (f3.num)" in caplog.text


def test_files_without_tags_are_refused_before_the_work(folder, tmp_path):
    tags = tags_of(folder, "file,tags\nf0.num,low\nf1.num,\nzz,low\n")
    with pytest.raises(DataError, match=r"no tags for 8 of 9 files of lines: deep/f9.num, f1"):
        extract(Lines(), folder, tmp_path / "t.parquet", *tags)
    assert done(folder) == []


def test_what_missing_tags_mean_is_kept_for_the_fit(folder, tmp_path):
    text = "file,tags\nf0.num,low\nf1.num,\nf2.num,high\nzz,low\n"
    for untagged in ("unknown", "absent"):
        tags = tags_of(folder, text, untagged=untagged)
        result = extract(Lines(), folder, tmp_path / "t.parquet", *tags)
        assert len(result.files_without_tags) == 7
        assert result.tags_without_file == ["zz"]
        read = tables.read(result.output)
        assert read.roles.untagged == untagged
        assert read.labels.optional[0].all() == (untagged == "unknown")
        assert pq.read_table(result.output).column("tags").null_count == 13


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("recording,species\nF0.NUM,low\nf0.num,high\n", {}),
        ("bag;tags\nin/f0.num;low,high\n", {"label_separator": ","}),
        ("name,low,high,mid\nf0,1,1,0\n", {"bag": "name", "label_columns": ["low", "high", "mid"]}),
        ("file,tags\nf0,LOW|High\n", {"fold_case": True}),
        ("file,tags\nf0,deep|high\n", {"rename": {"deep": "low"}}),
    ],
)
def test_tags_come_in_many_layouts(folder, tmp_path, text, roles):
    tags = tags_of(folder, text, untagged="unknown", **roles)
    result = extract(Lines(), folder, tmp_path / "t.parquet", *tags)
    cells = dict(zip(*(pq.read_table(result.output).column(name).to_pylist()
                       for name in ("file", "tags")), strict=True))  # fmt: skip
    if "F0.NUM" in text:
        # Two names for one file: neither is taken for it unless it is the same.
        assert cells["f0.num"] == "high"
    else:
        assert cells["f0.num"] == "high|low"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("file,tags\n", "row"),
        ("file,tags\n,low\n", "names no file"),
        ("name,tags\nf0,low\n", "no column of the files, such as 'file'"),
        ("file,birds\nf0,low\n", "no column of the tags, such as 'tags'"),
        ("file,tags\nf0,low\nf0,(none)\n", "tags in one row, and none of them by another"),
        ("file,tags\nf0,low|?low\n", "both as present and as unknown"),
        ("file,tags\nx,low\ny,high\n", "no tags for any of the 9 files of lines: its names are"),
        ("", "empty"),
    ],
)
def test_wrong_tags_are_one_line(folder, tmp_path, text, fault):
    with pytest.raises(DataError, match=fault) as raised:
        extract(Lines(), folder, tmp_path / "t.parquet", *tags_of(folder, text))
    assert "\n" not in str(raised.value)


def test_one_name_in_two_folders_needs_the_folder(folder, tmp_path):
    (folder / "other").mkdir()
    (folder / "other" / "f9.num").write_text("90\n")
    with pytest.raises(DataError, match=r"Several files of lines may be called like 'f9.num'"):
        extract(Lines(), folder, tmp_path / "t.parquet", *tags_of(folder))
    text = (tmp_path / "tags.csv").read_text().replace("f9.num", "deep/f9.num")
    tags = tags_of(folder, text + "other/f9.num,low\n")
    result = extract(Lines(), folder, tmp_path / "t.parquet", *tags)
    assert result.files_without_tags == []


def test_a_folder_without_files_of_the_kind_says_what_it_has(folder, tmp_path):
    class Others(Lines):
        suffixes = (".wav",)

    with pytest.raises(DataError, match=r"end in \.wav; it has files with \.num, \.txt"):
        extract(Others(), folder, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="does not exist"):
        extract(Lines(), tmp_path / "none", tmp_path / "t.parquet")
    with pytest.raises(DataError, match="must end in one of"):
        extract(Lines(), folder, tmp_path / "t.csv")


def test_a_stopped_run_goes_on_where_it_was(folder, tmp_path):
    whole = extract(Lines(), folder, tmp_path / "whole.parquet", *tags_of(folder))
    (tmp_path / "log.txt").unlink()

    def stop(done, total, name, fault):
        if name == "f2.num":
            raise KeyboardInterrupt

    output = tmp_path / "t.parquet"
    with pytest.raises(KeyboardInterrupt):
        extract(Lines(), folder, output, *tags_of(folder), on_file=stop)
    assert not output.exists()
    result = extract(Lines(), folder, output, *tags_of(folder))
    assert result.resumed == 4
    assert sorted(done(folder)) == sorted(set(done(folder)))
    assert output.read_bytes() == whole.output.read_bytes()


def test_finished_files_of_other_settings_are_not_taken(folder, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    output = tmp_path / "t.parquet"
    with pytest.raises(KeyboardInterrupt):
        extract(Lines(), folder, output, on_file=stop)
    with pytest.raises(KeyboardInterrupt):
        extract(replace(Lines(), factor=2.0), folder, output, on_file=stop)
    # A file that has changed is read again; a part that is damaged as well.
    (folder / "deep" / "f9.num").write_text("99\n100\n")
    assert extract(Lines(), folder, output).resumed == 0
    assert pq.read_table(output).column("value").to_pylist()[:3] == [99, 100, 0]


def test_a_run_does_not_disturb_another(folder, tmp_path):
    output = tmp_path / "t.parquet"

    def again(*_):
        with pytest.raises(DataError, match="is in use: another run writes the same table"):
            extract(Lines(), folder, output)

    extract(Lines(), folder, output, on_file=again)


KILLED = """
import os, sys, signal
from pathlib import Path
from toy_kind import Lines
from unbag.extract.extraction import extract
folder, output, left = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
def count(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
extract(Lines(), folder, output)
"""


def check_kills(folder, moments):
    """Kill runs when they open, rename or remove a file; the last one is not, and ends the work."""
    base, output = folder.parent, folder.parent / "t.parquet"
    whole = extract(Lines(), folder, base / "whole.parquet").output.read_bytes()
    script, parts = base / "killed.py", base / ".t.parquet.parts"
    script.write_text(KILLED)
    paths = [str(Path(__file__).parents[1]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    for moment in moments:
        before = {part.name for part in parts.glob("*.arrow")}
        n_before = len(done(folder))
        run = subprocess.run(
            [sys.executable, str(script), str(folder), str(output), str(moment)], env=environment
        )
        assert run.returncode in (0, -9)
        assert not output.exists() or output.read_bytes() == whole
        read = done(folder)[n_before:]
        after = {part.name for part in parts.glob("*.arrow")}
        if run.returncode == 0 or output.exists():
            # The work was done: the next one begins again.
            output.unlink()
            continue
        # What was finished is still there, and was not read again.
        assert before <= after
        assert len(after) - len(before) >= len(read) - 1
    result = extract(Lines(), folder, output)
    assert output.read_bytes() == whole
    assert result.files == 9
    left = {path.name for path in base.iterdir()}
    assert left == {"in", "tags.csv", "log.txt", "killed.py", "whole.parquet", "t.parquet"}


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_run_repeats_no_finished_file_and_gives_the_same_bytes(folder):
    check_kills(folder, (25, 60, 75))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_runs_killed_at_fifty_moments_give_the_same_bytes(folder):
    check_kills(folder, np.random.default_rng(0).integers(1, 90, 50))


def test_metadata_of_others_is_left_alone(folder, tmp_path):
    output = tmp_path / "t.parquet"
    extract(Lines(), folder, output, *tags_of(folder))
    table = pq.read_table(output)
    for content in (b"{", b"[]", b'{"roles": {"bag": 3}}', json.dumps({"roles": 1}).encode()):
        pq.write_table(table.replace_schema_metadata({b"unbag.extracted": content}), output)
        read = tables.read(output, Roles(bag="file"), need_labels=False)
        assert read.roles.features == ("value",)


@pytest.mark.parametrize("value", [3, "text", [3], {"a": [3]}, None])
def test_facts_of_other_types_are_none(value, folder, tmp_path):
    output = tmp_path / "t.parquet"
    extract(Lines(), folder, output, *tags_of(folder))
    written = pq.read_table(output)
    facts = vars(facts_of(output))
    for name, usual in facts.items():
        edited = {b"unbag.extracted": json.dumps(facts | {name: value}).encode()}
        pq.write_table(written.replace_schema_metadata(edited), output)
        is_text = isinstance(usual, str) and isinstance(value, str)
        is_free = name in ("roles", "settings") and isinstance(value, dict)
        assert (facts_of(output) is not None) == (is_text or is_free), name
    # What is not ours is a table like others.
    assert tables.read(output, Roles(bag="file", labels="tags")).roles.features == ("value",)


@pytest.mark.parametrize(("role", "content"), [
    ("label_table", "bag,label\nf0.num,stolen\n"), ("rename", "old,new\nlow,stolen\n"),
    ("taxonomy", "child,parent\nlow,stolen\n"),
])  # fmt: skip
def test_metadata_open_no_other_file(role, content, folder, tmp_path):
    output, other = tmp_path / "t.parquet", tmp_path / "other.csv"
    extract(Lines(), folder, output, *tags_of(folder))
    other.write_text(content)
    facts = facts_of(output)
    stored = {name: value for name, value in facts.roles.items() if name != "labels"}
    edited = replace(facts, roles={**stored, role: str(other)}).metadata()
    pq.write_table(pq.read_table(output).replace_schema_metadata(edited), output)
    with pytest.warns(UserWarning, match=f"not used: {role} is stored as the path"):
        read = tables.read(output, Roles(bag="file"), need_labels=False)
    assert read.labels is None
    assert (read.roles.label_table, read.roles.rename, read.roles.taxonomy) == (None, (), ())


def test_facts_are_the_same_bytes():
    one = Facts("a", "b", "c", "d", {"x": 1, "y": 2}, {})
    other = Facts("a", "b", "c", "d", {"y": 2, "x": 1}, {})
    assert one.metadata() == other.metadata()


def test_no_processes_are_refused_before_the_work(folder, tmp_path):
    with pytest.raises(ValueError, match="n_jobs must be a number"):
        extract(Lines(), folder, tmp_path / "t.parquet", n_jobs=0)
    assert not list(tmp_path.glob("t.parquet*"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_strange_names_of_files_are_named_in_one_line(folder, tmp_path):
    (folder / "two\nlines.num").write_text("three")
    (folder / os.fsdecode(b"b\xff.num")).write_text("1")
    result = extract(Lines(), folder, tmp_path / "t.parquet")
    of_lines = result.failed["two\nlines.num"]
    assert of_lines.count("lines.num") == 1
    assert "\n" not in of_lines
    of_bytes = result.failed[os.fsdecode(b"b\xff.num")]
    assert "the name is not valid Unicode: rename it." in of_bytes
