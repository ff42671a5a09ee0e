"""Formulas of the documentation as MathML, which browsers typeset without a script or a network.

In the pages, formulas stand as LaTeX between dollars, which GitHub typesets too. arithmatex finds
them and puts each into an element of its own; here, what is in such an element is translated.
"""

import html
import re

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<element>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=element)>',
    re.DOTALL,
)


def mathml(formula: re.Match) -> str:
    """Translate one formula; one in a paragraph of its own is displayed."""
    display = "block" if formula["element"] == "div" else "inline"
    return convert(html.unescape(formula["latex"]).strip(), display=display)


def on_page_content(content: str, **_) -> str:
    """Translate the formulas of a page, when MkDocs has made HTML of it."""
    return FORMULA.sub(mathml, content)
