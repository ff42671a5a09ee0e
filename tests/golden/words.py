"""Words in a table: bags of letters, as people bring them."""

from pathlib import Path

import numpy as np

from unbag.datasets import load_letter_frost

# Which column is what, as options of a command.
BAG_AND_LABELS = ("--bag", "word", "--labels", "tags")
ROLES = (*BAG_AND_LABELS, "--carry", "letter,note")


def word_lines(n_bags: int = 40) -> list[str]:
    """Return the lines of a CSV table: one letter each, with a note that must come through."""
    data = load_letter_frost(random_state=0)
    names, offsets = data.class_names, data.bags.offsets
    lines = ["word,tags,letter,note," + ",".join(data.feature_names)]
    for b in range(n_bags):
        tags = "|".join(names[data.y[b] == 1])
        for i in range(offsets[b], offsets[b + 1]):
            features = ",".join(f"{value:.0f}" for value in data.bags.X[i])
            lines.append(
                f'w{b:03},{tags},{names[data.instance_labels[i]]},"{i}, ""raw""",{features}'
            )
    return lines


def write_words(path: Path, lines: list[str] | None = None) -> Path:
    """Write a table of words, its rows in any order unless lines are given."""
    if lines is None:
        header, *rest = word_lines()
        order = np.random.default_rng(1).permutation(len(rest))
        lines = [header, *(rest[i] for i in order)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def replaced(lines: list[str], row: int, column: int, text: str) -> list[str]:
    """Return lines with one cell replaced."""
    cells = lines[row].split(",")
    cells[column] = text
    return [*lines[:row], ",".join(cells), *lines[row + 1 :]]
