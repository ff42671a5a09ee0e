"""A report on how a model labels some bags: one HTML file that needs no network connection."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from unbag._files import PathLike, writing
from unbag.bags import Bags
from unbag.labels import LabelSets

from .content import content, percent

__all__ = ["write_report"]


def render(model: Any, bags: Bags, labels: LabelSets | None = None, **options: Any) -> str:
    """Return a report as HTML, including styles and scripts; options are those of `content`."""
    import jinja2

    here = files("unbag.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["percent"] = percent
    template = environment.from_string((here / "page.html.j2").read_text(encoding="utf-8"))
    script = (here / "page.js").read_text(encoding="utf-8")
    return template.render(
        **content(model, bags, labels, **options),
        policy=content_security_policy(script),
        style="".join(
            (here / name).read_text(encoding="utf-8") for name in ("bag.css", "page.css")
        ),
        script=script,
    )


def content_security_policy(script: str) -> str:
    """Return a policy that only allows the page's styles, one script, and embedded media.

    Text from tables is escaped; the policy is a second line of defence.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )


def write_report(
    path: PathLike, model: Any, bags: Bags, labels: LabelSets | None = None, **options: Any
) -> None:
    """Write a report to a file; an existing file is replaced only when the new one is complete.

    Parameters
    ----------
    path : str or path
        Of the HTML file.
    model : fitted estimator or BagPipeline
    bags : Bags
    labels : LabelSets, optional
    **options
        ``title``; ``media``, the file of each instance, and the folder ``media_root`` of them.
    """
    text = render(model, bags, labels, **options)
    with writing(path) as file:
        file.write(text.encode())
