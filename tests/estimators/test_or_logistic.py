"""The paper's model in scikit-learn's contract."""

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import unbag
from toys import make_colours
from unbag import Bags, LabelSets, ORLogisticRegression, RBFDictionary
from unbag.fitting.linear import InMemory, InterruptedFitWarning, Objective, scale_of
from unbag.fitting.parts import PartMaker
from unbag.union import UnionProblem


@pytest.fixture
def colours(rng):
    return make_colours(rng)


# What it learns


def test_a_fit_reports_its_iterations_and_likelihood(colours):
    bags, y = colours
    model = ORLogisticRegression().fit(bags, y)
    assert model.coef_.shape == (3, 2)
    assert model.n_iter_ == len(model.history_)
    assert model.log_likelihood_ == model.history_[-1]
    assert model.log_likelihood(bags, y).sum() == pytest.approx(model.log_likelihood_, rel=1e-6)


def test_one_instance_per_bag_is_logistic_regression():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = ORLogisticRegression(alpha=2.0, tol=1e-13, max_iter=2000).fit(X, y)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=5000).fit(X, y)

    def centred(coef):
        return coef - coef.mean(axis=0)

    np.testing.assert_allclose(centred(ours.coef_), centred(theirs.coef_), rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-5)
    scores = X @ ours.coef_.T + ours.intercept_
    np.testing.assert_allclose(ours.decision_function(X), scores)


def test_known_instances_make_it_supervised(colours):
    """With every instance pinned, bags do not matter any more."""
    bags, y = colours
    model = ORLogisticRegression(tol=1e-13, max_iter=500)
    model.fit(bags, y, instance_labels=bags.instance_labels)
    flat = ORLogisticRegression(tol=1e-13, max_iter=500).fit(bags.X, bags.instance_labels)
    np.testing.assert_allclose(model.coef_, flat.coef_, rtol=0, atol=1e-9)


def test_the_likelihood_never_falls(colours):
    bags, y = colours
    model = ORLogisticRegression(alpha=0.0, max_iter=50, tol=0).fit(bags, y)
    assert (np.diff(model.history_) >= -1e-9).all()


def test_the_gradient_is_right(colours, rng):
    bags, y = colours
    weight = rng.random(len(bags)) + 0.5
    problem = UnionProblem(bags.offsets, y)
    parts = InMemory(bags).parts(PartMaker(problem, np.arange(len(bags)), weight), map)
    scale = scale_of(bags, problem, "standard", weight=weight)
    objective = Objective(parts, scale, 0.7, (3, 3))
    W = rng.normal(size=(3, 3))
    gradient = objective.statistics(W).gradient
    for index in np.ndindex(W.shape):
        change = np.zeros_like(W)
        change[index] = 1e-6
        up, down = (objective.statistics(W + sign * change).value for sign in (1, -1))
        assert gradient[index] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-5)


def test_background_is_found(rng):
    """A third of the instances belongs to no label."""
    bags, y = make_colours(rng, n_bags=250, background=1 / 3)
    test, _ = make_colours(rng, n_bags=100, background=1 / 3)
    assert (y.sum(axis=1) == 0).any(), "some label sets should be empty"
    with_background = ORLogisticRegression(background=True).fit(bags, y)
    with pytest.warns(UserWarning, match="no labelling"):
        without = ORLogisticRegression().fit(bags, y)
    accuracy = np.mean(with_background.predict_instances(test) == test.instance_labels)
    assert accuracy > 0.9
    assert accuracy > np.mean(without.predict_instances(test) == test.instance_labels) + 0.2
    assert with_background.classes_.tolist() == [0, 1, 2]
    assert with_background.predict_instances_proba(test).shape == (test.n_instances, 4)
    assert with_background.predict(test).shape == (100, 3)
    assert with_background.predict_proba(test).shape == (100, 3)
    assert with_background.annotate_proba(bags, y).shape == (bags.n_instances, 4)


