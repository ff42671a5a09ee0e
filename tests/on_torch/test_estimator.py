"""What `ORNetwork` does beyond the contract of all estimators."""

import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import unbag
from toys import ROLES, answers, assert_equal, make_colours, word_lines
from unbag import Bags
from unbag._messages import MISSING, MissingExtraError
from unbag.fitting.linear import InterruptedFitWarning
from unbag.models import ModelFileError
from unbag.torch import ORNetwork
from unbag.torch import batches as batches_of_bags

BAGS, Y = make_colours(np.random.default_rng(0), n_bags=60, largest=3)


def network(**parameters):
    # On the GPU where there is one.
    small = {"hidden": (24, 24), "n_members": 2, "max_iter": 60}
    return ORNetwork(**{**small, "learning_rate": 0.02, "random_state": 0, **parameters})


def accuracy(model, bags=BAGS):
    return np.mean(model.predict_instances(bags) == bags.instance_labels)


def test_saved_and_loaded_models_answer_alike(tmp_path):
    for parameters in ({}, {"encoding": "quantile", "context_units": 0, "background": True}):
        model = network(**parameters).fit(BAGS, Y)
        model.save(tmp_path / "m.unbag")
        again = unbag.load(tmp_path / "m.unbag")
        assert_equal(answers(again, BAGS, Y), answers(model, BAGS, Y))
        assert again.get_params() == model.get_params()


def test_a_file_with_arrays_that_do_not_match_is_refused(tmp_path):
    model = network().fit(BAGS, Y)
    model.weights_[1] = model.weights_[1][:, :-1]
    model.save(tmp_path / "m.unbag")
    with pytest.raises(ModelFileError, match="do not fit together"):
        unbag.load(tmp_path / "m.unbag")


def test_without_torch_one_line_says_what_to_install(tmp_path, monkeypatch):
    network().fit(BAGS, Y).save(tmp_path / "m.unbag")
    for name in [name for name in sys.modules if name.startswith("unbag.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError) as error:
        unbag.load(tmp_path / "m.unbag")
    assert str(error.value) == MISSING["torch"]


def test_a_fit_is_watched_and_stopped():
    seen = []

    def watch(progress):
        seen.append((len(progress.history), progress.history[-1]))
        return len(progress.history) == 7

    model = network().fit(BAGS, Y, watch=watch)
    assert [iteration for iteration, _ in seen] == list(range(1, 8))
    np.testing.assert_allclose(model.history_, [value for _, value in seen], rtol=1e-6)
    assert model.n_iter_ == 7
    assert model.converged_
    # Watching a fit does not change it.
    np.testing.assert_array_equal(network().fit(BAGS, Y).history_[:7], model.history_)


def test_an_interrupted_fit_keeps_what_it_has():
    def interrupt(progress):
        if len(progress.history) == 5:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="last completed iteration, 5"):
        model = network().fit(BAGS, Y, watch=interrupt)
    assert model.n_iter_ == 5
    assert not model.converged_
    stopped = network().fit(BAGS, Y, watch=lambda progress: len(progress.history) == 5)
    assert_equal(answers(model, BAGS, Y), answers(stopped, BAGS, Y))


def test_verbose_shows_progress(capsys):
    network(max_iter=3, verbose=1).fit(BAGS, Y)
    assert "iteration 3/3  log-likelihood" in capsys.readouterr().err


def test_known_instances_weights_and_batches():
    known = np.where(np.arange(BAGS.n_instances) % 2, BAGS.instance_labels, -1)
    taught = network().fit(BAGS, Y, instance_labels=known)
    assert accuracy(taught) > 0.9
    weight = np.ones(len(BAGS))
    np.testing.assert_array_equal(
        network().fit(BAGS, Y, sample_weight=weight).history_, network().fit(BAGS, Y).history_
    )
    ignored = np.arange(len(BAGS)) < 30
    wrong = np.where(ignored[:, None], np.roll(Y, 1, axis=1), Y)
    model = network(scaling=None).fit(BAGS, wrong, sample_weight=~ignored)
    assert accuracy(model) > 0.9
    assert accuracy(network(batch_size=16).fit(BAGS, Y)) > 0.9


def test_unknown_labels_ask_nothing():
    rng = np.random.default_rng(0)
    hidden = np.where(rng.random(Y.shape) < 0.3, -1, Y)
    model = network(max_iter=150).fit(BAGS, hidden)
    assert accuracy(model) > 0.9
    # A bag of which nothing is known has no say.
    nothing = np.vstack([Y[:-1], [[-1, -1, -1]]])
    weight = np.append(np.ones(len(Y) - 1), 0.0)
    silent = network(max_iter=5, scaling=None).fit(BAGS, nothing)
    without = network(max_iter=5, scaling=None).fit(BAGS, Y, sample_weight=weight)
    np.testing.assert_allclose(silent.history_[0], without.history_[0], rtol=1e-5)


def test_too_many_bags_for_memory_come_in_batches(monkeypatch):
    monkeypatch.setattr(batches_of_bags, "FULL_BATCH", 5000)
    assert accuracy(network().fit(BAGS, Y)) > 0.9


def test_rounds_of_distillation():
    model = network(distill=1).fit(BAGS, Y)
    assert model.n_iter_ == 120
    assert accuracy(model) > 0.9


@pytest.mark.parametrize("background", [True, "auto"])
def test_background(background):
    bags, y = make_colours(np.random.default_rng(0), n_bags=150, background=0.3, n_classes=2)
    model = network(background=background, max_iter=150).fit(bags, y)
    assert model.has_background_
    assert bool(model.decision_.held_out) == (background == "auto")
    assert model.predict_instances_proba(bags).shape == (bags.n_instances, 3)
    assert accuracy(model, bags) > 0.85


def test_an_encoder_learns_with_the_networks():
    encoder = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.1), torch.nn.Tanh())
    before = encoder[0].weight.detach().clone()
    model = network(encoder=encoder).fit(BAGS, Y)
    assert torch.equal(encoder[0].weight, before)
    assert not torch.equal(model.encoder_[0].weight, before)
    assert model.weights_[0].shape == (2, 8, 24)
    assert accuracy(model) > 0.9
    again = network(encoder=encoder).fit(BAGS, Y)
    np.testing.assert_array_equal(
        again.predict_instances_proba(BAGS), model.predict_instances_proba(BAGS)
    )


