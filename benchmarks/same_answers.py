"""Compare the answers of this tree with those of the commit with which the rebuilding began.

    python benchmarks/same_answers.py [G1 G2 ...] [--quick] [--loose PATTERN ...] [--times]

Both trees answer on this machine, since bits differ between machines: the old one from a git
worktree in build/same_answers. All groups of answers are compared, or those that are named:

G1  20,000 bags drawn at random: posteriors differ by the sum of both error bounds at most
G2  every estimator and option on five data sets (two where UNBAG_DATA is set): the same bits
G3  the published algorithm: coefficients after 20 steps to 1e-10, the same labels after 50
G4  networks and committees: probabilities to 1e-6 (needs torch)
G5  every command on odd tables: files, messages, JSON (needs what the tests need)
G6  losses and gradients on the CPU (needs torch)
G7  `unbag-reproduce confirm N`, which compares with recorded results

Answers of G2 that match a pattern of --loose, such as "letter-frost/groups*" or "*", may change as
a kernel's roundings do: objective and gradient at given weights by 1e-12, all others by 1e-6, and
a fit may take other iterations. What may differ for another reason is in `EXPLAINED`, with the
reason. The exit status is 1 if anything else differs.

Processor time of both trees together: G1 one minute, G2 three, G3 and G4 one, G5 twenty the first
time (it runs tests to record their commands), G6 two, G7 two for each unit, --times two. --quick
takes about a third of it, and for G5 three minutes.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

# The commit with which the rebuilding began.
OLD = "5e1a6a6"
ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "same_answers"
PROBE = Path(__file__).with_name("same_answers_probe.py")
COMMANDS = Path(__file__).with_name("same_answers_commands.py")
GROUPS = ("G1", "G2", "G3", "G4", "G5", "G6", "G7")
# Differences that are meant: a pattern of "GROUP/NAME", and the reason.
EXPLAINED = {
    'G5/*/.csv/"*': "cells have quotes only where they need them",
    "G5/*/errors/*carriage return*": "messages about text name the row in all cases",
    "G5/*/errors/*the header: * is not encoded*": "messages about text name the row in all cases",
    "G5/*/errors/*: the cell is empty; *": "messages about numbers are those of typed columns",
    "G5/*/errors/*is not a number: correct it*": "the same",
    "G5/*/errors/*has no parameter*": "a test has edited a model file of the old tree, whose "
    "parameters the new one no longer has",
    "G5/compare/errors*": "compare takes rare roles of columns from a file",
    "G3/*/pruned/*": "EM amplifies roundings: features that differ by 1e-13 change as many labels",
}
# What may differ, relative to the largest number of an answer; the first pattern counts.
TOLERANCES = {
    # The old tree computes weights of scaled features from coefficients, and so rounds them.
    "G2/*/continued/*": 1e-6,
    # The temperature of annotations differs by roundings of likelihoods.
    "G2/tune/*": 1e-12,
    "G3/*/after 20/*": 1e-10,
    "G4/*": 1e-6,
    "G6/*/32/*": 1e-6,
    # Twice the error bound of inference.
    "G6/*/64/*": 2e-9,
}
LOOSE = {
    "*/objective": 1e-12,
    "*/gradient": 1e-12,
    "*/n_iter": np.inf,
    "*/history": 1e-6,
    "*/seen": np.inf,
    "*": 1e-6,
}
# Ratios of times above this are too slow. Two processes of the same code differ by up to a tenth,
# as their memory happens to lie, so there are several of each tree.
SLOWER, SESSIONS = 1.05, 4
# Where modules of a tree lie.
FOLDERS = ("src", "tests", "reproduction/src")
console = Console(highlight=False)


def tree_of(given):
    """Return the folder of a tree; a commit is checked out where it is not there yet."""
    if Path(given).is_dir():
        return Path(given).resolve()
    folder = KEPT / f"tree-{given}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "prune"], check=True)
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), given], check=True)
    return folder


def started(tree, *command, **options):
    """Start a script under a tree, with one thread for linear algebra."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(tree / each) for each in FOLDERS),
        "PYTHONHASHSEED": "0",
        # Memory stays with the process: asking the system for it again doubles some times.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
        "COLUMNS": "1000",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, *map(str, command)]
    return subprocess.Popen(command, env=environment, text=True, **options)


def asked(trees, group, quick, again):
    """Return the answers of both trees to a group of questions; the two run side by side."""
    marked = sha256(PROBE.read_bytes() + bytes([quick])).hexdigest()[:12]
    running, folders = [], []
    for role, tree in zip(("old", "new"), trees, strict=True):
        name = tree.name if role == "old" else "new"
        folder = KEPT / f"{name}-{marked}"
        folder.mkdir(parents=True, exist_ok=True)
        folders.append(folder)
        if role == "old" and again and (folder / f"{group}.npz").exists():
            continue
        (folder / f"{group}.npz").unlink(missing_ok=True)
        options = ["--quick"] if quick else []
        running.append(started(tree, PROBE, tree, folder, group, *options))
    finish(group, running)
    return [dict(np.load(folder / f"{group}.npz")) for folder in folders]


