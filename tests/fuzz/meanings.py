"""One table in many layouts: the same bags, labels and model, or the same refusal, in words."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import unbag
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.bags import offsets_of
from unbag.learning import training_set
from unbag.tables import DataError, Roles, convert, write_bags

NAMES = ("owl", "Eule", "caf\u00e9", "a b", "7", "nan ", "x=y", "\u00d6", "wr?en", "true", "-1")
WORDS = ("none", "Nothing", "n/a", "0", "keine")
BLANKS: tuple[Any, ...] = (None, "", "  ", np.nan)
#: A bag is tagged, tagged as holding nothing, or blank.
NONE, BLANK = frozenset(), None


@dataclass
class Drawn:
    """What a table says, whatever its layout, and how it is to be read."""

    ids: list[str]
    sizes: np.ndarray
    X: np.ndarray
    sets: list[frozenset[str] | None]
    untagged: str | None
    word: str | None

    @property
    def classes(self) -> list[str]:
        """All labels, as they should be read, sorted."""
        return sorted({name for labels in self.sets for name in labels or ()})

    @property
    def n_blank(self) -> int:
        """Bags of which the table says nothing."""
        return self.sets.count(BLANK)

    def expected(self) -> np.ndarray:
        """Return the states of the labels; not by anything that is tested."""
        of_blank = {"unknown": -1, "absent": 0}.get(self.untagged or "", 9)
        return np.array(
            [
                [of_blank if labels is None else int(name in labels) for name in self.classes]
                for labels in self.sets
            ]
        ).reshape(len(self.sets), len(self.classes))

    def roles(self) -> dict[str, Any]:
        """Return what has to be said about the labels."""
        return {"untagged": self.untagged, "none": () if self.word is None else self.word}


def draw(rng: np.random.Generator) -> Drawn:
    """Draw bags and what is known of them."""
    n_bags = int(rng.integers(1, 8))
    sizes = rng.integers(1, 4, n_bags)
    names = [name.strip() for name in rng.permutation(NAMES)[: rng.integers(1, 4)]]
    kinds = rng.choice(3, n_bags, p=[0.6, 0.2, 0.2])
    sets: list[frozenset[str] | None] = []
    for kind in kinds:
        some = frozenset(name for name in names if rng.random() < 0.5) or frozenset(names[:1])
        sets.append([some, NONE, BLANK][kind])
    ids = [str(each) for each in rng.permutation(100)[:n_bags]]
    untagged = [None, "refuse", "unknown", "absent"][rng.choice(4, p=[0.1, 0.1, 0.4, 0.4])]
    words = [word for word in WORDS if word not in names]
    word = str(rng.choice(words)) if rng.random() < 0.5 else None
    return Drawn(ids, sizes, rng.normal(size=(sizes.sum(), 2)), sets, untagged, word)


def spelt(rng: np.random.Generator, name: str) -> str:
    """Write a label in one of the ways that are read as one."""
    name = unicodedata.normalize(str(rng.choice(["NFC", "NFD"])), name)
    return f"{' ' * rng.integers(2)}{name}{' ' * rng.integers(2)}"


def cell(rng: np.random.Generator, drawn: Drawn, labels: frozenset[str] | None) -> Any:
    """Write a label set as people do."""
    if labels is None:
        return BLANKS[rng.integers(len(BLANKS))]
    if not labels:
        return "(none)" if drawn.word is None or rng.random() < 0.3 else drawn.word.upper()
    return "|".join(spelt(rng, name) for name in rng.permutation(sorted(labels)))


def layouts(
    rng: np.random.Generator, drawn: Drawn, folder: Path
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the name of a layout, the table, and its roles."""
    bag = np.repeat(drawn.ids, drawn.sizes)
    features = {"f": drawn.X[:, 0], "g": drawn.X[:, 1]}
    plain = pd.DataFrame({"bag": bag, **features})

    def column(cells):
        return pd.Series(
            np.repeat(np.array([*cells, 0], dtype=object)[:-1], drawn.sizes), dtype=object
        )

    texts = [cell(rng, drawn, labels) for labels in drawn.sets]
    frame = plain.assign(labels=column(texts))
    yield "pandas", frame, {}
    yield "categories", frame.assign(labels=frame.labels.astype("category")), {}
    frame.to_csv(path := folder / "long.csv", index=False)
    yield "csv", path, {}
    frame.to_parquet(path := folder / "long.parquet")
    yield "parquet", path, {}
    none_for_nan = frame.labels.astype(object).where(frame.labels.notna(), None).tolist()
    yield "polars", pl.DataFrame({**plain.to_dict("list"), "labels": none_for_nan}), {}
    first = pd.Series(bag).duplicated().to_numpy()
    yield "first row only", frame.assign(labels=frame.labels.where(~first, None)), {}
    shuffled = rng.permutation(len(frame))
    yield "shuffled", frame.iloc[shuffled], {}
    lists = [None if labels is None else [spelt(rng, name) for name in sorted(labels)]
             for labels in drawn.sets]  # fmt: skip
    if drawn.classes:
        yield "lists", plain.assign(labels=column([*lists])), {}
        plain.assign(labels=column([*lists])).to_csv(path := folder / "lists.csv", index=False)
        yield "lists written as text", path, {}
        cuts = offsets_of(drawn.sizes)[1:-1]
        wide = {name: [part.tolist() for part in np.split(values, cuts)]
                for name, values in features.items()}  # fmt: skip
        kind = pa.list_(pa.string())
        table = pa.table({"bag": drawn.ids, "labels": pa.array(lists, kind), **wide})
        pq.write_table(table, path := folder / "wide.parquet")
        yield "one row per bag", path, {}
    rows = []
    for name, labels in zip(drawn.ids, drawn.sets, strict=True):
        rows += [(name, spelt(rng, each)) for each in labels or ()]
        if labels is None and rng.random() < 0.5:
            rows.append((name, ""))
        elif labels is not None and not labels:
            rows.append((name, "(none)" if drawn.word is None else drawn.word))
    if {name for name, _ in rows}:
        second = pd.DataFrame(rows, columns=["bag", "label"])
        second.to_csv(path := folder / "labels.csv", index=False)
        yield "label table", plain, {"label_table": path}
    if drawn.classes and (drawn.untagged == "unknown" or not drawn.n_blank):
        states = np.where(drawn.expected() == -1, np.nan, drawn.expected().astype(float))
        names = [f"is {name}" for name in drawn.classes]
        columns = pd.DataFrame(np.repeat(states, drawn.sizes, axis=0), columns=names)
        yield "label columns", pd.concat([plain, columns], axis=1), {
            "label_columns": names,
            "rename": dict(zip(names, drawn.classes, strict=True)),
        }  # fmt: skip


