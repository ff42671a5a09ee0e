"""Bags as reports and reviews show them: tags, groups of classes among them, and time lines."""

import re

import numpy as np
import pytest

from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.report import render
from unbag.report.bag_view import MOST_MARKS, tag_views, timeline, views_of
from unbag.report.clips import Place
from unbag.report.outlines import Outline


@pytest.fixture(scope="module")
def birds():
    """Bags of two instances, of which one is tagged with a group, and a model."""
    X = [[0.0], [9.0], [0.2], [9.1], [5.0], [0.1], [8.8], [5.2]]
    bags = Bags(X, [0, 2, 4, 6, 8], ids=["a", "b", "c", "d"])
    sets = [[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    groups = [[[0, 2]], [[0, 2]], [], []]
    labels = LabelSets(sets, ["hawk", "owl", "wren"], groups=groups)
    return bags, labels, ORLogisticRegression(background=False).fit(bags, labels)


def test_tags_come_in_one_order_and_groups_count_all_of_their_classes(birds):
    _, labels, _ = birds
    expected = {"hawk": 0.75, "owl": 1.0, "wren": 0.25}
    assert views_of(labels, 0, expected) == [
        {"label": "owl", "text": "owl", "state": "present", "members": ["owl"], "expected": 1.0},
        {"label": "hawk/wren", "text": "hawk or wren", "state": "present",
         "members": ["hawk", "wren"], "expected": 1.0},
    ]  # fmt: skip
    names = {frozenset({"hawk", "wren"}): "bird"}
    assert views_of(labels, 0, expected, names)[1]["text"] == "bird"


def test_a_bag_that_nobody_has_looked_at_lists_no_class():
    states, names = np.full(3, -1), ["a", "b", "c"]
    assert tag_views(states, names, {}, is_open=True) == []
    assert [each["label"] for each in tag_views(states, names, {})] == names


def test_a_time_line_marks_what_is_in_time():
    places = [Place(1.0, 2.0, 1000.0, 2000.0), None, Place(float("nan"), 3.0), Place(3.0, 5.0),
              Place(4.0, 4.0), Outline([[(0, 0)]], 4, 4)]  # fmt: skip
    found = timeline(places)
    assert (found.seconds, found.n_instances) == (5.0, 2)
    assert re.findall(r'data-place="(\d+)"', found.drawing) == ["0", "3"]
    x, width = (
        float(re.search(rf' {name}="([\d.]+)"', found.drawing)[1]) for name in ("x", "width")
    )
    assert (x, width) == (200.0, 200.0)
    assert timeline([None, Outline([[(0, 0)]], 4, 4)]) is None
    assert timeline([]) is None


def test_a_time_line_is_bounded():
    found = timeline([Place(i, i + 1.0) for i in range(3 * MOST_MARKS)])
    assert found.n_instances == MOST_MARKS
    assert len(found.drawing) < 120 * MOST_MARKS


def test_the_report_shows_tags_groups_and_time_lines(birds):
    bags, labels, model = birds
    places = [Place(2.0 * i, 2.0 * i + 1.0, 500.0, 900.0) for i in (0, 1) * 4]
    page = render(model, bags, labels, media=[None] * 8, places=places)
    assert page.count('class="timeline" role="img"') == len(bags)
    assert "Time line of 3.0 seconds with 2 instances" in page
    assert page.count('<span class="name">hawk or wren</span>') == 2
    # One of the instances of the first bag is an owl, the other one of the two.
    assert re.search(r'"name">hawk or wren</span> <small title="about 1\.0 instances">×1\.0', page)
    for mark in re.findall(r'<rect data-place="(\d+)"', page):
        assert f'<li data-place="{mark}"' in page


def test_a_report_without_labels_or_places_has_neither(birds):
    bags, _, model = birds
    page = render(model, bags)
    assert 'class="tags"' not in page
    assert 'class="timeline"' not in page
