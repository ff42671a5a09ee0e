"""MIML ARFF files, read and written."""

from small_tables import TOY
from unbag import Bags, LabelSets, Unknown
from unbag.tables import read, write_bags
from unbag.tables.table import open_source


def test_a_published_kind_of_arff(tmp_path):
    (tmp_path / "toy.arff").write_text(TOY)
    table = read(tmp_path / "toy.arff")
    assert table.bags.ids.tolist() == ["bag1", "bag2", "bag 3"]
    assert table.bags.sizes.tolist() == [3, 2, 0]
    assert table.bags.feature_names.tolist() == ["f1", "f 2", "f3"]
    assert table.bags[1].tolist() == [[11.25, -98, 10], [31, 40.5, 7.85]]
    assert table.labels.classes.tolist() == ["label1", "label2", "label 3"]
    assert table.labels.to_sets() == [{"label1"}, {"label2", Unknown("label 3")}, set()]
    assert table.rows.tolist() == [0, 1, 2, 3, 4]


def test_labels_listed_in_xml(tmp_path):
    text = TOY.replace("label2 { 0, 1 }", "weather {0,1}").replace("id {bag1", "label0 {bag1")
    (tmp_path / "toy.arff").write_text(text)
    xml = '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">'
    nested = '<label name="label1"><label name="label 3"></label></label></labels>'
    (tmp_path / "toy.xml").write_text(xml + nested)
    table = read(tmp_path / "toy.arff")
    assert table.labels.classes.tolist() == ["label1", "label 3"]
    (tmp_path / "toy.xml").rename(tmp_path / "labels.xml")
    assert read(tmp_path / "toy.arff").labels.classes.size == 3


def test_what_arff_looks_like(tmp_path):
    bags = Bags([[1.0, 2.5], [3.0, 4.0]], [0, 2], ids=["dawn"], feature_names=["a", "b c"])
    write_bags(tmp_path / "t.arff", bags, LabelSets([[1, 0]], ["wren", "owl"]))
    assert (tmp_path / "t.arff").read_text().splitlines() == [
        "@relation bags",
        "",
        "@attribute bagid {dawn}",
        "@attribute bag relational",
        "  @attribute a numeric",
        "  @attribute 'b c' numeric",
        "@end bag",
        "@attribute wren {0,1}",
        "@attribute owl {0,1}",
        "",
        "@data",
        r'dawn,"1.0,2.5\n3.0,4.0",1,0',
    ]


def test_a_dry_look_at_arff_says_as_much_as_one_at_text(tmp_path):
    (tmp_path / "t.arff").write_text(
        "@relation birds\n@attribute night string\n@attribute bag relational\n"
        "  @attribute pitch numeric\n  @attribute owl numeric\n@end bag\n"
        "@attribute owl {0,1}\n@attribute wren {0,1}\n@data\n"
        '% a comment\na,"1,2\\n3,4",1,0\nb,"5,6",0,1\n'
    )
    found = open_source(tmp_path / "t.arff").peek()
    assert found.n_rows == 2
    assert found.is_wide
    assert found.roles.bag == "night"
    assert found.roles.label_columns == ("owl", "wren")
    assert found.roles.features == ("pitch", "bag.owl")
