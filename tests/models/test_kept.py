"""Model files that were kept: what a release has written, the next ones read."""

import json

import numpy as np
import pytest

import unbag
from keep_models import KEPT, RECIPES, all_answers, new_encoder
from unbag import Bags
from unbag.models import container
from unbag.models.container import FORMAT, OLDEST_FORMAT
from unbag.models.kinds import KINDS

FILES = sorted(KEPT.glob("*/*.unbag"))


def kinds_in(node):
    """Names of all kinds of values in a part of a header."""
    if isinstance(node, dict):
        found = {node["is"]} if isinstance(node.get("is"), str) else set()
        return found.union(*map(kinds_in, node.values()))
    return set().union(*map(kinds_in, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kept_models_answer_as_they_did(path):
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    bags = Bags(kept["X"], kept["offsets"], feature_names=["pitch", "length"])
    found = all_answers(unbag.load(path, encoder=new_encoder(path.stem)), bags, kept["labels"])
    assert found.keys() == kept["answers"].keys()
    for method, expected in kept["answers"].items():
        if np.array(expected).dtype.kind == "f":
            np.testing.assert_allclose(found[method], expected, rtol=1e-7, atol=1e-9)
        else:
            assert found[method] == expected, method


@pytest.mark.parametrize("number", range(OLDEST_FORMAT, FORMAT + 1))
def test_every_format_that_is_read_is_kept(number):
    kept = {path.stem for path in FILES if path.parent.name == f"format-{number}"}
    assert kept >= RECIPES.keys() or number < FORMAT
    assert kept, "python tests/keep_models.py keeps the files of a new format"


def test_every_kind_is_kept():
    current = [path for path in FILES if path.parent.name == f"format-{FORMAT}"]
    kept = set().union(*(kinds_in(container.read(path)[0]["model"]) for path in current))
    assert kept >= KINDS.keys(), "add a recipe to tests/keep_models.py and run it"


def test_a_later_release_reads_older_formats(monkeypatch, tmp_path):
    monkeypatch.setattr("unbag.models.container.FORMAT", FORMAT + 1)
    model = unbag.load(KEPT / f"format-{FORMAT}" / "BagPipeline.unbag")
    model.save(tmp_path / "newer.unbag")
    assert container.read_header(tmp_path / "newer.unbag")["format"] == FORMAT + 1
