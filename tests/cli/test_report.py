"""``unbag report``: the media that it may show, and what it says of the others."""

import csv
import os
import re
from itertools import cycle
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from platforms import posix_only
from toys import PNG
from unbag.cli.review import media_folder
from unbag.tables import Roles, read
from unbag.tables.extracted import Facts

#: Columns of the words that are no features.
OTHERS = ("word", "tags", "letter", "note", "file")


@pytest.fixture
def with_media(words):
    """Write media into the table of words, these cells in turn."""

    def write(*cells):
        with words.open(newline="") as file:
            header, *rows = csv.reader(file)
        path = words.with_name("with_media.csv")
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*header, "file"])
            writer.writerows([*row, cell] for row, cell in zip(rows, cycle(cells), strict=False))
        return path

    return write


def media_in(folder):
    """Options that name the column of the media."""
    roles = folder / "roles.toml"
    roles.write_text('media = "file"\n')
    return "--roles", roles


@posix_only
def test_only_media_in_the_folder_of_the_table_are_shown(model, with_media, run, tmp_path):
    (tmp_path / "letter.png").write_bytes(PNG)
    (tmp_path / "system.png").symlink_to("/etc/passwd")
    (tmp_path / "note.png").write_text("a note to nobody")
    table = with_media("letter.png", "/etc/passwd", "system.png", "../../x.png", "note.png", "")
    report = tmp_path / "r.html"
    code, _, errors = run("report", model, table, "-o", report, *media_in(tmp_path))
    assert code == 0
    [warning] = [line for line in errors.splitlines() if "not shown" in line]
    assert f"3 outside the media folder {tmp_path}" in warning
    assert "1 not a picture or a sound" in warning
    page = report.read_text()
    assert page.count("data:image/png") == page.count(";base64,") == 1
    assert "note to nobody" not in page


def test_media_may_lie_in_a_folder_of_their_own(model, with_media, run, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "letter.png").write_bytes(PNG)
    (tmp_path / "beside.png").write_bytes(PNG)
    table = with_media("letter.png", "../beside.png")
    command = ("report", model, table, "-o", tmp_path / "r.html", *media_in(tmp_path))
    code, _, errors = run(*command, "--media-root", pictures)
    assert code == 0
    assert "1 outside the media folder" in errors
    assert (tmp_path / "r.html").read_text().count("data:image/png") == 1
    code, _, errors = run(*command, "--media-root", tmp_path / "nowhere")
    assert code == 2
    # In a box, whose lines break where the path of the folder lets them.
    assert re.search(r"does\W+not\W+exist", errors)


@pytest.fixture
def extracted(with_media):
    """Write a table that names a folder of pictures as that which it was extracted from."""

    def write(path, folder, cell="letter.png", media="file"):
        table = pyarrow.csv.read_csv(with_media(cell))
        features = [name for name in table.column_names if name not in OTHERS]
        roles = {"bag": "word", "labels": "tags", "media": media, "features": features}
        facts = Facts("images", "pictures", "0.1", folder, roles, {})
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.replace_schema_metadata(facts.metadata()), path)
        return path

    return write


def pictures_in(folder):
    folder.mkdir(parents=True)
    (folder / "letter.png").write_bytes(PNG)
    return folder


@pytest.mark.parametrize("is_absolute", [False, True])
@pytest.mark.parametrize("place", ["t.parquet", "tables/t.parquet"])
def test_an_extracted_table_knows_the_folder_of_its_media(
    model, extracted, run, tmp_path, monkeypatch, place, is_absolute
):
    folder = pictures_in(tmp_path / "photos")
    table = extracted(tmp_path / place, str(folder) if is_absolute else "photos")
    # A table and its folder may be moved together.
    monkeypatch.chdir(tmp_path if place != "t.parquet" or is_absolute else tmp_path.parent)
    code, _, errors = run("report", model, table, "-o", tmp_path / "r.html")
    assert code == 0
    assert "not shown" not in errors
    assert f"Looking for pictures in {os.path.realpath(folder)}, as t.parquet says." in errors
    assert (tmp_path / "r.html").read_text().count("data:image/png") == 1
    # What people name wins.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code, _, errors = run(
        "report", model, table, "-o", tmp_path / "r.html", "--media-root", elsewhere
    )
    assert f"1 missing in {elsewhere} (--media-root sets another)" in errors


@pytest.mark.parametrize(
    "folder", ["{}", "../photos", pytest.param("link", marks=posix_only), "nowhere", "a\0b"],
)  # fmt: skip
def test_a_table_shows_nothing_of_folders_that_are_elsewhere(
    model, extracted, run, tmp_path, monkeypatch, folder
):
    secret = pictures_in(tmp_path / "photos")
    here = tmp_path / "here"
    table = extracted(here / "t.parquet", folder.format(secret))
    monkeypatch.chdir(here)
    if folder == "link":
        (here / "link").symlink_to(secret)
    code, _, errors = run("report", model, table, "-o", here / "r.html")
    assert code == 0
    assert "data:image/png" not in (here / "r.html").read_text()
    assert "as the folder of its pictures. It is used only inside" in errors
    assert f"1 missing in {here}" in errors
    # Files that lie next to the table need no advice.
    (here / "letter.png").write_bytes(PNG)
    code, _, errors = run("report", model, table, "-o", here / "r.html")
    assert "as the folder of its pictures" not in errors
    assert "not shown" not in errors


@pytest.mark.parametrize("folder", [7, None, ["photos"]])
def test_metadata_that_name_no_folder_are_not_used(model, extracted, run, tmp_path, folder):
    pictures_in(tmp_path / "photos")
    table = extracted(tmp_path / "t.parquet", folder)
    code, _, errors = run(
        "report", model, table, "-o", tmp_path / "r.html", "--bag", "word", "--labels", "tags",
        *media_in(tmp_path),
    )  # fmt: skip
    assert code == 0, errors
    assert f"1 missing in {tmp_path}" in errors


def test_media_of_another_column_lie_elsewhere(extracted, tmp_path):
    pictures_in(tmp_path / "photos")
    table = read(extracted(tmp_path / "t.parquet", "photos", media="note"), Roles(media="file"))
    assert media_folder(table, None) == tmp_path
    assert media_folder(table, Path("given")) == Path("given")
    # A single file may have been extracted from.
    table = read(extracted(tmp_path / "t.parquet", "photos/letter.png"))
    assert media_folder(table, None) == Path(os.path.realpath(tmp_path / "photos"))
