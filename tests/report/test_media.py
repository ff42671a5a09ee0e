"""Which files a report shows: pictures and sounds below one folder, and nothing else."""

import os
import re
import socket

import pytest

from platforms import linux_only, posix_only
from toys import PNG, WAV
from unbag.report import media as media_module
from unbag.report import render
from unbag.report.clips import Place
from unbag.report.media import Media, Medium, media_type, open_below, read_medium

SECRET = b"root:x:0:0:the secret of this machine"


@pytest.fixture
def folder(tmp_path):
    """A folder of media, beside one that is nobody's business."""
    (tmp_path / "secret.png").write_bytes(PNG)
    (tmp_path / "passwd").write_bytes(SECRET)
    root = tmp_path / "songs"
    (root / "night").mkdir(parents=True)
    (root / "wren.png").write_bytes(PNG)
    (root / "night" / "owl.wav").write_bytes(WAV)
    return root


def shown(folder, *cells):
    media = Media(cells, folder)
    return [media.of_instance(i) for i in range(len(cells))], media


def gap(folder, cell):
    """Return why a medium is not shown, and make sure that nothing of it is."""
    [medium], media = shown(folder, cell)
    assert (medium.kind, medium.place) == ("gap", None)
    assert media.sources == []
    assert media.gaps() == {medium.reason: 1}
    return medium.reason


def test_pictures_and_sounds_are_put_into_the_page_once(letters, folder):
    bags, labels, model = letters
    cells = ["wren.png", "./wren.png", "night/owl.wav", str(folder / "night" / ".." / "wren.png")]
    media = [cells[i % 4] for i in range(bags.n_instances)]
    page = render(model, bags, labels, media=media, media_root=folder)
    assert page.count("data:image/png;base64,") == 1
    assert page.count("data:audio/wav;base64,") == 1
    assert "<audio controls" in page
    assert str(folder) not in page


def test_an_instance_without_a_medium_has_none(folder):
    assert shown(folder, None, "")[0] == [None, None]
    assert Media(None).of_instance(0) is None


@pytest.mark.parametrize(
    "cell",
    ["../secret.png", "{}/secret.png", "night/../../secret.png", "../songs-too/a.png",
     "/etc/passwd", "..", "/", "../nothing.png", "//localhost/a.png"],
)  # fmt: skip
def test_what_lies_elsewhere_is_not_shown(folder, cell):
    beside = folder.with_name("songs-too")
    beside.mkdir()
    (beside / "a.png").write_bytes(PNG)
    assert gap(folder, cell.format(folder.parent)) == "outside the media folder"


@posix_only
@pytest.mark.parametrize(
    "target", ["../secret.png", "../passwd", "/etc/passwd", "/dev/zero", "..", "a.png"]
)
def test_links_that_lead_elsewhere_are_not_followed(folder, target):
    (folder / "a.png").symlink_to(target)
    cell = "a.png/secret.png" if target == ".." else "a.png"
    # A link to itself leads nowhere.
    why = "cannot be read" if target == "a.png" else "outside the media folder"
    assert gap(folder, cell).startswith(why)


@posix_only
def test_links_within_the_folder_are_followed(folder):
    (folder / "a").symlink_to("night/owl.wav")
    (folder.parent / "link").symlink_to(folder)
    found, _ = shown(folder.parent / "link", "a", "wren.png")
    assert found == [Medium("a", "audio", 0), Medium("wren.png", "image", 1)]


@posix_only
@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_that_was_put_there_since_is_not_followed(folder, swapped):
    path = folder / "night" / "owl.wav"
    if swapped == "file":
        path.unlink()
        path.symlink_to(folder.parent / "secret.png")
    else:
        path.unlink()
        path.parent.rmdir()
        (folder / "owl.wav").write_bytes(WAV)
        path.parent.symlink_to(folder)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        open_below(str(folder), str(path))


@posix_only
def test_a_pipe_is_neither_shown_nor_waited_for(folder):
    os.mkfifo(folder / "a.wav")
    assert gap(folder, "a.wav") == "not a regular file"
    # Even where somebody has opened it to write, and writes nothing.
    writer = os.open(folder / "a.wav", os.O_RDWR)
    media = Media(["a.wav"], folder, [Place(0.0, 1.0)])
    assert media.of_instance(0).reason == "not a regular file"
    os.close(writer)


@pytest.mark.parametrize("on_disk", ["Sch\u00f6n", "Scho\u0308n"])
@pytest.mark.parametrize("in_table", ["Sch\u00f6n", "Scho\u0308n"])
def test_names_are_found_in_the_spelling_of_any_system(folder, on_disk, in_table):
    (folder / on_disk).mkdir()
    (folder / on_disk / f"{on_disk}.png").write_bytes(PNG)
    [medium], _ = shown(folder, f"{in_table}\\{in_table}.png")
    assert medium.kind == "image"
    assert gap(folder, f"..\\..\\{in_table}.png") == "outside the media folder"


@posix_only
def test_what_is_no_file_is_not_shown(folder, monkeypatch):
    monkeypatch.chdir(folder)  # Names of sockets are short.
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a.png")
        assert gap(folder, "a.png").startswith("cannot be read")
    assert gap(folder, "night") == "not a regular file"
    assert gap(folder, ".") == "not a regular file"


