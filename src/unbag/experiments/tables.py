"""Tables of results beside the published ones, as Markdown and CSV, and the rule for bold."""

import csv
import io
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import ttest_rel

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Table:
    """A table for people (header and body) and the records behind it (for machines).

    Parameters
    ----------
    name : str
        Of its files.
    title : str
    header : list of str
    body : list of list of str
        In Markdown.
    records : list of dict
        One per figure: all have the same keys.
    notes : list of str
        How it was made, and what to know.
    """

    name: str
    title: str
    header: list
    body: list
    records: list
    notes: list = field(default_factory=list)

    def to_markdown(self):
        """Write the table, its title above and its notes below."""
        rows = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.body]
        lines = [f"### {self.title}", "", *(f"| {' | '.join(map(str, row))} |" for row in rows)]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"

    def to_csv(self):
        """Write the records, numbers in full."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()


def best_methods(scores, *, higher_is_better=True):
    """Find the best method, and those that a paired t-test cannot tell from it.

    Two-tailed, at 95 %, over the folds: the paper's rule for bold.

    Parameters
    ----------
    scores : dict of str to array-like of shape (n_folds,)
    higher_is_better : bool

    Returns
    -------
    set of str

    Examples
    --------
    >>> best = best_methods({"a": [70, 72, 71], "b": [71, 71, 71], "c": [50, 52, 50]})
    >>> sorted(best)
    ['a', 'b']
    """
    if not scores:
        return set()
    sign = 1 if higher_is_better else -1
    best = max(scores, key=lambda name: sign * np.mean(scores[name]))
    tied = {best}
    for name, values in scores.items():
        difference = np.subtract(values, scores[best])
        if np.allclose(difference, difference[0]):
            # Without spread there is nothing to test: equal everywhere, or better everywhere.
            if np.allclose(difference, 0):
                tied.add(name)
        elif ttest_rel(values, scores[best]).pvalue > SIGNIFICANT:
            tied.add(name)
    return tied


def cell(ours, std=None, published=None, bold=False):
    """Write a figure as Markdown: ours, and in brackets the published one and the difference.

    Examples
    --------
    >>> cell(70.7, 3.5, 72.3, bold=True)
    '**70.7 ± 3.5** (72.3, -1.6)'
    >>> cell(70.7)
    '70.7'
    """
    text = f"{ours:.1f}" if std is None else f"{ours:.1f} ± {std:.1f}"
    text = f"**{text}**" if bold else text
    return text if published is None else f"{text} ({published:.1f}, {ours - published:+.1f})"
