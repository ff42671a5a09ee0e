"""Under which conditions results were made: machines, times, versions, and settings chosen."""

import ast
from collections.abc import Sequence

from .recorded import Recorded
from .reproduce import PACKAGES, read_plan
from .unit import Values

#: Tables whose records have one setting for each method and data set.
TUNED_TABLES = {
    "inductive": ("inductive-accuracy", "inductive-hamming"),
    "transductive": ("transductive-accuracy", "transductive-hamming"),
    "bag-level": ("bag-level-hamming",),
    "kernel": ("kernel",),
}
HOUR = 3600


def runs_section(recorded: Recorded, studies: Sequence[str]) -> str:
    """Write where and how long experiments ran, in Markdown."""
    rows, keys, total = [], set(), 0.0
    for name in studies:
        plan, about = read_plan(recorded.out / name)
        ledger = recorded.ledger(name)
        units = [unit for unit in recorded.units(name) if unit in ledger]
        seconds, n_kept = ledger.cpu_seconds(units)
        new = [unit for unit in units if unit.key not in keys]
        total += ledger.cpu_seconds(new)[0]
        keys |= {unit.key for unit in new}
        rows.append(
            f"| [{name}](#{name}) | {plan.level} | {len(units):,} | {n_kept:,} | "
            f"{seconds / HOUR:.2f} | {machine_in_words(about)} |"
        )
    return "\n".join(
        [
            "## Machines and times",
            "",
            f"CPU time, one thread per unit of work, as far as it was kept: {total / HOUR:.1f} "
            "hours in all, where work that several experiments share counts once. The machine is "
            "the one that wrote the tables; versions are in the sections.",
            "",
            "| experiment | level | units of work | with their time | CPU hours | machine |",
            "|---|---|---:|---:|---:|---|",
            *rows,
            "",
        ]
    )


def machine_in_words(about: Values) -> str:
    """Write the machine that has made some results; empty if it was not kept."""
    machine = about.get("machine")
    if not machine:
        return ""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"


def versions(about: Values) -> str:
    """Write the versions that have made some results."""
    listed = (f"{package} {about[package]}" for package in PACKAGES)
    return f"Python {about['python']}; {', '.join(listed)}"


def settings_section(recorded: Recorded) -> str:
    """Write which settings were chosen of how many, in Markdown; empty if none was."""
    parts = []
    for study, tables in TUNED_TABLES.items():
        for table in tables:
            records = recorded.records(study, table)
            rows: dict[str, dict[str, Values]] = {}
            for record in records:
                rows.setdefault(record["method"], {})[record["data"]] = record
            tuned = {method: row for method, row in rows.items() if is_tuned(row)}
            names = list(dict.fromkeys(record["data"] for record in records))
            if not tuned:
                continue
            parts += [
                f"[{table}](#{study}):",
                "",
                f"| | tried | {' | '.join(names)} |",
                f"|---|---:|{'---|' * len(names)}",
                *(
                    f"| {method} | {n_tried(row)} | "
                    + " | ".join(
                        in_words(row[name]["setting"]) if name in row else "" for name in names
                    )
                    + " |"
                    for method, row in tuned.items()
                ),
                "",
            ]
    if not parts:
        return ""
    intro = (
        "As in the paper, the setting of the best mean over the test folds, which flatters methods "
        "of many settings. By each measure of bags another setting may be chosen: "
        "`bag-level-measure.csv` has them."
    )
    return "\n".join(["## Settings chosen", "", intro, "", *parts])


def is_tuned(row: dict[str, Values]) -> bool:
    """Return whether a method had a choice of settings."""
    return any(
        (record.get("settings_tried") or 2) > 1 and record["setting"] != "{}"
        for record in row.values()
    )


def n_tried(row: dict[str, Values]) -> str:
    """Write how many settings were tried, if that was kept."""
    counts = {record["settings_tried"] for record in row.values() if "settings_tried" in record}
    return ", ".join(f"{count:.0f}" for count in sorted(counts))


def in_words(setting: str) -> str:
    """Write a setting without the marks of Python.

    Examples
    --------
    >>> in_words("{'alpha': 0.1, 'scaling': 'minmax'}")
    'alpha 0.1, scaling minmax'
    """
    entries = ast.literal_eval(setting).items()
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in entries)
