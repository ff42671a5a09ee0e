import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

from toys import DropFirst
from unbag import preprocessing
from unbag.bags import Bags
from unbag.preprocessing import (
    BagContext,
    OnInstances,
    RBFDictionary,
)
from unbag.validation import is_whitened

TRANSFORMERS = [OnInstances(StandardScaler()), BagContext(0.5), RBFDictionary()]
each_transformer = pytest.mark.parametrize(
    "transformer", TRANSFORMERS, ids=["OnInstances", "BagContext", "RBFDictionary"]
)


def make_bags(rng, sizes=(3, 0, 2, 4, 0), n_features=3, dtype=float, form=np.asarray, named=False):
    n_instances = sum(sizes)
    X = rng.normal(size=(n_instances, n_features)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = 0
    return Bags(
        form(X),
        np.concatenate([[0], np.cumsum(sizes)]).astype(int),
        ids=[f"rec{bag}" for bag in range(len(sizes))],
        instance_labels=np.arange(n_instances) % 2,
        feature_names=[f"f{column}" for column in range(n_features)] if named else None,
    )


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def mean_squared_distance(X):
    """Mean over ordered pairs, self-pairs included, pair by pair."""
    return np.mean([((one - other) ** 2).sum() for one in X for other in X])


def kernel_matrix(X, dictionary, delta):
    """Kernel, entry by entry."""
    return np.array([[np.exp(-((x - d) ** 2).sum() / delta) for d in dictionary] for x in X])


def with_context(bags, weight):
    """Context, bag by bag."""
    return [
        np.hstack([bag, np.tile(weight * bag.mean(axis=0), (len(bag), 1))])
        for bag in map(dense, bags)
        if len(bag)
    ]


# --- what all transformers promise --------------------------------------------------------------


@each_transformer
def test_bags_stay_the_same_bags(transformer, rng):
    bags = make_bags(rng)
    new = clone(transformer).fit_transform(bags)
    for name in ["offsets", "ids", "instance_labels"]:
        np.testing.assert_array_equal(getattr(new, name), getattr(bags, name))


@each_transformer
def test_array_is_one_instance_per_bag(transformer, rng):
    X = rng.normal(size=(6, 3))
    of_array = clone(transformer).fit_transform(X)
    of_bags = clone(transformer).fit_transform(Bags(X, np.arange(7)))
    assert isinstance(of_array, np.ndarray)
    np.testing.assert_array_equal(of_array, of_bags.X)


@each_transformer
def test_only_empty_bags_can_be_transformed_but_not_fitted(transformer, rng):
    fitted = clone(transformer).fit(make_bags(rng))
    empty = make_bags(rng, sizes=(0, 0))
    new = fitted.transform(empty)
    assert new.shape == (2, fitted.transform(make_bags(rng)).n_features)
    with pytest.raises(ValueError, match="all bags are empty"):
        fitted.fit(empty)


@each_transformer
def test_wrong_number_or_names_of_features(transformer, rng):
    fitted = clone(transformer).fit(make_bags(rng, named=True))
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["f0", "f1", "f2"]
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
        fitted.transform(make_bags(rng, n_features=2))
    swapped = make_bags(rng)
    swapped.feature_names = np.array(["f1", "f0", "f2"])
    with pytest.raises(ValueError, match="Column 0 is f1, but in fit it was f0"):
        fitted.transform(swapped)
    assert not hasattr(fitted.fit(make_bags(rng)), "feature_names_in_")


@each_transformer
def test_before_fit(transformer, rng):
    for ask in [transformer.transform, transformer.get_feature_names_out]:
        with pytest.raises(NotFittedError):
            ask(make_bags(rng))


@each_transformer
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_float32_and_sparse_agree_with_dense_float64(transformer, form, rng):
    transformer = clone(transformer)
    if isinstance(transformer, OnInstances):
        transformer.set_params(transformer=MaxAbsScaler())
    reference = make_bags(np.random.default_rng(1))
    bags = make_bags(np.random.default_rng(1), dtype=np.float32, form=form)
    new = transformer.fit_transform(bags)
    assert new.dtype == np.float32
    assert sparse.issparse(new.X) == (
        form is not np.asarray and not isinstance(transformer, RBFDictionary)
    )
    np.testing.assert_allclose(
        dense(new.X), transformer.fit(reference).transform(reference).X, rtol=2e-4, atol=2e-4
    )


@each_transformer
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (-np.inf, "-inf")])
def test_error_names_bag_and_column(transformer, form, value, shown, rng):
    X = make_bags(rng).X
    X[4, 1] = value
    bags = Bags(form(X), [0, 3, 3, 5, 9], ids=["a", "b", "c", "d"], feature_names=["p", "q", "r"])
    transformer = clone(transformer)
    if isinstance(transformer, OnInstances):
        transformer.set_params(transformer=FunctionTransformer(validate=True, accept_sparse=True))
    message = rf"Bag 2 \(id c\) has {shown} in column 1 \(q\), instance 1 of the bag"
    with pytest.raises(ValueError, match=message):
        transformer.fit(bags)
    transformer.fit(bags[[0, 3]])
    with pytest.raises(ValueError, match=message):
        transformer.transform(bags)
    with pytest.raises(ValueError, match=rf"Bag 4 \(id 4\) has {shown} in column 1"):
        transformer.fit(bags.X)


