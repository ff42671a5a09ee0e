"""Bags remember the rows of the table that they were made from, so that answers find back."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from unbag import BagContext, Bags, ORLogisticRegression, io
from unbag.pipeline import BagPipeline
from unbag.preprocessing import OnInstances


def shuffled_frame(n_bags=12, n_rows=80, seed=0):
    """A table whose rows and bags are mixed, with an index that says nothing of its order."""
    random = np.random.default_rng(seed)
    number = random.permutation(n_rows)
    frame = pd.DataFrame(
        {
            "night": pd.Categorical([f"night{row % n_bags}" for row in number]),
            "pitch": number.astype(float),
            "volume": random.normal(size=n_rows),
        }
    )
    return frame.set_index(pd.Index(random.permutation(n_rows) + 7))


FORMS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame.astype({"night": str})),
    "pyarrow": lambda frame: pa.Table.from_pandas(
        frame.astype({"night": str}), preserve_index=False
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_lead_from_instances_to_the_table(form):
    frame = shuffled_frame()
    bags = Bags.from_table(FORMS[form](frame), bag="night")
    np.testing.assert_array_equal(bags.X[:, 0], frame["pitch"].to_numpy()[bags.rows])
    np.testing.assert_array_equal(bags.in_table_order(bags.X), frame[["pitch", "volume"]])
    np.testing.assert_array_equal(
        bags.in_table_order(np.repeat(bags.ids, bags.sizes)), frame["night"].astype(str)
    )


def test_predictions_become_a_column():
    frame = shuffled_frame(n_bags=32)
    frame["truth"] = np.where(frame["pitch"] > 60, "high", "low")
    bags = Bags.from_table(frame, bag="night", features=["pitch"], instance_labels="truth")
    y = [set(labels) for labels in np.split(bags.instance_labels, bags.offsets[1:-1])]
    model = ORLogisticRegression(alpha=1e-3).fit(bags, y)
    frame["prediction"] = bags.in_table_order(model.predict_instances(bags))
    assert (frame["prediction"] == frame["truth"]).mean() > 0.95
    by_class = bags.in_table_order(model.predict_instances_proba(bags))
    assert (model.classes_[by_class.argmax(axis=1)] == frame["prediction"]).all()


def test_objects_keep_their_kind():
    bags = Bags.from_table(pl.DataFrame({"bag": [1, 2, 1], "x": [1.0, 2.0, 3.0]}), bag="bag")
    assert bags.in_table_order(["wren", None, "owl"]).tolist() == ["wren", "owl", None]


def test_bags_of_no_table_count_their_instances():
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((3, 1))])
    assert bags.rows.tolist() == [0, 1, 2, 3, 4]
    assert bags[1:].rows.tolist() == [2, 3, 4]
    assert bags[[1, 0]].rows.tolist() == [2, 3, 4, 0, 1]
    answers = np.arange(5)
    ordered = bags.in_table_order(answers)
    ordered[0] = 9
    assert answers[0] == 0, "the answers themselves must not change with what is made of them"


def test_a_sorted_table_costs_no_memory():
    n_rows = 100_000
    frame = pl.DataFrame({"bag": np.arange(n_rows) // 10, "x": np.zeros(n_rows)})
    bags = Bags.from_table(frame, bag="bag")
    kept = pickle.dumps(bags)
    # 8 bytes an instance for X, and less than 2 for the offsets and ids of its bag.
    assert len(kept) < 11 * n_rows
    assert len(pickle.dumps(bags[:5000])) < 0.6 * len(kept)


@pytest.mark.parametrize(
    "carry",
    [
        lambda bags: bags[::-1],
        lambda bags: Bags.concatenate([bags[5:], bags[:5]]),
        lambda bags: Bags.concatenate(train_test_split(bags, random_state=0)),
        lambda bags: OnInstances(StandardScaler(with_mean=False, with_std=False)).fit_transform(
            bags
        ),
        lambda bags: BagContext(0).fit_transform(bags),
        lambda bags: bags.with_features(bags.X * 1),
        lambda bags: pickle.loads(pickle.dumps(bags)),
    ],
    ids=["reversed", "rejoined", "split", "scaled", "context", "features", "pickled"],
)
def test_rows_are_carried_along(carry):
    frame = shuffled_frame()
    bags = carry(Bags.from_table(frame, bag="night"))
    np.testing.assert_array_equal(bags.in_table_order(bags.X[:, 0]), frame["pitch"])


def test_a_pipeline_answers_in_the_order_of_the_bags_that_it_is_given():
    frame = shuffled_frame()
    bags = Bags.from_table(frame, bag="night")
    y = [{"high", "low"}] * len(bags)
    pipeline = BagPipeline(
        [("scale", OnInstances(StandardScaler())), ("model", ORLogisticRegression())]
    ).fit(bags, y)
    by_row = Bags(frame[["pitch", "volume"]].to_numpy(), [0, len(frame)])
    by_row = by_row.with_features(by_row.X, bags.feature_names)
    np.testing.assert_array_equal(
        bags.in_table_order(pipeline.predict_instances(bags)), pipeline.predict_instances(by_row)
    )


def test_several_tables_count_as_stacked():
    first, second = shuffled_frame(seed=1), shuffled_frame(seed=2)
    parts = [Bags.from_table(frame, bag="night") for frame in (first, second)]
    # A half of the first, the second, and the other half: the first still comes first.
    joined = Bags.concatenate([parts[0][:6], parts[1], parts[0][6:]], ids=np.arange(24))
    np.testing.assert_array_equal(
        joined.in_table_order(joined.X[:, 0]), pd.concat([first, second])["pitch"]
    )


def test_a_selection_names_the_rows_that_it_has_answers_for():
    frame = shuffled_frame()
    test = Bags.from_table(frame, bag="night")[3:7]
    with pytest.raises(ValueError, match=r"from \d+ of its 80 rows.*table\.iloc\[bags\.rows\]"):
        test.in_table_order(test.X[:, 0])
    np.testing.assert_array_equal(frame["pitch"].iloc[test.rows], test.X[:, 0])


def test_bags_picked_twice_have_no_order_in_the_table():
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((2, 1))])[[0, 0]]
    with pytest.raises(ValueError, match="4 instances from 2 of its 4 rows"):
        bags.in_table_order(np.zeros(4))


def test_the_first_bags_of_a_table_are_not_the_whole():
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((2, 1))])[:1]
    with pytest.raises(ValueError, match="2 instances from 2 of its 4 rows"):
        bags.in_table_order(np.zeros(2))


def test_answers_must_be_one_per_instance():
    bags = Bags.from_list([np.zeros((2, 1)), np.ones((3, 1))])
    with pytest.raises(ValueError, match=r"shape \(4,\) for 5 instances"):
        bags.in_table_order(np.zeros(4))
    with pytest.raises(ValueError, match=r"np\.repeat\(values, bags\.sizes"):
        bags.in_table_order(np.zeros((2, 3)))


@pytest.mark.parametrize("rows", [[0, 1], [0.0, 1.0, 2.0], [0, -1, 2]])
def test_rows_are_whole_numbers_one_per_instance(rows):
    with pytest.raises(ValueError, match="rows must be"):
        Bags(np.zeros((3, 1)), [0, 3], rows=rows)


def test_bags_without_instances_have_no_rows():
    bags = Bags(np.zeros((0, 2)), [0, 0], rows=[])
    assert bags.rows.size == 0
    assert bags.in_table_order([]).size == 0


def test_bags_of_a_file_know_its_rows(tmp_path):
    frame = shuffled_frame()
    path = tmp_path / "nights.csv"
    frame.to_csv(path, index=False)
    table = io.read(path, io.Roles(bag="night"), need_labels=False)
    np.testing.assert_array_equal(table.bags.rows, table.rows)
    np.testing.assert_array_equal(table.bags.in_table_order(table.bags.X[:, 0]), frame["pitch"])