def test_pinned_instances_help(rng):
    """Labels that always come together can only be told apart by hand."""
    X = rng.normal(size=(120, 2))
    X[:60, 0] += 3
    X[60:, 0] -= 3
    order = np.arange(120).reshape(2, 60).T.ravel()
    truth = np.repeat([0, 1], 60)[order]
    bags = Bags(X[order], np.arange(0, 121, 2), instance_labels=truth)
    y = np.ones((60, 2), dtype=int)
    pins = np.full(120, -1)
    pins[:6] = truth[:6]
    blind = ORLogisticRegression().fit(bags, y)
    seeing = ORLogisticRegression().fit(bags, y, instance_labels=pins)
    assert np.mean(seeing.predict_instances(bags) == truth) > 0.97
    assert np.mean(blind.predict_instances(bags) == truth) < 0.8


@pytest.mark.slow  # Fits until bags become intractable.
def test_too_many_labels_are_relaxed_and_reported(rng):
    """30 labels, 60 instances, from the zero start."""
    X = np.eye(30)[np.arange(60) % 30] + 0.1 * rng.normal(size=(60, 30))
    bags = Bags(np.vstack([X, X[:20]]), [0, 60, 70, 80], ids=["big", "a", "b"])
    y = np.zeros((3, 30), dtype=int)
    y[0] = 1
    y[1, :10] = 1
    y[2, 10:20] = 1
    with pytest.warns(UserWarning, match=r"1 bags have too many labels .*: big"):
        model = ORLogisticRegression(max_iter=15).fit(bags, y)
    assert len(model.relaxed_["big"]) == 14
    assert np.isfinite(model.coef_).all()
    with pytest.warns(UserWarning, match="too many labels"):
        proba = model.annotate_proba(bags[:1], y[:1])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    with pytest.raises(ValueError, match="bag big has 30 required labels"):
        ORLogisticRegression(on_intractable="raise").fit(bags, y)


# What it answers


def test_joint_annotation_covers_every_label_set(rng):
    bags, y = make_colours(rng, n_bags=200, spread=3.0)
    model = ORLogisticRegression(max_iter=3).fit(bags, y)
    labels = model.annotate(bags, y, joint=True)
    for b in range(len(bags)):
        own = set(labels[bags.offsets[b] : bags.offsets[b + 1]])
        assert own == set(np.flatnonzero(y[b]))
    marginal = model.annotate(bags, y)
    assert any(
        set(marginal[bags.offsets[b] : bags.offsets[b + 1]]) != set(np.flatnonzero(y[b]))
        for b in range(len(bags))
    ), "an easy case: the test shows nothing"


def test_bag_answers_follow_from_instances(colours):
    bags, y = colours
    model = ORLogisticRegression().fit(bags, y)
    proba = model.predict_instances_proba(bags)
    for b in (0, 7):
        own = proba[bags.offsets[b] : bags.offsets[b + 1]]
        np.testing.assert_allclose(model.predict_proba(bags)[b], 1 - np.prod(1 - own, axis=0))
        np.testing.assert_allclose(model.decision_function(bags)[b], own.max(axis=0))


def test_one_label_per_bag_in_training_does_not_forbid_several_later(colours):
    """Classes compete for an instance, but not for a bag of several."""
    bags, _ = colours
    single = ORLogisticRegression().fit(bags.X, bags.instance_labels)
    proba = single.predict_instances_proba(bags)
    np.testing.assert_array_equal(single.predict_proba(bags.X), proba)
    absent = np.multiply.reduceat(1 - proba, bags.offsets[:-1])
    np.testing.assert_allclose(single.predict_proba(bags), 1 - absent, rtol=0, atol=1e-12)


def test_an_impossible_bag_is_annotated_all_the_same(colours):
    model = ORLogisticRegression().fit(*colours)
    lonely = Bags([[0.0, 0.0]], [0, 1])
    assert model.log_likelihood(lonely, np.array([[1, 1, 0]]))[0] == -np.inf
    np.testing.assert_allclose(model.annotate_proba(lonely, np.array([[1, 1, 0]])).sum(), 1)
    assert model.annotate(lonely, np.array([[1, 1, 0]]), joint=True)[0] in (0, 1)


