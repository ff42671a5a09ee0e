"""Tables on the terminal."""

from collections.abc import Iterable, Sequence

from unbag._messages import escaped


def print_table(
    title: str,
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    notes: Sequence[str] = (),
) -> None:
    """Print a table for people, on stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # As text: names of people's classes and files may look like markup.
    caption = Text("\n".join(notes)) if notes else None
    table = Table(title=Text(escaped(title)), caption=caption, caption_justify="left")
    for place, column in enumerate(header):
        table.add_column(Text(escaped(str(column))), justify="right" if place else "left")
    for row in rows:
        table.add_row(*(Text(escaped(str(entry))) for entry in row))
    console = Console()
    if not console.is_terminal:
        # Whoever reads a file or a pipe wants whole names, however wide that gets.
        console.width = max(console.width, console.measure(table).maximum)
    console.print(table)
