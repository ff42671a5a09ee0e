"""A recording of five syllables, tagged with the three birds heard in it.

Shows on one bag what the rest of the package does on many: an instance classifier
(here: probabilities set by hand) says what each syllable sounds like, the label set of
the recording says what must occur in it, and inference brings the two together.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

from .union import infer, most_likely_labels

BIRDS = ("wren", "thrush", "robin", "owl")
HEARD = ("wren", "thrush", "robin")
# What each syllable sounds like, taken alone.
PRIOR = np.array(
    [
        [0.70, 0.15, 0.10, 0.05],
        [0.60, 0.20, 0.15, 0.05],
        [0.45, 0.15, 0.35, 0.05],
        [0.10, 0.30, 0.10, 0.50],
        [0.55, 0.20, 0.20, 0.05],
    ]
)


def main():
    """Annotate the recording and print the result as a table."""
    console = Console()
    y = np.array([[bird in HEARD for bird in BIRDS]], dtype=int)
    offsets = [0, len(PRIOR)]
    result = infer(np.log(PRIOR), offsets, y)
    labels = most_likely_labels(np.log(PRIOR), offsets, y)

    table = Table(title=f"A recording tagged: {', '.join(HEARD)}")
    table.add_column("syllable")
    table.add_column("alone, it sounds like")
    table.add_column("given the tags, it is")
    for bird in BIRDS:
        table.add_column(bird, justify="right")
    for i, row in enumerate(result.posterior):
        own = PRIOR[i].argmax()
        table.add_row(
            str(i + 1),
            f"{BIRDS[own]} ({PRIOR[i, own]:.0%})",
            f"[bold]{BIRDS[labels[i]]}[/bold] ({row[labels[i]]:.0%})",
            *[f"{p:.0%}" for p in row],
        )
    console.print(table)
    console.print(
        "No syllable sounds most like a thrush or a robin, but the tags say that both occur, "
        "and that there is no owl: so syllable 4 is most likely the thrush, and syllable 3 the "
        "robin.\n"
        f"Probability of just these tags: {np.exp(result.log_likelihood[0]):.1%}. Every number is "
        f"exact to {result.error_bound[0]:.0e} (kernel: {result.method[0]})."
    )


if __name__ == "__main__":
    main()