@each_transformer
def test_bags_come_back_whatever_frames_scikit_learn_is_set_to(transformer, rng):
    with config_context(transform_output="pandas"):
        assert isinstance(clone(transformer).fit_transform(make_bags(rng)), Bags)


@each_transformer
def test_pickled_transformer_gives_the_same(transformer, rng):
    bags = make_bags(rng)
    fitted = clone(transformer).fit(bags)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(bags).X, fitted.transform(bags).X)


# --- OnInstances --------------------------------------------------------------------------------


def test_on_instances_sees_the_flat_array(rng):
    bags = make_bags(rng, named=True)
    lifted = OnInstances(PCA(2)).fit(bags, y=["ignored"])
    expected = PCA(2).fit(bags.X)
    np.testing.assert_allclose(lifted.transform(bags).X, expected.transform(bags.X), atol=1e-12)
    assert lifted.get_feature_names_out().tolist() == ["pca0", "pca1"]
    assert lifted.transform(bags).feature_names.tolist() == ["pca0", "pca1"]
    assert not hasattr(lifted.transformer, "components_")


def test_on_instances_nested_parameters(rng):
    pipeline = make_pipeline(OnInstances(StandardScaler()))
    pipeline.set_params(oninstances__transformer__with_mean=False)
    bags = make_bags(rng)
    np.testing.assert_allclose(pipeline.fit_transform(bags).X, bags.X / bags.X.std(axis=0))


def test_on_instances_lets_an_imputer_see_missing_values(rng):
    X = make_bags(rng).X
    X[0, 0] = np.nan
    bags = Bags(X, [0, 4, 9])
    filled = OnInstances(SimpleImputer(strategy="constant", fill_value=7.0)).fit_transform(bags)
    assert filled.X[0, 0] == 7


def test_on_instances_without_names(rng):
    nameless = OnInstances(make_pipeline(FunctionTransformer(np.exp), StandardScaler()))
    bags = make_bags(rng, named=True)
    assert nameless.fit_transform(bags).feature_names is None
    with pytest.raises(AttributeError, match="get_feature_names_out"):
        nameless.get_feature_names_out()
    assert OnInstances(StandardScaler()).fit_transform(make_bags(rng)).feature_names is None


def test_on_instances_must_keep_every_instance(rng):
    bags = make_bags(rng)
    for X in [bags, bags.X]:
        with pytest.raises(ValueError, match=r"DropFirst\(\) gave 8 rows for 9 instances"):
            OnInstances(DropFirst()).fit_transform(X)


# --- BagContext ---------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=6).filter(any),
    weight=st.floats(0, 10),
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from([np.asarray, sparse.csr_matrix]),
)
def test_context_is_the_mean_of_the_bag(sizes, weight, seed, form):
    bags = make_bags(np.random.default_rng(seed), sizes=sizes, form=form)
    new = BagContext(weight).fit_transform(bags)
    np.testing.assert_allclose(
        dense(new.X), np.concatenate(with_context(bags, weight)), rtol=1e-12, atol=1e-12
    )


def test_context_mean_does_not_lose_digits_in_float32():
    n_instances = 200_000
    bags = Bags(np.full((n_instances, 1), 0.1, dtype=np.float32), [0, n_instances])
    np.testing.assert_allclose(BagContext().fit_transform(bags).X[0, 1], 0.1, rtol=1e-6)


def test_context_names(rng):
    names = ["f0", "f1", "f2", "context_f0", "context_f1", "context_f2"]
    bags = make_bags(rng, named=True)
    context = BagContext().fit(bags)
    assert context.get_feature_names_out().tolist() == names
    assert context.transform(bags).feature_names.tolist() == names
    assert context.transform(make_bags(rng)).feature_names is None
    frame = pd.DataFrame(bags.X, columns=["f0", "f1", "f2"])
    assert context.fit(frame).get_feature_names_out().tolist() == names


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf, "1"])
def test_context_weight_is_checked(weight, rng):
    with pytest.raises(ValueError, match="weight must be a number of at least 0"):
        BagContext(weight).fit(make_bags(rng))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("weight", "dtype"), [(1e308, "float64"), (1e60, "float32")])
