"""Every control of make_pictures does what it says, and the truth is where it says."""

import csv

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="the extra images is not installed")

from synthetic.pictures import (  # noqa: E402
    LEAST_VISIBLE,
    LEVELS,
    THINGS,
    make_pictures,
    write_pictures,
)

SMALL = {"size": (160, 120)}


def of_picture(made, name):
    return [thing for thing in made.things if thing.picture == name]


def test_the_same_seed_makes_the_same_pictures():
    first, second = (make_pictures(2, random_state=3, **SMALL) for _ in range(2))
    other = make_pictures(2, random_state=4, **SMALL)
    assert all(map(np.array_equal, first.pixels, second.pixels))
    assert (first.things, first.tags) == (second.things, second.tags)
    assert not np.array_equal(first.pixels[0], other.pixels[0])


def test_tags_are_the_classes_of_the_things():
    made = make_pictures(6, random_state=0, **SMALL)
    for name, tags in zip(made.names, made.tags, strict=True):
        assert tags == {thing.label for thing in of_picture(made, name) if thing.label}
    assert {thing.label for thing in made.things} <= {*THINGS, None}


def test_a_map_has_each_thing_in_its_box():
    made = make_pictures(4, overlap=1.0, random_state=1, **SMALL)
    for name, numbers in zip(made.names, made.maps, strict=True):
        things = of_picture(made, name)
        assert set(np.unique(numbers)) - {0} == {thing.number for thing in things}
        for thing in things:
            own = numbers == thing.number
            box = np.zeros_like(own)
            box[thing.y : thing.y + thing.height, thing.x : thing.x + thing.width] = True
            assert not (own & ~box).any()
            assert own[thing.y].any()
            assert own[:, thing.x + thing.width - 1].any()
            assert LEAST_VISIBLE <= thing.visible <= 1


def test_things_differ_from_what_they_lie_on():
    made = make_pictures(3, noise=0.0, light=0.0, clutter=0.0, random_state=2)
    for name, pixels, numbers in zip(made.names, made.pixels, made.maps, strict=True):
        for thing in of_picture(made, name):
            own = pixels[numbers == thing.number].mean(axis=0)
            assert np.abs(own - pixels[numbers == 0].mean(axis=0)).max() > 10


def test_a_region_holds_what_half_of_it_shows():
    made = make_pictures(1, classes_per_picture=(1, 1), clutter=0.0, random_state=0)
    (thing, *_), (numbers,) = made.things, made.maps
    own = numbers == thing.number
    assert made.label_in(made.names[0], own) == thing.label
    assert made.label_in(made.names[0], numbers == 0) is None
    assert made.label_in(made.names[0], np.ones_like(own)) is None
    assert made.label_in(made.names[0], np.zeros_like(own)) is None


def test_noise_light_overlap_and_clutter_do_what_they_say():
    def spread(pixels):
        return np.diff(pixels.astype(float), axis=1).std()

    calm, noisy = (make_pictures(3, noise=n, random_state=5, **SMALL) for n in (0.0, 20.0))
    assert all(spread(b) > spread(a) + 10 for a, b in zip(calm.pixels, noisy.pixels, strict=True))
    even, uneven = (
        [p.mean() for p in make_pictures(8, light=n, random_state=5, **SMALL).pixels]
        for n in (0.0, 0.6)
    )
    assert np.std(uneven) > 1.5 * np.std(even)
    apart, above = (
        [t.visible for t in make_pictures(8, overlap=n, random_state=5, **SMALL).things]
        for n in (0.0, 1.0)
    )
    assert min(apart) == 1
    assert np.mean(np.array(above) < 1) > 0.1
    assert all(t.label for t in make_pictures(4, clutter=0.0, random_state=5, **SMALL).things)
    full = make_pictures(4, clutter=6.0, random_state=5, **SMALL).things
    assert sum(t.label is None for t in full) > 6


def test_levels_grow_harder():
    easy, middle, hard = LEVELS.values()
    for name in easy:
        assert easy[name] < middle[name] < hard[name]


def test_pictures_are_written_with_tags_and_truth(tmp_path):
    made = make_pictures(3, classes_per_picture=(0, 1), random_state=4, **SMALL)
    paths = write_pictures(made, tmp_path / "photos")
    np.testing.assert_array_equal(np.asarray(Image.open(paths[0])), made.pixels[0])
    with (tmp_path / "photos/tags.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [path.name for path in paths]
    assert [row["tags"] for row in rows] == ["|".join(sorted(t)) or "(none)" for t in made.tags]
    with (tmp_path / "photos/truth.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(made.things)
