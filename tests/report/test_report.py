"""The report: what it says, and that it works in a real browser."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest

from browser import Browser
from toys import PNG
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.annotations import annotate, worth_a_look
from unbag.report import render, write_report
from unbag.report.content import ambiguous_bags, content
from unbag.report.media import Media


def test_annotations_say_what_the_model_says(letters):
    bags, labels, model = letters
    answers = annotate(model, bags, labels)
    proba = model.annotate_proba(bags, labels)
    np.testing.assert_array_equal(answers.label, model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(answers.probability, proba.max(axis=1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(answers.second_probability, np.sort(proba)[:, -2], atol=1e-15)
    entropy = -(proba * np.log2(np.where(proba > 0, proba, 1))).sum(axis=1)
    np.testing.assert_allclose(answers.entropy, entropy, atol=1e-12)
    uncertain = worth_a_look(answers.entropy, 0.05)
    assert uncertain.sum() == round(0.05 * bags.n_instances)
    assert answers.entropy[uncertain].min() >= answers.entropy[~uncertain].max()
    # The likeliest instance of a tag that none got, and what could be of a rare class, too.
    more = answers.review & ~uncertain & ~answers.rare
    assert answers.review[uncertain].all()
    assert answers.review[answers.rare].all()
    assert more.sum() <= answers.n_uncovered.sum()


def test_blocks_do_not_change_answers(letters, monkeypatch):
    bags, labels, model = letters
    whole = annotate(model, bags, labels).columns()
    monkeypatch.setattr("unbag.annotations.BLOCK", 17)
    calls = []
    pieces = annotate(model, bags, labels, progress=lambda *done: calls.append(done)).columns()
    for name, values in whole.items():
        if values.dtype.kind == "f":
            # Products of matrices of other shapes may differ in the last bits, on some processors.
            np.testing.assert_allclose(pieces[name], values, rtol=1e-12, atol=1e-15, err_msg=name)
        else:
            np.testing.assert_array_equal(pieces[name], values, err_msg=name)
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
    assert "1 bags have tags that no labelling" in page
    assert "impossible tags" in page


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


def test_a_failing_report_leaves_the_old_one(letters, tmp_path, monkeypatch):
    bags, labels, model = letters
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(ValueError, match="disk full"):
        write_report(path, model, bags, labels)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def in_browser(page, script, tmp_path, width=1000):
    """Run a script on a page in headless Chromium; return its `result` and the page's errors."""
    path = tmp_path / "page.html"
    path.write_text(page)
    with Browser(width, 800) as browser:
        browser.open(path.as_uri())
        result = browser.run(f"const result = {{}}; {script}; return result;")
        return {**result, "errors": browser.errors()}


@pytest.mark.browser
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
    assert result["told"] == f"{len(result['named'])} of 60"
    assert not result["wide"]


HOSTILE = (
    "</script></title></style><script>window.stolen = 1</script><img src=x onerror=stolen=1>\"'`"
)


def hostile(letters):
    """Return words in which all that is text tries to become markup, and a model of them."""
    bags, labels, _ = letters
    names = np.array([f"{name}{HOSTILE}" for name in labels.classes], dtype=object)
    index = dict(zip(labels.classes, names, strict=True))
    bags = Bags(
        bags.X, bags.offsets, feature_names=[f"{name}{HOSTILE}" for name in bags.feature_names],
        ids=[f"{name}{HOSTILE}" for name in bags.ids],
        instance_labels=np.array([index[name] for name in bags.instance_labels], dtype=object),
    )  # fmt: skip
    indicator = labels.indicator.copy()
    indicator[3] = 1
    labels = LabelSets(indicator, names)
    return bags, labels, ORLogisticRegression(max_iter=5).fit(bags, labels)


@pytest.mark.filterwarnings(
    "ignore:media not shown", "ignore::unbag.union.policy.ImpossibleBagWarning"
)
def test_nothing_in_a_table_becomes_markup(letters, tmp_path):
    bags, labels, model = hostile(letters)
    page = render(
        model, bags, labels, title=HOSTILE, settings={HOSTILE: HOSTILE},
        media=[f"{i}{HOSTILE}" for i in range(bags.n_instances)], media_root=tmp_path,
    )  # fmt: skip
    assert page.count("&lt;script&gt;window.stolen") > 100
    assert "<script>window.stolen" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == page.count("</script>") == 2


