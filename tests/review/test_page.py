"""The page of a review in a real browser: by keys, by mouse, and after everything has gone."""

import json
import shutil
import time

import numpy as np
import pytest

from browser import Browser
from review.command import Command
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.review.questions import Question
from unbag.tables.answers import read_answers

pytest.importorskip("uvicorn", reason="the extra review is not installed")

LOG = "colours.csv.answers.jsonl"
# What the page shows, as its user sees it.
BAG = "document.querySelector('#bag-name').textContent"
PLACE = "[...document.querySelectorAll('#instances .card')].findIndex("
PLACE += "(card) => card.getAttribute('aria-current') === 'true')"
PINS = "[...document.querySelectorAll('#instances .card')].map("
PINS += "(card) => card.querySelector('.pin')?.textContent.slice(2) ?? null)"
TAGS = "[...document.querySelectorAll('#tags .tag')].map((tag) => "
TAGS += "[tag.querySelector('.name').firstChild.textContent, tag.classList[1]])"
NEWS = "document.querySelector('#news').textContent"
ANSWERS = "document.querySelector('#progress').textContent"


def open_page(browser, address, bag=None):
    browser.open("about:blank")
    browser.open(address if bag is None else f"{address}#bag/{bag}")
    browser.wait("document.querySelectorAll('#instances .card[aria-current=true]').length === 1")


def lines(folder):
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()[1:]]


@pytest.mark.slow
def test_a_whole_session(folder, run, monkeypatch):
    monkeypatch.chdir(folder)
    with Browser() as browser:
        with Command(folder, "--refit-every", "0") as review:
            open_page(browser, review.address)
            # Labelled by a key: the second likeliest label.
            name = browser.text("#choices button:nth-child(2)").split()[1].rstrip("0123456789.")
            first, place = browser.run(f"return {BAG};"), browser.run(f"return {PLACE};")
            browser.press("2")
            browser.wait(f"{NEWS}.startsWith('Saved: ')")
            (answer,) = lines(folder)
            label = answer["labels"][0]["label"]
            assert label in ("blue", "green", "red")
            assert name.startswith(label)
            assert (answer["bag"], answer["labels"][0]["instance"]) == (first, place)
            assert answer["seconds"] >= 0
            assert answer["asked"]
            other = 1 if place == 0 else 0
            browser.click(f"#instances .card:nth-child({other + 1}) .bars")
            browser.wait(f"{PLACE} === arguments[0]", other)
            browser.press("1")
            browser.wait(f"{ANSWERS}.includes('2 answers')")
            # What the person chose was not asked.
            assert "asked" not in lines(folder)[1]
            browser.press("u")
            browser.wait(f"{ANSWERS}.includes('1 answer ')")
            assert browser.run(f"return {PINS};")[place] == label
            # Undone.
            browser.press("u")
            browser.wait(f"{ANSWERS}.includes('0 answers')")
            browser.wait(f"{NEWS}.startsWith('Undone') && {PLACE} === arguments[0]", place)
            assert browser.run(f"return {PINS};")[place] is None
            assert lines(folder)[-1]["undoes"] == 1
            # By name, and as background.
            browser.press("/")
            browser.wait("document.querySelector('#picker').open")
            browser.press(*"gre", "Enter")
            browser.wait(f"{NEWS}.startsWith('Saved: green')")
            browser.press("n")
            browser.wait(f"{BAG} !== arguments[0]", first)
            second = browser.run(f"return {BAG};")
            browser.press("b")
            browser.wait(f"{NEWS}.startsWith('Saved: background')")
            # A tag is struck out, by a key, and another one is marked as unsure by mouse.
            bag = next(
                found for found in map(review.ask, (f"bags/{b}" for b in range(30)))
                if len(found["tags"]) == 2 and len(found["instances"]) > 2
                and not any(each["pin"] for each in found["instances"])
            )  # fmt: skip
            open_page(browser, review.address, bag["number"])
            browser.wait(f"{BAG} === arguments[0]", bag["id"])
            before = browser.run(f"return {TAGS};")
            browser.press("x")
            browser.wait(f"{NEWS}.includes('struck out')")
            struck = [tag for tag, state in browser.run(f"return {TAGS};") if state == "absent"]
            assert len(struck) == 1
            assert struck[0] in [tag for tag, _ in before]
            browser.click("#tags .tag.present .name + button")
            browser.wait(f"{NEWS}.includes('unsure')")
            # A class is new.
            browser.press("c")
            browser.wait("document.querySelector('#picker').open")
            browser.press(*"violet", "Enter")
            browser.wait(f"{NEWS}.startsWith('Saved: new class violet')")
            assert browser.errors() == []
            review.kill()
            # What is answered now is not claimed.
            browser.press("1")
            browser.wait("!document.querySelector('#banner').hidden")
            assert "Not saved" in browser.text("#banner")
        n_answers = len(lines(folder))
        browser.open("about:blank")
        assert all("ERR_CONNECTION_REFUSED" in each for each in browser.errors())
        with Command(folder, "--refit-every", "0") as review:
            open_page(browser, review.address, bag["number"])
            browser.wait(f"{PINS}.includes('violet')")
            assert [struck[0], "absent"] in browser.run(f"return {TAGS};")
            # On it goes: a skip, all of a bag, a fit in the background.
            browser.press("s")
            browser.wait(f"{BAG} !== arguments[0]", bag["id"])
            browser.press("a")
            browser.wait(f"{NEWS}.startsWith('Saved: all')")
            assert None not in browser.run(f"return {PINS};")
            accepted = browser.run(f"return {BAG};")
            browser.click("#refit")
            browser.wait(f"{NEWS} === 'The model has learnt from the answers.'", seconds=60)
            assert None not in browser.run(f"return {PINS};")
            assert browser.errors() == []
            review.kill()
    assert len(lines(folder)) == n_answers + 2
    standing = read_answers(folder / LOG).standing()
    assert standing.labels[first, place] == "green"
    assert "background" in [label for (bag, _), label in standing.labels.items() if bag == second]
    assert standing.tags[bag["id"], struck[0]] == "absent"
    assert accepted in {bag for bag, _ in standing.labels}
    code, _, errors = run("review", "m.unbag", "colours.csv", "--export", "corrected.csv")
    assert code == 0, errors
    exported = (folder / "corrected.csv").read_text()
    assert exported.count("violet") >= 2
    code, _, errors = run(
        "fit", "colours.csv", "--bag", "recording", "--labels", "tags", "--features", "x,y",
        "--corrections", LOG, "-o", "better.unbag",
    )  # fmt: skip
    assert code == 0, errors


