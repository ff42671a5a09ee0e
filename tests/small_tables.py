"""Tables that fit on a screen, and their roles."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from unbag.tables import Roles

TAGGED = Roles(bag="word", labels="tags")
ROWS = [("a", "owl|wren", 1.5, 2.0), ("b", "owl", 0.5, 3.0), ("a", "owl|wren", 4.25, 1.0)]

TOY = r"""% a comment
@relation toy

 @attribute id {bag1,bag2,'bag 3'}
 @ATTRIBUTE bag RELATIONAL
   @attribute f1 numeric
   @attribute 'f 2' real
   @attribute	f3	integer
 @end bag
 @attribute label1 {0,1}
 @attribute label2 { 0, 1 }
 @attribute 'label 3' {1,0}

 @data
 bag1,"42,-198,-109\n41.9,-191,-142\n35,14.2,6.33",1,0,0
 bag2,'11.25, -98, 10\n31,40.5,7.85', 0 ,1,?
 % another comment
 'bag 3',"",0,0,0
"""


def write(path, rows=ROWS, header="word,tags,x,y", delimiter=",", decimal="."):
    """Write rows as a CSV file, and return its path."""

    def cell(value):
        return str(value).replace(".", decimal) if isinstance(value, float) else str(value)

    lines = [header.replace(",", delimiter)]
    lines += [delimiter.join(map(cell, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@contextmanager
def in_chunks(n_bytes: int) -> Iterator[None]:
    """Let tables be read and written so many bytes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbag.tables.table.CHUNK_BYTES", n_bytes)
        yield