def finish(group, running):
    """Wait for processes, and end if one of them has failed."""
    if any([process.wait() for process in running]):  # noqa: C419
        sys.exit(f"{group}: a script failed; see above.")


def commands(trees, quick):
    """Run the commands of the old tree's tests under both trees; return them, and what they did."""
    # What records stands above what runs commands again.
    recorder = COMMANDS.read_bytes().partition(b"SECONDS = ")[0]
    marked = sha256(recorder + bytes([quick])).hexdigest()[:12]
    recorded = KEPT / f"commands-{trees[0].name}-{marked}"
    if not (recorded / "commands.json").exists():
        options = ["--quick"] if quick else []
        finish("G5", [started(trees[0], COMMANDS, "record", trees[0], recorded, *options)])
    outputs = [recorded / role / "done.json" for role in ("old", "new")]
    for tree, output in zip(trees, outputs, strict=True):
        finish("G5", [started(tree, COMMANDS, "replay", recorded, output)])
    return [json.loads(each.read_text()) for each in (recorded / "commands.json", *outputs)]


class Report:
    """What was compared: rows of a table, and differences without an explanation."""

    def __init__(self, title):
        self.title = title
        self.counts = defaultdict(lambda: defaultdict(int))
        self.largest = defaultdict(float)
        self.different, self.explained, self.notes = [], defaultdict(int), []

    def add(self, name, row, size, allowed, what=""):
        """Add an answer that differs by a size, infinite if by more than numbers."""
        counts = self.counts[row]
        counts["all"] += 1
        if size == 0:
            counts["same"] += 1
            return
        if np.isfinite(size):
            self.largest[row] = max(self.largest[row], size)
        reason = explanation(name)
        if size <= allowed:
            counts["close"] += 1
        elif reason is not None:
            counts["explained"] += 1
            self.explained[reason] += 1
        else:
            counts["different"] += 1
            self.different.append((name, what or f"differs by {size:.2g}, {allowed:.2g} allowed"))

    def show(self, most):
        """Print the table and the differences; return whether there were any."""
        columns = ("all", "same", "close", "explained", "different")
        table = Table(title=self.title, title_justify="left")
        table.add_column("", no_wrap=True)
        for column in (*columns, "largest"):
            table.add_column(column, justify="right")
        for row, counts in self.counts.items():
            numbers = [str(counts[column] or "") for column in columns]
            table.add_row(row, *numbers, f"{self.largest[row]:.1e}" if self.largest[row] else "")
        console.print(table)
        for note in self.notes[:most]:
            console.print(f"  {note}", markup=False, soft_wrap=True)
        for reason, count in self.explained.items():
            console.print(f"  {count} differ: {reason}")
        for name, what in self.different[:most]:
            console.print(f"  {name}: {what}", markup=False, soft_wrap=True)
        if len(self.different) > most:
            console.print(f"  and {len(self.different) - most} more")
        return bool(self.different)


def distance(old, new):
    """Return by how much two answers differ, relative to the largest number of the old one."""
    if old.shape != new.shape or old.dtype.kind != new.dtype.kind:
        return np.inf
    if old.dtype.kind != "f":
        return 0.0 if np.array_equal(old, new) else np.inf
    if np.array_equal(old, new, equal_nan=True) and old.dtype == new.dtype:
        return 0.0
    finite = np.isfinite(old)
    if old.dtype != new.dtype or not np.array_equal(old[~finite], new[~finite], equal_nan=True):
        return np.inf
    size = np.abs(old[finite]).max(initial=1.0)
    return float(np.abs(old[finite] - new[finite]).max(initial=0.0) / size)


def difference(old, new):
    """Return how two answers differ by more than numbers."""
    if old.shape != new.shape or not old.ndim:
        return f"{shown(old)} became {shown(new)}"
    places = np.argwhere(old != new)
    first = tuple(places[0]) if len(places) else (0,) * old.ndim
    pair = f"{shown(old[first])} became {shown(new[first])}"
    return f"{len(places)} of {old.size} differ, the first: {pair} ({old.dtype}, {new.dtype})"


def shown(value):
    """Return an answer in a few words."""
    text = str(value.tolist())
    return text if len(text) < 160 else f"{text[:157]}..."