HOSTILE = '"><img src=x onerror="window.stolen=1">'


@pytest.mark.slow
def test_the_page_runs_nothing_of_a_table_and_fits_a_phone(begin, serve, colours):
    ids = [f"{HOSTILE}<script>window.stolen=1</script>{b}" for b in range(len(colours.bags))]
    bags = Bags(colours.bags.X, colours.bags.offsets, ids=ids)
    labels = LabelSets(colours.labels.indicator, [HOSTILE, "javascript:window.stolen=1", "c" * 90])
    model = ORLogisticRegression(max_iter=5).fit(bags, labels)
    session = begin(model=model, bags=bags, labels=labels)
    session.survey()
    client = serve(session, title=HOSTILE)
    with Browser(390, 844, dark=True) as browser:
        open_page(browser, client.server.address, 3)
        assert browser.run(f"return {BAG};") == ids[3]
        browser.press("1")
        browser.wait(f"{NEWS}.startsWith('Saved')")
        for keys in (("?",), ("Escape",), ("/",), ("Escape",), ("t",), ("Escape",), ("g",)):
            browser.press(*keys)
        browser.wait("document.querySelectorAll('#gallery .card').length > 0")
        assert browser.run("return window.stolen ?? null;") is None
        wide = "return document.documentElement.scrollWidth - innerWidth;"
        assert browser.run(wide) <= 0
        browser.press("g")
        browser.wait("!document.querySelector('#bag-view').hidden")
        assert browser.run(wide) <= 0
        small = browser.run(
            "return [...document.querySelectorAll('button')].filter((b) => b.offsetParent !== null)"
            ".filter((b) => b.offsetHeight < 40 || b.offsetWidth < 32).map((b) => b.outerHTML);"
        )
        assert small == []
        nameless = browser.run(
            "return [...document.querySelectorAll('button, select, input')].filter((e) =>"
            " e.offsetParent !== null && !(e.textContent.trim() || e.ariaLabel)).length;"
        )
        assert nameless == 0
        assert browser.errors() == []


