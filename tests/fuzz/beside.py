"""Files that stand beside a table: label tables, roles, corrections, and selections."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.content import Content, check_agrees, draw_content, text_bytes
from fuzz.damage import damaged, encoded, hostile_text, valid_text
from fuzz.reading import attempt, check_refusal
from unbag import tables
from unbag.corrections import corrected_labels
from unbag.tables import DataError, Roles
from unbag.tables.formats.audacity import write_audacity
from unbag.tables.formats.raven import write_raven
from unbag.tables.spans import Spans

STATES = ("present", "unknown", "absent", "", "?", "1", "0", "-1", "yes", "maybe")


def write_table(folder: Path, rows: list[dict[str, Any]], name: str = "nights.csv") -> Path:
    """Write rows as CSV."""
    path = folder / name
    path.write_bytes(text_bytes(rows))
    return path


def label_rows(content: Content) -> list[dict[str, Any]]:
    """Return the label sets of bags as rows, one per label."""
    words = {1: "present", 0: "absent", -1: "unknown"}
    return [
        {"bag": bag, "label": name, "state": words[state]}
        for bag, states in zip(content.ids, content.states.tolist(), strict=True)
        for name, state in zip(content.classes, states, strict=True)
    ]


def label_tables(rng: np.random.Generator, folder: Path) -> None:
    """A table whose labels stand in a second one, which may be damaged."""
    content = draw_content(rng)
    rows = content.rows()
    for row in rows:
        del row["labels"]
    path = write_table(folder, rows)
    labels = label_rows(content)
    is_sound = rng.random() < 0.2
    if not is_sound:
        for _ in range(rng.integers(1, 4)):
            row = labels[rng.integers(len(labels))]
            column = ("bag", "label", "state")[rng.integers(3)]
            is_state = column == "state" and rng.random() < 0.5
            row[column] = STATES[rng.integers(len(STATES))] if is_state else hostile_text(rng)
    second = write_table(folder, labels, "labels.csv")
    if not is_sound and rng.random() < 0.4:
        second.write_bytes(damaged(rng, second.read_bytes()))
    roles = Roles(label_table=second, carry=("start", "end"))
    if is_sound:
        check_agrees(attempt(path, roles, rng), content)
    else:
        attempt(path, roles, rng)


def role_files(rng: np.random.Generator, folder: Path) -> None:
    """A TOML file of roles with values of any kind, or damaged."""
    content = draw_content(rng)
    path = write_table(folder, content.rows())
    values = ("bag", "labels", "note", "x0", "x1", "start", "end", "", "nights.csv", "|", ",")
    lines = {"bag": '"bag"', "labels": '"labels"', "carry": '["start", "end"]'}
    names = ("bag", "labels", "unknown", "label_table", "features", "instance_labels", "carry",
             "instance_id", "label_separator", "media", "start", "end", "colour")  # fmt: skip
    for _ in range(rng.integers(0, 4)):
        value = json.dumps(values[rng.integers(len(values))])
        value = [value, f"[{value}]", f"[{value}, {value}]", "1", "[1]", "true", "{a = 1}",
                 json.dumps(hostile_text(rng))][rng.integers(8)]  # fmt: skip
        lines[names[rng.integers(len(names))]] = value
    text = "\n".join(f"{name} = {value}" for name, value in lines.items())
    text = f"[roles]\n{text}\n" if rng.random() < 0.3 else f"{text}\n"
    data = encoded(text)
    toml = folder / "roles.toml"
    toml.write_bytes(damaged(rng, data) if rng.random() < 0.4 else data)
    try:
        roles = Roles.from_toml(toml)
    except DataError as error:
        raise check_refusal(error, folder) from error
    attempt(path, roles, rng, need_labels=rng.random() < 0.5)


def corrections(rng: np.random.Generator, folder: Path) -> None:
    """A table in which people have filled in known labels, and which programs have changed."""
    content = draw_content(rng)
    rows = content.rows()
    data = tables.read(write_table(folder, rows), Roles(carry=("start", "end"), instance_id="note"))
    corrected = [{**row, "known_label": row["instance_label"]} for row in rows]
    kind = rng.integers(4)
    if kind == 1:
        row = corrected[rng.integers(len(corrected))]
        row[list(row)[rng.integers(len(row))]] = hostile_text(rng)
    elif kind == 2:
        corrected = [corrected[i] for i in rng.integers(len(corrected), size=len(corrected))]
    path = write_table(folder, corrected, "corrected.csv")
    if kind == 3:
        path.write_bytes(damaged(rng, path.read_bytes()))
    try:
        known = corrected_labels(path, data)
    except DataError as error:
        raise check_refusal(error, folder) from error
    assert known.shape == (data.bags.n_instances,), "not one label per instance"
    if kind == 0:
        assert known.tolist() == data.bags.instance_labels.tolist(), "other labels"


def selections(rng: np.random.Generator, folder: Path) -> None:
    """Labels for Raven and Audacity from tables with strange names and times."""
    content = draw_content(rng)
    rows = content.rows()
    for _ in range(rng.integers(0, 3)):
        row = rows[rng.integers(len(rows))]
        row[("start", "end", "note")[rng.integers(3)]] = hostile_text(rng)
    path = write_table(folder, rows)
    roles = Roles(start="start", end="end", media="note" if rng.random() < 0.5 else None)
    table = attempt(path, roles, rng)
    labels = np.array([valid_text(rng) if rng.random() < 0.2 else "owl" for _ in rows])
    out = folder / "selections"
    write = (write_raven, write_audacity)[rng.integers(2)]
    try:
        written = write(out, Spans(table, labels, find_band=write is write_raven))
    except DataError as error:
        raise check_refusal(error, folder) from error
    n_lines = 0
    for file in written:
        assert file == out or file.parent == out, f"{file} is outside of {out}"
        lines = file.read_bytes().decode().split("\n")
        assert lines[-1] == "", "the last line has no end"
        assert len({line.count("\t") for line in lines[:-1]}) <= 1, "lines of other lengths"
        n_lines += len(lines) - 1 - (write is write_raven)
    assert n_lines == sum(label != "" for label in labels.tolist()), "not one line per label"