def test_an_impossible_bag_has_none_of_its_forbidden_labels(colours):
    model = ORLogisticRegression().fit(*colours)
    lonely = Bags([[0.0, 4.0]], [0, 1])
    assert model.predict_instances(lonely)[0] == 2
    assert model.annotate(lonely, np.array([[1, 1, 0]]))[0] in (0, 1)


@pytest.mark.parametrize("background", [False, True])
def test_label_sets_are_left_as_they_are(background, colours):
    bags, y = colours
    labels = np.ones(y.shape, dtype=np.int8)
    sets = LabelSets(labels)
    model = ORLogisticRegression(background=background, max_iter=2)
    with pytest.warns(UserWarning, match="no labelling"):
        model.fit(bags, sets)
    model.annotate(bags, labels)
    assert (labels == 1).all()
    assert (sets.indicator == 1).all()


def test_one_label_per_bag_of_many_instances(colours):
    bags, y = colours
    first = y.argmax(axis=1)
    for background in (False, True):
        model = ORLogisticRegression(background=background, max_iter=20).fit(bags, first)
        assert set(model.predict(bags)) <= {0, 1, 2}
        score = model.score(bags, first)
        assert model.score(bags, [{label} for label in first.tolist()]) == score
        assert model.score(bags, LabelSets(np.eye(3, dtype=int)[first])) == score


def test_empty_bags(colours):
    bags, y = colours
    with_empty = Bags(bags.X, np.append(bags.offsets, bags.n_instances))
    labels = np.vstack([y, np.zeros(3, dtype=int)])
    model = ORLogisticRegression().fit(with_empty, labels)
    np.testing.assert_allclose(model.coef_, ORLogisticRegression().fit(bags, y).coef_)
    assert not model.predict(with_empty)[-1].any()
    assert not model.predict_proba(with_empty)[-1].any()
    with pytest.raises(ValueError, match=r"has the labels .* but no instances"):
        ORLogisticRegression().fit(with_empty, np.vstack([y, [1, 0, 0]]))


# How it is told


def test_sparse_and_single_features(colours):
    bags, y = colours
    dense = ORLogisticRegression(tol=1e-12, max_iter=300).fit(bags, y)
    single = Bags(bags.X.astype(np.float32), bags.offsets)
    np.testing.assert_allclose(
        ORLogisticRegression().fit(single, y).coef_, dense.coef_, rtol=0, atol=0.02
    )
    scattered = Bags(sparse.csr_matrix(bags.X), bags.offsets)
    plain = ORLogisticRegression(scaling=None, tol=1e-12, max_iter=300)
    np.testing.assert_allclose(
        clone(plain).fit(scattered, y).coef_, clone(plain).fit(bags, y).coef_, rtol=0, atol=1e-9
    )
    model = ORLogisticRegression().fit(scattered, y)
    assert np.mean(model.predict_instances(scattered) == bags.instance_labels) > 0.97


def test_a_constant_sparse_column_does_no_harm(colours):
    bags, y = colours
    X = np.column_stack([bags.X, np.full(bags.n_instances, 0.1)])
    model = ORLogisticRegression().fit(Bags(sparse.csr_matrix(X), bags.offsets), y)
    assert np.mean(model.predict_instances(sparse.csr_matrix(X)) == bags.instance_labels) > 0.97


def test_coefficients_are_on_the_original_scale(colours):
    bags, y = colours
    shifted = bags.with_features(bags.X * [100.0, 0.01] + [5e3, -2.0])
    expected = ORLogisticRegression().fit(bags, y)
    model = ORLogisticRegression().fit(shifted, y)
    np.testing.assert_allclose(model.coef_ * [100.0, 0.01], expected.coef_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        model.predict_instances_proba(shifted), expected.predict_instances_proba(bags), atol=1e-4
    )


def test_sample_weight_counts_bags(colours):
    bags, y = colours
    twice = np.append(np.arange(len(bags)), [0, 1, 2])
    weight = np.ones(len(bags))
    weight[:3] = 2
    model = ORLogisticRegression(tol=1e-12, max_iter=500)
    np.testing.assert_allclose(
        clone(model).fit(bags, y, sample_weight=weight).coef_,
        clone(model).fit(bags[twice], y[twice]).coef_,
        rtol=0,
        atol=1e-3,
    )


