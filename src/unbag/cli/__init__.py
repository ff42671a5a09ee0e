"""The command line: from a table on disk to annotated instances and a report."""

from . import data
from .annotate import annotate, predict
from .compare import compare, demo, reproduce
from .evaluate import evaluate, report
from .fit import fit
from .main import app, main

__all__ = ["app", "main"]

for _command in (fit, predict, annotate, evaluate, report, compare, reproduce, demo):
    app.command()(_command)
app.add_typer(data.app, name="data")
