"""``unbag export``: a model for programs that know nothing of unbag."""

from pathlib import Path
from typing import Annotated

import typer

from unbag._files import check, check_output, suffix_of
from unbag._messages import require

from . import options as o
from .console import messages


def export(
    model: o.Model,
    output: Annotated[Path, o.written("The ONNX file to write, such as m.onnx.")],
    double: Annotated[
        bool, typer.Option("--double", help="Take features as float64 instead of float32.")
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Export a model to ONNX, for programs without unbag.

    The input is the features of one bag. The outputs are the class probabilities of its rows,
    and the probability that each class occurs in the bag.

    Example: unbag export words.unbag -o words.onnx
    """
    check(suffix_of(output) == ".onnx", f"{output} must end in .onnx.")
    require("onnx")
    check_output(output, model)
    from unbag.export import write_onnx
    from unbag.models import load

    fitted = load(model)
    write_onnx(fitted, output, double=double)
    messages.result({"model": model, "output": output, "bytes": output.stat().st_size})
    messages.say(f"Written to {output}.")