def test_same_coefficients_on_any_number_of_threads(colours, monkeypatch):
    bags, y = colours
    monkeypatch.setattr("unbag.fitting.parts.PART_WORK", 1.0)
    one = ORLogisticRegression(n_jobs=1, max_iter=20).fit(bags, y)
    monkeypatch.setattr("unbag._threads.FIT_WORTHWHILE", 0.0)
    two = ORLogisticRegression(n_jobs=2, max_iter=20).fit(bags, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)


# While it runs


def test_a_fit_goes_on_from_its_progress():
    bags, y = make_colours(np.random.default_rng(1), spread=2.0)
    first = ORLogisticRegression(alpha=0.0, max_iter=5, tol=0).fit(bags, y)
    model = ORLogisticRegression(alpha=0.0, tol=1e-12).fit(bags, y, start=first.progress_)
    assert model.history_[:5].tolist() == first.history_.tolist()
    assert (np.diff(model.history_) >= 0).all()
    assert model.n_iter_ == len(model.history_) > 6
    expected = ORLogisticRegression(alpha=0.0, tol=1e-12).fit(bags, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-3)
    # The iterations of the start count.
    none_left = ORLogisticRegression(max_iter=5, tol=0).fit(bags, y, start=first.progress_)
    assert_same_fit(none_left, first)
    # Its scale is kept: that of other features would be another.
    moved = ORLogisticRegression(max_iter=6, tol=0)
    moved.fit(bags.with_features(2.0 * bags.X), y, start=first.progress_)
    assert moved.progress_.scale is first.progress_.scale


def assert_same_fit(model, expected):
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.intercept_, expected.intercept_)
    assert model.history_.tolist() == expected.history_.tolist()


def test_a_start_of_another_model_is_refused(colours):
    bags, y = colours
    start = ORLogisticRegression(max_iter=5).fit(bags, y).progress_
    with pytest.raises(ValueError, match=r"start has weights of shape \(3, 3\), .* needs \(4, 3\)"):
        ORLogisticRegression().fit(bags, np.column_stack([y, 0 * y[:, 0]]), start=start)
    with pytest.raises(ValueError, match=r"start has background=False, .* background=True"):
        ORLogisticRegression(background=True).fit(bags, y, start=start)
    start = ORLogisticRegression(background=True).fit(bags, y).progress_
    with pytest.raises(ValueError, match=r"start has background_cost=0, .* background_cost=3.0"):
        ORLogisticRegression(background=True, background_cost=3.0).fit(bags, y, start=start)
    with pytest.raises(TypeError, match=r"model\.progress_; got ORLogisticRegression"):
        ORLogisticRegression().fit(bags, y, start=ORLogisticRegression())


def test_whoever_watches_can_stop_the_fit(colours):
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(progress.history) == 4

    model = ORLogisticRegression(tol=0).fit(*colours, watch=stop)
    assert model.n_iter_ == len(seen) == 4
    assert model.converged_
    assert [each.history[-1] for each in seen] == model.history_.tolist()
    # What was seen does not change while the fit goes on.
    shorter = ORLogisticRegression(tol=0, max_iter=3).fit(*colours)
    np.testing.assert_array_equal(seen[2].coefficients[0], shorter.coef_)


def test_an_interrupted_fit_leaves_a_usable_model(colours):
    def interrupt(progress):
        if len(progress.history) == 3:
            raise KeyboardInterrupt

    model = ORLogisticRegression(tol=0)
    with pytest.warns(InterruptedFitWarning, match="last completed iteration, 3"):
        model.fit(*colours, watch=interrupt)
    assert not model.converged_
    assert_same_fit(model, ORLogisticRegression(max_iter=3, tol=0).fit(*colours))


def test_verbose_shows_progress(colours, capsys):
    ORLogisticRegression(verbose=1, max_iter=3).fit(*colours)
    assert "iteration 3/3  log-likelihood" in capsys.readouterr().err


# Among others