def convolutions(n_channels=6):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, n_channels, 3, padding=1), torch.nn.BatchNorm2d(n_channels),
        torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
    )  # fmt: skip


def make_strokes(n_bags=60):
    """Make bags of pictures of 4 x 4 pixels that show a stroke, from left to right or downwards."""
    rng = np.random.default_rng(0)
    downwards = [rng.integers(0, 2, size=rng.integers(1, 4)) for _ in range(n_bags)]
    pictures = []
    for own in downwards:
        shown = np.zeros((len(own), 1, 4, 4), dtype=np.uint8)
        for picture, is_downward in zip(shown[:, 0], own, strict=True):
            (picture.T if is_downward else picture)[rng.integers(4)] = 255
        pictures.append(shown)
    words = np.array(["right", "down"])
    return pictures, [set(words[own]) for own in downwards], words[np.concatenate(downwards)]


def stroke_network(**parameters):
    given = {"encoder": convolutions(), "instance_shape": (1, 4, 4), "context_units": 0}
    return network(**{**given, **parameters})


PICTURES, PICTURE_LABELS, STROKES = make_strokes()


def test_encoders_get_pictures_in_their_shape():
    model = stroke_network().fit(PICTURES, PICTURE_LABELS)
    assert np.mean(model.predict_instances(PICTURES) == STROKES) > 0.9
    table = Bags.from_list([bag.reshape(len(bag), 16) for bag in PICTURES])
    again = stroke_network().fit(table, PICTURE_LABELS)
    np.testing.assert_array_equal(
        again.predict_instances_proba(table), model.predict_instances_proba(PICTURES)
    )
    assert model.annotate(PICTURES, PICTURE_LABELS).shape == STROKES.shape
    assert clone(model).instance_shape == (1, 4, 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"instance_shape": (1, 4, 5)}, r"Bag 0 has instances of shape \(1, 4, 4\), but instance_"),
        ({"instance_shape": None}, r"instances of shape \(1, 4, 4\): set instance_shape=\(1, 4, 4"),
        ({"instance_shape": 16}, r"instance_shape must be a tuple of integers.*got 16"),
        ({"instance_shape": (0, 16)}, r"instance_shape must be a tuple of integers"),
        ({"instance_shape": ()}, r"instance_shape must be a tuple of integers"),
        ({"encoder": None}, r"instance_shape=\(1, 4, 4\) needs an encoder"),
        ({"encoding": "quantile"}, r"encoding='quantile' adds inputs"),
    ],
)
def test_pictures_of_other_shapes_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        stroke_network(**parameters).fit(PICTURES, PICTURE_LABELS)


