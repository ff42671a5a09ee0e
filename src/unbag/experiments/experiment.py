"""What an experiment is: units of work, and how their results are shown."""

from collections.abc import Callable
from dataclasses import dataclass

from .plan import PAPER_DATA


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or one of ours.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
    units : callable
        ``units(plan, ledger)`` lists the units that can be done, given what is done already.
        It is asked again until all are: so one unit may depend on the results of others.
    present : callable
        ``present(plan, ledger)`` returns tables and figures.
    timed : bool
        Whether times are compared: then units are done one at a time.
    data : tuple of str
        The data sets it is made on; empty if it makes its own.
    remarks : str
        What to know when reading the results, in Markdown.
    """

    name: str
    title: str
    units: Callable
    present: Callable
    timed: bool = False
    data: tuple = PAPER_DATA
    remarks: str = ""
