"""``unbag export``: a model for programs that know nothing of unbag."""

from pathlib import Path
from typing import Annotated

import typer

from unbag._extras import require
from unbag._files import check, check_output, suffix_of

from . import options as o
from .console import messages


def export(
    model: o.Model,
    output: Annotated[Path, o.written("The file to write, such as m.onnx.")],
    double: Annotated[
        bool, typer.Option("--double", help="Features go in as float64, rather than float32.")
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Write a model as ONNX, which other languages and programs can run.

    The features of one bag go in; the probabilities of its instances come out, and how probable
    each class is to occur in the bag.

    Example: unbag export words.unbag -o words.onnx
    """
    check(suffix_of(output) == ".onnx", f"{output} must end in .onnx, the format that is written.")
    require("onnx")
    check_output(output, model)
    from unbag.export import write_onnx
    from unbag.models import load

    fitted = load(model)
    write_onnx(fitted, output, double=double)
    messages.result({"model": model, "output": output, "bytes": output.stat().st_size})
    messages.say(f"Wrote {output}: instances go in, their probabilities and presence come out.")