@pytest.mark.slow
def test_sounds_are_shown_and_one_stops_the_other(tmp_path, colours, begin, serve):
    soundfile = pytest.importorskip("soundfile", reason="the extra audio is not installed")
    from unbag.report.clips import Place
    from unbag.report.media import Media

    rate = 8000
    waveform = 0.3 * np.sin(np.arange(8 * rate) * 2 * np.pi * 1000 / rate)
    soundfile.write(tmp_path / "tone.wav", waveform, rate)
    n = colours.bags.n_instances
    spans = [Place(1.0 + i % 4, 2.0 + i % 4, 800.0, 1200.0) for i in range(n)]
    session = begin()
    session.survey()
    client = serve(session, media=Media(["tone.wav"] * n, tmp_path, spans))
    with Browser() as browser:
        open_page(browser, client.server.address, 3)
        browser.wait("document.querySelectorAll('#instances .spectrogram').length > 1")
        assert browser.run("return document.querySelectorAll('#timeline rect').length;") > 1
        browser.wait("document.querySelector('.card[aria-current=true] [data-play=band]') !== null")
        playing = "[...document.querySelectorAll('.playing')].map((b) => b.dataset.play).join()"
        browser.press(" ")
        browser.wait(f"{playing} === 'segment'")
        browser.press("r")
        browser.wait(f"{playing} === 'around'")
        browser.press("Down")
        browser.wait(f"{playing} === ''")
        browser.press("f")
        browser.wait(f"{playing} === 'band'")
        assert browser.errors() == []


@pytest.mark.slow
def test_two_tabs_do_not_contradict_each_other(folder):
    shutil.copy(folder / "m.unbag", folder / "same.unbag")
    with Command(folder, "--refit-every", "0") as review, Browser() as browser:
        open_page(browser, review.address, 4)
        # Another tab answers; this one accepts what it does not show any more.
        review.ask(
            "answers", {"kind": "label", "bag": 4, "instance": 0, "label": "background"}
        )  # fmt: skip
        browser.press("a")
        browser.wait("!document.querySelector('#banner').hidden")
        assert "changed since" in browser.text("#banner")
        browser.wait(f"{PINS}[0] === 'background'")
        browser.press("a")
        browser.wait(f"{NEWS}.startsWith('Saved: all')")
    assert [each["kind"] for each in lines(folder)] == ["label", "accept"]


