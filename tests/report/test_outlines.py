"""Regions of pictures in a report: what is drawn, and from which folder."""

import base64
import io
import re

import numpy as np
import pytest

from unbag.report.media import NO_ROOM, OUTSIDE, Media

Image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
pytest.importorskip("skimage", reason="the extra images is not installed")

from unbag.report.outlines import LONGER_SIDE, drawing_of, outlines_of  # noqa: E402

SQUARE = "60,30 100,30 100,70 60,70;70,40 80,40 80,50"


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    pixels = np.full((600, 800, 3), 90, np.uint8)
    pixels[:, :400] = 200, 40, 40
    Image.fromarray(pixels).save(folder / "a.png")
    Image.fromarray(pixels).save(tmp_path / "outside.png")
    return folder


def outline(text=SQUARE, width=800, height=600):
    (found,) = outlines_of([text], [width], [height])
    return found


def test_a_region_is_drawn_over_its_picture_in_small(photos):
    media = Media(["a.png", "a.png"], photos, [outline(), outline("0,0 9,0 9,9")])
    one, other = media.of_instance(0), media.of_instance(1)
    assert (one.kind, one.name, one.place) == ("region", "a.png", 0)
    # The picture is there once.
    assert other.place == 0
    (source,) = media.sources
    head, content = source.split(",")
    assert head == "data:image/jpeg;base64"
    shown = Image.open(io.BytesIO(base64.b64decode(content)))
    assert shown.size == (LONGER_SIDE, LONGER_SIDE * 3 // 4)
    assert shown.getpixel((20, 20))[0] > 150
    assert not media.gaps()


def test_the_drawing_has_all_rings_in_pixels_of_the_picture():
    drawing = drawing_of(outline())
    assert 'viewBox="0 0 800 600"' in drawing
    path = re.search(r' d="([^"]+)"', drawing)[1]
    assert path == "M60,30 100,30 100,70 60,70ZM70,40 80,40 80,50Z"


@pytest.mark.parametrize("text", ['"/><script>', "1,2 3,4", "", None, "1,2 3,4 5,6e9"])
def test_what_is_no_outline_shows_the_picture_alone(photos, text):
    media = Media(["a.png"], photos, [outline(text)])
    assert media.of_instance(0).kind == "image"


def test_an_outline_of_another_picture_is_not_drawn(photos):
    media = Media(["a.png"], photos, [outline(width=900)])
    assert media.of_instance(0).kind == "image"


def test_only_pictures_of_the_folder_are_shown(photos):
    (photos / "link.png").symlink_to(photos.parent / "outside.png")
    names = ["../outside.png", "link.png", str(photos.parent / "outside.png")]
    media = Media(names, photos, [outline()] * 3)
    for i in range(3):
        assert media.of_instance(i).reason == OUTSIDE
    assert not media.sources


def test_what_is_no_picture_is_a_gap(photos):
    (photos / "text.png").write_text("no picture")
    media = Media(["text.png", "none.png"], photos, [outline()] * 2)
    assert [media.of_instance(i).kind for i in range(2)] == ["gap", "gap"]
    assert not media.sources


def test_the_size_is_bounded(photos):
    media = Media(["a.png"], photos, [outline()])
    media.room = 100
    assert media.of_instance(0).reason == NO_ROOM
    assert media.gaps() == {NO_ROOM: 1}


def test_without_pillow_the_picture_is_shown(photos, monkeypatch):
    from unbag._messages import MissingExtraError

    def missing(*_):
        raise MissingExtraError("Pillow")

    monkeypatch.setattr("unbag.report.media.small_picture", missing)
    assert Media(["a.png"], photos, [outline()]).of_instance(0).kind == "image"