def test_standardising_whitened_features_is_warned_of(colours):
    bags, y = colours
    whitened = RBFDictionary(n_components=20, random_state=0).fit_transform(bags)
    with pytest.warns(UserWarning, match=r"whitened dictionary.*scaling=None"):
        ORLogisticRegression(max_iter=2).fit(whitened, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ORLogisticRegression(max_iter=2, tol=0.0, scaling=None).fit(whitened, y)


# What it refuses


def test_impossible_bags_are_named_once(colours):
    bags, y = colours
    y = y.copy()
    b = int(np.argmin(bags.sizes))
    y[b] = 1
    with pytest.warns(UserWarning, match=f"1 of 80 bags .*: {b}") as caught:
        model = ORLogisticRegression().fit(bags, y)
    assert len(caught) == 1
    assert list(model.relaxed_) == [b]
    with pytest.warns(UserWarning, match="left out"):
        ORLogisticRegression(on_impossible="drop").fit(bags, y)
    with pytest.raises(ValueError, match=f"no labelling .*: {b}.*on_impossible"):
        ORLogisticRegression(on_impossible="raise").fit(bags, y)


def test_bad_data_is_named(colours):
    bags, y = colours
    weight = np.ones(len(bags))
    weight[3] = -1
    with pytest.raises(ValueError, match=r"not be negative; bag 3 has -1"):
        ORLogisticRegression().fit(bags, y, sample_weight=weight)
    with pytest.raises(ValueError, match="No bag is left to fit to"):
        ORLogisticRegression(on_impossible="drop").fit(bags.X[:4], np.ones((4, 3)))
    model = ORLogisticRegression().fit(bags, [{"ab"[c % 2] for c in np.flatnonzero(r)} for r in y])
    with pytest.raises(ValueError, match="Instance 0 of bag 0 has the label 'owl'"):
        model.annotate(bags[:1], [{"a"}], instance_labels=["owl"] + [None] * (bags.sizes[0] - 1))
    with pytest.raises(ValueError, match="one label per instance"):
        model.annotate(bags[:1], [{"a"}], instance_labels=["a"] * 99)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", -1),
        ("max_iter", 0),
        ("tol", "half"),
        ("on_impossible", "ignore"),
        ("on_intractable", "drop"),
    ],
)
def test_bad_parameters_are_named(name, value, colours):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ORLogisticRegression(**{name: value}).fit(*colours)


def test_a_fit_that_has_not_converged_says_so(colours):
    with pytest.warns(ConvergenceWarning, match="not converged within 2 iterations.*max_iter"):
        model = ORLogisticRegression(max_iter=2).fit(*colours)
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Whoever sets no tolerance wants so many iterations.
        ORLogisticRegression(max_iter=2, tol=0.0).fit(*colours)


@pytest.mark.parametrize("classes", [[-1, 0, 1], [3, 4, 5], [0.5, 1.5, 2.5], ["a", "b", "c"], None])
def test_background_is_recognised_among_labels_of_every_type(classes, rng):
    bags, y = make_colours(rng, n_bags=120, background=1 / 3)
    if classes is None:
        sets, classes = y, [0, 1, 2]
    else:
        sets = [{classes[c] for c in np.flatnonzero(row)} for row in y]
    model = ORLogisticRegression(background=True).fit(bags, sets)
    labels = model.predict_instances(bags)
    found = unbag.is_background(labels)
    truth = bags.instance_labels == -1
    assert found.dtype == bool
    assert np.mean(found == truth) > 0.9
    assert set(labels[~found].tolist()) == set(classes)
    table = pandas.DataFrame({"label": labels})
    np.testing.assert_array_equal(unbag.is_background(table["label"]), found)


def test_background_is_found_in_labels_of_any_shape():
    assert unbag.is_background(None)
    assert not unbag.is_background("wren")
    nested = unbag.is_background([["wren", None], [None, "owl"]])
    assert nested.tolist() == [[False, True], [True, False]]
    assert unbag.is_background([[1, -1]]).tolist() == [[False, True]]
    assert unbag.is_background(np.array(["nan", np.nan], dtype=object)).tolist() == [False, True]
    with pytest.raises(ValueError, match=r"lists of different lengths.*np\.concatenate"):
        unbag.is_background([["wren"], [None, "owl"]])


