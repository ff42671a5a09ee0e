"""Damage: to bytes, as disks and transfers do it, and to text, as people and programs do it."""

from collections.abc import Callable

import numpy as np

#: Cells and names that have broken readers before.
HOSTILE_TEXTS = (
    "", " ", "\t", "\r", "\n", "\r\n", "\0", "\x1b[31m", '"', '""', "'", '"a', 'a"b', "\\", "\\'",
    "\ufeff", "\ud800", "\udfff", "\u202e123", "\u200b", "\u2028", "\x85", "\u00a0", "é", "e\u0301",
    "🐦", "👩\u200d🚀", "０１", "٣", "x" * 5000, "|" * 50, "?", "??", "?|?", "a|?a", "a|a",
    "|", ";", "nan", "-NaN", "inf", "-Infinity", "null", "None", "NA", "#N/A", "true", "1e308",
    "1e309", "-1e400", "1e-400", "9" * 400, "0x10", "1_000", "1,5", "1.5.2", "--1", "+1", "1e", ".",
    "-0", "007", "1.0", "5e-324", "18446744073709551616", "-9223372036854775809", "=1+1", "@data",
    "%", "{", "}", "<label>", "../../etc/passwd", "2024-02-30", "bag", "labels", "instance_label",
)  # fmt: skip
NUMBERS_IN_BYTES = (
    *(
        value.to_bytes(width, order, signed=value < 0)
        for value in (0, 1, -1, 127, -128)
        for width in (1, 2, 4, 8)
        for order in ("little", "big")
    ),
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xff" * 8, b"\x7f" * 8,
)  # fmt: skip


def _flip_bits(rng, data):
    for _ in range(rng.integers(1, 9)):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return data


def _overwrite(rng, data):
    start = rng.integers(len(data))
    new = NUMBERS_IN_BYTES[rng.integers(len(NUMBERS_IN_BYTES))]
    data[start : start + len(new)] = new
    return data


def _write_noise(rng, data):
    start, size = rng.integers(len(data)), rng.integers(1, 40)
    data[start : start + size] = rng.bytes(size)
    return data


def _truncate(rng, data):
    return data[: rng.integers(len(data))]


def _insert(rng, data):
    start = rng.integers(len(data) + 1)
    data[start:start] = rng.bytes(rng.integers(1, 20))
    return data


def _remove(rng, data):
    start = rng.integers(len(data))
    del data[start : start + rng.integers(1, 40)]
    return data


def _repeat(rng, data):
    start = rng.integers(len(data))
    block = data[start : start + rng.integers(1, 200)]
    data[start:start] = block * int(rng.integers(1, 5))
    return data


def _swap_blocks(rng, data):
    size = max(1, len(data) // int(rng.integers(2, 20)))
    first, second = sorted(rng.integers(0, len(data), 2))
    second = max(second, first + size)
    one, two = data[first : first + size], data[second : second + size]
    return data[:first] + two + data[first + size : second] + one + data[second + size :]


def _clear(rng, data):
    start = rng.integers(len(data))
    size = rng.integers(1, 200)
    data[start : start + size] = bytes(len(data[start : start + size]))
    return data


def _damage_header(rng, data):
    return _flip_bits(rng, data[:64]) + data[64:]


def _damage_footer(rng, data):
    return data[:-64] + (_flip_bits(rng, data[-64:]) if len(data) > 64 else bytearray())


def _insert_hostile(rng, data):
    start = rng.integers(len(data) + 1)
    data[start:start] = encoded(hostile_text(rng))
    return data


DAMAGES: tuple[Callable[[np.random.Generator, bytearray], bytearray], ...] = (
    _flip_bits, _overwrite, _write_noise, _truncate, _insert, _remove, _repeat, _swap_blocks,
    _clear, _damage_header, _damage_footer, _insert_hostile,
)  # fmt: skip


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Return bytes with damage of one kind, rarely of two or three."""
    result = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if result:
            result = DAMAGES[rng.integers(len(DAMAGES))](rng, result)
    return bytes(result)


def hostile_text(rng: np.random.Generator) -> str:
    """Return a text that readers may stumble over, perhaps beside a harmless one."""
    text = HOSTILE_TEXTS[rng.integers(len(HOSTILE_TEXTS))]
    return text if rng.random() < 0.7 else f"wren{text}owl"


def encoded(text: str) -> bytes:
    """Return the bytes of a text, those of lone surrogates too, which are no UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def valid_text(rng: np.random.Generator) -> str:
    """Return a hostile text that is valid UTF-8 all the same."""
    return hostile_text(rng).encode("utf-8", "replace").decode()