def outcome(table: Any, y: Any, roles: dict[str, Any]) -> Any:
    """Read a table and fit a model; return its bags, states and weights, or the refusal."""
    try:
        data = training_set(table, y, None, **roles)
        labels = data.label_sets
    except (DataError, ValueError) as error:
        return str(error)
    order = np.argsort(labels.classes)
    # Only where the bags have names: a pair of bags and lists has none.
    ids = np.asarray(data.bags.ids).astype(str)
    model = None
    if labels.required.any():
        unfitted = ORLogisticRegression(max_iter=3, background=True)
        model = unbag.fit(table, y, model=unfitted, **roles)
    return labels.classes[order].tolist(), ids, labels.indicator[:, order], model


def check(rng: np.random.Generator, folder: Path) -> Counter:
    """Compare what all layouts of a table say with what was drawn."""
    drawn = draw(rng)
    (folder / "drawn.txt").write_text(f"{drawn}\n", encoding="utf-8")
    refused = drawn.untagged in (None, "refuse") and drawn.n_blank > 0
    found = []
    for name, table, more in layouts(rng, drawn, folder):
        found.append((name, outcome(table, None, {**drawn.roles(), **more})))
    bags = Bags(drawn.X, offsets_of(drawn.sizes), drawn.ids)
    # Without any label, strings would be a label each.
    sets = [None if labels is None else sorted(labels) for labels in drawn.sets]
    found.append(("lists of Python", outcome(bags, sets, drawn.roles())))
    if not refused:
        labels = LabelSets(drawn.expected(), drawn.classes or np.empty(0, "U1"))
        write_bags(folder / "bags.npz", bags, labels)
        found.append(("npz", outcome(folder / "bags.npz", None, {})))
        convert(folder / "long.csv", folder / "again.csv", Roles(**drawn.roles()))
        found.append(("converted", outcome(folder / "again.csv", None, {})))
    weights = None
    for name, what in found:
        if refused:
            said = f"{drawn.n_blank} of {len(drawn.ids)} bags"
            assert isinstance(what, str), f"{name}: {drawn.n_blank} blanks were not refused"
            assert said in what, f"{name}: {what}"
            assert "untagged='absent'" in what, f"{name}: no remedy in {what}"
            continue
        assert not isinstance(what, str), f"{name} was refused: {what}"
        classes, ids, states, model = what
        order = np.argsort(ids) if name == "shuffled" else np.arange(len(ids))
        wanted = np.argsort(drawn.ids) if name == "shuffled" else order
        assert ids[order].tolist() == np.array(drawn.ids)[wanted].tolist(), f"{name}: other bags"
        assert classes == drawn.classes, f"{name}: the classes are {classes}"
        assert np.array_equal(states[order], drawn.expected()[wanted]), f"{name}: other labels"
        if model is None or name == "shuffled":
            continue
        weights = model.coef_ if weights is None else weights
        assert np.allclose(model.coef_, weights, rtol=1e-6, atol=1e-9), f"{name}: another model"
    return Counter({"refused" if refused else "read alike": 1, "layouts": len(found)})
