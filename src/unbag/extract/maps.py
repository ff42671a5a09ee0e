"""Maps of a network of pictures, averaged over the regions of each picture.

The whole picture goes through the network once. A layer gives a map of numbers, such as one for
every 16 pixels. It is interpolated to the pixels of the picture, as it is looked at, and averaged
over those of each region, so that a region smaller than a cell of the map has numbers of its own.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from unbag._files import check
from unbag._messages import argument, installing, listed, require, shortened

from .networks import Network, written
from .regions import RegionPixels

#: What networks take for levels from 0 to 255: these less a mean, over a deviation, for red, green
#: and blue.
SCALES: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "imagenet": ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    "0..1": ((0, 0, 0), (255, 255, 255)),
    "-1..1": ((127.5, 127.5, 127.5), (127.5, 127.5, 127.5)),
    "0..255": ((0, 0, 0), (1, 1, 1)),
}
SCALE = "imagenet"
# Sides of pictures are multiples of this where the network takes any: most halve them five times.
STEP = 32


def is_channels_last(network: Network) -> bool:
    """Return whether colours are the last axis of the input, or raise an error if they are none."""
    shape = network.shape
    colours = [axis for axis in (1, 3) if len(shape) == 4 and shape[axis] == 3]
    check(
        len(colours) == 1,
        f"{network.described} takes inputs of shape {written(shape)}: a network of pictures takes "
        "batches of them, with 3 colours before height and width, or after.",
    )
    return colours == [3]


def sides_for(network: Network, height: int, width: int, size: int) -> tuple[int, int]:
    """Return the height and width at which a network takes a picture.

    Those that its file does not say have the proportions of the picture, with the longer side near
    `size`.
    """
    first = 1 if is_channels_last(network) else 2
    scale = size / max(height, width)
    own = zip(network.shape[first : first + 2], (height, width), strict=True)
    rows, columns = (side or STEP * max(1, round(scale * all_ / STEP)) for side, all_ in own)
    return rows, columns


def maps_of(
    network: Network, pixels: NDArray[np.uint8], sides: tuple[int, int], scale: str
) -> list[NDArray[np.float32]]:
    """Return the maps that layers give for a picture, each of shape (height, width, n_numbers).

    The network takes the picture with the height and width of `sides`.
    """
    Image = require("PIL.Image")
    mean, deviation = (np.array(each, np.float32) for each in SCALES[scale])
    image = Image.fromarray(pixels).resize(sides[::-1], Image.Resampling.BILINEAR)
    values = (np.asarray(image) - mean) / deviation
    is_last = is_channels_last(network)
    inputs = values[None] if is_last else values.transpose(2, 0, 1)[None]
    found = []
    for layer, (map_, *_) in zip(network.layers, network.run(inputs), strict=True):
        # Some networks turn their input first.
        turned = [map_, np.moveaxis(map_, 0, -1)] if map_.ndim == 3 else []
        fitting = [each for each in turned[:: 1 if is_last else -1] if _is_map(each, sides)]
        check(
            fitting,
            f"{network.described}: the layer {shortened(layer)} gives {written(map_.shape)} "
            "numbers for a picture, not a map of it: choose a layer before by "
            f"{argument('embed_layer')}.",
        )
        found.append(fitting[0])
    return found


def _is_map(values, sides):
    """Return whether an array has the proportions of a picture, and more than one place."""
    (height, width), (rows, columns) = values.shape[:2], sides
    is_smaller = height <= rows and width <= columns
    is_alike = abs(height * columns - width * rows) <= max(rows, columns)
    return is_smaller and is_alike and height * width > 1


def over_regions(
    maps: Sequence[NDArray[np.float32]], places: Sequence[NDArray[np.intp]], shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Return means of maps over regions, of shape (n_regions, n_numbers)."""
    shown = RegionPixels(places, shape)
    columns = []
    for map_ in maps:
        height, width, n_numbers = map_.shape
        (above, below, down), (left, right, across) = (
            _between(at, side, n_cells)
            for at, side, n_cells in zip(
                (shown.rows, shown.columns), shape, (height, width), strict=True
            )
        )
        corners = [
            (row * width + column, of_row * of_column)
            for row, of_row in ((above, 1 - down), (below, down))
            for column, of_column in ((left, 1 - across), (right, across))
        ]
        cells, weights = (np.concatenate(each) for each in zip(*corners, strict=True))
        places_of = np.tile(shown.regions, len(corners)), cells
        shares = coo_array((weights, places_of), (len(shown), height * width)).tocsr()
        columns.append(shares @ map_.reshape(-1, n_numbers) / shown.counts[:, None])
    return np.concatenate(columns, axis=1).astype(np.float32)


def _between(pixels, n_pixels, n_cells):
    """Return the cells on both sides of pixels, and how near the second is, from 0 to 1."""
    place = np.clip((pixels + 0.5) * (n_cells / n_pixels) - 0.5, 0, n_cells - 1)
    first = place.astype(np.intp)
    return first, np.minimum(first + 1, n_cells - 1), place - first


def without_network() -> str:
    """Return a sentence on the price of our own features, and the remedy."""
    return (
        "Regions are described by our own features. On new street photos, these told about 35 % of "
        f"the regions right, and with a network 75 %: {installing('embed')}, and use "
        f"{argument('embed')} with the path of a network of pictures."
    )


def unknown_scale() -> str:
    """Return a sentence on the values that a network is thought to take."""
    return (
        f"The network is taken to want values as {SCALE} has them, since its file does not say: if "
        f"it wants others, use {argument('embed_scale')} with {listed(list(SCALES)[1:])}."
    )
