"""The program ``unbag-reproduce``, whose commands end as those of ``unbag`` do."""

from unbag.cli import app

REPRODUCE = app.Program(
    "unbag-reproduce",
    """Make the experiments of the paper, and ours, next to the published figures.

    Example: unbag-reproduce run inductive --data letter-frost --quick
    """,
    "unbag_reproduce",
    {
        "experiments": ("command", "List the experiments."),
        "run": (
            "command",
            "Make a table or figure of the paper, or one of ours, next to the published figures.",
        ),
        "page": ("command", "Write the pages of all results."),
        "confirm": ("command", "Do finished fits again, drawn at random."),
        "data": ("data_command", "List and fetch data sets."),
    },
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; see `unbag.cli.app.main`."""
    app.main(arguments, REPRODUCE)
