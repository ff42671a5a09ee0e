"""``unbag report``: the media that it may show, and what it says of the others."""

import csv
import re
from itertools import cycle

import pytest

from platforms import posix_only
from toys import PNG


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


@posix_only
def test_only_media_in_the_folder_of_the_table_are_shown(model, with_media, run, tmp_path):
    (tmp_path / "letter.png").write_bytes(PNG)
    (tmp_path / "system.png").symlink_to("/etc/passwd")
    (tmp_path / "note.png").write_text("a note to nobody")
    table = with_media("letter.png", "/etc/passwd", "system.png", "../../x.png", "note.png", "")
    report = tmp_path / "r.html"
    code, _, errors = run("report", model, table, "-o", report, "--media", "file")
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
    command = ("report", model, table, "-o", tmp_path / "r.html", "--media", "file")
    code, _, errors = run(*command, "--media-root", pictures)
    assert code == 0
    assert "1 outside the media folder" in errors
    assert (tmp_path / "r.html").read_text().count("data:image/png") == 1
    code, _, errors = run(*command, "--media-root", tmp_path / "nowhere")
    assert code == 2
    # In a box, whose lines break where the path of the folder lets them.
    assert re.search(r"does\W+not\W+exist", errors)