@pytest.mark.browser
@pytest.mark.filterwarnings(
    "ignore:media not shown", "ignore::unbag.union.policy.ImpossibleBagWarning"
)
def test_a_browser_finds_no_markup_in_a_table(letters, tmp_path):
    bags, labels, model = hostile(letters)
    page = render(model, bags, labels, title=HOSTILE, settings={HOSTILE: HOSTILE})
    script = """
    result.stolen = 'stolen' in window;
    result.options = [...document.getElementById('class-filter').options].map((o) => o.value);
    result.title = document.title;
    result.shown = document.querySelector('#filtered').textContent;
    """
    result = in_browser(page, script, tmp_path)
    assert result["errors"] == []
    assert not result["stolen"]
    assert result["options"][1:] == [str(name) for name in model.classes_]
    assert result["title"] == HOSTILE
    assert result["shown"] == "60 of 60"


@pytest.mark.browser
def test_what_got_into_the_page_all_the_same_is_not_run_or_loaded(letters, tmp_path):
    bags, labels, model = letters
    page = render(model, bags[:3], labels[:3])
    got_in = (
        "<script>window.stolen = 1</script><img src='data:,' onerror='window.stolen = 1'>"
        "<img src='picture.png'><img src='https://127.0.0.1:9/'><iframe src='page.html'></iframe>"
    )
    page = page.replace("<main>", f"{got_in}<main>", 1)
    result = in_browser(page, "result.stolen = 'stolen' in window;", tmp_path)
    assert not result["stolen"]
    blocked = " ".join(result["errors"])
    assert "inline script" in blocked
    assert "img-src" in blocked
    assert "ERR_" not in blocked


@pytest.mark.browser
@pytest.mark.parametrize("width", [500, 1000])
def test_shares_stand_on_one_line_and_pictures_beside_their_bars(letters, tmp_path, width):
    bags, labels, model = letters
    (tmp_path / "letter.png").write_bytes(PNG)
    page = render(model, bags, labels, media=["letter.png"] * bags.n_instances, media_root=tmp_path)
    script = """
    const box = (each) => each.getBoundingClientRect();
    const shares = [...document.querySelectorAll('.bag[open] .bar-share')];
    result.height = Math.max(...shares.map((each) => box(each).height));
    result.beside = [...document.querySelectorAll('.bag[open] .instance')].every((each) => {
      const medium = box(each.querySelector('.medium')), bars = box(each.querySelector('.bars'));
      return medium.right <= bars.left && medium.top < bars.bottom && bars.width > 100;
    });
    result.loaded = document.querySelector('.bag[open] img').src.startsWith('data:image/png');
    """
    result = in_browser(page, script, tmp_path, width)
    assert result["errors"] == []
    assert 10 < result["height"] < 35
    assert result["beside"]
    assert result["loaded"]


def test_results_come_before_what_they_were_made_from(letters):
    bags, labels, model = letters
    page = render(model, bags, labels)
    sections = re.findall('<section id="([a-z]+)">', page)
    assert sections.index("classes") < sections.index("bags") < sections.index("settings")
    assert re.findall('<a href="#([a-z]+)">', page) == sections


def test_memory_does_not_grow_with_instances_times_classes(rng, monkeypatch):
    # What is measured on a sample has a bound of its own.
    monkeypatch.setitem(content.__globals__, "MOST_MEASURED", 500_000)
    n_classes, n_bags = 1000, 5000
    classes = [f"class {place}" for place in range(n_classes)]
    X = rng.normal(size=(2 * n_bags, 2))
    y = np.eye(n_classes, dtype=np.int8)
    model = ORLogisticRegression(max_iter=1, background=False)
    with warnings.catch_warnings(action="ignore"):
        model.fit(Bags(X[:n_classes], np.arange(n_classes + 1)), LabelSets(y, classes))
    bags, labels = Bags(X, np.arange(0, 2 * n_bags + 1, 2)), LabelSets(np.tile(y, (5, 1)), classes)
    tracemalloc.start()
    content(model, bags, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One array of instances times classes takes 80 MB, and there were four.
    assert peak < 200 << 20