def test_features_that_make_no_picture_are_refused():
    with pytest.raises(ValueError, match=r"\(1, 4, 4\) has 16 numbers, but each instance has 2 f"):
        stroke_network().fit(BAGS, Y)
    model = stroke_network(max_iter=1).fit(PICTURES, PICTURE_LABELS)
    with pytest.raises(ValueError, match=r"Bag 1 has instances of shape \(1, 4, 3\), but"):
        model.predict([PICTURES[0], PICTURES[0][..., 1:]])


@pytest.fixture(scope="module")
def stroke_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("strokes") / "m.unbag"
    model = stroke_network(max_iter=20).fit(PICTURES, PICTURE_LABELS)
    model.save(path)
    return path, model


def test_a_model_with_an_encoder_is_saved_and_loaded(stroke_file):
    path, model = stroke_file
    given = convolutions()
    before = given[0].weight.detach().clone()
    again = unbag.load(path, encoder=given)
    assert_equal(answers(again, PICTURES, PICTURE_LABELS), answers(model, PICTURES, PICTURE_LABELS))
    # What was given stays as it is, for the next fit.
    assert again.encoder is given
    assert torch.equal(given[0].weight, before)
    assert not again.encoder_.training
    learnt = model.encoder_.state_dict()
    assert not torch.equal(learnt["0.weight"].cpu(), before)
    for name, part in again.encoder_.state_dict().items():
        assert torch.equal(part, learnt[name].cpu()), name
    assert again.instance_shape == (1, 4, 4)
    assert unbag.models.read_header(path)["arrays"]["encoder_.0.weight"]["shape"] == [6, 1, 3, 3]
    # Saving did not change the model.
    assert model.encoder is not None


@pytest.mark.parametrize(
    ("encoder", "error", "message"),
    [
        (None, ModelFileError, r"an encoder of the class torch.*\.Sequential.*no code.*encoder=My"),
        (convolutions(7), ModelFileError, r"is not like the model's.*size mismatch"),
        (torch.nn.Linear(16, 6), ModelFileError, r"is not like the model's.*[Mm]issing"),
        (torch.nn.Sequential, TypeError, r"encoder must be a torch.nn.Module, such as MyEncoder\("),
    ],
)
def test_encoders_that_do_not_fit_a_file_are_named(stroke_file, encoder, error, message):
    path, _ = stroke_file
    with pytest.raises(error, match=message) as caught:
        unbag.load(path, encoder=encoder)
    assert "\n" not in str(caught.value)
    assert "damaged" not in str(caught.value)


def test_an_encoder_that_computes_something_else_is_named(stroke_file):
    path, _ = stroke_file
    other = convolutions()
    other[-1] = torch.nn.Flatten(0)
    with pytest.raises(ModelFileError, match="does not work with this encoder"):
        unbag.load(path, encoder=other)


def test_an_encoder_for_a_model_without_one_is_refused(tmp_path):
    network(max_iter=1).fit(BAGS, Y).save(tmp_path / "m.unbag")
    with pytest.raises(ModelFileError, match="its model has no encoder: leave out"):
        unbag.load(tmp_path / "m.unbag", encoder=convolutions())


def test_encoders_within_pipelines_are_saved(tmp_path):
    encoder = torch.nn.Linear(2, 4)
    last = network(encoder=encoder, scaling=None, max_iter=3)
    scaler = unbag.OnInstances(StandardScaler())
    model = unbag.BagPipeline([("scale", scaler), ("network", last)]).fit(BAGS, Y)
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag", encoder=torch.nn.Linear(2, 4))
    assert_equal(answers(again, BAGS, Y), answers(model, BAGS, Y))


class WithNote(torch.nn.Linear):
    """A layer that keeps more than arrays."""

    def get_extra_state(self):
        return {"note": "kept"}

    def set_extra_state(self, state):
        self.note = state["note"]


