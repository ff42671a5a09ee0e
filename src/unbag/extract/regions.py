"""Regions of a picture: their places and their features.

A picture is cut into superpixels, small patches of one colour. Neighbours are merged as long as
they differ little: along their border, and altogether. Colours are compared as distributions, so
that stripes or spots are one region. `found_regions` does that; `described` computes features.

============= ================================================================================
`lab`         the colours of a picture in CIELAB, of shape (height, width, 3)
`labels`      the region of each pixel, from 0; -1 for none
`histograms`  pixels by lightness and two colours, of shape (n_regions, 3, n_bins)
`difference`  distance between distributions of colours, in units of CIELAB
============= ================================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unbag._messages import require

#: The least difference of regions, in units of CIELAB: about 2 are just visible.
CONTRAST = 7.0
# The number of superpixels, pixels that each has at least on average, their compactness, and how
# often they are moved. Smaller fragments than this share of a superpixel are merged.
N_SUPERPIXELS, FEWEST_PIXELS, COMPACTNESS, N_STEPS = 400, 80, 20.0, 5
FRAGMENT = 0.25
# Noise of single pixels is smoothed.
SMOOTHING = 1.0
# Both sides of a border are compared up to this distance, in widths of superpixels.
REACH = 2.5
# The contrast of regions below the first share of the picture counts less, and regions below the
# second are always merged. It also counts less for thin regions, such as blurred edges of things:
# those with less than the share THIN of the area of a disc with the same edge.
SMALL, SMALLEST = 0.01, 0.003
THIN = 0.5
# The weight of the border in a difference; the rest is that of the whole regions.
ALONG = 0.7
# Merging goes on until there are at most this many regions.
MOST_REGIONS = 60
# Colours: bins from the lowest to the highest, and the weight of lightness, which light changes.
N_BINS = 24
LOWEST: NDArray[np.float32] = np.array([0, -80, -80], np.float32)
HIGHEST: NDArray[np.float32] = np.array([100, 80, 80], np.float32)
LIGHTNESS_WEIGHT = 0.7

# The most corners of an outline, and its distance from the region's edge in pixels.
MOST_CORNERS, OUTLINE_ERROR = 120, 0.8
# The least share of a hole in its region, and how many holes are drawn if corners are many.
SMALLEST_HOLE, MOST_HOLES = 0.01, 8


def lab_of(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return pixels of red, green and blue in CIELAB."""
    linear = _linear_light()[pixels]
    mixed = linear @ _TO_XYZ
    # The cube root, and a line below it.
    root = np.where(mixed > 216 / 24389, np.cbrt(mixed), mixed * (841 / 108) + 4 / 29)
    lab = np.empty_like(root)
    lab[..., 0] = 116 * root[..., 1] - 16
    lab[..., 1] = 500 * (root[..., 0] - root[..., 1])
    lab[..., 2] = 200 * (root[..., 1] - root[..., 2])
    return lab


@cache
def _linear_light() -> NDArray[np.float32]:
    """Return the light of each of the 256 levels of sRGB."""
    level = np.arange(256) / 255
    light = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    return light.astype(np.float32)


# From linear sRGB to XYZ, relative to daylight (D65).
_TO_XYZ: NDArray[np.float32] = np.array([
    [0.4124564 / 0.95047, 0.2126729, 0.0193339 / 1.08883],
    [0.3575761 / 0.95047, 0.7151522, 0.1191920 / 1.08883],
    [0.1804375 / 0.95047, 0.0721750, 0.9503041 / 1.08883],
], np.float32)  # fmt: skip


# Places.


