"""Files that know their bags and labels by themselves: MIML ARFF, MATLAB and npz."""

from importlib import import_module

from unbag._files import suffix_of

from .bag_table import BagTable, Peek
from .reading import Source
from .roles import Roles

BAG_FORMATS = {".arff": "MIML ARFF", ".mat": "MATLAB bags", ".npz": "npz arrays"}


class BagFile(Source):
    """A file that knows its bags and labels by itself, and is read in one go."""

    def __exit__(self, *_: object) -> None:
        """Do nothing: the file is open only while it is read."""

    def peek(self, roles: Roles | None = None, *, need_labels: bool = True) -> Peek:
        """Return what the header tells, or the suffix; roles are of no use here."""
        if suffix_of(self.path) == ".arff":
            from .formats.arff import peek_arff

            return peek_arff(self.path)
        return Peek(self.path, BAG_FORMATS[suffix_of(self.path)], [], None, None, False)

    def read(self, roles: Roles | None = None, **_: object) -> BagTable:
        """Read the bags; roles are of no use here."""
        name = suffix_of(self.path).removeprefix(".")
        return getattr(import_module(f".formats.{name}", __package__), f"read_{name}")(self.path)