@pytest.mark.slow
def test_tags_of_several_classes_and_questions_about_tags(begin, serve, colours, monkeypatch):
    """About ten seconds: a group is shown and struck, and a tag that is asked for is confirmed."""
    indicator = colours.labels.indicator.copy()
    indicator[4] = [0, 0, 1]
    groups = [[[0, 1]] if b == 4 else [] for b in range(len(colours.bags))]
    session = begin(labels=LabelSets(indicator, colours.labels.classes, groups=groups))
    session.survey(choose=False)
    # Questions that are chosen meanwhile would replace the one that is put here.
    monkeypatch.setattr(session, "choose_questions_soon", lambda: None)
    b = next(b for b in range(len(colours.bags)) if (session.tags[b] == 1).sum() > 1)
    label = session.names[int(session.tags[b].argmax())]
    client = serve(session)
    with Browser() as browser:
        open_page(browser, client.server.address, 4)
        assert browser.run(f"return {TAGS};") == [["red", "present"], ["blue or green", "present"]]
        browser.click("#tags .tag:nth-child(2) button:last-child")
        browser.wait(f"{NEWS}.startsWith('Saved: blue or green is struck out')")
        assert browser.run(f"return {TAGS}[1][1];") == "absent"
        suspected = {"bag": session.bags.ids[b], "class": label, "tagged": True, "p_wrong": 0.6}
        session.suspicious[b, label] = suspected
        session.questions = [Question(-1, b, 9.0, 1.0, "tag", session.column(label))]
        browser.press("n")
        browser.wait("document.querySelector('#tag-present') !== null")
        assert f"Is there {label} in this bag?" in browser.text("#why")
        browser.press("y")
        browser.wait(f"{NEWS}.startsWith('Saved: {label} is present')")
        browser.wait("document.querySelector('#tag-present') === null")
        assert session.done[-1].asked == "tag"
        # What another page answers comes to the gallery.
        browser.press("g")
        browser.wait("document.querySelectorAll('#gallery .card').length > 1")
        row = int(browser.run("return document.querySelector('#gallery .card').dataset.row;"))
        bag = int(np.searchsorted(session.bags.offsets, row, side="right")) - 1
        place = row - int(session.bags.offsets[bag])
        client.answer(kind="label", bag=bag, instance=place, label="background")
        browser.wait("document.querySelector('#gallery .pin')?.textContent.includes('background')")
        assert browser.errors() == []


# Requests whose address holds a text are late, or get lost.
LATE = "const real = fetch; window.fetch = async (path, options) => { const found = await "
LATE += "real(path, options); if (path.endsWith(arguments[0])) await new Promise((on) => "
LATE += "setTimeout(on, 700)); return found; };"
LOST = (
    "window.kept = fetch; window.fetch = async (path, options) => { if (options.method === 'POST')"
)
LOST += " throw new TypeError('lost'); return window.kept(path, options); };"
LISTED = "[...document.querySelectorAll('#picker-list li')].map((each) => each.textContent).join()"


@pytest.mark.slow
def test_what_is_not_saved_is_not_called_saved_and_its_text_is_kept(begin, serve):
    session = begin()
    session.survey()
    with Browser() as browser:
        open_page(browser, serve(session).server.address, 3)
        browser.press("1")
        browser.wait(f"{NEWS}.startsWith('Saved')")
        browser.run(LOST)
        browser.press("2")
        browser.wait("!document.querySelector('#banner').hidden")
        assert "Not saved" in browser.text("#banner")
        assert browser.run(f"return {NEWS};") == ""
        browser.press("c")
        browser.wait("document.querySelector('#picker').open")
        browser.press(*"violet", "Enter")
        browser.wait("document.querySelector('#picker-error').textContent !== ''")
        assert "Not saved" in browser.text("#picker-error")
        assert browser.run("return document.querySelector('#picker').open;")
        assert browser.run("return document.querySelector('#picker-text').value;") == "violet"
        browser.run("window.fetch = window.kept;")
        browser.press("Enter")
        browser.wait(f"{NEWS}.startsWith('Saved: new class violet')")
        browser.wait("!document.querySelector('#picker').open")
        assert browser.run("return document.querySelector('#banner').hidden;")
        # Nothing was to be saved here.
        browser.run("window.fetch = async () => { throw new TypeError('lost'); };")
        browser.press("n")
        browser.wait("!document.querySelector('#banner').hidden")
        assert "the server does not answer" in browser.text("#banner")
        assert "Not saved" not in browser.text("#banner")
    assert [each.kind for each in session.done] == ["label", "class"]