def offset_bags(rng, offset, n_bags=150):
    """Return the bags of three colours as float32, so many deviations from the origin."""
    bags, y = make_colours(rng, n_bags=n_bags)
    deviation = bags.X.std(axis=0)
    X = (bags.X + offset * deviation).astype(np.float32)
    return Bags(X, bags.offsets, instance_labels=bags.instance_labels), y


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e5])
def test_single_precision_is_precision_of_the_features_alone(offset, rng):
    single, y = offset_bags(rng, offset)
    double = Bags(single.X.astype(np.float64), single.offsets)
    options = {"max_iter": 400, "tol": 1e-8}
    expected = ORLogisticRegression(**options).fit(double, y)
    model = ORLogisticRegression(**options).fit(single, y)
    largest = np.abs(expected.coef_).max()
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-3 * largest)
    probabilities = model.predict_instances_proba(single)
    np.testing.assert_allclose(probabilities, expected.predict_instances_proba(double), atol=5e-3)
    # What the fit has seen is what the model predicts.
    assert model.log_likelihood(single, y).sum() == pytest.approx(model.log_likelihood_, rel=1e-2)


@pytest.mark.parametrize(
    ("factor", "weight", "options", "message"),
    [
        (1e160, None, {}, r"deviation of column 0 overflow.*e\+1"),
        (1e160, None, {"scaling": None}, r"not finite.*Features reach .*e\+16.*column"),
        (1.0, 1e300, {}, r"not finite.*sample_weight 1e\+300"),
        (1.0, 1e307, {}, r"sample_weight adds up.*bag 0, 1e\+307"),
    ],
)
def test_what_overflows_is_an_error(factor, weight, options, message, colours):
    bags, y = colours
    weight = None if weight is None else np.full(len(bags), weight)
    model = ORLogisticRegression(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(bags.with_features(factor * bags.X), y, sample_weight=weight)
    assert not hasattr(model, "coef_")


def test_warnings_name_the_line_that_called_fit(colours):
    bags, y = colours
    few = [set(range(9))] * len(bags)
    whitened = RBFDictionary(n_components=5, random_state=0).fit_transform(bags)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ORLogisticRegression(max_iter=2).fit(bags, few)
        ORLogisticRegression(max_iter=2).fit(whitened, y)
        ORLogisticRegression(max_iter=2).fit([np.eye(30), np.eye(30)], np.ones((2, 30)))
    kinds = {warning.category.__name__ for warning in caught}
    assert kinds >= {"ImpossibleBagWarning", "IntractableBagWarning", "ConvergenceWarning"}
    assert {warning.filename for warning in caught} == {__file__}


def test_known_instance_labels_may_be_spelt_otherwise_than_the_classes():
    bags, sets = Bags([[0.0], [1.0], [2.0]], [0, 2, 3]), [{"caf\u00e9", "tea"}, {"tea"}]
    model = ORLogisticRegression().fit(bags, sets, instance_labels=["cafe\u0301", None, "tea "])
    assert model.annotate(bags, sets, ["tea ", None, -1]).tolist() == ["tea", "caf\u00e9", "tea"]
    with pytest.raises(ValueError, match="'milk', which is not among the classes"):
        model.annotate(bags, sets, ["milk", None, None])


def test_a_watch_that_raises_stop_iteration_is_an_error(colours):
    def watch(_):
        raise StopIteration

    with pytest.raises(RuntimeError, match="watch raised StopIteration"):
        ORLogisticRegression().fit(*colours, watch=watch)


def test_bags_of_weight_zero_say_nothing_of_a_background(rng):
    """Not even if no other bag has their label."""
    bags = Bags(rng.normal(size=(120, 4)), np.arange(0, 121, 3))
    sets = [{"a", "b"} if b % 2 else {"a"} for b in range(40)]
    sets[5], weight = {"rare"}, np.ones(40)
    weight[5] = 0.0
    model = ORLogisticRegression(background="auto").fit(bags, sets, sample_weight=weight)
    assert np.isfinite(list(model.decision_.held_out.values())).all()