def test_encoders_that_keep_more_than_arrays_are_not_saved(tmp_path):
    model = network(encoder=WithNote(2, 4), max_iter=1).fit(BAGS, Y)
    with pytest.raises(ModelFileError, match=r"encoder_\._extra_state is of the type dict"):
        model.save(tmp_path / "m.unbag")
    model = network(encoder=torch.nn.Linear(2, 4), max_iter=1).fit(BAGS, Y)
    model.encoder_.bfloat16()
    with pytest.raises(ModelFileError, match=r"encoder_\.weight is a tensor of torch.bfloat16"):
        model.save(tmp_path / "m.unbag")
    assert not list(tmp_path.iterdir())


def test_answers_do_not_depend_on_how_many_bags_are_asked_about(monkeypatch):
    model = network().fit(BAGS, Y)
    whole = model.predict_instances_proba(BAGS)
    monkeypatch.setattr(sys.modules["unbag.torch.estimator"], "SCORED_AT_ONCE", 100)
    np.testing.assert_allclose(model.predict_instances_proba(BAGS), whole, rtol=1e-12)


def test_impossible_bags_are_relaxed_and_named():
    y = Y.copy()
    y[0] = 1
    bags = Bags(np.delete(BAGS.X, slice(1, BAGS.offsets[1]), axis=0),
                np.append(0, BAGS.offsets[1:] - BAGS.offsets[1] + 1))  # fmt: skip
    with pytest.warns(unbag.union.ImpossibleBagWarning):
        model = network().fit(bags, y)
    assert list(model.relaxed_) == [0]


def test_devices_that_are_not_there():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    model = network().fit(BAGS, Y)
    with pytest.raises(ValueError, match="finds no CUDA device"):
        network(device="cuda").fit(BAGS, Y)
    # Models from a machine with a GPU answer here as well.
    assert accuracy(model.set_params(device="cuda")) > 0.9


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("\n".join(word_lines(30)))
    return path


def test_the_network_on_the_command_line(words, capsys):
    from unbag.cli import main

    model, out = words.with_name("m.unbag"), words.with_name("out.csv")
    for command in (
        ("fit", words, *ROLES, "-o", model, "--model", "network", "--max-iter", "2",
         "--background", "no", "--missed-rate", "learn", "--false-rate", "0.1"),
        ("annotate", model, words, "-o", out),
        ("predict", model, words, "-o", out),
        ("evaluate", model, words),
        ("report", model, words, "-o", words.with_name("report.html")),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as left:
            main(list(map(str, command)))
        assert not left.value.code, capsys.readouterr().err
    assert type(unbag.load(model)) is ORNetwork
    assert unbag.load(model).missed_rate_[0] > 0
    assert "Wrong labels, an estimate:" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(["fit", str(words), "-o", str(model), "--model", "network", "--kernel", "1"])
    assert left.value.code == 2
    assert "--kernel is a setting of linear models" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_fit_learns_where_gradients_are_turned_off(mode):
    expected = network(max_iter=5).fit(BAGS, Y)
    with mode():
        model = network(max_iter=5).fit(BAGS, Y)
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
    assert_equal(answers(model, BAGS, Y), answers(expected, BAGS, Y))


def test_a_fit_does_not_depend_on_the_default_precision():
    expected = network(max_iter=5).fit(BAGS, Y)
    torch.set_default_dtype(torch.float64)
    try:
        model = network(max_iter=5).fit(BAGS, Y)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_equal(answers(model, BAGS, Y), answers(expected, BAGS, Y))


@pytest.mark.parametrize("frozen", [True, False])
def test_an_encoder_may_have_nothing_to_learn(frozen):
    encoder = torch.nn.Linear(BAGS.n_features, 8) if frozen else torch.nn.Identity()
    encoder.requires_grad_(False)
    model = network(encoder=encoder, max_iter=3).fit(BAGS, Y)
    assert model.n_iter_ == 3
    for before, after in zip(encoder.parameters(), model.encoder_.parameters(), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=0)


def test_an_encoder_that_returns_no_rows_of_features_is_refused():
    unflatten = torch.nn.Unflatten(1, (BAGS.n_features, 1))
    with pytest.raises(ValueError, match=r"encoder must return features of shape \(n_instances,"):
        network(encoder=unflatten).fit(BAGS, Y)


@pytest.mark.parametrize("parameters", [{}, {"max_iter": 1}, {"distill": 1}])
def test_steps_that_are_too_long_are_named(parameters):
    for learning_rate in (1e10, 1e30):
        with pytest.raises(ValueError, match="lower learning_rate"):
            network(learning_rate=learning_rate, **parameters).fit(BAGS, Y)