def test_context_that_overflows_is_refused(weight, dtype, is_sparse):
    X = np.full((2, 1), 100.0, dtype)
    bags = Bags(sparse.csr_matrix(X) if is_sparse else X, [0, 2])
    with pytest.raises(ValueError, match=rf"more than {dtype} can hold"):
        BagContext(weight).fit_transform(bags)


# --- RBFDictionary ------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.1, 10), sparsely=st.booleans())
def test_kernel_columns_entry_by_entry(seed, scale, sparsely):
    rng = np.random.default_rng(seed)
    train, test = make_bags(rng), make_bags(rng, sizes=(2, 0, 3))
    delta = scale * mean_squared_distance(train.X)
    columns = kernel_matrix(test.X, train.X, delta)
    if sparsely:
        train = train.with_features(sparse.csr_matrix(train.X))
    kernel = RBFDictionary(scale, whiten=False).fit(train)
    np.testing.assert_allclose(kernel.delta_, delta, rtol=1e-12)
    np.testing.assert_allclose(kernel.transform(test).X, columns, rtol=1e-10, atol=1e-14)
    as_sparse = kernel.transform(test.with_features(sparse.csr_matrix(test.X)))
    np.testing.assert_allclose(as_sparse.X, columns, rtol=1e-10, atol=1e-14)


def test_whitened_products_are_the_kernel(rng):
    bags = make_bags(rng, sizes=(5, 6), n_features=2)
    kernel = RBFDictionary().fit(bags)
    among = kernel_matrix(kernel.dictionary_, kernel.dictionary_, kernel.delta_)
    phi = kernel.transform(kernel.dictionary_)
    np.testing.assert_allclose(phi @ phi.T, among, atol=1e-9)
    np.testing.assert_allclose(kernel.whitener_, kernel.whitener_.T, atol=1e-6)
    columns = RBFDictionary(whiten=False).fit(bags).transform(bags).X
    np.testing.assert_allclose(kernel.transform(bags).X, columns @ kernel.whitener_, atol=1e-9)


def test_repeated_instances_make_the_dictionary_singular_but_do_no_harm(rng):
    once = rng.normal(size=(6, 2))
    kernel = RBFDictionary().fit(np.repeat(once, 5, axis=0))
    among = kernel_matrix(kernel.dictionary_, kernel.dictionary_, kernel.delta_)
    assert np.linalg.matrix_rank(among) == 6
    # Floored: no more than the inverse root of 1e-10 of the largest eigenvalue.
    largest = np.linalg.eigvalsh(among)[-1]
    assert np.linalg.norm(kernel.whitener_, 2) <= 1.01 * (1e-10 * largest) ** -0.5
    phi = kernel.transform(kernel.dictionary_)
    np.testing.assert_allclose(phi @ phi.T, among, atol=1e-8)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_blocks_do_not_change_the_features(whiten, form, rng, monkeypatch):
    bags = make_bags(rng, sizes=(20, 0, 17), form=form)
    kernel = RBFDictionary(whiten=whiten, n_components=10, random_state=0).fit(bags)
    whole = kernel.transform(bags).X
    seen = []
    in_one_block = kernel._kernel
    monkeypatch.setattr(
        kernel, "_kernel", lambda block: seen.append(block.shape[0]) or in_one_block(block)
    )
    monkeypatch.setattr(preprocessing, "BLOCK_ENTRIES", 75)
    np.testing.assert_allclose(kernel.transform(bags).X, whole, atol=1e-10)
    assert seen == [7, 7, 7, 7, 7, 2]


SIZES = [(1.0, 40), (0.25, 10), (1e-9, 1), (7, 7), (1, 1), (99, 40), (np.int64(3), 3)]


