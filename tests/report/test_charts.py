"""Charts: values in their places, round ticks, and names that stand clear of them."""

import re

import numpy as np
import pytest

from unbag.report.charts import axis, calibration_chart, histogram, line_chart


def test_charts_hold_their_values():
    line = line_chart([1.0, 3.0, 2.0], x_label="x", y_label="y", title="Three <values>")
    assert line.count(",") >= 3
    assert "Three &lt;values&gt;" in line
    bars = histogram([0, 5, 10], [0, 1, 2, 3], x_label="x", y_label="y", title="t")
    heights = [float(h) for h in re.findall(r'height="([\d.]+)"><title>', bars)]
    assert heights[0] == 0
    assert heights[2] == pytest.approx(2 * heights[1], rel=0.01)
    points = calibration_chart([0.5, np.nan], [0.4, np.nan], [3, 0], title="t")
    assert points.count("<circle") == 1


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-935.2, -318.1), (0, 458), (1, 77), (-1_234_567.8, -98.1), (-318.1242, -318.1193), (0, 1),
        (3e-7, 4e-7), (-1e20, -1e17), (5, 5), (0, 0), (-1e-300, 0), (1e6, 1e6 + 1e-9),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ends_at_ticks", [True, False])
def test_ticks_are_round_few_and_told_apart(low, high, ends_at_ticks):
    found = axis("x", low, high, ends_at_ticks=ends_at_ticks)
    assert 2 <= len(found.ticks) <= 8
    assert len(set(found.texts)) == len(found.texts)
    assert found.low <= low <= high <= found.high
    step = found.ticks[1] - found.ticks[0]
    first_digit = float(f"{step:.0e}".partition("e")[0])
    assert first_digit in (1, 2, 5)
    for tick, text in zip(found.ticks, found.texts, strict=True):
        assert tick / step == pytest.approx(round(tick / step), abs=1e-4)
        assert float(text.replace(",", "")) == pytest.approx(tick, rel=1e-4, abs=step / 100)


def test_counts_have_no_ticks_between_them():
    assert axis("instances", 0, 1, whole=True, ends_at_ticks=True).texts == ["0", "1"]
    assert axis("iteration", 1, 3, whole=True).texts == ["1", "2", "3"]


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e9])
def test_long_numbers_stand_clear_of_the_name_of_their_axis(scale):
    values = [-12.34567 * scale, -1.2 * scale]
    chart = line_chart(values, x_label="iteration", y_label="log-likelihood", title="t")
    name_ends_at = float(re.search(r"translate\(([\d.]+) ", chart).group(1)) + 4
    ticks = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="tick end">([^<]+)<', chart)
    assert len(ticks) > 2
    for right, text in ticks:
        # Digits of 11 pixels are 6.4 wide in the usual fonts.
        assert float(right) - 6.4 * len(text) > name_ends_at


def test_names_and_titles_are_escaped():
    chart = line_chart([1.0, 2.0], x_label="<x>", y_label='"y"&', title='"><script>')
    assert "<script>" not in chart
    assert "<x>" not in chart
    assert "&lt;x&gt;" in chart
