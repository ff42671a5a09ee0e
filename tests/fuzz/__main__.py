"""Try hostile input at random; see the package.

cd tests && python -m fuzz                          all targets, as continuous integration does
cd tests && python -m fuzz --minutes 10             new seeds, for ten minutes
cd tests && python -m fuzz tables --cases 20000     many cases of one target
cd tests && python -m fuzz tables --seed 1 --case 7 one case, in this process
"""

import argparse
import secrets
import signal
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from fuzz.runner import TARGETS, Run, check_case

#: What continuous integration tries: always the same, in about two minutes on two cores.
SEED = 20240615
CASES = {"inference": 1500, "groups": 500, "fits": 300, "tables": 3000, "meanings": 60,
         "foreign": 1500, "models": 3000, "checkpoints": 1000, "commands": 300}  # fmt: skip
KEPT = Path(__file__).parents[2] / "build" / "fuzz"
MINUTE = 60.0


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help=f"some of {', '.join(TARGETS)}; else all")
    parser.add_argument("--cases", type=int, help="of each target")
    parser.add_argument("--minutes", type=float, help="in all, with a new seed unless it is given")
    parser.add_argument("--seed", type=int, help=f"else {SEED}, or a new one with --minutes")
    parser.add_argument("--case", type=int, help="repeat this one, and keep its files")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--kept", type=Path, default=KEPT, help="folder for the files of faults")
    given = parser.parse_args(arguments)
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    given.targets = given.targets or list(TARGETS)
    if given.case is not None and len(given.targets) != 1:
        parser.error("--case needs one target")
    if given.seed is None:
        given.seed = SEED if given.minutes is None else secrets.randbelow(2**32)
    return given


def repeat(target: str, seed: int, number: int) -> int:
    """Try one case in this process, so that a debugger can look at it."""
    folder = Path(tempfile.mkdtemp(prefix=f"unbag-{target}-{seed}-{number}-"))
    print(f"Its files are in {folder}.", flush=True)
    print(dict(check_case(target, seed, number, folder)))
    return 0


def show(totals):
    """Print a line of progress, over the last one in a terminal and rarely elsewhere."""
    is_terminal = sys.stderr.isatty()
    if is_terminal or time.monotonic() - show.last > MINUTE:
        show.last = time.monotonic()
        print(f"{totals}", end="\r" if is_terminal else "\n", file=sys.stderr, flush=True)


show.last = 0.0


def main(arguments: list[str] | None = None) -> int:
    """Try cases of all targets; return 1 if there was a fault."""
    given = parsed(arguments)
    if given.case is not None:
        return repeat(*given.targets, given.seed, given.case)
    print(f"Seed {given.seed}.", flush=True)
    runs = []
    try:
        for target in given.targets:
            cases = CASES[target] if given.minutes is None else None
            cases = given.cases or cases
            share = MINUTE * (given.minutes or float("inf")) / len(given.targets)
            run = Run(
                target, given.seed, iter(count() if cases is None else range(cases)),
                given.workers, given.kept, time.monotonic() + share, show,
            )  # fmt: skip
            runs.append(run)
            print(run(), flush=True)
    except KeyboardInterrupt:
        print(f"Stopped.\n{runs[-1].totals}", flush=True)
    faults = [fault for run in runs for fault in run.totals.faults]
    for fault in faults:
        print(f"{fault.target}, case {fault.number}: {fault.folder}")
    return int(bool(faults))


if __name__ == "__main__":
    # As Ctrl-C: the workers end, and their folders in the memory are removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
