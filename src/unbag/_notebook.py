"""How bags look in a notebook."""

from html import escape
from itertools import pairwise
from typing import Any

# Bags and names of features that are shown; of more, only how many there are.
SHOWN = 5


def bags_html(bags: Any) -> str:
    """Write Bags as HTML: what they hold, and the sizes and ids of the first of them.

    It is a fragment of a page. Ids and names come from tables, and are escaped.
    """
    sizes = [stop - start for start, stop in pairwise(bags.offsets[: SHOWN + 1].tolist())]
    ids = bags.ids[:SHOWN].tolist()
    cells = [
        f"<tr><td>{escape(str(name))}</td><td>{size}</td></tr>"
        for name, size in zip(ids, sizes, strict=True)
    ]
    if len(bags) > SHOWN:
        cells.append(f'<tr><td colspan="2">and {len(bags) - SHOWN} more</td></tr>')
    names = [] if bags.feature_names is None else bags.feature_names.tolist()
    features = escape(", ".join(map(str, names[:SHOWN])))
    if len(names) > SHOWN:
        features += f" and {len(names) - SHOWN} more"
    return (
        f"<div><p>{escape(repr(bags))}</p>{f'<p>Features: {features}</p>' if names else ''}"
        "<table><thead><tr><th>bag</th><th>instances</th></tr></thead>"
        f"<tbody>{''.join(cells)}</tbody></table></div>"
    )