@pytest.mark.parametrize(("n_components", "size"), SIZES)
def test_dictionary_is_drawn_from_the_training_instances(n_components, size):
    X = np.arange(80.0).reshape(40, 2)
    bags = Bags(X, [0, 15, 40])
    draw = RBFDictionary(n_components=n_components, random_state=3).fit(bags)
    positions = draw.dictionary_[:, 0] / 2
    assert positions.shape == (size,)
    assert (np.diff(positions) > 0).all()
    np.testing.assert_array_equal(draw.dictionary_, X[positions.astype(int)])
    # The width belongs to all training instances, whatever the dictionary.
    np.testing.assert_allclose(draw.delta_, mean_squared_distance(X))
    again = RBFDictionary(n_components=n_components, random_state=3).fit(bags)
    np.testing.assert_array_equal(again.dictionary_, draw.dictionary_)
    if 1 < size < 40:
        other = RBFDictionary(n_components=n_components, random_state=4).fit(bags)
        assert not np.array_equal(other.dictionary_, draw.dictionary_)


def test_dictionary_does_not_change_with_the_training_array(rng):
    X = rng.normal(size=(5, 2))
    kernel = RBFDictionary().fit(X)
    before = kernel.dictionary_.copy()
    X[:] = 0
    np.testing.assert_array_equal(kernel.dictionary_, before)


def test_float32_is_only_the_type_of_the_result(rng):
    bags = make_bags(rng, sizes=(20, 20), dtype=np.float32)
    single = RBFDictionary().fit_transform(bags).X
    double = RBFDictionary().fit_transform(bags.with_features(bags.X.astype(float))).X
    np.testing.assert_allclose(single, double, rtol=1e-6, atol=1e-9)


def test_kernel_far_from_the_origin(rng):
    X = rng.normal(size=(8, 2))
    far = X + 2.0**30
    near = RBFDictionary(whiten=False).fit_transform(far - 2.0**30)
    np.testing.assert_allclose(RBFDictionary(whiten=False).fit_transform(far), near, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_instances", [1, 3, 7])
def test_equal_instances_give_no_width(form, n_instances):
    # The mean of these numbers is rounded, so that a naive variance is not zero.
    X = form(np.full((n_instances, 2), 0.1))
    with pytest.raises(ValueError, match=rf"equal \(n_samples={n_instances}\)"):
        RBFDictionary().fit(Bags(X, [0, n_instances]))


@pytest.mark.parametrize("scale", [0, -1.0, np.nan, np.inf, "1"])
def test_scale_is_checked(scale, rng):
    with pytest.raises(ValueError, match="scale must be a number above 0"):
        RBFDictionary(scale).fit(make_bags(rng))


@pytest.mark.parametrize("n_components", [0, -3, 0.0, 1.5, np.nan, True, "all"])
def test_n_components_is_checked(n_components, rng):
    with pytest.raises(ValueError, match=r"n_components must be a float in \(0, 1\] or an int"):
        RBFDictionary(n_components=n_components).fit(make_bags(rng))


def test_names_tell_whether_features_are_whitened(rng):
    bags = make_bags(rng, named=True)
    whitened = RBFDictionary(n_components=2, random_state=0).fit(bags)
    assert whitened.transform(bags).feature_names.tolist() == ["whitened_rbf_0", "whitened_rbf_1"]
    assert is_whitened(whitened.transform(bags))
    assert is_whitened(BagContext().fit_transform(whitened.transform(bags)))
    plain = whitened.set_params(whiten=False).fit(bags)
    assert plain.whitener_ is None
    assert plain.get_feature_names_out().tolist() == ["rbf_0", "rbf_1"]
    for other in [plain.transform(bags), bags, make_bags(rng), bags.X, [[1.0]]]:
        assert not is_whitened(other)


def test_transformers_work_in_a_plain_pipeline(rng):
    X = rng.normal(size=(30, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = Pipeline([("kernel", RBFDictionary(0.5)), ("model", LogisticRegression(C=100))])
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize(
    "make", [lambda: OnInstances(StandardScaler()), BagContext, lambda: RBFDictionary(1.0)]
)
def test_set_output_makes_frames_of_arrays_and_leaves_bags(make, container):
    frame = pd.DataFrame({"pitch": [1.0, 2.0, 4.0], "volume": [0.0, 1.0, 0.5]}, index=[7, 3, 5])
    bags = Bags(frame.to_numpy(), [0, 2, 3], feature_names=frame.columns)
    transformer = make().set_output(transform=container)
    found = transformer.fit_transform(bags)
    assert isinstance(found, Bags)
    assert found.feature_names.tolist() == transformer.get_feature_names_out().tolist()
    table = transformer.fit_transform(frame)
    assert type(table).__module__.startswith(container)
    assert list(table.columns) == transformer.get_feature_names_out().tolist()
    np.testing.assert_allclose(table.to_numpy(), make().fit_transform(frame))
    with config_context(transform_output=container):
        assert isinstance(make().fit_transform(bags), Bags)
        assert type(make().fit_transform(frame)).__module__.startswith(container)
