"""Synthetic pictures of things, with what every pixel shows.

The constants of `unbag.extract` were chosen on such pictures, so these stay as they are.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from .files import write_rows, write_tags

#: Three levels of difficulty, as arguments of `make_pictures`.
LEVELS: dict[str, dict[str, float]] = {
    "easy": {"noise": 3.0, "light": 0.1, "overlap": 0.1, "clutter": 1.0},
    "middle": {"noise": 8.0, "light": 0.25, "overlap": 0.25, "clutter": 2.0},
    "hard": {"noise": 16.0, "light": 0.5, "overlap": 0.4, "clutter": 4.0},
}
# What two things of one class differ by: colour, and size of the pattern.
COLOUR_SPREAD, PATTERN_SPREAD = 0.06, 0.12
# The share of a thing, and the pixels, that others do not hide.
LEAST_VISIBLE, FEWEST_PIXELS = 0.4, 60
# The share of a thing that is in the picture.
LEAST_INSIDE = 0.7


@dataclass(frozen=True)
class Look:
    """What things of a class look like."""

    shape: str
    aspect: float
    colours: tuple[tuple[float, float, float], tuple[float, float, float]]
    pattern: str = "plain"
    period: float = 0.5


#: The classes. Lemons and limes are alike, and so are striped and chequered cloths.
THINGS: dict[str, Look] = {
    "lemon": Look("ellipse", 1.4, ((0.93, 0.80, 0.18), (0.85, 0.68, 0.12)), "rough", 0.08),
    "striped cloth": Look("box", 1.3, ((0.92, 0.90, 0.86), (0.13, 0.13, 0.16)), "stripes", 0.30),
    "lime": Look("ellipse", 1.3, ((0.66, 0.78, 0.20), (0.52, 0.66, 0.14)), "rough", 0.08),
    "chequered cloth": Look("box", 1.2, ((0.92, 0.90, 0.86), (0.15, 0.13, 0.14)), "checks", 0.45),
    "brick": Look("box", 2.2, ((0.66, 0.30, 0.22), (0.52, 0.24, 0.18)), "rough", 0.12),
    "ladybird": Look("ellipse", 1.2, ((0.84, 0.13, 0.12), (0.08, 0.06, 0.06)), "spots", 0.50),
    "leaf": Look("leaf", 2.4, ((0.22, 0.48, 0.16), (0.32, 0.60, 0.24)), "stripes", 0.25),
    "pebble": Look("blob", 1.4, ((0.55, 0.54, 0.53), (0.38, 0.38, 0.40)), "rough", 0.20),
    "plum": Look("ellipse", 1.1, ((0.34, 0.14, 0.36), (0.45, 0.25, 0.46))),
    "plank": Look("box", 4.0, ((0.62, 0.44, 0.26), (0.44, 0.29, 0.16)), "grain", 0.25),
    "starfish": Look("star", 1.0, ((0.92, 0.52, 0.24), (0.80, 0.36, 0.18)), "spots", 0.20),
    "bowl": Look("ellipse", 1.0, ((0.22, 0.42, 0.76), (0.90, 0.92, 0.95)), "stripes", 0.60),
}

#: What things lie on: two colours, a pattern, its size in pixels, and how much of it there is.
GROUNDS: dict[str, tuple[tuple[float, ...], tuple[float, ...], str, float, float]] = {
    "sand": ((0.80, 0.72, 0.56), (0.68, 0.60, 0.45), "rough", 1.5, 0.5),
    "grass": ((0.34, 0.45, 0.22), (0.24, 0.34, 0.15), "rough", 2.5, 0.8),
    "table": ((0.52, 0.38, 0.28), (0.44, 0.31, 0.22), "grain", 14.0, 0.6),
    "wall": ((0.74, 0.73, 0.70), (0.68, 0.67, 0.65), "rough", 6.0, 0.5),
    "water": ((0.36, 0.50, 0.58), (0.46, 0.60, 0.68), "grain", 22.0, 0.7),
    "cloth": ((0.60, 0.56, 0.64), (0.54, 0.50, 0.58), "checks", 16.0, 0.5),
}


@dataclass(frozen=True)
class Thing:
    """What is seen of a thing: its box, its number in the maps, and the share that is not hidden.

    The label of clutter, which no tag names, is None.
    """

    picture: str
    label: str | None
    number: int
    x: int
    y: int
    width: int
    height: int
    visible: float


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures, their tags and things, and maps of the number of the thing at each pixel, or 0."""

    names: list[str]
    pixels: list[NDArray[np.uint8]]
    tags: list[set[str]]
    things: list[Thing]
    maps: list[NDArray[np.uint8]]

    def label_in(self, picture: str, region: NDArray[np.bool_]) -> str | None:
        """Return the class that at least half of a region's pixels show; None if there is none."""
        shown = np.bincount(self.maps[self.names.index(picture)][region], minlength=256)
        shares: dict[str, float] = {}
        for thing in self.things:
            if thing.picture == picture and thing.label is not None:
                share = shown[thing.number] / max(shown.sum(), 1)
                shares[thing.label] = shares.get(thing.label, 0.0) + share
        best = max(shares, key=shares.__getitem__, default=None)
        return best if best is not None and shares[best] >= 0.5 else None