def compare_inferences(old, new):
    """Compare what G1 asks, bag by bag: differences may be the sum of both error bounds."""
    report = Report("G1: inferences, differences as shares of both error bounds")
    if len(old["kind"]) != len(new["kind"]):
        for name in sorted(old.keys() | new.keys()):
            if name.endswith("/error"):
                pair = [shown(each.get(name, np.array("none"))) for each in (old, new)]
                report.add(f"G1/{name}", "errors", np.inf, 0, " became ".join(pair))
        return report
    # Roundings of the differences themselves.
    bound = old["error_bound"] + new["error_bound"] + 4 * np.finfo(float).eps
    likelihoods = old["log_likelihood"], new["log_likelihood"]
    off = [
        0.0 if a == b else abs(a - b) / max(1.0, abs(a)) / limit
        for a, b, limit in zip(*likelihoods, bound, strict=True)
    ]
    ends = np.append(0, np.cumsum(old["size"]))
    apart = np.abs(old["posterior"] - new["posterior"])
    for b, kind in enumerate(old["kind"].tolist()):
        within = slice(ends[b], ends[b + 1])
        size = max(off[b], float(apart[within].max(initial=0.0)) / bound[b])
        if not np.isfinite(size) or np.isinf(bound[b]):
            size = np.inf
        what = f"differs by {size:.3g} times the error bounds"
        report.add(f"G1/{kind}/bag {b}", kind, size, 1.0, what)
        if not np.array_equal(old["relaxed"][within], new["relaxed"][within]):
            report.add(f"G1/{kind}/bag {b}", kind, np.inf, 0, "relaxed otherwise")
    same = np.mean(old["joint"] == new["joint"])
    report.add("G1/joint", "likeliest labelling", 1 - same, 0, f"{1 - same:.2%} of labels differ")
    report.title += f"; {np.mean(old['method'] != new['method']):.1%} by another kernel"
    return report


def compare(group, old, new, loose):
    """Compare named answers."""
    report = Report(f"{group}: answers, differences relative to the largest number")
    for name in [*old, *(name for name in new if name not in old)]:
        if name.endswith("/error") and name in old and name in new:
            report.notes.append(f"{name} in both trees: {shown(new[name])}")
        full, row = f"{group}/{name}", name.split("/")[0]
        if name not in old or name not in new:
            found, value = ("old", old[name]) if name in old else ("new", new[name])
            report.add(full, row, np.inf, 0, f"only in the {found} tree: {shown(value)}")
            continue
        allowed = next((t for each, t in TOLERANCES.items() if fnmatchcase(full, each)), 0.0)
        a, b = old[name], new[name]
        if group == "G2" and any(fnmatchcase(name, each) for each in loose):
            allowed = next(t for each, t in LOOSE.items() if fnmatchcase(name, each))
            if name.endswith("/history"):
                a, b = a[-1:], b[-1:]
        size = distance(a, b)
        what = "" if np.isfinite(size) else difference(a, b)
        if allowed == np.inf and size:
            size = max(0.0, min(size, np.finfo(float).max))
        report.add(full, row, size, allowed, what)
    return report


def compare_commands(records, old, new):
    """Compare what commands did, and put differences of the same kind into one line."""
    report, kinds = Report("G5: commands on odd tables"), defaultdict(list)
    for number, (record, *both) in enumerate(zip(records, old, new, strict=True)):
        given = " ".join(record["arguments"])
        row = next(iter(record["arguments"]), "")
        row = row if row.isalpha() else "other"
        parts = [{k: v for k, v in each.items() if k != "files"} | each["files"] for each in both]
        differ = [k for k in parts[0] | parts[1] if parts[0].get(k) != parts[1].get(k)]
        report.counts[row]["all"] += 1
        report.counts[row]["same"] += not differ
        for part in differ[:1]:
            lines = first_difference(*(str(each.get(part, "nothing")) for each in parts))
            kind = part if part in both[0] else Path(part).suffix
            like = tuple(re.sub(r"\d+|'[^']*'|\S*/\S*", "~", line) for line in lines)
            name = f"G5/{row}/{kind}/{like[0]} became {like[1]}"
            if (reason := explanation(name)) is not None:
                report.counts[row]["explained"] += 1
                report.explained[reason] += 1
                continue
            report.counts[row]["different"] += 1
            kinds[row, kind, like[1]].append((number, given, lines))
    for (row, kind, _), found in sorted(kinds.items(), key=lambda each: -len(each[1])):
        number, given, (a, b) = found[0]
        what = f"{len(found)} times, first {number}: {given}\n    {a}\n    {b}"
        report.different.append((f"G5/{row}/{kind}", what))
    return report


