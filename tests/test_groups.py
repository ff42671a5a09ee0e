"""Labels that name groups of classes, and models that learn from them."""

import pickle

import numpy as np
import pytest

import unbag
from group_bags import made_bags
from unbag import AnyOf, Bags, LabelSets, ORLogisticRegression, Unknown
from unbag.annotations import annotate
from unbag.groups import Groups
from unbag.paper import LSBCMM, MIMLSVM
from unbag.taxonomy import Taxonomy

BIRDS = [
    ("barn owl", "owl", "species"),
    ("tawny owl", "owl", "species"),
    ("owl", "bird", "family"),
    ("robin", "bird", "species"),
    ("wren", "bird", "species"),
]


def test_label_sets_carry_groups():
    labels = LabelSets.parse([{"wren", AnyOf("owl", "hawk")}, {"owl"}, {AnyOf("wren", "owl")}])
    assert labels.classes.tolist() == ["hawk", "owl", "wren"]
    assert labels.groups.to_lists() == [[[0, 1]], [], [[1, 2]]]
    # Who knows nothing of groups takes their classes as unknown.
    assert labels.indicator.tolist() == [[-1, -1, 1], [0, 1, 0], [0, -1, -1]]
    assert labels.to_sets() == [{"wren", AnyOf("hawk", "owl")}, {"owl"}, {AnyOf("owl", "wren")}]
    assert labels[2] == {AnyOf("owl", "wren")}
    assert labels[[2, 0]].groups.to_lists() == [[[1, 2]], [[0, 1]]]
    assert labels[1:2].groups is None
    assert repr(labels) == "LabelSets(3 bags, 3 classes, 2 groups)"
    assert pickle.loads(pickle.dumps(labels)).to_sets() == labels.to_sets()
    assert LabelSets.parse(labels.to_sets()).groups.to_lists() == labels.groups.to_lists()
    stacked = LabelSets.stacked([labels[:1], labels[1:]], labels.classes)
    assert stacked.to_sets() == labels.to_sets()
    assert labels.reindex(["wren", "hawk", "tit", "owl"]).to_sets() == labels.to_sets()
    assert labels.to_cells() == ["wren|hawk/owl", "owl", "owl/wren"]
    with pytest.raises(ValueError, match="'hawk' is in a group of a bag but left out of the new"):
        labels.reindex(["owl", "wren"])


def test_labels_of_groups_are_renamed_and_folded():
    labels = LabelSets.parse([{AnyOf("Owl", "hawk")}], fold_case=True, rename={"hawk": "kestrel"})
    assert labels.to_sets() == [{AnyOf("owl", "kestrel")}]


def test_malformed_groups():
    with pytest.raises(ValueError, match="AnyOf needs labels"):
        AnyOf()
    with pytest.raises(ValueError, match="whose label 'hawk' is not among the classes"):
        LabelSets.parse([{AnyOf("owl", "hawk")}], classes=["owl", "wren"])
    with pytest.raises(ValueError, match="strings or numbers, not both"):
        LabelSets.parse([{AnyOf("owl", 3)}])


def test_a_separator_divides_labels_but_not_names_of_classes():
    sets = [{"owl/hawk"}, {"owl"}, {"hawk"}, {"Alder/Willow Flycatcher"}]
    labels = LabelSets.parse(sets, any_of="/")
    assert labels.to_sets() == [{AnyOf("owl", "hawk")}, *sets[1:]]
    # Without the option, it is a label like others.
    assert LabelSets.parse(sets).to_sets() == sets
    given = ["owl", "hawk", "owl/hawk", "Alder/Willow Flycatcher"]
    assert LabelSets.parse(sets, given, any_of="/").to_sets() == sets


def test_members_that_are_no_class_are_warned_of():
    with pytest.warns(UserWarning, match="'owl/hawk' has members that no bag has"):
        labels = LabelSets.parse([{"owl/hawk"}, {"owl"}], any_of="/")
    assert labels.to_sets() == [{AnyOf("owl", "hawk")}, {"owl"}]
    # It may have been the class that the model does not know.
    with pytest.warns(UserWarning, match="the group is not required"):
        labels = LabelSets.parse([{"owl/hawk"}], ["owl", "wren"], any_of="/")
    assert labels.to_sets() == [{Unknown("owl")}]


def test_a_group_without_any_class_is_an_unknown_label():
    with pytest.raises(ValueError, match="Class 'heron/crane' is present in bag 1"):
        LabelSets.parse([{"owl"}, {"heron/crane"}], ["owl", "wren"], any_of="/")


