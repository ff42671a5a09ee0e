"""Excel workbooks (.xlsx): the first sheet that has cells, read as the CSV that Excel would save.

The package openpyxl reads them, where it is installed. Formulas have the values that were saved.
"""

import csv
import datetime
import io
import zipfile
from importlib import import_module
from typing import Any

from unbag._files import DataError, check_unpacked
from unbag.tables.text import TextFile


class SheetFile(TextFile):
    """A table in an Excel workbook: text, as if it had been saved as CSV."""

    def _read(self) -> bytes:
        try:
            openpyxl: Any = import_module("openpyxl")
        except ImportError as error:
            raise DataError(
                f"{self.path} is an Excel workbook: save its sheet as 'CSV UTF-8', and pass that; "
                "or install openpyxl."
            ) from error
        self.has_mark: bool = False
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        try:
            with zipfile.ZipFile(self.path) as packed:
                n_bytes = sum(each.file_size for each in packed.infolist())
            check_unpacked(self.path, n_bytes, self.path.stat().st_size)
            book = openpyxl.load_workbook(self.path, read_only=True, data_only=True)
            try:
                for sheet in book.worksheets:
                    # What programs say of the size of a sheet may be wrong.
                    sheet.reset_dimensions()
                    rows = [[_text(cell) for cell in row] for row in sheet.values]
                    if any(map(any, rows)):
                        # Empty columns at the end have a format, but no name.
                        width = max(place for row in rows for place, cell in enumerate(row, 1)
                                    if cell)  # fmt: skip
                        for row in (row[:width] for row in rows):
                            cells = row + [""] * (width - len(row))
                            writer.writerow(cells if any(cells) else [])
                        break
            finally:
                book.close()
        except DataError:
            raise
        except Exception as error:
            # It raises errors of many kinds where a file is damaged.
            raise DataError(
                f"{self.path} cannot be read as an Excel workbook ({type(error).__name__}): save "
                "the sheet as 'CSV UTF-8', and pass that."
            ) from error
        return text.getvalue().encode()


def _text(cell: Any) -> str:
    """Write a cell as text: whole numbers without a point, dates as ISO has them."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell).replace("\r", "")
