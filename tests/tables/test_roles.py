"""Roles, from TOML files and from each other."""

import pytest

from unbag.tables import DataError, Roles


def test_from_toml(tmp_path):
    path = tmp_path / "roles.toml"
    path.write_text('bag = "night"\nfeatures = ["a", "b"]\nlabel_table = "labels.csv"\n')
    roles = Roles.from_toml(path)
    assert roles == Roles(bag="night", features=("a", "b"), label_table=tmp_path / "labels.csv")
    path.write_text('[roles]\nlabels = "species"\nlabel_separator = ";"\n')
    assert Roles.from_toml(path) == Roles(labels="species", label_separator=";")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bag = ", "is not a TOML file"),
        ('bags = "night"', "no role 'bags'.*mean 'bag'"),
        ("bag = 3", "must be one name"),
        ("features = 3", "must be a name or a list of them, not 3"),
        ('bag = "a"\nlabels = "a"', "both bag and labels"),
        ('label_separator = ""', "must not be empty"),
        ("label_table = 3", "must be the name"),
        ("roles = 3", "no role 'roles'"),
    ],
)
def test_bad_toml(tmp_path, text, message):
    path = tmp_path / "roles.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        Roles.from_toml(path)
    assert str(path) in str(caught.value)


def test_no_toml(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        Roles.from_toml(tmp_path / "roles.toml")


def test_what_is_named_wins_over_roles():
    old = Roles(bag="a", labels="b", carry=["c"], label_separator=";")
    assert old.overridden_by(Roles()) == old
    named = Roles(bag="z", label_separator="|")
    assert old.overridden_by(named) == Roles("z", "b", carry=["c"], label_separator="|")
    assert Roles.given(old, bag="z", label_separator="|") == old.overridden_by(named)
    assert Roles.given(None, bag="z") == Roles("z")
    assert old.overridden_by(Roles(label_table="t.csv")).labels is None
    assert Roles(label_table="t.csv").overridden_by(Roles(labels="x")).label_table is None


def test_roles_that_are_none_are_refused():
    with pytest.raises(DataError, match=r"roles must be unbag\.tables\.Roles, not a dict"):
        Roles.given({"bag": "a"}, labels="b")
    with pytest.raises(TypeError, match="unexpected keyword argument 'lables'"):
        Roles.given(None, lables="b")


@pytest.mark.parametrize("role", ["features", "carry"])
@pytest.mark.parametrize("typed", ["", " , "])
def test_options_that_name_no_column_are_refused(role, typed):
    with pytest.raises(DataError, match=f"^{role}= names no column"):
        Roles.from_options(**{role: typed})


def test_a_source_of_labels_takes_the_place_of_another():
    remembered = Roles(labels="tags", unknown="may")
    assert remembered.overridden_by(Roles(label_columns=["is_*"])).labels is None
    assert Roles(label_columns=["is_*"]).overridden_by(Roles(labels="tags")).label_columns is None