def test_a_group_without_any_class_is_an_error_that_names_the_bag(run, tmp_path):
    table, model = tmp_path / "birds.csv", tmp_path / "birds.unbag"
    table.write_text("bag,labels,x\na,owl,0\na,owl,1\nb,hawk,9\nc,owl/hawk,8\n")
    assert run("fit", table, "--bag", "bag", "--any-of", "/", "-o", model)[0] == 0
    table.write_text("bag,labels,x\na,owl,0\nb,heron/crane,9\n")
    code, _, stderr = run("annotate", model, table, "-o", tmp_path / "out.csv")
    assert code != 0
    assert "bag b has the unknown label 'heron/crane'" in " ".join(stderr.split())


def test_groups_count_for_each_of_their_classes_in_part(rng):
    bags, sets, _ = made_bags(rng, 40, vague=1.0)
    model = ORLogisticRegression().fit(bags, sets)
    pairs = [AnyOf("hawk", "owl"), AnyOf("robin", "wren")]
    n_pairs = [sum(pair in own for own in sets) for pair in pairs]
    assert model.class_counts_.tolist() == [n // 2 for n in n_pairs for _ in range(2)]


def test_a_name_of_a_taxonomy_means_what_is_below_it(tmp_path):
    sets = [{"owl"}, {"barn owl"}, {"tawny owl"}, {"bird"}, {"wren"}, {Unknown("owl")}]
    table = tmp_path / "birds.csv"
    table.write_text("child,parent,rank\n" + "\n".join(map(",".join, BIRDS)) + "\n")
    expected = [{AnyOf("barn owl", "tawny owl")}, *sets[1:3],
                {AnyOf("barn owl", "tawny owl", "wren")}, {"wren"},
                {Unknown("barn owl"), Unknown("tawny owl")}]  # fmt: skip
    for taxonomy in (BIRDS, table, str(table), {child: parent for child, parent, _ in BIRDS}):
        with pytest.warns(UserWarning, match=r"'bird' has members .* \('robin'\)"):
            labels = LabelSets.parse(sets, taxonomy=taxonomy)
        assert labels.to_sets() == expected
    both = LabelSets.parse([{"owl/wren"}, *sets[1:3], {"wren"}], taxonomy=BIRDS, any_of="/")
    assert both.to_sets()[0] == {AnyOf("barn owl", "tawny owl", "wren")}


def test_a_table_of_groups_and_other(tmp_path):
    table = tmp_path / "groups.csv"
    table.write_text("group;member\nowl;barn owl\nowl;other\n")
    labels = LabelSets.parse([{"owl"}, {"barn owl"}], taxonomy=table)
    assert labels.classes.tolist() == ["barn owl", "other owl"]
    assert labels.to_sets()[0] == {AnyOf("barn owl", "other owl")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,parent\na,b\n", "has no column 'member'"),
        ("child,parent\na,b\nb,a\n", "belongs to itself"),
        ("child,parent\na,a\n", "is its own parent"),
        ("child,parent,rank\na,b,x\na,c,y\n", "has the ranks 'x' and 'y'"),
        ("child,parent\n", "names no parent"),
    ],
)
def test_taxonomies_that_cannot_be_name_the_file(content, message, tmp_path):
    table = tmp_path / "birds.csv"
    table.write_text(content)
    with pytest.raises(ValueError, match=f"birds.csv.*{message}"):
        Taxonomy.of(table)


def test_levels():
    birds = Taxonomy.of(BIRDS)
    assert birds.levels == ("species", "family")
    assert birds.above(["robin"]).rows == (("robin", "bird", "species"),)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"background": True},
        {"background": "auto"},
        {"missed_rate": 0.1, "false_rate": 0.05},
        {"missed_rate": "learn", "false_rate": "learn"},
    ],
    ids=str,
)
def test_models_learn_from_groups(settings, rng):
    bags, sets, truth = made_bags(rng)
    model = ORLogisticRegression(**settings).fit(bags, sets)
    assert (model.predict_instances(bags) == truth).mean() > 0.9
    assert (model.annotate(bags, sets) == truth).mean() > 0.9
    joint = model.annotate(bags, sets, joint=True)
    assert (joint == truth).mean() > 0.9
    proba = model.annotate_proba(bags, sets)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isfinite(model.log_likelihood(bags, sets)).all()
    assert np.isfinite(model.score(bags, sets))
    if not settings:
        for b, labels in enumerate(sets):
            own = set(joint[bags.offsets[b] : bags.offsets[b + 1]])
            assert all(own & (each.labels if isinstance(each, AnyOf) else {each})
                       for each in labels)  # fmt: skip


