"""The report: what it says, and that it works in a real browser."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.annotations import annotate
from unbag.datasets import load_letter_frost
from unbag.report import render, write_report
from unbag.report.charts import calibration_chart, histogram, line_chart
from unbag.report.content import Media, ambiguous_bags

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def letters():
    """Named bags of letters, their label sets, and a model."""
    data = load_letter_frost()
    names = data.class_names.astype(object)
    bags = Bags(
        data.bags.X, data.bags.offsets, instance_labels=names[data.instance_labels],
        feature_names=data.feature_names, ids=[f"word {b}" for b in range(len(data.bags))],
    )  # fmt: skip
    labels = LabelSets(data.y, data.class_names)
    return bags, labels, ORLogisticRegression(max_iter=30).fit(bags, labels)


def test_annotations_say_what_the_model_says(letters):
    bags, labels, model = letters
    answers = annotate(model, bags, labels)
    proba = model.annotate_proba(bags, labels)
    np.testing.assert_array_equal(answers.label, model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(answers.probability, proba.max(axis=1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(answers.second_probability, np.sort(proba)[:, -2], atol=1e-15)
    entropy = -(proba * np.log2(np.where(proba > 0, proba, 1))).sum(axis=1)
    np.testing.assert_allclose(answers.entropy, entropy, atol=1e-12)
    assert answers.entropy[answers.review].min() >= answers.entropy[~answers.review].max()
    assert answers.review.sum() == round(0.05 * bags.n_instances)


def test_blocks_do_not_change_answers(letters, monkeypatch):
    bags, labels, model = letters
    whole = annotate(model, bags, labels).columns()
    monkeypatch.setattr("unbag.annotations.BLOCK", 17)
    calls = []
    pieces = annotate(model, bags, labels, progress=lambda *done: calls.append(done)).columns()
    for name, values in whole.items():
        np.testing.assert_array_equal(pieces[name], values)
    assert len(calls) > 20
    assert calls[-1] == (bags.n_instances, bags.n_instances)


def test_impossible_bags_are_flagged(letters):
    bags, labels, model = letters
    impossible = labels.indicator.copy()
    impossible[3] = 1
    answers = annotate(model, bags, LabelSets(impossible, labels.classes))
    assert np.flatnonzero(answers.impossible).tolist() == [3]
    assert answers.review[bags.offsets[3] : bags.offsets[4]].all()
    page = render(model, bags, LabelSets(impossible, labels.classes))
    assert "1 bags have label sets that no labelling" in page
    assert "impossible label set" in page


def test_impossible_bags_come_first_then_the_least_certain(letters):
    bags, labels, model = letters
    few = bags[:6]
    answers = annotate(model, few, labels[:6])
    mistakes = np.add.reduceat(1 - answers.probability, few.offsets[:-1])
    surest, *others = np.argsort(mistakes)
    indicator = labels.indicator[:6].copy()
    indicator[surest] = 1
    impossible = LabelSets(indicator, labels.classes)
    answers = annotate(model, few, impossible)
    found = ambiguous_bags(model, few, impossible, answers, None, Media(None))
    assert [bag["id"] for bag in found] == few.ids[[surest, *others[::-1]]].tolist()


def test_a_model_without_probabilities_is_refused(letters):
    from unbag import DummyInstances

    bags, labels, _ = letters
    with pytest.raises(ValueError, match="DummyInstances gives instances no probabilities"):
        annotate(DummyInstances().fit(bags, labels), bags, labels)


def test_the_page_needs_no_network_and_says_what_it_knows(letters):
    bags, labels, model = letters
    page = render(model, bags, labels, title="Words <of> a poem", settings={"table": "words.csv"})
    assert "Words &lt;of&gt; a poem" in page
    assert "words.csv" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "@import" not in page
    assert "Calibration" in page
    bare = Bags(bags.X, bags.offsets, feature_names=bags.feature_names)
    unknown = render(model, bare)
    assert "Calibration against" not in unknown
    assert "What the bags contain is not known" in unknown


def test_pictures_and_sounds_are_put_into_the_page_once(letters, tmp_path):
    bags, labels, model = letters
    (tmp_path / "letter.png").write_bytes(b"\x89PNG tiny")
    (tmp_path / "song.wav").write_bytes(b"RIFF tiny")
    media = [
        str(tmp_path / ("letter.png" if i % 2 else "song.wav")) for i in range(bags.n_instances)
    ]
    page = render(model, bags, labels, media=media)
    assert page.count("data:image/png;base64,") == 1
    assert len(re.findall("data:audio/[^;]*;base64,", page)) == 1
    assert "<audio controls" in page


def test_media_of_a_stranger_are_only_shown_if_they_are_pictures_or_sounds(letters):
    bags, labels, model = letters
    strange = ["javascript:alert(1).foo", "/etc/passwd", "x" * 300 + ".png", "https://e.org/a.png"]
    media = [strange[i % 4] for i in range(bags.n_instances)]
    page = render(model, bags, labels, media=media)
    assert '"javascript' not in page
    assert "(not found)" in page
    assert '<script type="application/json" id="media">[]</script>' in page


def test_a_failing_report_leaves_the_old_one(letters, tmp_path, monkeypatch):
    bags, labels, model = letters
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(ValueError, match="disk full"):
        write_report(path, model, bags, labels)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


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


def in_browser(page, script, tmp_path):
    """Run a script at the end of a page in headless Chromium; return its `result` and errors."""
    watch = "<script>window.seen = []; window.onerror = (m) => { window.seen.push(m); };</script>"
    show = (
        f"<script>const result = {{}}; {script}; result.errors = window.seen; "
        "const pre = document.createElement('pre'); pre.id = 'result'; "
        "pre.textContent = JSON.stringify(result); document.body.append(pre);</script>"
    )
    path = tmp_path / "page.html"
    path.write_text(page.replace("<head>", f"<head>{watch}").replace("</body>", f"{show}</body>"))
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_works_in_a_browser(letters, tmp_path):
    bags, labels, model = letters
    script = """
    const column = (k) => [...document.querySelectorAll('#class-table tbody tr')]
      .map((row) => row.cells[k].textContent.trim());
    const press = (k) => document.querySelectorAll('#class-table .sort')[k].click();
    press(0); result.names = column(0); press(0); result.reversed = column(0);
    press(2); result.counts = column(2).map(Number);
    const shown = () => [...document.querySelectorAll('#bag-list .bag')].filter((b) => !b.hidden);
    result.all = shown().length;
    const select = document.getElementById('class-filter');
    select.value = 'Q'; select.dispatchEvent(new Event('change'));
    result.q = shown().map((bag) => JSON.parse(bag.dataset.classes));
    select.value = ''; select.dispatchEvent(new Event('change'));
    const name = document.getElementById('bag-filter');
    name.value = 'word 1'; name.dispatchEvent(new Event('input'));
    result.named = shown().map((bag) => bag.dataset.id);
    result.told = document.getElementById('filtered').textContent;
    document.getElementById('theme').click();
    result.theme = document.documentElement.dataset.theme;
    result.wide = document.documentElement.scrollWidth > document.documentElement.clientWidth + 1;
    """
    result = in_browser(render(model, bags, labels), script, tmp_path)
    assert result["errors"] == []
    assert result["names"] == sorted(model.classes_)
    assert result["reversed"] == sorted(model.classes_, reverse=True)
    assert result["counts"] == sorted(result["counts"], reverse=True)
    assert result["all"] == 60
    assert 0 < len(result["q"]) < 60
    assert all("Q" in classes for classes in result["q"])
    assert 0 < len(result["named"]) < 60
    assert all("word 1" in name for name in result["named"])
    assert result["told"] == f"{len(result['named'])} of 60 bags"
    assert result["theme"] in ("dark", "light")
    assert not result["wide"]