def make_pictures(
    n_pictures: int = 100,
    *,
    size: tuple[int, int] = (320, 240),
    n_classes: int = 12,
    classes_per_picture: tuple[int, int] = (1, 4),
    things_per_class: tuple[int, int] = (1, 2),
    noise: float = 8.0,
    light: float = 0.25,
    overlap: float = 0.25,
    clutter: float = 2.0,
    random_state: int | None = None,
) -> Pictures:
    """Make pictures of coloured, patterned things on grounds, in changing light.

    `noise` is the standard deviation of pixels, of 255 levels; `light` that of the logarithm of the
    light's strength, between pictures and within them. `overlap` is the share of things that may
    lie on others, and `clutter` the mean number of things in a picture that no tag names.
    """
    width, height = size
    fewest, most = classes_per_picture
    seeds = np.random.default_rng(random_state).integers(2**63, size=n_pictures)
    digits = max(3, len(str(n_pictures - 1)))
    names = [f"picture_{number:0{digits}}" for number in range(n_pictures)]
    pixels, tags, things, maps = [], [], [], []
    for name, seed in zip(names, seeds, strict=True):
        rng = np.random.default_rng(seed)
        present = rng.permutation(list(THINGS)[:n_classes])[: rng.integers(fewest, most + 1)]
        looks: list[tuple[str | None, Look]] = [
            (str(label), THINGS[label])
            for label in present
            for _ in range(rng.integers(things_per_class[0], things_per_class[1] + 1))
        ]
        looks += [(None, _any_look(rng)) for _ in range(rng.poisson(clutter))]
        scene = _ground(width, height, rng)
        numbers = np.zeros((height, width), np.uint8)
        areas: dict[int, int] = {}
        labels: dict[int, str | None] = {}
        for place in rng.permutation(len(looks))[:255]:
            label, look = looks[place]
            area = _put(scene, numbers, areas, look, rng.random() < overlap, rng)
            # Where there is no room, there is one thing less.
            if area:
                labels[len(areas) + 1] = label
                areas[len(areas) + 1] = area
        pixels.append(_seen(scene, noise, light, rng))
        maps.append(numbers)
        own = [_thing(name, labels[each], each, numbers, areas[each]) for each in areas]
        things += own
        tags.append({each.label for each in own if each.label is not None})
    return Pictures(names, pixels, tags, things, maps)


def write_pictures(pictures: Pictures, folder: str | Path) -> list[Path]:
    """Write pictures as PNG files, and ``tags.csv`` and ``truth.csv`` next to them."""
    folder = Path(folder)
    paths = [folder / f"{name}.png" for name in pictures.names]
    folder.mkdir(parents=True, exist_ok=True)
    for path, pixels in zip(paths, pictures.pixels, strict=True):
        # Noise is hardly made smaller by more effort.
        Image.fromarray(pixels).save(path, compress_level=1)
    write_tags(folder, [path.name for path in paths], pictures.tags)
    header = ("file", "label", "x", "y", "width", "height", "visible")
    truth = [
        [f"{thing.picture}.png", thing.label or "", thing.x, thing.y, thing.width,
         thing.height, f"{thing.visible:.3f}"]
        for thing in pictures.things
    ]  # fmt: skip
    write_rows(folder / "truth.csv", [header, *truth])
    return paths


