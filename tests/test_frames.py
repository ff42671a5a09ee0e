"""Frames in, frames out: the same kind, the same rows, and what the command line would write."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unbag
from unbag.cli import main
from unbag.tables import DataError, Roles
from unbag.tables.frame import open_frame

CLASSES = np.array(["owl", "tit", "wren"])
ANNOTATED = [
    "annotation", "status", "probability", "second_choice", "second_probability", "entropy",
    "review", "known_label",
]  # fmt: skip
PREDICTED = ["predicted", "p(owl)", "p(tit)", "p(wren)"]


def make_frame(n_bags=60, seed=0):
    """Three classes a few deviations apart; five instances a bag, whose rows are scattered."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 5 * n_bags)
    file = np.repeat(np.arange(n_bags), 5)
    tags = ["|".join(sorted(set(CLASSES[labels[file == bag]]))) for bag in range(n_bags)]
    frame = pd.DataFrame(rng.normal(size=(5 * n_bags, 3)) + 4 * np.eye(3)[labels], columns=[*"abc"])
    frame["file"] = [f"f{bag}.wav" for bag in file]
    frame["tags"] = [tags[bag] for bag in file]
    frame["truth"] = CLASSES[labels]
    frame = frame.sample(frac=1, random_state=seed)
    # An index that repeats and is in no order.
    return frame.set_index(pd.Index(np.arange(len(frame))[::-1] // 2, name="row"))


KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def columns_of(frame):
    """A frame of any kind as lists, None where there is no value."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pd.DataFrame):
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def model(frame):
    return unbag.fit(frame, bag="file", labels="tags", features=[*"abc"])


# The same kind out, with the same rows


@pytest.mark.parametrize("kind", KINDS)
def test_annotate_frame_adds_the_columns_of_the_command_line(kind, frame, model):
    given = KINDS[kind](frame)
    before = columns_of(given)
    annotated = model.annotate_frame(given)
    assert type(annotated) is type(given)
    found = columns_of(annotated)
    assert list(found) == [*before, *ANNOTATED]
    assert {name: found[name] for name in before} == before == columns_of(given)
    assert np.mean(np.array(found["annotation"]) == frame["truth"].to_numpy()) > 0.95
    assert set(found["known_label"]) == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_predict_frame_adds_the_columns_of_the_command_line(kind, frame, model):
    given = KINDS[kind](frame)
    predicted = model.predict_frame(given)
    assert type(predicted) is type(given)
    found = columns_of(predicted)
    assert list(found) == [*columns_of(given), *PREDICTED]
    by_bag = pd.DataFrame(found).groupby("file")[PREDICTED].nunique()
    assert (by_bag == 1).all(axis=None)
    assert np.mean(np.array(found["predicted"]) == frame["tags"].to_numpy()) > 0.8


def test_the_index_is_kept_and_the_frame_is_left_alone(frame, model):
    before = frame.copy()
    annotated = model.annotate_frame(frame)
    pd.testing.assert_index_equal(annotated.index, frame.index)
    annotated.loc[:, "a"] = 0.0
    pd.testing.assert_frame_equal(frame, before)


def test_files_and_frames_get_the_same_answers(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), "t.parquet")
    roles = ["--bag", "file", "--labels", "tags", "--features", "a,b,c"]
    for name in ("t.csv", "t.parquet"):
        for arguments in (
            ["fit", name, *roles, "-o", "m.unbag"],
            ["annotate", "m.unbag", name, "-o", "annotated.parquet"],
            ["predict", "m.unbag", name, "-o", "bags.parquet"],
        ):
            with pytest.raises(SystemExit) as left:
                main(arguments)
            assert not left.value.code
        ours = unbag.fit(frame, bag="file", labels="tags", features=[*"abc"])
        np.testing.assert_array_equal(ours.coef_, unbag.load("m.unbag").coef_)
        # A model of the command line knows the roles, too.
        annotated = columns_of(unbag.load("m.unbag").annotate_frame(frame))
        written = pq.read_table("annotated.parquet").to_pydict()
        assert {each: annotated[each] for each in ANNOTATED} == {
            each: written[each] for each in ANNOTATED
        }
        bags = pd.read_parquet("bags.parquet").set_index("file")
        predicted = ours.predict_frame(frame).groupby("file")[PREDICTED].first()
        pd.testing.assert_frame_equal(predicted, bags.loc[predicted.index], check_dtype=False)


def test_a_model_of_python_is_one_for_the_command_line(frame, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("m.unbag")
    assert unbag.models.read_header("m.unbag")["info"]["roles"]["bag"] == "file"
    frame.to_csv("t.csv", index=False)
    with pytest.raises(SystemExit) as left:
        main(["annotate", "m.unbag", "t.csv", "-o", "out.csv"])
    assert not left.value.code
    written = pd.read_csv("out.csv")["annotation"].tolist()
    assert written == model.annotate_frame(frame)["annotation"].tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_shuffled_frame_gets_the_same_labels_row_by_row(kind, frame, model):
    """Also from a model that was fitted to the other order."""
    in_order = frame.reset_index(drop=True).sort_values("file", kind="stable")
    shuffled = in_order.sample(frac=1, random_state=5)
    first = unbag.fit(KINDS[kind](in_order), bag="file", labels="tags", features=[*"abc"])
    second = unbag.fit(KINDS[kind](shuffled), bag="file", labels="tags", features=[*"abc"])
    expected = pd.DataFrame(columns_of(first.annotate_frame(KINDS[kind](in_order))))
    found = pd.DataFrame(columns_of(second.annotate_frame(KINDS[kind](shuffled))))
    expected.index, found.index = in_order.index, shuffled.index
    assert found["annotation"].loc[in_order.index].tolist() == expected["annotation"].tolist()
    same = pd.DataFrame(columns_of(first.annotate_frame(KINDS[kind](shuffled))))
    same.index = shuffled.index
    np.testing.assert_allclose(
        same["probability"].loc[in_order.index], expected["probability"], rtol=1e-9
    )


def test_answers_take_the_place_of_earlier_ones_but_for_what_people_filled_in(frame, model):
    annotated = model.annotate_frame(frame.reset_index(drop=True))
    annotated.loc[3, "known_label"] = "owl"
    again = model.annotate_frame(annotated, ignore_labels=True)
    assert list(again.columns) == list(annotated.columns)
    assert again.loc[3, "known_label"] == "owl"
    assert not again["probability"].equals(annotated["probability"])
    twice = model.predict_frame(model.predict_frame(again))
    assert list(twice.columns) == [*again.columns, *PREDICTED]
    # Answers are no features.
    refitted = unbag.fit(twice, bag="file", labels="tags", known="known_label")
    assert refitted.feature_names_in_.tolist() == [*"abc"]


def test_columns_of_the_users_own_are_never_replaced(frame, model):
    own = frame.assign(review="mine", predicted=7)
    annotated = model.annotate_frame(own)
    assert (annotated["review"] == "mine").all()
    assert "unbag_review" in annotated.columns
    assert (model.predict_frame(own)["predicted"] == 7).all()


def test_a_table_of_pyarrow_remembers_which_columns_are_ours(frame, model):
    annotated = model.annotate_frame(KINDS["pyarrow"](frame.assign(review="mine")))
    moved = annotated.select([*reversed(annotated.column_names)])
    assert sorted(model.annotate_frame(moved).column_names) == sorted(annotated.column_names)


# What `unbag.fit` takes


def test_any_model_can_be_fitted(frame):
    options = {"bag": "file", "labels": "tags", "features": [*"abc"]}
    sim = unbag.fit(frame, model=unbag.paper.SIM(), **options)
    assert not hasattr(sim, "annotate_frame")
    with pytest.raises(
        AttributeError, match="SIM has no annotate_frame: it gives instances scores"
    ):
        sim.annotate_frame  # noqa: B018
    assert "predicted" in sim.predict_frame(frame).columns
    pipeline = unbag.fit(frame, context=0.5, kernel=1.0, dictionary=20, **options)
    assert list(pipeline.named_steps) == ["scale", "context", "kernel", "model"]
    assert list(pipeline.annotate_frame(frame).columns[-8:]) == ANNOTATED
    with pytest.raises(ValueError, match="alpha= is a setting of the model that fit builds"):
        unbag.fit(frame, model=unbag.paper.SIM(), alpha=2.0, **options)


def test_models_have_names(frame):
    options = {"bag": "file", "labels": "tags", "features": [*"abc"]}
    linear = unbag.fit(frame, model="linear", alpha=2.0, max_iter=7, background=False, **options)
    assert type(linear) is unbag.ORLogisticRegression
    assert (linear.alpha, linear.max_iter) == (2.0, 7)
    with pytest.raises(ValueError, match="model is 'forest': give 'linear', 'network', 'auto', or"):
        unbag.fit(frame, model="forest", **options)
    for name, value in {"alpha": 2.0, "context": 0.5, "kernel": 1.0}.items():
        with pytest.raises(ValueError, match=f"{name}= is a setting of linear models"):
            unbag.fit(frame, model="network", **{name: value}, **options)


@pytest.mark.torch
def test_networks_are_fitted_by_name(frame):
    options = {"bag": "file", "labels": "tags", "features": [*"abc"]}
    model = unbag.fit(frame, model="network", max_iter=3, background=False, seed=4, **options)
    assert type(model).__name__ == "ORNetwork"
    assert (model.max_iter, model.random_state, model.background) == (3, 4, False)
    assert list(model.annotate_frame(frame).columns[-8:]) == ANNOTATED


SETS = {
    "frozensets": frozenset,
    "sets": set,
    "frozensets as text": lambda labels: str(frozenset(labels)),
    "objects of polars": frozenset,
}


@pytest.mark.parametrize("kind", SETS)
def test_tags_may_be_sets(kind, frame):
    def tagged(cells):
        if "polars" not in kind:
            return frame.assign(tags=cells)
        given = pl.from_pandas(frame.drop(columns="tags"))
        return given.with_columns(pl.Series("tags", cells, dtype=pl.Object))

    options = {"bag": "file", "labels": "tags", "features": [*"abc"], "max_iter": 5}
    expected = unbag.fit(frame, **options)
    given = tagged([SETS[kind](cell.split("|")) for cell in frame["tags"]])
    model = unbag.fit(given, **options)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    answered = model.annotate_frame(given)["annotation"].to_list()
    assert answered == expected.annotate_frame(frame)["annotation"].to_list()


def test_sets_say_what_is_unknown_and_what_is_not_there():
    frame = pd.DataFrame(
        {
            "bag": [*"abcd"],
            "labels": [{"owl", unbag.Unknown("wren")}, frozenset(), {unbag.Unknown(...)},
                       ["wren", unbag.Unknown("owl")]],
            "x": [1.0, 2.0, 3.0, 4.0],
        }
    )  # fmt: skip
    with open_frame(frame) as source:
        labels = source.read(Roles()).labels
    assert labels.to_cells() == ["owl|?wren", "(none)", "(unknown)", "?owl|wren"]


@pytest.mark.parametrize("features", ["b*", "b"])
def test_one_name_or_pattern_of_features_needs_no_list(features, frame):
    options = {"bag": "file", "labels": "tags", "max_iter": 2}
    model = unbag.fit(frame.assign(b2=1.0), features=features, **options)
    assert model.feature_names_in_.tolist() == (["b", "b2"] if "*" in features else ["b"])
    assert model.roles_["bag"] == "file"
    carried = unbag.fit(frame, carry="c", **options)
    assert carried.feature_names_in_.tolist() == ["a", "b"]
    assert unbag.Bags.from_table(frame, "file", "b").feature_names.tolist() == ["b"]


def test_networks_by_name_need_torch(frame, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'need PyTorch: run pip install "\.\[torch\]"'):
        unbag.fit(frame, model="network", bag="file", labels="tags", features=[*"abc"])


def test_known_labels_are_used_where_they_are_named(frame):
    known = frame.assign(known=frame["truth"].where(np.arange(len(frame)) % 3 == 0))
    options = {"bag": "file", "labels": "tags", "features": [*"abc"]}
    plain = unbag.fit(known, **options)
    told = unbag.fit(known, known="known", **options)
    assert told.log_likelihood_ < plain.log_likelihood_
    in_pipeline = unbag.fit(known, known="known", context=0.5, **options)
    assert in_pipeline.model.classes_.tolist() == CLASSES.tolist()


def test_a_path_is_a_table_too(frame, tmp_path, model):
    frame.to_csv(tmp_path / "t.csv", index=False)
    fitted = unbag.fit(tmp_path / "t.csv", bag="file", labels="tags", features=[*"abc"])
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-6)


def test_a_level_of_the_index_has_a_role(frame, model):
    indexed = frame.set_index(["file", "truth"])
    fitted = unbag.fit(indexed, bag="file", labels="tags")
    assert fitted.feature_names_in_.tolist() == [*"abc"]
    annotated = fitted.annotate_frame(indexed)
    pd.testing.assert_index_equal(annotated.index, indexed.index)


def test_names_of_columns_need_not_be_text(frame):
    numbered = frame.rename(columns={"a": 0, "b": 1, "c": 2})
    fitted = unbag.fit(numbered, bag="file", labels="tags")
    assert fitted.feature_names_in_.tolist() == ["0", "1", "2"]
    assert list(fitted.annotate_frame(numbered).columns[:3]) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["lists", "text"])
def test_a_column_of_embeddings(kind, form, frame, model):
    vectors = frame[[*"abc"]].to_numpy()
    cells = [list(each) if form == "lists" else ",".join(map(repr, each.tolist()))
             for each in vectors]  # fmt: skip
    given = KINDS[kind](frame.drop(columns=[*"abc"]).assign(vector=cells, seconds=1.5))
    fitted = unbag.fit(given, bag="file", labels="tags")
    assert fitted.feature_names_in_.tolist() == ["vector[0]", "vector[1]", "vector[2]"]
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-6)
    found = columns_of(fitted.annotate_frame(given))["annotation"]
    assert found == columns_of(model.annotate_frame(frame))["annotation"]


def test_fixed_sizes_of_polars_and_arrays_of_numpy(frame, model):
    vectors = frame[[*"abc"]].to_numpy()
    bare = frame.drop(columns=[*"abc"])
    fixed = pl.from_pandas(bare).with_columns(
        pl.Series("vector", vectors.tolist(), dtype=pl.Array(pl.Float64, 3))
    )
    arrays = bare.assign(vector=list(vectors))
    for given in (fixed, arrays):
        fitted = unbag.fit(given, bag="file", labels="tags")
        np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_per_bag_with_a_list_of_vectors(kind, frame, model):
    by_bag = frame.groupby("file", sort=False)
    wide = pd.DataFrame({
        "tags": by_bag["tags"].first(),
        "vectors": [part[[*"abc"]].to_numpy().tolist() for _, part in by_bag],
    }).reset_index()  # fmt: skip
    given = KINDS[kind](wide)
    fitted = unbag.fit(given, bag="file", labels="tags")
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-6)
    found = columns_of(fitted.annotate_frame(given))
    assert [len(each) for each in found["annotation"]] == [5] * len(wide)
    assert columns_of(fitted.predict_frame(given))["predicted"][0] == wide["tags"][0]


def test_label_columns_and_a_pattern(frame, model):
    indicators = frame["tags"].str.get_dummies("|").add_prefix("is_")
    given = pd.concat([frame.drop(columns="tags"), indicators], axis=1)
    fitted = unbag.fit(given, bag="file", label_columns="is_*")
    assert fitted.classes_.tolist() == ["is_owl", "is_tit", "is_wren"]
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-6)
    found = fitted.annotate_frame(given)["annotation"].str.removeprefix("is_")
    assert found.tolist() == model.annotate_frame(frame)["annotation"].tolist()
    # Without them, nothing is known of the bags.
    alone = fitted.annotate_frame(given.drop(columns=indicators.columns))["probability"]
    assert (
        alone.tolist() == fitted.annotate_frame(given, ignore_labels=True)["probability"].tolist()
    )


def test_unknown_below(frame, model):
    annotated = model.annotate_frame(frame, unknown_below=0.9)
    without = annotated["annotation"].isna()
    assert without.any()
    assert (without == (annotated["probability"] < 0.9)).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_missing_values_of_frames(kind, frame):
    holes = frame.reset_index(drop=True)
    holes.loc[[3, 8], "a"] = np.nan
    given = KINDS[kind](holes)
    with pytest.raises(DataError, match=r"The frame, row 3, column 'a'.*(missing|nan)"):
        unbag.fit(given, bag="file", labels="tags", features=[*"abc"])
    for missing_values, n_without in (("mean", 0), ("drop", 2)):
        fitted = unbag.fit(
            given, bag="file", labels="tags", features=[*"abc"], missing_values=missing_values
        )
        found = columns_of(fitted.annotate_frame(given))
        places = [row for row, label in enumerate(found["annotation"]) if label is None]
        assert places == ([3, 8] if n_without else [])


WITHOUT = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nowhere())
import pyarrow, unbag
frame = pyarrow.table({"file": ["a", "a", "b", "c"], "tags": ["x|y", "x|y", "x", "y"],
                       "pitch": [0.0, 9.0, 1.0, 8.0]})
model = unbag.fit(frame, bag="file", labels="tags")
print(model.annotate_frame(frame)["annotation"].to_pylist())
"""


def test_no_library_of_frames_is_needed():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.stdout.strip() == "['x', 'y', 'x', 'y']", done.stderr


@pytest.mark.slow  # Half a million rows of three kinds: about half a minute.
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak of memory")
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_large_frames_take_less_than_twice_their_memory(kind):
    benchmark = Path(__file__).parents[1] / "benchmarks" / "frames.py"
    done = subprocess.run(
        [sys.executable, str(benchmark), "--kind", kind], capture_output=True, text=True, check=True
    )
    assert float(done.stdout.split(" times the frame")[0].split()[-1]) < 2, done.stdout


def test_roles_can_be_given_whole(frame, model):
    roles = Roles(bag="file", labels="tags", features=[*"abc"])
    fitted = unbag.fit(frame, roles=roles)
    np.testing.assert_array_equal(fitted.coef_, model.coef_)
    bare = unbag.ORLogisticRegression()
    bags = unbag.Bags.from_table(frame, bag="file", features=[*"abc"])
    bare.fit(bags, frame.groupby("file", sort=False)["tags"].first())
    expected = bare.annotate_frame(frame, bag="file", labels="tags")
    assert expected["annotation"].tolist() == model.annotate_frame(frame)["annotation"].tolist()


def test_columns_of_odd_types(frame, model):
    """What has no role may be anything; features and ids may have any type that has a value."""
    odd = frame.assign(
        anything=pd.Series([object()] * len(frame), index=frame.index),
        mixed=pd.Series([1, "a"] * (len(frame) // 2), index=frame.index, dtype=object),
        a=pd.arrays.SparseArray(frame["a"]),
        b=frame["b"].astype("Float64"),
        file=frame["file"].astype("category"),
        tags=frame["tags"].astype("string"),
    )
    fitted = unbag.fit(odd, bag="file", labels="tags", features=[*"abc"])
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=1e-9)
    annotated = fitted.annotate_frame(odd)
    assert annotated["anything"].tolist() == odd["anything"].tolist()
    assert annotated["file"].dtype == odd["file"].dtype
