"""Which file is which: tables that are read row by row."""

from .files import DELIMITED, FEATHER, PARQUET, existing_file, suffix_of, unknown_format


def open_table(path):
    """Open a table, without reading its rows.

    Parameters
    ----------
    path : str or path
        Its suffix tells the format.

    Returns
    -------
    DelimitedFile or ArrowFile
    """
    path = existing_file(path)
    if suffix_of(path) in DELIMITED:
        from .delimited import DelimitedFile

        return DelimitedFile(path)
    if suffix_of(path) in (*PARQUET, *FEATHER):
        from .arrow_files import ArrowFile

        return ArrowFile(path)
    raise unknown_format(path, (*DELIMITED, *PARQUET, *FEATHER))