def test_the_gradient_of_a_fit_vanishes(rng):
    bags, sets, _ = made_bags(rng)
    model = ORLogisticRegression(tol=1e-14, max_iter=4000).fit(bags, sets)
    best, deviations = model.coef_, bags.X.std(axis=0)

    def objective(coef):
        model.coef_ = coef
        return model.log_likelihood(bags, sets).sum() - 0.5 * np.sum((coef * deviations) ** 2)

    for index in np.ndindex(best.shape):
        change = np.zeros_like(best)
        change[index] = 1e-4 / deviations[index[1]]
        slope = (objective(best + change) - objective(best - change)) / 2e-4
        assert slope == pytest.approx(0, abs=1e-3)


def test_impossible_groups_of_a_fit_are_relaxed(rng):
    bags, sets, _ = made_bags(rng)
    b = int(np.argmin(bags.sizes))
    assert bags.sizes[b] == 1
    sets[b] = {AnyOf("hawk", "owl"), AnyOf("robin", "wren")}
    with pytest.warns(unbag.union.ImpossibleBagWarning, match="1 of 80 bags"):
        model = ORLogisticRegression().fit(bags, sets)
    assert set(model.relaxed_[bags.ids[b].item()]) == {"hawk", "owl", "robin", "wren"}
    with pytest.raises(unbag.union.ImpossibleBagError):
        ORLogisticRegression(on_impossible="raise").fit(bags, sets)


def test_scoring_with_classes_that_were_never_seen(rng):
    bags, sets, _ = made_bags(rng, 20)
    model = ORLogisticRegression().fit(bags, sets)
    sets[0] = {AnyOf("owl", "heron")}
    assert np.isfinite(model.score(bags, sets))


def test_labels_are_checked_with_groups(rng):
    bags, sets, _ = made_bags(rng, 40, vague=0.3)
    found = unbag.check_labels(ORLogisticRegression(), bags, sets, cv=2)
    assert len(found)


def test_a_search_learns_from_groups(rng):
    bags, sets, truth = made_bags(rng, 40)
    model = unbag.tune(bags, sets, networks=False)
    assert (model.predict_instances(bags) == truth).mean() > 0.8


@pytest.mark.parametrize("kind", [LSBCMM, MIMLSVM])
def test_other_methods_warn_that_groups_are_unknown_to_them(kind, rng):
    bags, sets, _ = made_bags(rng, 30, vague=0.3)
    said = f"{kind.__name__} cannot learn from labels that say that one of"
    with pytest.warns(UserWarning, match=said):
        kind().fit(bags, sets)


def test_formats_that_cannot_hold_groups_say_so(rng, tmp_path):
    bags, sets, _ = made_bags(rng, 20)
    labels = LabelSets.parse(sets)
    for suffix in ("npz", "arff"):
        with pytest.raises(ValueError, match=f"cannot be written as .{suffix}"):
            unbag.tables.write_bags(tmp_path / f"bags.{suffix}", bags, labels)
    unbag.tables.write_bags(tmp_path / "bags.csv", bags, labels)
    data = unbag.tables.read(tmp_path / "bags.csv", roles=unbag.tables.Roles(any_of="/"))
    assert data.labels.to_sets() == labels.to_sets()


def table_of(bags, sets, truth):
    import polars

    labels = LabelSets.parse(sets)
    columns = {f"x{j}": bags.X[:, j] for j in range(bags.n_features)}
    cells = np.repeat(np.array(labels.to_cells(), dtype=object), bags.sizes)
    ids = np.repeat(bags.ids, bags.sizes)
    return polars.DataFrame({"bag": ids, "labels": list(cells), **columns})


def test_tables_with_a_separator(rng, tmp_path):
    bags, sets, truth = made_bags(rng)
    frame = table_of(bags, sets, truth)
    model = unbag.fit(frame, bag="bag", labels="labels", any_of="/")
    same = unbag.fit(bags, sets)
    np.testing.assert_allclose(model.coef_, same.coef_)
    assert model.roles_["any_of"] == "/"
    model.save(tmp_path / "m.unbag")
    found = unbag.load(tmp_path / "m.unbag").annotate_frame(frame)
    np.testing.assert_array_equal(found["annotation"].to_numpy(), model.annotate(bags, sets))
    # The same out of core.
    folder = tmp_path / "set"
    folder.mkdir()
    frame.write_parquet(folder / "part-0.parquet")
    roles = unbag.tables.Roles(bag="bag", labels="labels", any_of="/")
    stored = unbag.out_of_core.fit(ORLogisticRegression(), folder, roles=roles)
    direct = ORLogisticRegression().fit(bags, sets)
    np.testing.assert_allclose(stored.coef_, direct.coef_, atol=1e-6)
    unbag.out_of_core.annotate(stored, folder, tmp_path / "out.parquet")
    import polars

    written = polars.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_array_equal(written["annotation"].to_numpy(), direct.annotate(bags, sets))