def first_difference(old, new):
    """Return the first lines in which two texts differ, shortened."""
    pairs = zip_longest(old.splitlines(), new.splitlines(), fillvalue="(no line)")
    a, b = next((pair for pair in pairs if pair[0] != pair[1]), ("line ends", "line ends"))
    same = next((i for i, pair in enumerate(zip_longest(a, b)) if pair[0] != pair[1]), 0)
    start = max(0, same - 60)
    return a[start : start + 160], b[start : start + 160]


def explanation(name):
    """Return why an answer may differ, or None."""
    return next((why for each, why in EXPLAINED.items() if fnmatchcase(name, each)), None)


def compare_times(trees, rounds):
    """Time both trees in alternation; return whether the new one is slower."""
    pairs = defaultdict(list)
    for _ in range(SESSIONS):
        for name, found in times_of_processes(trees, -(-rounds // SESSIONS)):
            pairs[name] += found
    table = Table(title="Times of one thread (of the processor)", title_justify="left")
    for column in ("", "old, ms", "new, ms", "medians", "fastest", "quartiles"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    is_slower = False
    for name, found in pairs.items():
        old, new = (median(each) for each in zip(*found, strict=True))
        fastest = min(b for _, b in found) / min(a for a, _ in found)
        low, high = np.quantile([b / a for a, b in found], (0.25, 0.75))
        # Others on this machine make either slower: it must be so by all measures.
        slow = min(new / old, fastest) > SLOWER and low > 1
        is_slower |= slow
        ratio = f"[red]{new / old:.2f}[/red]" if slow else f"{new / old:.2f}"
        numbers = f"{old * 1e3:.2f}", f"{new * 1e3:.2f}", ratio, f"{fastest:.2f}"
        table.add_row(name, *numbers, f"{low:.2f} to {high:.2f}")
    console.print(table)
    return is_slower


def times_of_processes(trees, rounds):
    """Yield what is timed, and pairs of seconds of an old and a new process."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [started(tree, PROBE, tree, ".", "--times", **pipes) for tree in trees]
    names, _ = [json.loads(process.stdout.readline()) for process in processes]

    def seconds(process, name):
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    for name in names:
        pairs = []
        for turn in range(rounds):
            # Each is the first of every other pair.
            took = {each: seconds(processes[each], name) for each in ((0, 1), (1, 0))[turn % 2]}
            pairs.append((took[0], took[1]))
        yield name, pairs
    for process in processes:
        process.stdin.close()
        process.wait()


def confirm(trees, count):
    """Compute recorded units of the reproduction again; return whether only the new tree differs.

    What the old tree does not repeat either, another machine has computed.
    """
    running = []
    for tree in trees:
        results = tree / "docs" / "results"
        command = ["-m", "unbag_reproduce", "confirm", count, "--output", results]
        running.append(started(tree, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    old, new = (process.communicate()[0].splitlines() for process in running)
    # A line with the number of fits, and one for each entry that has changed.
    changed = [{line for line in lines if line.startswith("{")} for lines in (old, new)]
    is_done = any(" fits that were done again, " in line for line in new)
    for line in new:
        where = " (in the old tree, too)" if line in changed[0] else ""
        console.print(f"  {line}{where}", markup=False, soft_wrap=True)
    return not (changed[1] <= changed[0] and is_done)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="fewer bags, no data of UNBAG_DATA")
    parser.add_argument("--loose", nargs="+", default=[], metavar="PATTERN")
    parser.add_argument("--times", action="store_true", help="compare times, too; alone: only them")
    parser.add_argument("--rounds", type=int, default=24, help="pairs of runs of --times")
    parser.add_argument("--confirm", type=int, default=20, help="units of G7")
    parser.add_argument("--old", default=OLD, help="a commit, or the folder of a tree")
    parser.add_argument("--new", default=ROOT, help="likewise; by default this tree")
    parser.add_argument(
        "--again", action="store_true", help="take the old tree's answers of an earlier run"
    )
    parser.add_argument("--most", type=int, default=30, help="differences to print per group")
    given = parser.parse_args()
    groups = given.groups or ([] if given.times else GROUPS)
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"no groups: {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    trees, differs = (tree_of(given.old), tree_of(given.new)), False
    for group in groups:
        if group == "G7":
            differs |= confirm(trees, given.confirm)
            continue
        if group == "G5":
            report = compare_commands(*commands(trees, given.quick))
        elif group == "G1":
            report = compare_inferences(*asked(trees, group, given.quick, given.again))
        else:
            answers = asked(trees, group, given.quick, given.again)
            report = compare(group, *answers, given.loose)
        differs |= report.show(given.most)
    if given.times:
        differs |= compare_times(trees, 8 if given.quick else given.rounds)
    console.print("[red]Something differs.[/red]" if differs else "All agree.")
    sys.exit(differs)


if __name__ == "__main__":
    main()
