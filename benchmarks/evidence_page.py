"""Write the tables of docs/evidence.md from the results of the benchmarks.

    python benchmarks/evidence_page.py

Tables are between comments, ``<!-- throughput -->`` and ``<!-- end -->``; a test compares them with
the results.
"""

import json
import re
from pathlib import Path
from statistics import mean, stdev

from measure import RESULTS

PAGE = RESULTS.parents[1] / "docs" / "evidence.md"
SECTION = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def result(name):
    """Return the result of a benchmark, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(columns, rows):
    """Format a table in Markdown; cells after the first are figures."""
    head, *rest = (f"| {' | '.join(line)} |" for line in (columns, *rows))
    return "\n".join([head, f"|---{'|---:' * (len(columns) - 1)}|", *rest]) + "\n"


def duration(seconds):
    """Format a time in a suitable unit."""
    if seconds < 1:
        return f"{1000 * seconds:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def throughput():
    """Compare iterations in memory and on clusters."""
    cluster = result("cluster")
    on = {
        "one core": "one core, in memory",
        "two cores": "two cores, in memory",
        "one worker": "`LocalCluster`, one worker",
        "two workers": "`LocalCluster`, two workers",
    }
    shape = f"{cluster['instances']:,} × {cluster['features']}, {cluster['classes']} classes"
    rows = [
        [name, duration(cluster["seconds_of_iteration"][key]),
         f"{cluster['instances'] / cluster['seconds_of_iteration'][key] / 1e6:.2f}"]
        for key, name in on.items()
    ]  # fmt: skip
    return table([shape, "time of an iteration", "million instances per second"], rows)


def by_level(name, kinds, rows):
    """List figures of a benchmark of media, at the two harder of its levels."""
    figures = result(name)["figures"]
    levels = list(next(iter(figures.values())))[1:]
    return table(
        ["%", *(f"{kind}, {level}" for kind in kinds for level in levels)],
        [[row, *(f"{figures[kind][level][row]:.1f}" for kind in kinds for level in levels)]
         for row in rows],
    )  # fmt: skip


def recordings():
    """List how well calls are found and labelled in synthetic recordings."""
    return by_level("audio", ("calls", "outdoors"), (
        "found", "reach", "segments that are nothing", "right given the tags",
        "right without tags, new recordings", "a forest told the truth, new recordings",
    ))  # fmt: skip


def real_sounds():
    """List how well real sounds in scenes are labelled, by several methods."""
    figures = result("real_sounds")["figures"]
    methods = {
        "own features: unbag": "own features",
        "network: windows, tags copied": "BirdNET, 3 s windows, tags copied",
        "network: windows, best only": "BirdNET, 3 s windows, best only",
        "network: segments, tags copied": "BirdNET, segments, tags copied",
        "network: segments, best only": "BirdNET, segments, best only",
        "network: unbag": "**BirdNET, segments, unbag**",
    }
    columns = ["given tags", "new", "F1", "F1 new"]
    return table(
        ["%", *(f"{kind}, {column}" for kind in figures for column in columns)],
        [[words, *(f"{cell:.1f}" for of in figures.values() for cell in of["middle"][name])]
         for name, words in methods.items()],
    )  # fmt: skip


def pictures():
    """List how well things are found and labelled in synthetic pictures."""
    return by_level("pictures", ("things",), (
        "found", "found whole", "right given the tags", "right without tags, new pictures",
        "a forest told the truth, new pictures",
    ))  # fmt: skip


def street_photos():
    """List how many regions of street photos are labelled correctly."""
    columns = {"given tags": "right, given tags", "new windows": "right, new",
               "told every label, new windows": "right, new, told"}  # fmt: skip
    return table(
        ["%", *columns.values()],
        [[name.replace("own,", "own regions,"), *(f"{figures[each]:.1f}" for each in columns)]
         for name, figures in result("real_pictures")["figures"].items()],
    )  # fmt: skip


def signals():
    """List how well windows of synthetic signals are labelled."""
    return by_level("signals", ("wrist", "machines"), (
        "right given the tags", "right without tags, new recordings",
        "a forest told the truth, new recordings",
    ))  # fmt: skip


def questions():
    """List how many answers it takes until half of the errors are gone."""
    rows = []
    for name, each in result("questions")["results"].items():
        if not name.endswith(", 0% wrong"):
            continue
        shown = name.removesuffix(", 0% wrong").replace("made of", "synthetic,")
        means = [f"{100 * share:.1f}" for share in each["means"].values()]
        rows.append([shown, *means, f"{each['held']} of {len(each['estimates'])}"])
    return table(["%", "random", "entropy", "margin", "gain", "default", "interval held"], rows)


def losses():
    """List what a network learns by several losses, on bags of several sizes."""
    found = result("digits")["balanced_accuracy"]
    return table(
        ["balanced accuracy, %", *next(iter(found.values()))],
        [[name, *(f"{mean(seeds):.1f} ± {stdev(seeds):.1f}" for seeds in columns.values())]
         for name, columns in found.items()],
    )  # fmt: skip


def wrong_tags():
    """List the precision of the most suspicious tags."""
    found = result("check_labels")["as many as were removed"]
    rows = []
    for data, of_data in found.items():
        for kind, row in of_data["compared"].items():
            ours, rival = row["unbag check"], row["cleanlab, best penalty"]
            gain = f"{100 * row['gain']:.1f} ± {100 * row['standard_error']:.1f}"
            rows.append([f"{data}, tag {kind}", f"{ours:.1%}", f"{rival:.1%}", gain])
    return table(["data, error", "unbag check", "cleanlab", "better by"], rows)


def missing_tags():
    """List what two readings of a missing tag cost, in held-out and in tagged bags."""
    rows = []
    for data, shares in result("partial_tags").items():
        if data == "machine":
            continue
        for where in ("held_out", "training"):
            for reading in ("absent", "absent, or missed"):
                cells = [f"{100 * mean(each[reading][where]):.1f}" for each in shares.values()]
                words = "new bags" if where == "held_out" else "tagged bags"
                rows.append([f"{data}, {words}: {reading}", *cells])
    return table(["% right", "p = 1", "0.75", "0.5", "0.25", "0"], rows)


def vague_tags():
    """List what vague tags cost, if 60 % are vague."""
    rows = [
        [name.removesuffix(", 0.6"), *(f"{100 * mean(fold[0] for fold in found[each]):.1f}"
                                       for each in ("groups", "dropped", "unknown", "exact"))]
        for name, found in result("vague_tags").items() if name.endswith(", 0.6")
    ]  # fmt: skip
    return table(["% right", "as groups", "bags dropped", "classes unknown", "exact tags"], rows)


def defaults():
    """List what the decisions of a fit are worth."""
    found = result("defaults")
    fresh = {name: each for name, each in found.items() if name.startswith("f_")}
    names = {"new": "right, new bags", "given": "right, given tags",
             "error_new": "calibration error, new", "error_given": "given tags",
             "error_presence": "tags of bags"}  # fmt: skip
    chosen = (
        ("penalty 1, nothing decided", "plain", found),
        ("as `fit` decides", "after", found),
        ("as `fit` decides, fresh tables", "after", fresh),
    )
    rows = []
    for words, kind, of in chosen:
        means = [mean(each[kind][name] for each in of.values()) for name in names]
        seconds = mean(each[kind]["seconds"] for each in of.values())
        n_tables = len({name.partition("/")[0] for name in of})
        rows.append([f"{words}, {n_tables}", *(f"{each:.1f}" for each in means), f"{seconds:.2f}"])
    return table(["tables", *names.values(), "seconds"], rows)


def kernels():
    """List how much faster inference is than the published algorithm."""
    rows = [
        [f"{each['n_instances']} instances, {each['n_labels']} labels",
         duration(each["fast_seconds"]), f"{each['times_faster_than_fast']['auto']:.1f}"]
        for each in result("kernels")["kernels"]
    ]  # fmt: skip
    return table(["a bag of", "FAST, as published", "unbag, times faster"], rows)


TABLES = {each.__name__: each for each in (
    real_sounds, recordings, street_photos, pictures, signals, questions, losses, wrong_tags,
    missing_tags, vague_tags, defaults, kernels, throughput,
)}  # fmt: skip


def filled(page):
    """Return the page with the tables of the current results."""
    return SECTION.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", page)


def main():
    page = Path(PAGE)
    page.write_text(filled(page.read_text()))
    print(f"Written to {page.relative_to(RESULTS.parents[1])}")


if __name__ == "__main__":
    main()