@pytest.mark.slow
def test_a_bag_is_found_by_all_that_was_typed(begin, serve, colours):
    # The one with the shorter name comes later.
    ids = [f"bag {len(colours.bags) - b}" for b in range(len(colours.bags))]
    session = begin(bags=Bags(colours.bags.X, colours.bags.offsets, ids=ids))
    session.survey()
    with Browser() as browser:
        open_page(browser, serve(session).server.address, 3)
        browser.run(LATE, "name=bag%201")
        browser.click("#find")
        browser.wait("document.querySelector('#picker').open")
        browser.press(*"bag 12", "Enter")
        browser.wait("!document.querySelector('#picker').open")
        browser.wait(f"{BAG} === 'bag 12'")
        browser.click("#find")
        browser.wait(f"{LISTED}.startsWith('bag 30,')")
        browser.press(*"bag 12")
        browser.wait(f"{LISTED} === 'bag 12'")
        # The late matches of "bag 1" are dropped.
        time.sleep(0.8)
        assert browser.run(f"return {LISTED};") == "bag 12"
        browser.press("\ue003", "Enter")
        browser.wait(f"{BAG} === 'bag 1'")
        # Nor does a bag that comes late take the place of another one.
        browser.run(LATE, "api/bags/7")
        browser.run("document.querySelector('#find').click();")
        browser.wait("document.querySelector('#picker').open")
        browser.press(*ids[7])
        browser.wait(f"{LISTED} === arguments[0]", ids[7])
        browser.press("Enter", "Escape", "n")
        browser.wait(f"{BAG} !== 'bag 1'")
        time.sleep(0.8)
        assert browser.run(f"return {BAG};") != ids[7]
        assert browser.errors() == []


@pytest.mark.slow
def test_no_card_lies_under_the_head(begin, serve, colours):
    n, names = colours.bags.n_instances, [f"a tag with a long name, number {i}" for i in range(9)]
    bags = Bags(colours.bags.X[: n - n % 2], [0, n // 2, n - n % 2], ids=["first", "second"])
    indicator = np.ones((2, 12), dtype=np.int8)
    session = begin(bags=bags, labels=LabelSets(indicator, [*colours.labels.classes, *names]))
    session.survey()
    client = serve(session)
    covered = (
        "const [card, head, pad] = ['.card[aria-current=true]', '.head', '#pad'].map((each) =>"
    )
    covered += " document.querySelector(each).getBoundingClientRect());"
    covered += "return [head.bottom - card.top, card.bottom - pad.top];"
    for size in ((1200, 900), (390, 844)):
        with Browser(*size) as browser:
            open_page(browser, client.server.address, 0)
            for keys in (["Down"] * 9, ["Up"] * 5):
                browser.press(*keys)
                above, below = browser.run(covered)
                assert above <= 0, size
                assert below <= 0, size


@pytest.mark.slow
def test_what_is_set_aside_is_said_until_it_is_answered_again(begin, serve, colours, tmp_path):
    session = begin()
    b = int(np.flatnonzero((session.tags == 1).sum(axis=1) == 1)[0])
    tag, other = (session.names[c] for c in np.argsort(session.tags[b])[[2, 0]])
    session.answer({"kind": "label", "bag": b, "instance": 0, "label": tag})
    indicator = colours.labels.indicator.copy()
    indicator[b] = [name == other for name in session.names]
    session = begin(labels=LabelSets(indicator, colours.labels.classes))
    session.survey()
    server = serve(session, notes=["a note about the log"]).server
    with Browser() as browser, pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(tmp_path))
        patched.setenv("USERPROFILE", str(tmp_path))
        # As the command opens it: by a file that leads there, and is gone then.
        browser.open(server.redirect().as_uri())
        browser.wait(
            "document.querySelectorAll('#instances .card[aria-current=true]').length === 1"
        )
        assert list(tmp_path.glob("*.html")) == []
        open_page(browser, server.address, b)
        browser.wait(f"{ANSWERS}.includes('a note about the log')")
        assert "set aside, since they contradict" in browser.text("#progress")
        assert f"(1): {tag} in bag" in browser.text("#progress")
        assert f"Instance 1 was labelled {tag}, which is not a tag" in browser.text("#impossible")
        assert browser.run(f"return {PINS};")[0] is None
        browser.press("/")
        browser.wait("document.querySelector('#picker').open")
        browser.press(*tag, "Enter")
        browser.wait(f"{NEWS}.startsWith('Saved: {tag}')")
        assert browser.run(f"return {PINS};")[0] == tag
        assert browser.text("#impossible") == ""
        assert "set aside" not in browser.text("#progress")
        assert "a note about the log" in browser.text("#progress")
        assert browser.errors() == []
