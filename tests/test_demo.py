"""The demo: what its picture shows, and says that it shows."""

import numpy as np
import pytest

from unbag.bags import Bags
from unbag.demo.digits import MISTAKE_COLOUR, bags_to_draw, caption, draw

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
        red = np.abs(pixels - colors.to_rgb(MISTAKE_COLOUR)).max(axis=2) < 0.02
        return pixels, red.sum()

    return drawn


@pytest.mark.parametrize(("wrong_bags", "is_red"), [([], False), ([2], True), ([11], True)])
def test_a_mistake_is_drawn_in_red_wherever_it_is(picture, wrong_bags, is_red):
    _, n_red = picture(wrong_bags)
    assert (n_red > 10) == is_red


def test_nothing_is_cut_off(picture):
    pixels, _ = picture([])
    margin = 6
    for edge in (pixels[:margin], pixels[-3 * margin :], pixels[:, :margin], pixels[:, -margin:]):
        assert (edge == 1).all()


def test_the_first_bags_are_drawn_and_one_with_a_mistake():
    has_mistake = np.zeros(9, dtype=bool)
    assert bags_to_draw(has_mistake, 4).tolist() == [0, 1, 2, 3]
    has_mistake[6:] = True
    assert bags_to_draw(has_mistake, 4).tolist() == [0, 1, 2, 6]
    has_mistake[1] = True
    assert bags_to_draw(has_mistake, 4).tolist() == [0, 1, 2, 3]
    assert bags_to_draw(has_mistake[:2], 4).tolist() == [0, 1]


def test_the_caption_promises_no_red_where_there_is_none():
    wrong = np.array([False, False, True])
    assert "mistakes in red: 1 of these 3 digits" in caption(wrong, wrong)
    assert "no mistake in these 2 digits; 1 of all 3" in caption(wrong[:2], wrong)


def test_the_demo_of_recordings_writes_what_its_commands_write(tmp_path, capsys):
    pytest.importorskip("soundfile", reason="pip install 'unbag[audio]'")
    from unbag.cli import main
    from unbag.demo.recordings import run

    found = run(tmp_path / "demo", n_recordings=30)
    right = found["accuracies"]
    assert right["learnt from the tags of the recordings"] > 0.8
    assert right["tags copied at random"] < 0.6
    commands = [
        line[2:].split() for line in capsys.readouterr().out.splitlines() if line[:1] == "$"
    ]
    assert [words[1] for words in commands] == ["extract", "fit", "annotate", "report"]
    before = {path.name: path.stat().st_size for path in (tmp_path / "demo").iterdir()}
    assert {"annotated.selections.txt", "annotated.parquet", "report.html"} <= before.keys()
    for words in commands:
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert not left.value.code
    after = {path.name: path.stat().st_size for path in (tmp_path / "demo").iterdir()}
    assert after.keys() == before.keys()


# It takes about half a minute.
@pytest.mark.slow
def test_the_demo_of_signals_writes_what_its_commands_write(tmp_path, capsys):
    from unbag.cli import main
    from unbag.demo.sensors import run

    found = run(tmp_path / "demo", n_recordings=30)
    right = found["accuracies"]
    assert right["learnt from the tags of the recordings"] > 0.6
    assert right["tags copied at random"] < 0.6
    commands = [
        line[2:].split() for line in capsys.readouterr().out.splitlines() if line[:1] == "$"
    ]
    assert [words[1] for words in commands] == ["extract", "fit", "annotate", "report"]
    before = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"windows.parquet", "annotated.parquet", "report.html"} <= before
    drawn = (tmp_path / "demo/report.html").read_text().count('<svg class="trace"')
    for words in commands:
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert not left.value.code
    assert {path.name for path in (tmp_path / "demo").iterdir()} == before
    again = (tmp_path / "demo/report.html").read_text().count('<svg class="trace"')
    assert drawn == again > 100


# It takes about half a minute.
@pytest.mark.slow
def test_the_demo_of_pictures_writes_what_its_commands_write(tmp_path, capsys):
    pytest.importorskip("PIL", reason="pip install 'unbag[images]'")
    pytest.importorskip("skimage", reason="pip install 'unbag[images]'")
    from unbag.cli import main
    from unbag.demo.pictures import run

    found = run(tmp_path / "demo", n_pictures=30)
    right = found["accuracies"]
    assert right["learnt from the tags of the pictures"] > 0.7
    assert right["tags copied at random"] < 0.6
    commands = [
        line[2:].split() for line in capsys.readouterr().out.splitlines() if line[:1] == "$"
    ]
    assert [words[1] for words in commands] == ["extract", "fit", "annotate", "report"]
    before = {path.name: path.stat().st_size for path in (tmp_path / "demo").iterdir()}
    assert {"regions.parquet", "annotated.parquet", "report.html"} <= before.keys()
    for words in commands:
        with pytest.raises(SystemExit) as left:
            main(words[1:])
        assert not left.value.code
    after = {path.name: path.stat().st_size for path in (tmp_path / "demo").iterdir()}
    assert after.keys() == before.keys()
    assert after["annotated.parquet"] == before["annotated.parquet"]
