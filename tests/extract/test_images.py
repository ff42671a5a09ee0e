"""Pictures of all kinds, good and bad, through `unbag extract images`."""

import json
import struct
import warnings
import zlib
from dataclasses import fields

import numpy as np
import pyarrow.parquet as pq
import pytest

from unbag import tables
from unbag.cli import main
from unbag.extract import Regions, image_regions, images
from unbag.tables import DataError

Image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")
pytest.importorskip("skimage", reason="the extra images is not installed")

from synthetic.pictures import make_pictures, write_pictures  # noqa: E402
from unbag.extract.maps import over_regions  # noqa: E402
from unbag.extract.pictures import MOST_PIXELS, PLACE, Images, read_picture  # noqa: E402
from unbag.extract.regions import FEATURES, lab_of, outline_rings  # noqa: E402

#: Where the red square of `square` lies: x, y, width, height.
SQUARE = (60, 30, 40, 40)
GREY, RED = (120, 125, 120), (200, 30, 40)


def square(width=160, height=120, noise=4.0, seed=0):
    """A red square on grey, with noise."""
    x, y, wide, high = SQUARE
    pixels = np.full((height, width, 3), GREY, float)
    pixels[y : y + high, x : x + wide] = RED
    pixels += noise * np.random.default_rng(seed).standard_normal(pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def run(*words):
    """Run a command; return its exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code or 0


def extracted(folder, tmp_path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = images(folder, tmp_path / "t.parquet", **options)
    return result, pq.read_table(result.output).to_pylist()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "photos"
    made.mkdir()
    square().save(made / "good.png")
    return made


def box_of(row):
    return tuple(row[name] for name in PLACE[:4])


def overlap(one, other):
    """Intersection over union of two boxes."""
    sides = [
        min(one[k] + one[k + 2], other[k] + other[k + 2]) - max(one[k], other[k]) for k in (0, 1)
    ]
    common = max(sides[0], 0) * max(sides[1], 0)
    return common / (one[2] * one[3] + other[2] * other[3] - common)


def finds_the_square(rows, scale=1.0, square=SQUARE):
    wanted = [scale * each for each in square]
    return any(overlap(box_of(row), wanted) > 0.8 for row in rows)


# What is read.


@pytest.mark.parametrize(
    ("name", "mode", "options"),
    [
        ("a.png", "RGB", {}),
        ("a.jpg", "RGB", {"quality": 90}),
        ("A.JPEG", "RGB", {"progressive": True}),
        ("a.jpg", "CMYK", {}),
        ("a.gif", "P", {}),
        ("a.png", "P", {}),
        ("a.bmp", "RGB", {}),
        ("a.tif", "RGB", {}),
        ("a.tiff", "CMYK", {}),
        ("a.webp", "RGB", {"lossless": True}),
        ("a.png", "RGBA", {}),
        ("a.png", "L", {}),
        ("a.png", "LA", {}),
        ("a.tif", "F", {}),
        ("a.png", "1", {}),
        ("a.tif", "YCbCr", {}),
        ("a.tif", "LAB", {}),
    ],
)
def test_kinds_of_pictures_are_read(tmp_path, name, mode, options):
    picture = square()
    if mode == "LAB":
        picture = Image.merge("LAB", Image.fromarray(
            np.clip(lab_of(np.asarray(picture)) * [2.55, 1, 1] + [0, 128, 128], 0, 255)
            .astype(np.uint8)).split())  # fmt: skip
    elif mode == "1":
        picture = picture.convert("L").point(lambda level: 255 * (level > 100)).convert("1")
    else:
        picture = picture.convert(mode)
    picture.save(tmp_path / name, **options)
    _, rows = extracted(tmp_path / name, tmp_path)
    assert finds_the_square(rows), [box_of(row) for row in rows]
    assert len(rows) <= 4


@pytest.mark.parametrize("most", [65535, 4095, 200])
def test_sixteen_bits_are_read(tmp_path, most):
    """Not cut off at 255, as a plain conversion does."""
    levels = np.asarray(square().convert("L")).astype(float)
    Image.fromarray((levels / 255 * most).astype(np.uint16)).save(tmp_path / "a.png")
    pixels = read_picture(tmp_path / "a.png").pixels[..., 0].astype(float)
    expected = levels / 255 * most / (257 if most > 255 else 1)
    np.testing.assert_allclose(pixels, expected, atol=1.5)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(tmp_path, orientation):
    turns = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE",
             6: "ROTATE_90", 7: "TRANSVERSE", 8: "ROTATE_270"}  # fmt: skip
    picture = square()
    if orientation > 1:
        picture = picture.transpose(getattr(Image.Transpose, turns[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "a.jpg", exif=exif, quality=95)
    _, rows = extracted(tmp_path / "a.jpg", tmp_path)
    assert finds_the_square(rows)
    assert {(row["image_width"], row["image_height"]) for row in rows} == {(160, 120)}


def test_what_is_transparent_is_no_region(tmp_path):
    picture = square().convert("RGBA")
    alpha = np.zeros((120, 160), np.uint8)
    alpha[20:110, 40:140] = 255
    picture.putalpha(Image.fromarray(alpha))
    picture.save(tmp_path / "a.png")
    _, rows = extracted(tmp_path / "a.png", tmp_path)
    assert finds_the_square(rows)
    for row in rows:
        assert row["x"] >= 35
        assert row["x"] + row["width"] <= 145
    picture.putalpha(0)
    picture.save(tmp_path / "a.png")
    with pytest.raises(DataError, match="Nothing was found in any of 1 pictures"):
        images(tmp_path / "a.png", tmp_path / "t.parquet")


def test_a_transparent_colour_of_a_palette_is_no_region(tmp_path):
    picture = square(noise=0).quantize(2)
    picture.save(tmp_path / "a.gif", transparency=picture.getpixel((0, 0)))
    _, rows = extracted(tmp_path / "a.gif", tmp_path)
    assert len(rows) == 1
    assert finds_the_square(rows)


def test_large_pictures_are_looked_at_in_small(tmp_path):
    square().resize((1600, 1200)).save(tmp_path / "a.jpg", quality=95)
    _, rows = extracted(tmp_path / "a.jpg", tmp_path)
    assert finds_the_square(rows, 10.0)
    assert rows[0]["image_width"] == 1600
    corners = [corner for row in rows for ring in outline_rings(row["outline"]) for corner in ring]
    assert 1590 <= max(x for x, _ in corners) <= 1600
    assert 1190 <= max(y for _, y in corners) <= 1200
    one, other = (image_regions(square().resize(size)) for size in ((320, 240), (640, 480)))
    assert abs(len(one) - len(other)) <= 1


@pytest.mark.parametrize(
    ("width", "height"), [(1, 1), (2, 2), (1, 400), (400, 1), (5, 5), (3000, 2), (31, 33)]
)
def test_tiny_and_narrow_pictures_have_regions(tmp_path, width, height):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    _, rows = extracted(tmp_path / "a.png", tmp_path)
    assert rows
    for row in rows:
        assert 0 <= row["x"] <= row["x"] + row["width"] <= width
        assert 0 <= row["y"] <= row["y"] + row["height"] <= height
        assert all(np.isfinite(row[name]) for name in FEATURES)


@pytest.mark.parametrize("level", [0, 127, 255])
def test_a_picture_of_one_colour_is_one_region(tmp_path, level):
    Image.new("L", (200, 150), level).save(tmp_path / "a.png")
    _, rows = extracted(tmp_path / "a.png", tmp_path)
    assert [box_of(row) for row in rows] == [(0, 0, 200, 150)]


def test_a_row_says_where_a_region_lies(folder, tmp_path):
    result, rows = extracted(folder, tmp_path)
    assert result.instances == len(rows) == 2
    assert finds_the_square(rows)
    assert list(rows[0]) == ["file", *PLACE, "outline", *FEATURES, "id"]
    assert rows[0]["file"] == "good.png"
    assert all(np.isfinite(row[name]) for row in rows for name in FEATURES)
    assert len(FEATURES) == len(set(FEATURES)) == 100


# What cannot be read, or is strange.


def bomb(width, height):
    """A PNG file that says it is huge, in a few bytes."""

    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))  # fmt: skip

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + content + chunk(b"IEND", b"")


def broken(path):
    """Files that cannot be read, and what is said about them."""
    good = (path / "good.png").read_bytes()
    square().save(path / "good.jpg", quality=90)
    jpeg = (path / "good.jpg").read_bytes()
    (path / "good.jpg").unlink()
    damaged = bytearray(good)
    damaged[len(good) // 2 : len(good) // 2 + 200] = bytes(200)
    yield "text.png", b"this is no picture at all", "cannot be read as a picture"
    yield "empty.jpg", b"", "cannot be read as a picture"
    yield "cut.png", good[: len(good) // 2], "cannot be read as a picture"
    yield "cut.jpg", jpeg[: len(jpeg) // 2], "cannot be read as a picture"
    yield "header.png", good[:20], "cannot be read as a picture"
    yield "damaged.png", bytes(damaged), "cannot be read as a picture"
    yield "noise.gif", np.random.default_rng(0).bytes(3000), "cannot be read as a picture"
    yield "beginning.gif", b"GIF89a" + bytes(40), "cannot be read as a picture"
    yield "sound.webp", b"RIFF\x00\x00\x00\x00WAVEfmt ", "cannot be read as a picture"
    yield "zero.bmp", b"BM" + bytes(60), "cannot be read as a picture"
    yield "page.png", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot be read"
    yield "large.png", bomb(12_000, 10_000), f"at most {MOST_PIXELS:,} are read"
    yield "bomb.png", bomb(60_000, 60_000), f"more than the {MOST_PIXELS:,} pixels"
    yield "huge.png", bomb(2**31 - 1, 2**31 - 1), "pixels"


def test_bad_files_are_named_one_by_one_and_the_good_are_there(folder, tmp_path, capsys):
    said = {}
    for name, content, fault in [*broken(folder)]:
        (folder / name).write_bytes(content)
        said[name] = fault
    code = run("extract", "images", folder, "-o", tmp_path / "t.parquet")
    lines = capsys.readouterr().err.splitlines()
    assert code == 1
    for name, fault in said.items():
        (line,) = [line for line in lines if line.startswith("unbag: error:") and name in line]
        assert fault in line
        assert "internal error" not in line
    assert any(f"{len(said)} of {len(said) + 1} pictures could not be read" in x for x in lines)
    found = set(pq.read_table(tmp_path / "t.parquet").column("file").to_pylist())
    assert found == {"good.png"}
    assert {path.name for path in tmp_path.iterdir()} == {"photos", "t.parquet"}


def test_a_file_that_may_not_be_read_says_so(folder, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(DataError, match=r"good.png cannot be read: Permission denied"):
        images(folder, tmp_path / "t.parquet")


def test_a_wrong_suffix_does_no_harm_and_more_frames_are_said(folder, tmp_path):
    square().save(folder / "other.jpg", format="PNG")
    frames = [square(seed=n).quantize(16) for n in range(3)]
    frames[0].save(folder / "film.gif", save_all=True, append_images=frames[1:])
    result, rows = extracted(folder, tmp_path)
    assert result.notes == {"film.gif": "It has 3 frames: only the first is read."}
    assert {row["file"] for row in rows} == {"good.png", "other.jpg", "film.gif"}


def test_metadata_that_is_damaged_does_no_harm(folder, tmp_path):
    square().save(folder / "good.jpg", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff" + bytes(30))
    _, rows = extracted(folder, tmp_path)
    assert finds_the_square([row for row in rows if row["file"] == "good.jpg"])


# A grid, boxes.


def test_a_grid_takes_the_place_of_regions(folder, tmp_path):
    _, rows = extracted(folder, tmp_path, grid=4)
    assert [box_of(row) for row in rows] == [
        (x, y, 40, 40) for y in (0, 40, 80) for x in (0, 40, 80, 120)
    ]
    assert rows[0]["outline"].count(",") >= 4
    assert len(image_regions(np.zeros((7, 3)), grid=64)) == 21


COCO = {
    "images": [{"id": 1, "file_name": "good.png", "width": 160, "height": 120},
               {"id": 2, "file_name": "other.png", "width": 160, "height": 120}],
    "annotations": [
        {"image_id": 1, "category_id": 1, "bbox": [60, 30, 40, 40]},
        {"image_id": 1, "category_id": 2, "bbox": [0, 0, 20.5, 10]},
    ],
    "categories": [{"id": 1, "name": "square"}, {"id": 2, "name": "grey"}],
}  # fmt: skip
LABEL_STUDIO = [{
    "data": {"image": "good.png"}, "annotations": [{"result": [
        {"type": "rectanglelabels", "id": str(n), "original_width": 160, "original_height": 120,
         "value": {"x": x / 1.6, "y": y / 1.2, "width": wide / 1.6, "height": high / 1.2,
                   "rectanglelabels": ["square"]}}
        for n, (x, y, wide, high) in enumerate([(60, 30, 40, 40), (0, 0, 20.5, 10)])
    ]}],
}]  # fmt: skip
BOX_FILES = {
    "boxes.csv": "file,x,y,width,height\ngood.png,60,30,40,40\ngood.png,0,0,20.5,10\n",
    "corners.csv": "file,left,top,right,bottom\ngood,60,30,100,70\ngood,0,0,20.5,10\n",
    "half.csv": "image,x,y,width,height,image_width,image_height\n"
    "good.png,30,15,20,20,80,60\ngood.png,0,0,10.25,5,80,60\n",
    "coco.json": json.dumps(COCO),
    "studio.json": json.dumps(LABEL_STUDIO),
}


@pytest.mark.parametrize("name", BOX_FILES)
def test_boxes_of_other_programs_are_taken(folder, tmp_path, name):
    (tmp_path / name).write_text(BOX_FILES[name])
    square().save(folder / "other.png")
    result, rows = extracted(folder, tmp_path, segments=tmp_path / name)
    assert [(row["file"], *box_of(row)) for row in rows] == [
        ("good.png", 0, 0, 21, 10), ("good.png", 60, 30, 40, 40),
    ]  # fmt: skip
    assert rows[1]["outline"] == "60,30 100,30 100,70 60,70"
    assert result.without_instances == ["other.png"]
    # The square is in the second box alone.
    assert rows[1]["red_green_mean"] > rows[0]["red_green_mean"] + 30


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("file,x,y,width,height\ngood.png,1,1,0,5\n", "is not a box: it has no area"),
        ("file,left,top,right,bottom\ngood.png,5,5,5,9\n", "is not a box"),
        ("file,x,y,width,height\ngood.png,x,1,2,2\n", "is not a finite number"),
        ("file,x,y\ngood.png,1,2\n", "needs columns file, x, y, width, height"),
        ("file,x,y,width,height\nelse.png,1,2,3,4\n", "no picture is called like 'else.png'"),
        ("file,x,y,width,height\n", "has no boxes"),
        ("file,x,y,width,height,image_width,image_height\ngood.png,1,1,2,2,120,160\n",
         "its boxes are for a picture of 120 x 160"),
    ],
)  # fmt: skip
def test_wrong_boxes_are_one_line(folder, tmp_path, text, fault):
    (tmp_path / "boxes.csv").write_text(text)
    with pytest.raises(DataError, match=fault):
        images(folder, tmp_path / "t.parquet", segments=tmp_path / "boxes.csv")


def test_boxes_of_other_pictures_are_named(folder, tmp_path):
    (tmp_path / "boxes.csv").write_text(BOX_FILES["boxes.csv"] + "else.png,1,1,5,5\n")
    with pytest.warns(UserWarning, match=r"1 name is not used.*else\.png"):
        images(folder, tmp_path / "t.parquet", segments=tmp_path / "boxes.csv")


def test_boxes_outside_are_left_out(folder, tmp_path):
    (tmp_path / "boxes.csv").write_text(
        "file,x,y,width,height\ngood,-5,-5,20,20\ngood,150,110,30,30\ngood,200,5,9,9\n"
    )
    result, rows = extracted(folder, tmp_path, segments=tmp_path / "boxes.csv")
    assert [box_of(row) for row in rows] == [(0, 0, 15, 15), (150, 110, 10, 10)]
    assert "Left out: 1 box lies outside of its 160 x 120 pixels" in result.notes["good.png"]


# Masks.


def numbered(width=160, height=120, numbers=(7, 3)):
    """A mask: the red square of `square`, a strip at the left, and nothing else."""
    mask = np.zeros((120, 160), int)
    x, y, wide, high = SQUARE
    mask[y : y + high, x : x + wide] = numbers[0]
    mask[:, :20] = numbers[1]
    rows, columns = np.arange(height) * 120 // height, np.arange(width) * 160 // width
    return mask[rows[:, None], columns]


def saved(mask, path, mode):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(mask.astype(np.uint16 if mode == "I;16" else np.uint8))
    if mode == "P":
        image.putpalette(np.random.default_rng(0).bytes(768))
    image.save(path)


@pytest.mark.parametrize(
    ("name", "mode", "numbers", "size"),
    [
        ("good.png", "L", (7, 3), (160, 120)),
        ("good.png", "I;16", (40_000, 300), (160, 120)),
        ("good_masks.png", "P", (255, 1), (160, 120)),
        ("good_cp_masks.png", "I;16", (2, 1), (160, 120)),
        ("good.png.png", "L", (2, 1), (80, 60)),
        ("GOOD.PNG", "L", (7, 3), (640, 480)),
    ],
)
def test_regions_of_masks_are_taken(folder, tmp_path, name, mode, numbers, size):
    saved(numbered(*size, numbers), tmp_path / "masks" / name, mode)
    result, rows = extracted(folder, tmp_path, masks=tmp_path / "masks")
    places = {row["region"]: box_of(row) for row in rows}
    assert places == {numbers[0]: SQUARE, numbers[1]: (0, 0, 20, 120)}
    assert result.notes == {}
    # They are described as boxes in the same places.
    (tmp_path / "boxes.csv").write_text(
        "file,x,y,width,height\ngood,0,0,20,120\ngood,60,30,40,40\n"
    )
    _, boxes = extracted(folder, tmp_path, segments=tmp_path / "boxes.csv")
    for row, box in zip(sorted(rows, key=box_of), boxes, strict=True):
        assert [row[each] for each in FEATURES] == [box[each] for each in FEATURES]


def test_masks_are_found_in_the_same_folders(tmp_path):
    for number, place in enumerate(("one", "two/deep"), 1):
        (tmp_path / "photos" / place).mkdir(parents=True)
        square(seed=number).save(tmp_path / "photos" / place / "x.jpg")
        saved(numbered(numbers=(number, 0)), tmp_path / "masks" / place / "x.png", "L")
    square().save(tmp_path / "photos" / "bare.png")
    result, rows = extracted(tmp_path / "photos", tmp_path, masks=tmp_path / "masks")
    assert [(row["file"], row["region"]) for row in rows] == [
        ("one/x.jpg", 1),
        ("two/deep/x.jpg", 2),
    ]
    assert result.without_instances == ["bare.png"]
    assert result.notes == {"bare.png": "It has no mask."}


def test_tiny_regions_of_masks_are_kept(tmp_path):
    """Though they are smaller than a pixel of the picture as it is looked at."""
    (tmp_path / "photos").mkdir()
    square().resize((1600, 1200)).save(tmp_path / "photos" / "a.png")
    mask = np.full((1200, 1600), 9)
    mask[601:603, 801:803], mask[1199, 1599] = 4, 5
    saved(mask, tmp_path / "masks" / "a.png", "L")
    _, rows = extracted(tmp_path / "photos", tmp_path, masks=tmp_path / "masks")
    assert {row["region"]: box_of(row) for row in rows} == {
        4: (800, 600, 5, 5), 5: (1595, 1195, 5, 5), 9: (0, 0, 1600, 1200),
    }  # fmt: skip
    assert all(np.isfinite(row[name]) for row in rows for name in FEATURES)


def test_one_number_for_several_pieces_is_said(folder, tmp_path):
    saved(numbered(numbers=(255, 255)), tmp_path / "masks" / "good.png", "L")
    result, rows = extracted(folder, tmp_path, masks=tmp_path / "masks")
    assert len(rows) == 1
    said = "Its mask has one number for 2 pieces: they are one region."
    assert result.notes == {"good.png": said}


def test_wrong_masks_are_named(folder, tmp_path, capsys):
    masks = tmp_path / "masks"
    for name, size in (("small", (160, 100)), ("turned", (120, 160)), ("good", (160, 120))):
        square().save(folder / f"{name}.png")
        saved(numbered(*size), masks / f"{name}.png", "L")
    for name in ("colours", "broken"):
        square().save(folder / f"{name}.png")
        square().save(masks / f"{name}.png")
    (masks / "broken.png").write_bytes(b"this is no picture")
    words = ("extract", "images", folder, "-o", tmp_path / "t.parquet", "--masks", masks)
    assert run(*words) == 1
    faults = [line for line in capsys.readouterr().err.splitlines() if "error:" in line][:4]
    expected = {
        "broken": "cannot be read as a picture",
        "colours": "holds colours (RGB), not numbers of regions",
        "small": "has 160 x 100 pixels, which is neither the size of its picture, 160 x 120",
        "turned": "has 120 x 160 pixels",
    }
    for (name, fault), line in zip(expected.items(), sorted(faults), strict=True):
        assert f"{name}.png" in line
        assert fault in line
    assert {*pq.read_table(tmp_path / "t.parquet").column("file").to_pylist()} == {"good.png"}


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["good.png", "good_mask.png"], r"may be masks of the same picture: keep one"),
        (["other.png"], r"no picture is called like 'other'"),
        (["good.jpg"], r"holds no masks"),
    ],
)
def test_masks_that_cannot_be_matched_are_refused(folder, tmp_path, names, fault):
    for name in names:
        saved(numbered(), tmp_path / "masks" / name, "L")
    with pytest.raises(DataError, match=fault):
        images(folder, tmp_path / "t.parquet", masks=tmp_path / "masks")


def test_masks_among_the_pictures_are_refused(folder, tmp_path):
    saved(numbered(), folder / "good_masks.png", "L")
    with pytest.raises(DataError, match="keep masks in a folder apart"):
        images(folder, tmp_path / "t.parquet", masks=folder)
    with pytest.raises(DataError, match="is not a folder of masks"):
        images(folder, tmp_path / "t.parquet", masks=folder / "good.png")


def test_other_masks_do_not_resume_a_run(folder, tmp_path):
    (folder / "bad.png").write_bytes(b"")
    saved(numbered(), tmp_path / "masks" / "good.png", "L")
    sources = [
        Images(masks=tmp_path / "masks").prepared({"good.png": folder / "good.png"}).settings()
    ]
    saved(numbered(numbers=(1, 2)), tmp_path / "masks" / "good.png", "L")
    sources += [
        Images(masks=tmp_path / "masks").prepared({"good.png": folder / "good.png"}).settings()
    ]
    assert sources[0]["masks"] != sources[1]["masks"]


# Networks.


EMBEDDED = ["embedding_0", "embedding_1", "embedding_2"]


def eyes(path, *, cell=8, height=None, width=None, is_last=False, factor=1.0):
    """A network that gives mean colours of cells (``y``), and of the whole picture (``pooled``)."""
    from tiny_networks import onnx_file

    nodes = [
        ("Transpose", ["x"], "turned", {"perm": [0, 3, 1, 2] if is_last else [0, 1, 2, 3]}),
        ("AveragePool", ["turned"], "means", {"kernel_shape": [cell] * 2, "strides": [cell] * 2}),
        ("Mul", ["means", "factor"], "y", {}),
        ("GlobalAveragePool", ["means"], "pooled", {}),
    ]
    shape = (None, height, width, 3) if is_last else (None, 3, height, width)
    return onnx_file(
        path, nodes, inputs={"x": shape}, outputs=("pooled", "y"), factor=np.float32(factor)
    )


@pytest.fixture
def onnx_eyes():
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the extra embed is not installed")
    return eyes


@pytest.mark.parametrize(
    "shape",
    [{}, {"height": 240, "width": 320}, {"height": 64, "width": 640}, {"is_last": True}],
    ids=["any", "own", "larger", "colours last"],
)
def test_a_network_describes_each_region(onnx_eyes, folder, tmp_path, shape):
    network = onnx_eyes(tmp_path / "eyes.onnx", **shape)
    saved(numbered(), tmp_path / "masks" / "good.png", "L")
    options = {"masks": tmp_path / "masks", "embed": network, "embed_scale": "0..255"}
    _, rows = extracted(folder, tmp_path, **options)
    assert [*rows[0]][-104:-1] == [*FEATURES, *EMBEDDED]
    for row, colour in zip(rows, (GREY, RED), strict=True):
        found = [row[name] for name in EMBEDDED]
        # Cells at the edge show what is outside of it.
        np.testing.assert_allclose(found, colour, atol=20)
    _, alone = extracted(folder, tmp_path, embed_only=True, **options)
    assert [*alone[0]][-5:-1] == ["region", *EMBEDDED]
    assert [row[EMBEDDED[2]] for row in alone] == [row[EMBEDDED[2]] for row in rows]


def test_layers_and_scales_are_chosen(onnx_eyes, folder, tmp_path):
    network = onnx_eyes(tmp_path / "eyes.onnx", factor=2.0)
    found = {}
    for scale, layers in (("0..1", ("means", "y")), ("-1..1", "means"), ("imagenet", "means")):
        options = {"embed": network, "embed_layer": layers, "embed_scale": scale, "grid": 1}
        result, (row,) = extracted(folder, tmp_path, embed_only=True, **options)
        found[scale] = np.array([row[name] for name in row if name.startswith("embedding_")])
        metadata = json.loads(pq.read_schema(result.output).metadata[b"unbag.extracted"])
        assert metadata["settings"]["network"]["name"] == "eyes.onnx"
        assert metadata["settings"]["network"]["scale"] == scale
    np.testing.assert_allclose(found["0..1"][3:], 2 * found["0..1"][:3], rtol=1e-5)
    zero_to_one = found["0..1"][:3]
    np.testing.assert_allclose(found["-1..1"], 2 * zero_to_one - 1, atol=1e-5)
    standard = (zero_to_one - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(found["imagenet"], standard, atol=1e-4)


def test_maps_are_interpolated_and_averaged_over_regions():
    rng = np.random.default_rng(0)
    height, width, n_rows, n_columns = 30, 47, 4, 6
    maps = [rng.random((n_rows, n_columns, 2), np.float32), rng.random((1, 2, 3), np.float32)]
    places = [np.array([0]), np.arange(100, 400), rng.permutation(height * width)[:50]]

    def fine(values, n_pixels):
        cells = (np.arange(n_pixels) + 0.5) * (len(values) / n_pixels) - 0.5
        return np.interp(cells, np.arange(len(values)), values)

    expected = []
    for map_ in maps:
        down = np.apply_along_axis(fine, 0, map_, height)
        pixels = np.apply_along_axis(fine, 1, down, width).reshape(height * width, -1)
        expected.append([pixels[place].mean(axis=0) for place in places])
    found = over_regions(maps, places, (height, width))
    np.testing.assert_allclose(found, np.concatenate(expected, axis=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("layer", "fault"),
    [("pooled", "gives 3 x 1 x 1 numbers for a picture, not a map"), ("no", "no layer no")],
)
def test_layers_without_maps_are_refused(onnx_eyes, folder, tmp_path, layer, fault):
    network = onnx_eyes(tmp_path / "eyes.onnx")
    with pytest.raises(DataError, match=fault):
        images(folder, tmp_path / "t.parquet", embed=network, embed_layer=layer)
    assert not (tmp_path / ".t.parquet.parts").exists()


def test_networks_of_other_inputs_are_refused(onnx_eyes, folder, tmp_path):
    from tiny_networks import listener

    network = listener(tmp_path / "ears.onnx")
    with pytest.raises(DataError, match="inputs of shape any x 8000: a network of pictures"):
        images(folder, tmp_path / "t.parquet", embed=network)


# From a folder to annotated regions.


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    made = make_pictures(
        24, size=(160, 120), n_classes=4, classes_per_picture=(1, 2), clutter=1.0, random_state=0
    )
    write_pictures(made, folder / "photos")
    return made, folder / "photos"


def test_commands_need_no_option_after_extract(photos, tmp_path, capsys):
    made, folder = photos
    table, model, answers = (tmp_path / name for name in ("t.parquet", "m.unbag", "a.parquet"))
    code = run("extract", "images", folder, "--tags", folder / "tags.csv", "-o", table)
    assert code == 0
    assert run("fit", table, "-o", model) == 0
    coco = tmp_path / "coco.json"
    assert run("annotate", model, table, "-o", answers, "--write", f"coco={coco}") == 0
    rows = pq.read_table(answers).to_pylist()
    n_labelled = sum(row["status"] == "labelled" for row in rows)
    assert len(json.loads(coco.read_text())["annotations"]) == n_labelled
    for name in ("file", *PLACE, "outline", "tags", "annotation"):
        assert name in rows[0]
    labels = {
        name: image_regions(pixels).labels
        for name, pixels in zip(made.names, made.pixels, strict=True)
    }
    right, number = [], dict.fromkeys(made.names, 0)
    for row in rows:
        name = row["file"].removesuffix(".png")
        truth = made.label_in(name, labels[name] == number[name])
        number[name] += 1
        if truth is not None:
            right.append(row["annotation"] == truth)
    assert len(right) > 40
    assert np.mean(right) > 0.8


def test_new_photos_are_described_by_the_network_of_the_model(onnx_eyes, photos, tmp_path, capsys):
    _, folder = photos
    network, table = onnx_eyes(tmp_path / "eyes.onnx"), tmp_path / "t.parquet"
    model, answers = tmp_path / "m.unbag", tmp_path / "a.parquet"
    words = ("--embed", network, "--embed-scale", "0..1", "--embed-only")
    assert run("extract", "images", folder, "--tags", folder / "tags.csv", *words, "-o", table) == 0
    assert run("fit", table, "-o", model) == 0
    assert run("annotate", model, folder, "--embed", network, "-o", answers) == 0
    rows = pq.read_table(answers)
    features = pq.read_table(table, columns=EMBEDDED)
    assert rows.select(EMBEDDED).equals(features)
    capsys.readouterr()
    other = onnx_eyes(tmp_path / "other.onnx", factor=2.0)
    assert run("annotate", model, folder, "--embed", other, "-o", answers) == 1
    assert "pass the network of the model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--untagged", "absent"], "--untagged is for --tags"),
        (["--size", "10"], "--size must be"),
        (["--contrast", "0"], "--contrast must be"),
        (["--grid", "0"], "--grid must be"),
        (["--segments", "nowhere.json"], "nowhere.json does not exist"),
        (["--masks", "nowhere"], "nowhere is not a folder of masks"),
        (["--embed", "nowhere.onnx"], "nowhere.onnx does not exist"),
        (["--embed-only"], "--embed-only is for --embed: pass both"),
        (["--embed-layer", "y"], "--embed-layer is for --embed: pass both"),
        (["--embed-scale", "0..1"], "--embed-scale is for --embed: pass both"),
        (["--embed", "x", "--embed-scale", "0..2"], "--embed-scale must be one of imagenet, 0..1"),
        (["--tags", "nowhere.csv"], "nowhere.csv does not exist"),
    ],
)
def test_wrong_options_are_one_line(folder, tmp_path, capsys, words, fault):
    assert run("extract", "images", folder, "-o", tmp_path / "t.parquet", *words) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert fault in line
    assert {path.name for path in tmp_path.iterdir()} == {"photos"}


def test_a_grid_of_boxes_is_refused(folder, tmp_path):
    (tmp_path / "boxes.csv").write_text(BOX_FILES["boxes.csv"])
    with pytest.raises(DataError, match="grid= and segments=: choose one"):
        images(folder, tmp_path / "t.parquet", grid=3, segments=tmp_path / "boxes.csv")
    with pytest.raises(DataError, match="segments= and masks=: choose one"):
        images(folder, tmp_path / "t.parquet", segments=tmp_path / "boxes.csv", masks=tmp_path)


@pytest.mark.parametrize("module", ["PIL", "skimage"])
def test_without_the_extra_it_says_what_to_install(folder, tmp_path, monkeypatch, capsys, module):
    for name in [each for each in __import__("sys").modules if each.split(".")[0] == module]:
        monkeypatch.delitem(__import__("sys").modules, name)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    assert run("extract", "images", folder, "-o", tmp_path / "t.parquet") == 1
    assert 'run pip install ".[images]" in unbag\'s folder' in capsys.readouterr().err


# An array.


def test_an_array_is_cut_without_files():
    pixels = np.asarray(square())
    found = image_regions(pixels)
    assert len(found) == 2
    assert found.features.shape == (2, 100)
    assert found.labels.shape == (120, 160)
    assert (
        overlap(SQUARE, [each[1] for each in (found.x, found.y, found.width, found.height)]) > 0.8
    )
    for other in (pixels / 255.0, np.dstack([pixels, np.full((120, 160), 255, np.uint8)])):
        again = image_regions(other)
        for each in fields(Regions):
            np.testing.assert_array_equal(getattr(again, each.name), getattr(found, each.name))
    boxes = [[60, 30, 40, 40], [0, 0, 30, 120]]
    given = image_regions(pixels, boxes=boxes)
    sides = (given.x, given.y, given.width, given.height)
    np.testing.assert_array_equal(np.column_stack(sides), boxes)
    assert len(image_regions(pixels[..., 0])) == 2


@pytest.mark.parametrize(
    ("pixels", "fault"),
    [
        (np.zeros((2, 2, 2)), "expected"),
        (np.zeros((0, 5)), "expected"),
        (np.full((5, 5), 300), "from 0 to 255"),
        (np.full((5, 5), 3.0), "from 0 to 1"),
        (np.full((5, 5), "a"), "expected numbers"),
    ],
)
def test_wrong_arrays_are_refused(pixels, fault):
    with pytest.raises(ValueError, match=fault):
        image_regions(pixels)
    with pytest.raises(DataError, match="boxes must be"):
        image_regions(np.zeros((9, 9)), boxes=[[20, 20, 5, 5]])


def test_less_contrast_gives_more_regions():
    made = make_pictures(1, random_state=0)
    counts = [len(image_regions(made.pixels[0], contrast=each)) for each in (20.0, 7.0, 3.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[2] <= 60


def test_stripes_are_one_region():
    """Though fine stripes differ far more from each other than from the ground."""
    pixels = np.full((160, 160, 3), 128.0)
    bands = np.where(np.arange(64) // 2 % 2, 250.0, 10.0)
    pixels[48:112, 48:112] = bands[None, :, None]
    pixels += 3 * np.random.default_rng(0).standard_normal(pixels.shape)
    found = image_regions(np.clip(pixels, 0, 255).astype(np.uint8))
    best = max(
        overlap((48, 48, 64, 64), box)
        for box in zip(found.x, found.y, found.width, found.height, strict=True)
    )
    assert best > 0.8


def test_colours_are_those_of_cielab():
    color = pytest.importorskip("skimage.color")
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    np.testing.assert_allclose(lab_of(pixels), color.rgb2lab(pixels), atol=0.01)


def test_outlines_enclose_their_regions():
    """Filled, without the holes, they are the regions, up to their edges."""
    from PIL import ImageDraw

    made = make_pictures(2, random_state=1)
    for pixels in made.pixels:
        found = image_regions(pixels)
        for number, outline in enumerate(found.outlines):
            own = found.labels == number
            drawn = Image.new("1", own.shape[::-1])
            for place, ring in enumerate(outline_rings(outline)):
                ImageDraw.Draw(drawn).polygon(ring, fill=int(not place))
            filled = np.asarray(drawn)
            # As many pixels as a border on both sides of the edge has.
            assert (filled != own).sum() <= 0.4 * own.sum() + 40
            assert outline.count(",") <= 130


@pytest.mark.parametrize("text", ["", "1,2", "1,2 3,4", "1,2 3,4 x,y", "1,2,3 4,5 6,7", "a"])
def test_what_is_no_outline_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        outline_rings(text)


def test_a_flipped_region_has_the_same_colours():
    pixels = np.asarray(square())
    one, other = image_regions(pixels), image_regions(pixels[:, ::-1])
    assert len(one) == len(other)
    colours = [n for n, name in enumerate(FEATURES) if name.startswith(("light", "hue", "chroma"))]
    np.testing.assert_allclose(one.features[:, colours], other.features[:, colours], atol=2.0)


def test_annotated_regions_go_to_coco_and_come_back(folder, tmp_path):
    extracted(folder, tmp_path)
    table = tables.read(tmp_path / "t.parquet", need_labels=False)
    tables.write_for_tool("coco", tmp_path / "c.json", table, [None, "square"], [0.5, 0.91234])
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["categories"] == [{"id": 1, "name": "square"}]
    (found,) = document["annotations"]
    assert overlap(found["bbox"], SQUARE) > 0.8
    assert found["area"] == pytest.approx(40 * 40, rel=0.1)
    assert found["score"] == 0.9123
    x, y = np.reshape(found["segmentation"][0], (-1, 2)).T
    assert (x.min(), y.max()) == (found["bbox"][0], found["bbox"][1] + found["bbox"][3])
    _, rows = extracted(folder, tmp_path, segments=tmp_path / "c.json")
    assert [list(box_of(row)) for row in rows] == [found["bbox"]]
    (tmp_path / "w.csv").write_text("bag,labels,f\na,x,1\nb,y,2\n")
    with pytest.raises(DataError, match=r"has no boxes in pictures.*no column x, y"):
        tables.write_for_tool("coco", "c.json", tables.read(tmp_path / "w.csv"), ["x", "y"])
