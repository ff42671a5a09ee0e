"""Under which conditions results were made: machines, times, versions, and settings chosen."""

import ast
from collections.abc import Sequence

from unbag._machine import PACKAGES
from unbag.model_selection.ledger import CPU_SECONDS

from .plan import DRAWN
from .recorded import Recorded
from .reproduce import CONFIRMED, read_plan
from .unit import Unit, Values

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
    rows = []
    times: dict[Unit, float] = {}
    devices: set[str] = set()
    for name in studies:
        plan, about = read_plan(recorded.out / name)
        ledger = recorded.ledger(name)
        done = [unit for unit in recorded.units(name) if unit in ledger]
        devices |= {ledger[unit]["device"] for unit in done if "device" in ledger[unit]}
        units = [unit for unit in done if "device" not in ledger[unit]]
        seconds, n_kept = ledger.cpu_seconds(units)
        each = seconds_each(about)
        hours = f"{seconds / HOUR:.2f}"
        if n_kept < len(units) and each is not None:
            hours = f"about {(seconds + each * (len(units) - n_kept)) / HOUR:.2f}"
        for unit in units:
            kept, is_kept = ledger.cpu_seconds([unit])
            times.setdefault(unit, kept if is_kept else each or 0.0)
        rows.append(
            f"| [{name}](#{name}) | {plan.level} | {len(done):,} | {n_kept:,} | {hours} | "
            f"{machine_in_words(about)} |"
        )
    letters = sum(seconds for unit, seconds in times.items() if unit.data in DRAWN)
    trained = (
        f" Networks were trained on a GPU ({', '.join(sorted(devices))}), and are not counted."
        if devices
        else ""
    )
    return "\n".join(
        [
            "## Machines and times",
            "",
            f"CPU time, one thread per unit of work: {sum(times.values()) / HOUR:.1f} hours in "
            f"all, of which {letters / HOUR:.1f} on the letters; work that several experiments "
            "share counts once. Where the time of a unit was not kept, it is taken to be the mean "
            f"of those that were drawn at random and done anew (“about”).{trained} The machine is "
            "the one that wrote the tables, where that was kept; versions are in the sections.",
            "",
            "| experiment | level | units of work | with their time | CPU hours | machine |",
            "|---|---|---:|---:|---:|---|",
            *rows,
            "",
        ]
    )


def seconds_each(about: Values) -> float | None:
    """Return the mean CPU time of the units that were done anew; None if none was."""
    found = about.get(CONFIRMED, {})
    return found[CPU_SECONDS] / found["units"] if found.get(CPU_SECONDS) else None


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
        "As in the paper, the setting of the best mean over test folds, which flatters methods of "
        "many settings. On the letters these are folds that take the draws in turn, while tables "
        "show all folds of all draws: so there a setting that another measure chose may come out "
        "better. By each measure of bags another setting may be chosen: `bag-level-measure.csv` "
        "has them."
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