def test_tables_with_a_taxonomy(rng, tmp_path):
    bags, sets, truth = made_bags(rng)
    frame = table_of(bags, sets, truth)
    import polars

    named = frame.with_columns(
        polars.col("labels").str.replace("hawk/owl", "raptor").str.replace("robin/wren", "song")
    )
    taxonomy = {"hawk": "raptor", "owl": "raptor", "robin": "song", "wren": "song"}
    model = unbag.fit(named, bag="bag", labels="labels", taxonomy=taxonomy)
    np.testing.assert_allclose(model.coef_, unbag.fit(bags, sets).coef_)
    found = model.annotate_frame(named)
    np.testing.assert_array_equal(found["annotation"].to_numpy(), model.annotate(bags, sets))


def test_a_model_keeps_its_taxonomy_in_the_spelling_of_its_classes(rng):
    bags, sets, truth = made_bags(rng)
    frame = table_of(bags, sets, truth)
    taxonomy = [("Hawk", "Raptor", "species"), ("owl", "Raptor", "species"),
                ("Raptor", "bird", "order"), ("robin", "bird", "species"),
                ("wren", "bird", "species")]  # fmt: skip
    model = unbag.fit(
        frame, bag="bag", labels="labels", any_of="/", taxonomy=taxonomy, fold_case=True
    )
    assert model.classes_.tolist() == ["hawk", "owl", "robin", "wren"]
    assert ["hawk", "raptor", "species"] in model.roles_["taxonomy"]
    import polars

    # A tag of the order allows all of its classes.
    vague = frame.with_columns(labels=polars.lit("RAPTOR"))
    expected = model.annotate(bags, [{AnyOf("hawk", "owl")}] * len(bags))
    np.testing.assert_array_equal(model.annotate_frame(vague)["annotation"].to_numpy(), expected)
    assert set(expected) == {"hawk", "owl"}
    assert "hawk" not in set(annotate(model, bags, level="order").label)


def test_what_says_nothing_of_the_labels_is_not_taken_in_silence(rng):
    frame = table_of(*made_bags(rng))
    given = {"bag": "bag", "labels": "labels", "any_of": "/"}
    with pytest.warns(UserWarning, match="names none of the labels .*use fold_case=True"):
        unbag.fit(frame, taxonomy={"Owl": "Raptor"}, **given)
    with pytest.raises(ValueError, match=r"any_of= cannot be '\|'"):
        unbag.fit(frame, **{**given, "any_of": "|"})
    with pytest.raises(
        ValueError, match=r"label_separator='/', or any_of='/' if one of them is meant"
    ):
        unbag.fit(frame, bag="bag", labels="labels")


def test_a_class_that_holds_the_separator_within_a_group_is_refused():
    pandas = pytest.importorskip("pandas")
    tags = ["Alder/Willow Flycatcher", "owl", "Alder/Willow Flycatcher/owl"]
    frame = pandas.DataFrame({"bag": [1, 2, 3], "labels": tags, "x": [0.0, 3.0, 3.1]})
    with (
        pytest.warns(UserWarning, match="Willow Flycatcher"),
        pytest.raises(ValueError, match="'Alder/Willow Flycatcher' is not divided, since"),
    ):
        unbag.fit(frame, bag="bag", labels="labels", any_of="/")


def test_groups_are_checked_once():
    groups = Groups.of([[[0, 1]]], 2)
    assert LabelSets([[0, 0]], groups=groups).groups is groups