# Grounds.


def _rough(shape, pixels, rng):
    """Draw noise that changes within so many pixels, from 0 to 1."""
    fine = ndimage.gaussian_filter(rng.standard_normal(shape), pixels, mode="wrap")
    return np.clip(0.5 + 0.25 * fine / max(fine.std(), 1e-9), 0, 1)


def _pattern(kind, u, v, period, rng):
    """Return how much of the second colour there is, from 0 to 1, at coordinates in pixels."""
    if kind == "plain":
        return np.zeros_like(u)
    if kind == "rough":
        return _rough(u.shape, max(0.3 * period, 0.6), rng)
    begin = rng.random(2)
    if kind == "grain":
        bent = u + 0.6 * period * _rough(u.shape, max(period, 1.0), rng)
        wave = 0.5 + 0.5 * np.sin(2 * np.pi * (bent / period + begin[0]))
        return np.clip(0.7 * wave + 0.3 * _rough(u.shape, 1.0, rng), 0, 1)
    across = np.sin(2 * np.pi * (u / period + begin[0]))
    if kind == "stripes":
        return np.clip(0.5 + 2 * across, 0, 1)
    along = np.sin(2 * np.pi * (v / period + begin[1]))
    # The edges of patterns are about a pixel wide.
    return np.clip(0.5 + (4 * across * along if kind == "checks" else 5 * (across * along - 0.45)),
                   0, 1)  # fmt: skip


def _mixed(first, second, share):
    first, second = np.asarray(first), np.asarray(second)
    return first + (second - first) * share[..., None]


def _ground(width, height, rng):
    """Draw what things lie on: one ground, or two with a border between them."""
    rows, columns = np.mgrid[:height, :width].astype(float)
    chosen = rng.permutation(list(GROUNDS))[: rng.integers(1, 3)]
    scene = np.zeros((height, width, 3))
    for place, name in enumerate(chosen):
        first, second, kind, period, amount = GROUNDS[name]
        turn = rng.uniform(0, np.pi)
        u = columns * np.cos(turn) + rows * np.sin(turn)
        v = rows * np.cos(turn) - columns * np.sin(turn)
        tint = 1 + 0.05 * rng.standard_normal(3)
        drawn = tint * _mixed(first, second, amount * _pattern(kind, u, v, period, rng))
        if not place:
            scene = drawn
            continue
        edge = height * rng.uniform(0.3, 0.7) + width * rng.uniform(-0.2, 0.2) * (
            columns / width - 0.5
        )
        scene = _mixed(scene, drawn, np.clip(rows - edge, 0, 1))
    return scene


# Things.


def _any_look(rng):
    """Draw what clutter looks like."""
    shapes, patterns = ({getattr(look, field) for look in THINGS.values()}
                        for field in ("shape", "pattern"))  # fmt: skip
    colours = rng.uniform(0.08, 0.92, (2, 3))
    return Look(
        str(rng.choice(sorted(shapes))), float(rng.uniform(1, 3)),
        (tuple(colours[0]), tuple(colours[1])), str(rng.choice(sorted(patterns))),
        float(rng.uniform(0.1, 0.6)),
    )  # fmt: skip


def _outline(shape, u, v, rng):
    """Return how far inside of a shape points are: 0 at its edge, 1 in its middle."""
    if shape == "ellipse":
        return 1 - np.hypot(u, v)
    if shape == "box":
        return 1 - (u**6 + v**6) ** (1 / 6)
    if shape == "leaf":
        return np.clip(1 - u**2, 0, None) - np.abs(v)
    angle, radius = np.arctan2(v, u), np.hypot(u, v)
    if shape == "star":
        return 0.7 + 0.3 * np.cos(5 * angle) - radius
    edge = 0.85 + sum(
        rng.uniform(0, 0.25 / order) * np.cos(order * angle + rng.uniform(0, 2 * np.pi))
        for order in range(2, 5)
    )
    return edge - radius


