"""Pixels as PNG files, which need nothing that is not in Python."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return grey or red, green and blue pixels as a PNG file."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    height, width = pixels.shape[:2]
    # Every line begins with the number of its filter: 0, which is none.
    rows = np.insert(pixels.reshape(height, -1), 0, 0, axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    return b"".join([
        b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 9)),
        chunk(b"IEND", b""),
    ])  # fmt: skip
