"""Results that no run has made: small tables in a folder, as a run would leave them."""

import csv
import json

VERSIONS = dict.fromkeys(("python", "unbag", "numpy", "scipy", "scikit-learn", "numba"), "1.0")


def make_results(out, study, *, level="standard", data=("msrcv2",), **tables):
    """Write tables of records; `tables` has them by name, with underscores for hyphens."""
    folder = out / study
    folder.mkdir(parents=True, exist_ok=True)
    names = [name.replace("_", "-") for name in tables]
    about = {"data": list(data), "level": level, "seed": 0, "tables": names, **VERSIONS}
    (folder / "about.json").write_text(json.dumps(about))
    for name, records in zip(names, tables.values(), strict=True):
        (folder / f"{name}.md").write_text(f"### {name}\n")
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(
                file, list(dict.fromkeys(key for each in records for key in each))
            )
            writer.writeheader()
            writer.writerows(records)


def figure(method, ours, published=None, *, data="msrcv2", measure="inductive accuracy", **more):
    """A record of a comparison."""
    return {
        "data": data, "method": method, "measure": measure, "ours": ours, "published": published,
        "difference": None if published is None else ours - published, **more,
    }  # fmt: skip