@pytest.mark.parametrize("cell", ["no.png", "x" * 300 + ".png", "a\0b.png", "wren.png/x", "\ud800"])
def test_names_without_a_file_are_missing(folder, cell):
    assert gap(folder, cell).startswith(("missing", "cannot be read"))


@pytest.mark.parametrize("scheme", ["https", "http", "file", "ftp", "smb"])
def test_addresses_are_neither_fetched_nor_linked(letters, folder, scheme):
    bags, labels, model = letters
    address = f"{scheme}://example.org/a.png"
    assert gap(folder, address) == "a web address, which reports do not load"
    with pytest.warns(UserWarning, match="1 a web address"):
        page = render(model, bags, labels, media=[address] * bags.n_instances, media_root=folder)
    assert "example.org" not in page


def test_what_the_bytes_say_counts_and_not_the_name(folder):
    (folder / "passwd.png").write_bytes(SECRET)
    (folder / "empty.png").write_bytes(b"")
    (folder / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>")
    (folder / "page.png").write_text("<!doctype html><script>1</script>")
    for name in ("passwd.png", "empty.png", "drawing.svg", "page.png"):
        assert gap(folder, name) == "not a picture or a sound"
    (folder / "song.png").write_bytes(WAV)
    (folder / "photograph").write_bytes(PNG)
    found, media = shown(folder, "song.png", "photograph")
    assert [medium.kind for medium in found] == ["audio", "image"]
    assert media.sources[0].startswith("data:audio/wav;base64,")


@pytest.mark.parametrize(
    ("beginning", "found"),
    [
        (PNG, "image/png"), (WAV, "audio/wav"), (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\1\0", "image/gif"), (b"RIFF\1\2\3\nWEBPVP8 ", "image/webp"),
        (b"BM\x46\0\0\0\0\0\0\0\x36", "image/bmp"), (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"fLaC\0\0\0\x22", "audio/flac"), (b"OggS\0\2", "audio/ogg"),
        (b"ID3\4\0\0\0\0\0\0", "audio/mpeg"), (b"\xff\xfb\x90\x64", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "audio/aac"), (b"\0\0\0\x1cftypM4A ", "audio/mp4"),
        (b"", None), (b"ID3,name\n1,wren", None), (b"BMW,Audi,Opel\n", None), (b"%PDF-1.7", None),
        ("text".encode("utf-16"), None), (b"\0\0\0\x20ftypisom", None), (b"RIFF", None),
        (b"\x7fELF\2\1\1", None), (b"PK\3\4", None), (b"GIF", None), (b"SQLite format 3\0", None),
    ],
)  # fmt: skip
def test_types_are_told_by_the_first_bytes(beginning, found):
    assert media_type(beginning) == found


def test_what_is_too_large_is_not_shown(folder, monkeypatch):
    monkeypatch.setattr(media_module, "MOST_BYTES", len(PNG) - 1)
    assert gap(folder, "wren.png") == "larger than 5 MB"


def test_media_are_shown_as_long_as_there_is_room(folder, monkeypatch):
    monkeypatch.setattr(media_module, "MOST_BYTES_IN_ALL", 2 * len(PNG) + 1)
    for name in "abc":
        (folder / f"{name}.png").write_bytes(PNG)
    found, media = shown(folder, "a.png", "b.png", "c.png", "a.png")
    assert [medium.kind for medium in found] == ["image", "image", "gap", "image"]
    assert found[2].reason == "beyond the 50 MB of media that a report holds"
    assert len(media.sources) == 2


def test_a_file_that_grows_is_read_as_far_as_it_was_announced(folder, monkeypatch):
    path = folder / "wren.png"
    status = os.stat(path)
    path.write_bytes(PNG + b"\0" * 1_000_000)
    monkeypatch.setattr("os.fstat", lambda _: status)
    assert read_medium(str(folder), str(path)) == ("image/png", PNG)


@linux_only
def test_files_are_closed(folder):
    (folder / "a.png").write_bytes(SECRET)
    before = len(os.listdir("/proc/self/fd"))
    shown(folder, "wren.png", "night/owl.wav", "night/no.wav", "a.png", "night", "wren.png/x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_gaps_are_named_with_the_reason_and_counted_in_one_warning(letters, folder):
    bags, labels, model = letters
    cells = ["wren.png", "../passwd", "../secret.png", "no.png"]
    media = [cells[i % 4] for i in range(bags.n_instances)]
    with pytest.warns(UserWarning, match="not shown") as warned:
        page = render(model, bags, labels, media=media, media_root=folder)
    [text] = [str(each.message) for each in warned]
    assert "\n" not in text
    assert f"2 outside the media folder {folder}" in text
    assert "1 missing" in text
    assert re.search(r"passwd <span>\(outside the media folder\)", page)
    assert re.search(r"no\.png <span>\(missing\)", page)
    assert str(folder) not in page


def test_long_names_are_cut(folder):
    [medium], _ = shown(folder, "a" * 1_000_000)
    assert len(medium.name) == 80


def test_there_is_one_entry_for_each_instance(letters):
    bags, labels, model = letters
    with pytest.raises(ValueError, match="one entry for each instance"):
        render(model, bags, labels, media=["wren.png"])