def test_answers_at_a_level(rng):
    bags, sets, truth = made_bags(rng)
    taxonomy = [("hawk", "raptor", "species"), ("owl", "raptor", "species"),
                ("raptor", "bird", "order"), ("robin", "song", "species"),
                ("wren", "song", "species"), ("song", "bird", "order")]  # fmt: skip
    frame = table_of(bags, sets, truth)
    model = unbag.fit(frame, bag="bag", labels="labels", any_of="/", taxonomy=taxonomy)
    order_of = {"hawk": "raptor", "owl": "raptor", "robin": "song", "wren": "song"}
    orders = np.array([order_of[name] for name in truth], dtype=object)
    labels = LabelSets.parse(sets)
    assert (annotate(model, bags, level="order").label == orders).mean() > 0.9
    assert (annotate(model, bags, labels, level="order").label == orders).mean() > 0.9
    # The probabilities of all classes of an order are added up.
    proba = model.annotate_proba(bags, sets)
    of_raptors = proba[:, [order_of[name] == "raptor" for name in model.classes_]].sum(axis=1)
    found = model.annotate_frame(frame, level="order")
    np.testing.assert_array_equal(found["annotation"] == "raptor", of_raptors > 0.5)
    backed = model.annotate_frame(frame, back_off=0.99)
    names = backed["annotation"].to_numpy()
    best, sure = model.classes_[proba.argmax(axis=1)], proba.max(axis=1) >= 0.99
    np.testing.assert_array_equal(names[sure], best[sure])
    assert not set(names[~sure]) & set(order_of)
    assert (backed["probability"].to_numpy() >= 0.99).all()
    with pytest.raises(ValueError, match="no rank 'genus'"):
        annotate(model, bags, level="genus")
    with pytest.raises(ValueError, match="need a taxonomy"):
        annotate(ORLogisticRegression().fit(bags, sets), bags, level="order")
    from unbag.evaluation import evaluate

    known = np.ones(len(truth), dtype=bool)
    levels = evaluate(model, bags, LabelSets.parse(sets), (truth.astype(object), known))["levels"]
    assert list(levels) == ["species", "order"]
    assert levels["order"]["inductive_accuracy"] >= levels["species"]["inductive_accuracy"] > 0.9
    assert levels["order"]["transductive_accuracy"] > 0.9


class OfProbabilities(ORLogisticRegression):
    """A model whose instances are their probabilities."""

    def predict_instances_proba(self, X):
        return np.asarray(X.X)


def test_tables_have_the_likeliest_name_of_a_level():
    model = OfProbabilities()
    model.classes_ = np.array(["barn owl", "tawny owl", "wren"], dtype=object)
    model.class_counts_ = np.full(3, 9)
    model.conditioner_ = unbag.union.Conditioner(background=True)
    model.roles_ = {"taxonomy": [*BIRDS[:3], ("wren", "songbird", "species"),
                                 ("songbird", "bird", "family")]}  # fmt: skip
    # No owl is as probable as a wren, or as the background; but some owl is.
    proba = np.array([[0.3, 0.3, 0.4, 0.0], [0.3, 0.35, 0.0, 0.35], [0.1, 0.1, 0.2, 0.6],
                      [0.95, 0.03, 0.0, 0.02]])  # fmt: skip
    bags = Bags(proba, [0, 4])
    found = annotate(model, bags, level="family")
    assert found.label.tolist() == ["owl", "owl", None, "owl"]
    np.testing.assert_allclose(found.probability, [0.6, 0.65, 0.6, 0.98])
    assert found.second_label.tolist() == ["songbird", None, "owl", None]
    np.testing.assert_allclose(found.second_probability, [0.4, 0.35, 0.2, 0.02])
    assert found.status.tolist() == ["labelled", "labelled", "background", "labelled"]
    # What belongs to the label is not the second choice.
    found = annotate(model, bags, back_off=0.6)
    assert found.label.tolist() == ["owl", "owl", None, "barn owl"]
    assert found.second_label.tolist() == ["wren", None, "wren", "tawny owl"]
    np.testing.assert_allclose(found.second_probability, [0.4, 0.35, 0.2, 0.03])
    with pytest.raises(ValueError, match="joint"):
        annotate(model, bags, LabelSets.parse([{"wren"}], model.classes_), joint=True, level="x")


def test_too_many_overlapping_groups_of_a_fit_are_relaxed(rng):
    names = [f"c{c:02}" for c in range(18)]
    bags = Bags.from_list([rng.normal(size=(20, 3)) for _ in range(6)])
    sets = [{AnyOf(names[c], names[c + 1]) for c in range(17)}, *({name} for name in names[:5])]
    with pytest.warns(unbag.union.IntractableBagWarning):
        model = ORLogisticRegression(classes=names, max_iter=20, tol=1e-2).fit(bags, sets)
    assert len(model.relaxed_) == 1
    with pytest.raises(unbag.union.IntractableBagError, match="has 17 required labels"):
        ORLogisticRegression(classes=names, on_intractable="raise").fit(bags, sets)
