import pytest

from unbag_reproduce.reproduce import reproduce
from unbag_reproduce.studies.datasets import compared


@pytest.mark.parametrize(
    ("ours", "published", "decimals", "text", "difference"),
    [
        (717, 717, 0, "717 (717)", 0),
        (3.923, 3.9, 1, "3.9 (3.9)", 0),
        (3.96, 3.9, 1, "4.0 (3.9)", 0.1),
        (2.02, None, 1, "2.0", None),
    ],
)
def test_figures_are_compared_as_printed(ours, published, decimals, text, difference):
    assert compared(ours, published, decimals) == (text, difference)


def test_the_letters_have_the_published_sizes(tmp_path):
    table, labels = reproduce("datasets", ["letter-carroll", "letter-frost"], out=tmp_path)
    assert table.header[1:] == [
        "classes", "features", "bags", "instances", "instances per bag", "labels per bag",
    ]  # fmt: skip
    assert table.body == [
        [
            "Carroll", "24 (24)", "16 (16)", "166 (166)", "717 (717)", "4.3 (4.3)",
            "3.9 (3.9)",
        ],
        [
            "Frost", "24 (24)", "16 (16)", "144 (144)", "565 (565)", "3.9 (3.9)",
            "3.6 (3.6)",
        ],
    ]  # fmt: skip
    assert [record["difference"] for record in table.records] == [0] * 12
    assert "12 of 12 figures agree" in table.notes[0]
    assert (tmp_path / "datasets" / "datasets.csv").read_text().count("\n") == 13
    assert labels.header[1:] == ["most labels of a bag", "bags of 10 labels or more"]
    assert all(int(most) > 9 and 0 < int(few) < 10 for _, most, few in labels.body)