def _put(scene, numbers, areas, look, may_overlap, rng):
    """Draw a thing with its shadow, the next after those of `areas`; return its area.

    That is 0 if there is no room for it. What it hides of others has its number from then on.
    """
    height, width = numbers.shape
    rows, columns = np.mgrid[:height, :width].astype(float)
    side = min(width, height)
    for _ in range(40):
        half = rng.uniform(0.09, 0.2) * side
        long, wide = half * np.sqrt(look.aspect), half / np.sqrt(look.aspect)
        x, y = rng.uniform(0.06, 0.94) * width, rng.uniform(0.06, 0.94) * height
        turn = rng.uniform(0, 2 * np.pi)
        along = (columns - x) * np.cos(turn) + (rows - y) * np.sin(turn)
        across = (rows - y) * np.cos(turn) - (columns - x) * np.sin(turn)
        inside = _outline(look.shape, along / long, across / wide, rng)
        own = inside > 0
        area = int(own.sum())
        whole = long * wide * {"box": 3.9, "leaf": 2.7, "star": 1.7}.get(look.shape, np.pi)
        if area < max(FEWEST_PIXELS, LEAST_INSIDE * whole):
            continue
        # Things that shall not overlap do not touch either.
        around = own if may_overlap else ndimage.binary_dilation(own, iterations=2)
        below = np.unique(numbers[around])
        if not may_overlap and below.any():
            continue
        left = {each: np.count_nonzero((numbers == each) & ~own) for each in below[below > 0]}
        if all(n >= max(LEAST_VISIBLE * areas[each], FEWEST_PIXELS) for each, n in left.items()):
            break
    else:
        return 0
    shadow = ndimage.gaussian_filter(ndimage.shift(own.astype(float), (0.06 * half, 0.06 * half),
                                                   order=0), 0.06 * half)  # fmt: skip
    scene *= (1 - 0.45 * shadow)[..., None]
    # As large in pixels for all things of a class of one size.
    period = max(look.period * half * (1 + PATTERN_SPREAD * rng.standard_normal()), 3.0)
    share = _pattern(look.pattern, along, across, period, rng)
    tints = 1 + COLOUR_SPREAD * rng.standard_normal((2, 3))
    surface = _mixed(tints[0] * look.colours[0], tints[1] * look.colours[1], share)
    # Round things are darker towards the edge that the light does not reach.
    surface *= (1 - 0.25 * np.clip(1 - inside, 0, 1) ** 2 * (1 + (columns - x) / half / 3))[
        ..., None
    ]
    # An edge as wide as a pixel.
    cover = ndimage.gaussian_filter(own.astype(float), 0.7)
    scene += cover[..., None] * (surface - scene)
    numbers[own] = len(areas) + 1
    return area


def _thing(name, label, number, numbers, area):
    rows, columns = (np.flatnonzero((numbers == number).any(axis=axis)) for axis in (1, 0))
    return Thing(
        name, label, number, int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1,
        int(np.ptp(rows)) + 1, float(np.count_nonzero(numbers == number) / area),
    )  # fmt: skip


def _seen(scene, noise, light, rng):
    """Return what a camera makes of a scene: lit, a little blurred, noisy, in 255 levels."""
    height, width = scene.shape[:2]
    strength = np.exp(light * np.clip(rng.standard_normal(), -1.5, 1.5))
    colour = np.exp(light / 3 * rng.standard_normal(3))
    turn = rng.uniform(0, 2 * np.pi)
    rows, columns = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    side = np.exp(0.5 * light * (np.cos(turn) * columns + np.sin(turn) * rows))
    lit = scene * colour * (strength * side)[..., None]
    blurred = ndimage.gaussian_filter(lit, (rng.uniform(0.3, 0.8),) * 2 + (0,))
    # Bright parts are compressed, as by a camera, rather than cut off.
    levels = 255 * blurred / (1 + np.maximum(blurred - 0.8, 0))
    levels += noise * rng.standard_normal(scene.shape)
    return np.clip(np.round(levels), 0, 255).astype(np.uint8)
