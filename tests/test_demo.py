"""The demo: what its picture shows, and says that it shows."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from unbag.bags import Bags
from unbag.demo import draw, recordings

N_BAGS, SIZE = 12, 5


class Oracle:
    """A model that knows every digit, but for one of the bags where it is told to err."""

    def __init__(self, bags, wrong_bags):
        self.labels = bags.instance_labels.copy()
        for b in wrong_bags:
            i = bags.offsets[b] + 1
            self.labels[i] = (self.labels[i] + 1) % 10

    def annotate(self, bags, y, joint=False):
        return self.labels

    def annotate_proba(self, bags, y):
        return np.eye(10)[self.labels]


@pytest.fixture
def digits():
    """Dark images, so that what is cut off shows; every digit of a bag is another one."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.permutation(10)[:SIZE] for _ in range(N_BAGS)])
    bags = Bags(
        np.tile(np.arange(64.0) % 2 + 15, (N_BAGS * SIZE, 1)),
        np.arange(N_BAGS + 1) * SIZE,
        instance_labels=labels,
    )
    y = np.zeros((N_BAGS, 10), dtype=int)
    y[np.repeat(np.arange(N_BAGS), SIZE), labels] = 1
    return bags, y


@pytest.fixture
def picture(digits, tmp_path):
    """Draw the digits; return the pixels, and how many of them are red."""
    from matplotlib import colors, image

    def drawn(wrong_bags):
        bags, y = digits
        draw(Oracle(bags, wrong_bags), bags, y, tmp_path / "digits.png")
        pixels = image.imread(tmp_path / "digits.png")[..., :3]
        red = np.abs(pixels - colors.to_rgb("#b2182b")).max(axis=2) < 0.02
        return pixels, red.sum()

    return drawn


@pytest.mark.parametrize(("wrong_bags", "is_red"), [([], False), ([2], True)])
def test_a_mistake_is_drawn_in_red(picture, wrong_bags, is_red):
    _, n_red = picture(wrong_bags)
    assert (n_red > 10) == is_red


def test_nothing_is_cut_off(picture):
    pixels, _ = picture([])
    margin = 6
    for edge in (pixels[:margin], pixels[-3 * margin :], pixels[:, :margin], pixels[:, -margin:]):
        assert (edge == 1).all()


def test_the_demo_of_recordings_writes_what_its_commands_write(tmp_path, capsys):
    pytest.importorskip("soundfile", reason="the extra audio is not installed")
    from unbag.cli import main

    found = recordings(tmp_path / "demo", n_recordings=30)
    right = found["accuracies"]
    assert right["learnt from the tags of the recordings"] > 0.8
    assert right["tags copied at random"] < 0.6
    commands = [
        line[2:].split() for line in capsys.readouterr().out.splitlines() if line[:1] == "$"
    ]
    assert [words[1] for words in commands] == ["extract", "fit", "annotate", "report"]
    before = {path.name: path.stat().st_size for path in (tmp_path / "demo").iterdir()}
    assert {"annotated.selections.txt", "annotated.parquet", "report.html"} <= before.keys()
    rows = pq.read_table(tmp_path / "demo" / "annotated.parquet")
    for words in commands:
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert not left.value.code
    after = {path.name: path.stat().st_size for path in (tmp_path / "demo").iterdir()}
    assert after.keys() == before.keys()
    assert pq.read_table(tmp_path / "demo" / "annotated.parquet").equals(rows)