def found_regions(lab: NDArray[np.float32], contrast: float = CONTRAST) -> NDArray[np.int32]:
    """Return the region of each pixel, numbered from 0 in reading order."""
    patches = _superpixels(lab)
    n_patches = int(patches.max()) + 1
    if n_patches == 1:
        return patches
    histograms = _histograms(lab, patches, n_patches)
    regions = _merged(histograms, _borders(patches, histograms), contrast)
    # Numbers in the order in which regions come first.
    _, first, number = np.unique(regions, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return order[number].astype(np.int32)[patches]


@dataclass(frozen=True)
class _Borders:
    """Borders between neighbours: both regions, the length, and the sum of differences along it."""

    one: NDArray[np.intp]
    other: NDArray[np.intp]
    length: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def of_pixels(cls, labels: NDArray[np.integer]) -> "_Borders":
        """Return the borders of a picture's regions, with differences of zero."""
        one = np.concatenate([labels[:, 1:].ravel(), labels[1:].ravel()])
        other = np.concatenate([labels[:, :-1].ravel(), labels[:-1].ravel()])
        is_edge = one != other
        one, other = one[is_edge].astype(np.intp), other[is_edge].astype(np.intp)
        # Pixel by pixel at first.
        length = np.ones(len(one))
        every = np.arange(int(labels.max()) + 1)
        return cls(one, other, length, 0 * length).renumbered(every)

    def renumbered(self, number: NDArray[np.intp]) -> "_Borders":
        """Return the borders after regions got new numbers.

        Borders between regions of the same number go, and borders between the same two are joined.
        """
        one, other = number[self.one], number[self.other]
        kept = one != other
        n_regions = int(number.max()) + 1
        low, high = np.minimum(one, other)[kept], np.maximum(one, other)[kept]
        keys, place = np.unique(low * n_regions + high, return_inverse=True)
        length, total = (
            np.bincount(place, each[kept], len(keys)).astype(float)
            for each in (self.length, self.total)
        )
        return _Borders(keys // n_regions, keys % n_regions, length, total)


def _superpixels(lab):
    """Return patches of one colour, numbered from 0."""
    height, width = lab.shape[:2]
    n_patches = min(N_SUPERPIXELS, height * width // FEWEST_PIXELS)
    if n_patches < 2 or min(height, width) < 2:
        return np.zeros((height, width), np.int32)
    smooth = ndimage.gaussian_filter(lab, (SMOOTHING, SMOOTHING, 0))
    # Compactness is meant for values from 0 to 1, to which colours are brought.
    compactness = COMPACTNESS / max(float(np.ptp(smooth)), 1e-3)
    patches = require("skimage.segmentation").slic(
        smooth, n_segments=n_patches, compactness=compactness, max_num_iter=N_STEPS,
        convert2lab=False, start_label=1, enforce_connectivity=False,
    )  # fmt: skip
    pieces = require("skimage.measure").label(patches, connectivity=1) - 1
    return _without_fragments(pieces, smooth, FRAGMENT * height * width / n_patches)


def _without_fragments(pieces, colours, least):
    """Return pieces of a picture, with the smallest merged into the most similar neighbours.

    So only small pieces can be mixed of two colours.
    """
    n_pieces = -1
    while n_pieces != (n_pieces := int(pieces.max()) + 1):
        area = np.bincount(pieces.ravel(), minlength=n_pieces)
        mean = np.stack([
            np.bincount(pieces.ravel(), colours[..., channel].ravel(), n_pieces) / area
            for channel in range(3)
        ], axis=1)  # fmt: skip
        borders = _Borders.of_pixels(pieces)
        # From the smaller to the larger, so that none becomes part of itself.
        turned = area[borders.one] > area[borders.other]
        small = np.where(turned, borders.other, borders.one)
        large = np.where(turned, borders.one, borders.other)
        difference = ((mean[small] - mean[large]) ** 2).sum(axis=1)
        order = np.lexsort((difference, small))
        order = order[area[small[order]] < least]
        fragments, first = np.unique(small[order], return_index=True)
        leader = np.arange(n_pieces)
        leader[fragments] = large[order[first]]
        while (leader[leader] != leader).any():
            leader = leader[leader]
        pieces = np.unique(leader, return_inverse=True)[1][pieces]
    return pieces.astype(np.int32)


def _histograms(lab, labels, n_labels):
    """Return the pixels of each label by colour, of shape (n_labels, 3, N_BINS)."""
    places = np.clip((lab - LOWEST) * (N_BINS / (HIGHEST - LOWEST)), 0, N_BINS - 1).astype(np.int32)
    size = n_labels * N_BINS
    counts = [
        np.bincount((labels * N_BINS + places[..., channel]).ravel(), minlength=size)
        for channel in range(3)
    ]
    return np.stack([each.reshape(n_labels, N_BINS) for each in counts], axis=1).astype(np.float32)


# The weighted width of a bin.
_WIDTH = ((HIGHEST - LOWEST) / N_BINS * np.array([LIGHTNESS_WEIGHT, 1, 1], np.float32))[:, None]


def _cumulative(histograms):
    """Return cumulative distributions, times the width of a bin."""
    shares = histograms / histograms.sum(axis=-1, keepdims=True)
    return np.cumsum(shares, axis=-1) * _WIDTH


def _difference(one, other):
    """Return the distance between cumulative distributions: for single colours, theirs.

    The distance in each channel is the earth mover's.
    """
    moved = np.abs(one - other).sum(axis=-1)
    return np.sqrt((moved**2).sum(axis=-1))


def _borders(patches, histograms):
    """Return the borders between patches, and how much their sides differ.

    That is the difference of the two patches, or of all patches within reach on both sides of the
    border, if it is smaller: two stripes of a zebra differ, but its left and right half do not.
    """
    n_patches = len(histograms)
    borders = _Borders.of_pixels(patches)
    one, other = borders.one, borders.other
    area = histograms[:, 0].sum(axis=-1)
    centres = np.stack([
        np.bincount(patches.ravel(), np.broadcast_to(where, patches.shape).ravel(), n_patches)
        for where in np.ogrid[: patches.shape[0], : patches.shape[1]]
    ], axis=1)  # fmt: skip
    centres = (centres / area[:, None]).astype(np.float32)
    middle = (centres[one] + centres[other]) / 2
    across = centres[other] - centres[one]
    reach = REACH * np.sqrt(patches.size / n_patches)
    distance = (
        (middle**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * middle @ centres.T
    ) / np.float32(reach**2)
    weight = np.where(distance < 1, np.exp(-2 * np.minimum(distance, 1)), 0).astype(np.float32)
    is_beyond = across @ centres.T > (across * middle).sum(axis=1)[:, None]
    sides = []
    number = np.arange(len(one))
    for own, opposite, is_on_side in ((one, other, ~is_beyond), (other, one, is_beyond)):
        weights = weight * is_on_side
        # A patch is on its own side of the border, whatever the shape of the two.
        weights[number, opposite] = 0
        weights[number, own] += 1e-3
        mixed = weights @ histograms.reshape(n_patches, -1)
        sides.append(_cumulative(mixed.reshape(-1, 3, N_BINS)))
    of_patches = _cumulative(histograms)
    difference = np.minimum(_difference(*sides), _difference(of_patches[one], of_patches[other]))
    return _Borders(one, other, borders.length, borders.length * difference)


def _merged(histograms, borders, contrast):
    """Return the region of each patch, with neighbours merged that differ less than the contrast.

    In each round, regions merge that are each other's most similar neighbour, so that the order
    hardly matters.
    """
    n_pixels = histograms[:, 0].sum()
    region = np.arange(len(histograms))
    while len(borders.one):
        area = histograms[:, 0].sum(axis=-1)
        difference = _between(histograms, area, borders)
        may_merge = difference < contrast
        if not may_merge.any():
            smaller = np.minimum(area[borders.one], area[borders.other])
            may_merge = smaller < SMALLEST * n_pixels
            if not may_merge.any():
                if len(area) <= MOST_REGIONS:
                    break
                contrast *= 1.1
                continue
        chosen = _closest(difference, borders, may_merge)
        leader = np.arange(len(area))
        leader[borders.other[chosen]] = borders.one[chosen]
        kept, number = np.unique(leader, return_inverse=True)
        merged = histograms[kept].copy()
        merged[number[borders.other[chosen]]] += histograms[borders.other[chosen]]
        histograms, region = merged, number[region]
        borders = borders.renumbered(number)
    return region


def _between(histograms, area, borders):
    """Return the differences of neighbours, along their border and altogether.

    Differences of small and thin regions count less.
    """
    cumulative = _cumulative(histograms)
    inside = _difference(cumulative[borders.one], cumulative[borders.other])
    edge = sum(
        np.bincount(ends, borders.length, len(area)) for ends in (borders.one, borders.other)
    )
    disc = edge**2 / (4 * np.pi)
    size = area * np.minimum(area / (THIN * disc), 1) / (SMALL * area.sum())
    smaller = np.minimum(size[borders.one], size[borders.other])
    along = borders.total / borders.length
    return (ALONG * along + (1 - ALONG) * inside) * np.sqrt(np.minimum(smaller, 1))


def _closest(difference, borders, may_merge):
    """Return the borders between regions that are each other's closest neighbours."""
    order = np.flatnonzero(may_merge)
    order = order[np.argsort(difference[order], kind="stable")]
    ends = np.stack([borders.one[order], borders.other[order]], axis=1).ravel()
    # The first border of each region is that with its closest neighbour.
    _, first = np.unique(ends, return_index=True)
    times_first = np.bincount(first // 2, minlength=len(order))
    return order[times_first == 2]


# Features.

N_HUES, N_LIGHTS, N_TURNS = 12, 6, 8
# Distances of the pixels that are compared with the one in their middle, and the least difference
# that counts.
PATTERN_RADII, PATTERN_STEP = (1, 3), 2.0
N_PATTERNS = 10
# Sizes of details, in pixels.
DETAILS = (0.7, 1.4, 2.8, 5.6)
# Chroma at which a hue counts half.
CHROMA = 8.0
# The width of a region's surroundings in pixels.
AROUND = 6
QUANTILES = (10, 50, 90)

FEATURES: tuple[str, ...] = (
    *(f"{channel}_{what}" for channel in ("lightness", "red_green", "yellow_blue")
      for what in ("mean", "sd", *(f"q{each}" for each in QUANTILES))),
    "chroma_mean", "chroma_sd", "grey_share",
    *(f"hue_{turn}" for turn in range(N_HUES)),
    *(f"light_{level}" for level in range(N_LIGHTS)),
    *(f"detail_{channel}_{size:g}" for channel in ("lightness", "red_green", "yellow_blue")
      for size in DETAILS[:-1]),
    "gradient_mean", "gradient_sd",
    *(f"direction_{scale}" for scale in ("fine", "coarse")),
    *(f"turn_{place}" for place in range(N_TURNS)),
    *(f"pattern_{radius}_{number}" for radius in PATTERN_RADII for number in range(N_PATTERNS)),
    "log_area", "box_width", "box_height", "log_aspect", "fill", "log_elongation", "slant_cos",
    "slant_sin", "roundness", "spread", "skew",
    "centre_x", "centre_y", "box_left", "box_top", "box_right", "box_bottom", "at_border",
    "around_lightness", "around_red_green", "around_yellow_blue", "around_distance",
    "around_detail",
)  # fmt: skip


class RegionPixels:
    """The pixels of regions, region after region; regions may overlap, and each has a pixel."""

    def __init__(self, places: Sequence[NDArray[np.intp]], shape: tuple[int, int]):
        self.shape = shape
        self.counts: NDArray[np.intp] = np.array([len(each) for each in places])
        self.starts: NDArray[np.intp] = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.pixels: NDArray[np.intp] = np.concatenate(places)
        self.regions: NDArray[np.intp] = np.repeat(np.arange(len(places)), self.counts)
        self.rows: NDArray[np.intp] = self.pixels // shape[1]
        self.columns: NDArray[np.intp] = self.pixels % shape[1]

    def __len__(self) -> int:
        return len(self.counts)

    def of(self, channel: NDArray[Any]) -> NDArray[Any]:
        """Return the values that a channel of the picture has in the regions."""
        return channel.ravel()[self.pixels]

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of values over each region."""
        return np.add.reduceat(values, self.starts, dtype=np.float64)

    def means(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean of values over each region."""
        return self.sums(values) / self.counts

    def moments(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of values over each region."""
        mean = self.means(values)
        return mean, np.sqrt(np.maximum(self.means(values * values) - mean**2, 0))

    def shares(
        self, places: NDArray[np.intp], n_places: int, weights: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the share of each region, or of its weights, at each of some places."""
        found = np.bincount(self.regions * n_places + places, weights, len(self) * n_places)
        return found.reshape(len(self), n_places) / self.counts[:, None]


@dataclass(frozen=True)
class Crop:
    """A part of a picture with one region: its corner, and which pixels are the region's."""

    top: int
    left: int
    own: NDArray[np.bool_]

    @property
    def place(self) -> tuple[slice, slice]:
        """The rows and columns of the picture."""
        height, width = self.own.shape
        return slice(self.top, self.top + height), slice(self.left, self.left + width)


def crops_of(
    places: Sequence[NDArray[np.intp]], shape: tuple[int, int], margin: int = 0
) -> list[Crop]:
    """Return the parts of a picture with one region each, and a margin within the picture."""
    found = []
    for place in places:
        rows, columns = np.divmod(place, shape[1])
        top, left = max(int(rows.min()) - margin, 0), max(int(columns.min()) - margin, 0)
        bottom = min(int(rows.max()) + 1 + margin, shape[0])
        right = min(int(columns.max()) + 1 + margin, shape[1])
        own = np.zeros((bottom - top, right - left), bool)
        own[rows - top, columns - left] = True
        found.append(Crop(top, left, own))
    return found


def places_of_labels(
    labels: NDArray[np.int32], n_regions: int | None = None
) -> list[NDArray[np.intp]]:
    """Return the pixels of each region, given the region of each pixel."""
    order = np.argsort(labels, axis=None, kind="stable")
    counts = np.bincount(labels.ravel() + 1, minlength=1 + (n_regions or 0))
    # Pixels without a region come first.
    return np.split(order, np.cumsum(counts)[:-1])[1:]


def places_of_boxes(boxes: NDArray[np.int32], shape: tuple[int, int]) -> list[NDArray[np.intp]]:
    """Return the pixels of boxes of left, top, right and bottom, the last two exclusive."""
    return [
        (np.arange(top, bottom)[:, None] * shape[1] + np.arange(left, right)).ravel()
        for left, top, right, bottom in boxes.tolist()
    ]


def described(lab: NDArray[np.float32], places: Sequence[NDArray[np.intp]]) -> NDArray[np.float32]:
    """Return the `FEATURES` of regions, of shape (n_regions, n_features)."""
    if not places:
        return np.empty((0, len(FEATURES)), np.float32)
    shown = RegionPixels(places, lab.shape[:2])
    crops = crops_of(places, shown.shape, AROUND)
    columns = [
        *_colour(lab, shown), *_texture(lab, shown), *_shape(shown, crops),
        *_surroundings(lab, crops),
    ]  # fmt: skip
    return np.nan_to_num(np.column_stack(columns).astype(np.float32), posinf=0.0, neginf=0.0)


def _colour(lab, shown):
    """Return features of the distribution of colours."""
    columns = []
    for channel in range(3):
        own = shown.of(lab[..., channel])
        columns += shown.moments(own)
        columns += _quantiles(own, shown, channel)
    red_green, yellow_blue = (shown.of(lab[..., channel]) for channel in (1, 2))
    chroma = np.hypot(red_green, yellow_blue)
    columns += shown.moments(chroma)
    is_coloured = chroma**2 / (chroma**2 + CHROMA**2)
    columns.append(1 - shown.means(is_coloured))
    turn = np.arctan2(yellow_blue, red_green) * (N_HUES / (2 * np.pi)) % N_HUES
    # A colour between two hues counts for both.
    first = turn.astype(np.int32) % N_HUES
    part = turn - np.floor(turn)
    hues = shown.shares(first, N_HUES, is_coloured * (1 - part))
    hues += shown.shares((first + 1) % N_HUES, N_HUES, is_coloured * part)
    columns += [*np.sqrt(hues).T]
    light = np.clip(shown.of(lab[..., 0]) * (N_LIGHTS / 100), 0, N_LIGHTS - 1).astype(np.int32)
    return [*columns, *np.sqrt(shown.shares(light, N_LIGHTS)).T]


def _quantiles(values, shown, channel):
    """Return quantiles of a channel over each region, to a hundredth of its range."""
    low, high = float(LOWEST[channel]), float(HIGHEST[channel])
    n_steps = 100
    steps = np.clip((values - low) * (n_steps / (high - low)), 0, n_steps - 1).astype(np.int32)
    running = np.cumsum(shown.shares(steps, n_steps), axis=1)
    return [
        low + (high - low) / n_steps * (0.5 + (running < quantile / 100).sum(axis=1))
        for quantile in QUANTILES
    ]


def _texture(lab, shown):
    """Return features of details: size, strength, direction and pattern."""
    columns = []
    finest = ndimage.gaussian_filter(lab, (DETAILS[0], DETAILS[0], 0))
    before = finest
    blurred = []
    for size in DETAILS[1:]:
        # Blurring what is blurred: variances add up.
        step = np.sqrt(size**2 - DETAILS[len(blurred)] ** 2)
        after = ndimage.gaussian_filter(before, (step, step, 0), truncate=2.5)
        blurred.append(np.abs(before - after))
        before = after
    for channel in range(3):
        columns += [np.log1p(shown.means(shown.of(each[..., channel]))) for each in blurred]
    light = finest[..., 0]
    down, right = _slopes(light)
    size = np.hypot(down, right)
    mean, deviation = shown.moments(shown.of(size))
    columns += [np.log1p(mean), np.log1p(deviation)]
    for smooth in (light, ndimage.gaussian_filter(light, 2.0, truncate=2.5)):
        columns.append(_coherence(smooth, shown))
    columns += _turns(down, right, size, shown)
    for radius in PATTERN_RADII:
        smooth = ndimage.gaussian_filter(lab[..., 0], 0.8 * radius, truncate=2.5)
        codes = shown.of(_patterns(smooth, radius))
        columns += [*np.sqrt(shown.shares(codes, N_PATTERNS)).T]
    return columns


def _slopes(values):
    """Return the slopes of values downwards and to the right; 0 at the edges."""
    down, right = np.zeros_like(values), np.zeros_like(values)
    down[1:-1] = (values[2:] - values[:-2]) / 2
    right[:, 1:-1] = (values[:, 2:] - values[:, :-2]) / 2
    return down, right


def _coherence(values, shown):
    """Return how far slopes point in one direction, as those of stripes do, from 0 to 1."""
    down, right = map(shown.of, _slopes(values))
    rows, columns, both = (shown.sums(each) for each in (down**2, right**2, down * right))
    total = rows + columns
    return np.hypot(rows - columns, 2 * both) / np.maximum(total, 1e-6)


def _turns(down, right, size, shown):
    """Return the shares of the directions of slopes, beginning with the most frequent one."""
    angle = np.arctan2(down, right) % np.pi
    turn = np.minimum((angle * (N_TURNS / np.pi)).astype(np.int32), N_TURNS - 1)
    found = shown.shares(shown.of(turn), N_TURNS, shown.of(size))
    first = found.argmax(axis=1)[:, None]
    found = np.take_along_axis(found, (first + np.arange(N_TURNS)) % N_TURNS, axis=1)
    return [*np.sqrt(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-6)).T]


def _patterns(values, radius):
    """Return the uniform local binary pattern of each pixel, however it is turned.

    It is how many of eight neighbours are lighter, in one piece; 9 stands for all others.
    """
    padded = np.pad(values, radius, mode="edge")
    height, width = values.shape
    # On a circle about the pixel, one after the other.
    away = np.array([(1, 2), (0, 2), (0, 1), (0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]) * radius
    centre = values + np.float32(PATTERN_STEP)
    lighter = np.stack(
        [padded[row : row + height, column : column + width] > centre for row, column in away]
    )
    changes = (lighter != np.roll(lighter, 1, axis=0)).sum(axis=0)
    return np.where(changes <= 2, lighter.sum(axis=0), N_PATTERNS - 1)


def _shape(shown, crops):
    """Return features of size, form and place."""
    height, width = shown.shape
    area = shown.counts.astype(float)
    left, right = (each.reduceat(shown.columns, shown.starts) for each in (np.minimum, np.maximum))
    top, bottom = (each.reduceat(shown.rows, shown.starts) for each in (np.minimum, np.maximum))
    right, bottom = right + 1, bottom + 1
    wide, high = right - left, bottom - top
    middle_row, middle_column = shown.means(shown.rows), shown.means(shown.columns)
    down = (shown.rows - middle_row[shown.regions]).astype(np.float32)
    across = (shown.columns - middle_column[shown.regions]).astype(np.float32)
    down_squared, across_squared = down * down, across * across
    # A pixel has a variance of its own, as it is one wide.
    of_rows, of_columns = (shown.means(each) + 1 / 12 for each in (down_squared, across_squared))
    both = shown.means(down * across)
    total = of_rows + of_columns
    apart = np.hypot(of_rows - of_columns, 2 * both)
    elongation = 0.5 * np.log((total + apart) / np.maximum(total - apart, 1e-6))
    skew = np.hypot(shown.means(down_squared * down), shown.means(across_squared * across))
    edges, at_border = np.array([_edges(crop, shown.shape) for crop in crops], dtype=float).T
    return [
        np.log(area / (height * width)), wide / width, high / height, np.log(wide / high),
        area / (wide * high), elongation, (of_columns - of_rows) / total, 2 * both / total,
        np.log(4 * np.pi * area / edges**2), np.log(total / area), skew / total**1.5,
        (middle_column + 0.5) / width, (middle_row + 0.5) / height,
        left / width, top / height, right / width, bottom / height, at_border / edges,
    ]  # fmt: skip


def _edges(crop, shape):
    """Return the length of a region's edge, and of its part at the border of the picture."""
    own = crop.own
    rows, columns = crop.place
    inside = np.count_nonzero(own[1:] != own[:-1]) + np.count_nonzero(own[:, 1:] != own[:, :-1])
    ends = ((rows.start == 0, own[0]), (rows.stop == shape[0], own[-1]),
            (columns.start == 0, own[:, 0]), (columns.stop == shape[1], own[:, -1]))  # fmt: skip
    at_border = sum(np.count_nonzero(end) for is_border, end in ends if is_border)
    return inside + at_border, at_border


def _surroundings(lab, crops):
    """Return the contrast of each region with its surroundings."""
    found = np.zeros((len(crops), 5))
    detail = np.abs(lab[..., 0] - ndimage.gaussian_filter(lab[..., 0], 2.0, truncate=2.5))
    channels = np.concatenate([lab, detail[..., None]], axis=2)
    for region, crop in enumerate(crops):
        part = channels[crop.place]
        near = ndimage.maximum_filter(crop.own.view(np.uint8), 2 * AROUND + 1).view(bool)
        near &= ~crop.own
        if near.any():
            step = part[crop.own].mean(axis=0) - part[near].mean(axis=0)
            found[region] = *step[:3], np.sqrt((step[:3] ** 2).sum()), step[3]
    return [*found.T]


# Outlines.


def outlines_of(
    places: Sequence[NDArray[np.intp]], shape: tuple[int, int], scale: tuple[float, float]
) -> list[str]:
    """Return the outlines of regions in pixels of the original picture, larger by `scale`.

    An outline is a list of corners, such as ``"0,0 9,0 9,5"``; holes follow, after semicolons.
    """
    contours = require("skimage.measure").find_contours
    found = []
    for crop in crops_of(places, shape):
        rings = contours(np.pad(crop.own, 1).astype(np.float32), 0.5)
        sizes = [abs(_area(ring)) for ring in rings]
        order = np.argsort(sizes)[::-1]
        kept = [order[0], *(n for n in order[1:] if sizes[n] >= SMALLEST_HOLE * sizes[order[0]])]
        error = OUTLINE_ERROR
        while True:
            corners = [_simplified(rings[n], error) for n in kept]
            if sum(map(len, corners)) <= MOST_CORNERS:
                break
            # Many holes cannot be drawn with so few corners.
            error, kept = 1.5 * error, kept[:MOST_HOLES]
        # Back from the frame of one pixel, and to the edges of pixels.
        at = np.array([crop.top - 0.5, crop.left - 0.5])
        found.append(";".join(_corners_text((ring + at)[:, ::-1] * scale) for ring in corners))
    return found


def _simplified(ring, error):
    """Return a ring with fewer corners (Douglas and Peucker)."""
    kept = np.zeros(len(ring), bool)
    # The two halves of the ring between a point and the one farthest from it.
    far = int(((ring - ring[0]) ** 2).sum(axis=1).argmax())
    kept[[0, far]] = True
    pending = [(0, far), (far, len(ring) - 1)]
    while pending:
        first, last = pending.pop()
        if last - first < 2:
            continue
        begin, along = ring[first], ring[last] - ring[first]
        away = ring[first + 1 : last] - begin
        length = np.hypot(*along)
        if length > 0:
            distance = np.abs(away[:, 0] * along[1] - away[:, 1] * along[0]) / length
        else:
            distance = np.hypot(away[:, 0], away[:, 1])
        farthest = int(distance.argmax())
        if distance[farthest] > error:
            middle = first + 1 + farthest
            kept[middle] = True
            pending += [(first, middle), (middle, last)]
    corners = ring[kept]
    # The least corners of an area.
    return corners if len(corners) >= 3 else ring[[0, len(ring) // 3, 2 * len(ring) // 3]]


def _area(ring):
    rows, columns = ring.T
    return 0.5 * (rows[:-1] * columns[1:] - rows[1:] * columns[:-1]).sum()


def _corners_text(corners):
    return " ".join(f"{x},{y}" for x, y in np.round(corners).astype(int).tolist())


def outline_rings(text: str) -> list[list[tuple[int, int]]]:
    """Return the corners of an outline and of its holes; wrong text is a ValueError.

    Examples
    --------
    >>> outline_rings("0,0 9,0 9,5;2,1 3,1 3,2")
    [[(0, 0), (9, 0), (9, 5)], [(2, 1), (3, 1), (3, 2)]]
    """
    rings = []
    for ring in text.split(";"):
        corners = [corner.split(",") for corner in ring.split()]
        rings.append([(int(x), int(y)) for x, y in corners])
        if len(corners) < 3:
            raise ValueError(f"an outline has three corners or more, not {len(corners)}")
    return rings


@dataclass(frozen=True)
class Regions:
    """Regions of a picture.

    Attributes
    ----------
    x, y, width, height : ndarray of int of shape (n_regions,)
        The box of each in pixels; x and y are its top left corner.
    outlines : list of str
        The corners of each, such as ``"0,0 9,0 9,5"``; holes follow, after semicolons.
    features : ndarray of float32 of shape (n_regions, n_features)
    labels : ndarray of int32 of shape (height, width) or None
        The region of each pixel of the picture, perhaps at a smaller size; -1 for none. None for
        boxes, which may overlap.
    feature_names : tuple of str
    """

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    width: NDArray[np.int64]
    height: NDArray[np.int64]
    outlines: list[str]
    features: NDArray[np.float32]
    labels: NDArray[np.int32] | None = field(default=None, repr=False)
    feature_names: tuple[str, ...] = field(default=FEATURES, repr=False)

    def __len__(self) -> int:
        return len(self.x)
