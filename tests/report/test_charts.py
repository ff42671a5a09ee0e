"""Charts: values in their places, round ticks, and names that stand clear of them."""

import re

import numpy as np
import pytest

from unbag.report.charts import axis, calibration_chart, histogram


def test_charts_hold_their_values():
    bars = histogram([0, 5, 10], [0, 1, 2, 3], x_label="x", y_label="y", title="t")
    heights = [float(h) for h in re.findall(r'height="([\d.]+)"><title>', bars)]
    assert heights[0] == 0
    assert heights[2] == pytest.approx(2 * heights[1], rel=0.01)
    points = calibration_chart([0.5, np.nan], [0.4, np.nan], [3, 0], title="t")
    assert points.count("<circle") == 1


@pytest.mark.parametrize("high", [1, 2, 5, 7, 77, 458, 1000, 98_765, 1_234_567, 10**9])
@pytest.mark.parametrize("whole", [True, False])
def test_ticks_are_round_few_and_told_apart(high, whole):
    found = axis("x", high, whole=whole)
    assert 2 <= len(found.ticks) <= 8
    assert len(set(found.texts)) == len(found.texts)
    assert found.ticks[0] == 0
    assert max(high, found.ticks[-1]) <= found.high
    step = found.ticks[1]
    first_digit = float(f"{step:.0e}".partition("e")[0])
    assert first_digit in (1, 2, 5)
    for tick, text in zip(found.ticks, found.texts, strict=True):
        assert tick / step == pytest.approx(round(tick / step), abs=1e-4)
        assert float(text.replace(",", "")) == pytest.approx(tick, rel=1e-4, abs=step / 100)


def test_counts_have_no_ticks_between_them():
    assert axis("instances", 1, whole=True).texts == ["0", "1"]


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e9])
def test_long_numbers_stand_clear_of_the_name_of_their_axis(scale):
    counts = [int(12 * scale), int(scale)]
    chart = histogram(counts, [0, 1, 2], x_label="probability", y_label="instances", title="t")
    name_ends_at = float(re.search(r"translate\(([\d.]+) ", chart).group(1)) + 4
    ticks = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="tick end">([^<]+)<', chart)
    assert len(ticks) > 2
    for right, text in ticks:
        # Digits of 11 pixels are 6.4 wide in the usual fonts.
        assert float(right) - 6.4 * len(text) > name_ends_at


def test_names_and_titles_are_escaped():
    names = {"x_label": "<x>", "y_label": '"y"&', "title": '"><script>'}
    chart = histogram([1, 2], [0, 1, 2], **names)
    assert "<script>" not in chart
    assert "<x>" not in chart
    assert "&lt;x&gt;" in chart
