"""``unbag review`` as people use it: started, killed, started again, exported, learnt from.

``UNBAG_KILLS=100 pytest -m slow tests/review`` kills as often; ``UNBAG_SEED`` gives other moments.
"""

import csv
import http.client
import itertools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from contextlib import ExitStack

import pandas as pd
import platformdirs
import pytest

import unbag
from review.command import Command
from unbag.cli.model_table import load_and_read
from unbag.cli.options import Given
from unbag.review import AnswerLog, Session
from unbag.tables import DataError, Roles
from unbag.tables.answers import read_answers

# Windows has none.
resource = pytest.importorskip("resource") if os.name == "posix" else None

KILLS = int(os.environ.get("UNBAG_KILLS", "20"))
SEED = int(os.environ.get("UNBAG_SEED", "0"))
LOG = "colours.csv.answers.jsonl"
RED = {"kind": "label", "bag": 3, "instance": 1, "label": "red", "seconds": 2.5}


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def answered_once(fitted, tmp_path_factory):
    """A folder in which somebody has labelled, corrected a tag, undone and made a class."""
    pytest.importorskip("uvicorn", reason="the extra review is not installed")
    folder = tmp_path_factory.mktemp("answered")
    shutil.copytree(fitted, folder, dirs_exist_ok=True)
    with Command(folder, "--refit-every", "0") as review:
        review.ask("answers", {"kind": "tag", "bag": 5, "label": "red", "state": "present"})
        review.ask("answers", {"kind": "class", "bag": 6, "instance": 0, "label": "violet"})
        review.ask("answers", {"kind": "label", "bag": 7, "instance": 0, "label": "background"})
        wrong = review.ask("answers", {"kind": "label", "bag": 0, "instance": 0, "label": "blue"})
        review.ask("answers", {"kind": "undo", "answer": wrong["answer"]})
        review.ask("answers", RED)
        review.kill()
    return folder


@pytest.fixture
def answered(answered_once, folder, monkeypatch):
    """A copy of that folder, in which commands run."""
    shutil.copy(answered_once / LOG, folder)
    monkeypatch.chdir(folder)
    return folder


def test_a_review_goes_on_after_it_was_killed(command, answered):
    with command() as again:
        assert again.ask("bags/3")["instances"][1]["pin"] == "red"
        assert again.ask("bags/6")["instances"][0]["pin"] == "violet"
        assert "violet" in again.ask("status")["classes"]
        assert again.ask("bags/0")["instances"][0]["pin"] is None
        assert again.ask("status")["answers"] == 4


def test_a_fit_learns_from_the_log(answered, run):
    code, _, errors = run(
        "fit", "colours.csv", "--bag", "recording", "--labels", "tags", "--features", "x,y",
        "--corrections", LOG, "-o", "better.unbag", "--background", "auto",
    )  # fmt: skip
    assert code == 0, errors
    assert "that people gave, learnt from: 3" in errors
    model = unbag.load(answered / "better.unbag")
    assert "violet" in model.classes_
    # Tags that were corrected count, too: the class is in more bags.
    plain = unbag.fit(
        str(answered / "colours.csv"), bag="recording", labels="tags", features=["x", "y"]
    )
    red = (plain.classes_ == "red").argmax()
    found = dict(zip(model.classes_.tolist(), model.class_counts_.tolist(), strict=True))
    changed = {
        (each.label, answer.bag)
        for answer in read_answers(answered / LOG).answers
        for each in answer.tags
        if each.label == "red" and each.state == "present" and each.previous != "present"
    }
    assert found["red"] == plain.class_counts_[red] + len(changed)
    assert found["violet"] == 1


def test_a_log_of_another_table_is_refused(answered, run):
    lines = (answered / "colours.csv").read_text().splitlines()
    (answered / "other.csv").write_text("\n".join(lines[:-1]) + "\n")
    code, _, errors = run(
        "fit", "other.csv", "--bag", "recording", "--labels", "tags", "--features", "x,y",
        "--corrections", LOG, "-o", "better.unbag",
    )  # fmt: skip
    assert code == 1
    assert "other bags" in errors
    assert not (answered / "better.unbag").exists()


def test_rows_that_have_changed_places_are_said(answered, run):
    arguments = ["review", "m.unbag", "colours.csv", "--export", "out.csv"]
    assert "changed places" not in run(*arguments)[2]
    header, first, second, *others = (answered / "colours.csv").read_text().splitlines(True)
    assert first.split(",")[0] == second.split(",")[0]
    (answered / "colours.csv").write_text("".join([header, second, first, *others]))
    assert "changed places" in " ".join(run(*arguments)[2].split())


def test_corrections_are_exported(answered, run):
    code, _, errors = run(
        "review", "m.unbag", "colours.csv", "--export", "corrected.csv", "--export", "tasks.json",
        "--export", "raven.txt", "--export", "corrected.parquet",
    )  # fmt: skip
    assert code == 0, errors
    assert "4 answers; 3 of" in errors
    old, new = rows(answered / "colours.csv"), rows(answered / "corrected.csv")
    assert len(new) == len(old)
    assert list(new[0])[: len(old[0])] == list(old[0])
    known = [row["known_label"] for row in new if row["known_label"]]
    assert sorted(known) == ["background", "red", "violet"]
    stored = pd.read_parquet("corrected.parquet")["known_label"]
    assert stored.fillna("").tolist() == [row["known_label"] for row in new]
    for row in new:
        if row["known_label"]:
            assert row["annotation"] == row["known_label"]
            assert float(row["probability"]) == 1
    for bag, label in (("bag-5.wav", "red"), ("bag-6.wav", "violet"), ("bag-3.wav", "red")):
        tags = [row["tags"].split("|") for row in new if row["recording"] == bag]
        assert all(label in each for each in tags)
    # A table that was exported can be fitted, and reviewed, as it is.
    code, _, errors = run(
        "fit", "corrected.csv", "--bag", "recording", "--labels", "tags", "--features", "x,y",
        "-o", "better.unbag",
    )  # fmt: skip
    assert code == 0, errors
    tasks = json.loads((answered / "tasks.json").read_text())
    labels = [
        label for task in tasks for each in task["predictions"][0]["result"]
        for label in each["value"]["labels"]
    ]  # fmt: skip
    assert "violet" in labels
    assert "violet" in (answered / "raven.txt").read_text()


def test_an_export_learns_from_the_answers_first_as_the_page_does(answered, run):
    export = ["review", "m.unbag", "colours.csv", "--export"]
    code, text, errors = run(*export, "new.csv", "--refit-every", "6", "--json")
    assert code == 0, errors
    assert json.loads(text)["fitted_again"]
    code, text, _ = run(*export, "few.csv", "--json")
    assert not json.loads(text)["fitted_again"]
    code, _, errors = run(
        "fit", "colours.csv", "--bag", "recording", "--labels", "tags", "--features", "x,y",
        "--carry", "low,high", "--corrections", LOG, "-o", "better.unbag", "--background", "auto",
    )  # fmt: skip
    assert code == 0, errors
    export[1] = "better.unbag"
    assert run(*export, "same.csv", "--refit-every", "0")[0] == 0
    assert rows(answered / "new.csv") == rows(answered / "same.csv")
    assert rows(answered / "new.csv") != rows(answered / "few.csv")


def test_an_export_goes_on_with_its_model_if_no_other_can_be_fitted(answered, run, monkeypatch):
    def fail(*_):
        raise ValueError("no memory")

    monkeypatch.setattr("unbag.learning.TrainingSet.check_learnable", fail)
    code, _, errors = run(
        "review", "m.unbag", "colours.csv", "--export", "new.csv", "--refit-every", "1"
    )
    assert code == 0
    assert "could not be fitted again: no memory" in errors
    assert (answered / "new.csv").exists()


@pytest.fixture
def struck(folder, monkeypatch):
    """A folder with a log that strikes a tag of a bag, and labels an instance of another bag."""
    monkeypatch.chdir(folder)
    model = unbag.load("m.unbag")
    roles = unbag.tables.Roles(bag="recording", labels="tags", features=("x", "y"))
    table = unbag.tables.read("colours.csv", roles)
    assert table.labels is not None
    with AnswerLog(LOG, table.bags, "colours.csv") as log:
        session = Session(model, table.bags, table.labels, log)
        b = int((table.labels.indicator.sum(axis=1) > 1).argmax())
        name = table.labels.classes[table.labels.indicator[b].argmax()]
        session.answer({"kind": "tag", "bag": b, "label": name, "state": "absent"})
        session.answer({**RED, "bag": b + 1})
    return str(table.bags.ids[b]), str(name), str(table.bags.ids[b + 1])


def test_annotations_do_without_tags_that_people_struck(struck, run, folder):
    bag, name, other = struck
    assert run("annotate", "m.unbag", "colours.csv", "-o", "old.csv")[0] == 0
    code, _, errors = run(
        "annotate", "m.unbag", "colours.csv", "-o", "new.csv", "--corrections", LOG
    )
    assert code == 0, errors
    assert "1 rows have a label that people gave" in errors
    labels = {
        path: [row["annotation"] for row in rows(folder / path) if row["recording"] == bag]
        for path in ("old.csv", "new.csv")
    }
    assert name in labels["old.csv"]
    assert name not in labels["new.csv"]
    known = [(row["recording"], row["known_label"]) for row in rows(folder / "new.csv")]
    assert [each for each in known if each[1]] == [(other, "red")]
    # In Python as well.
    frame = pd.read_csv("colours.csv")
    found = unbag.load("m.unbag").annotate_frame(frame, corrections=LOG)
    assert found["annotation"].tolist() == [row["annotation"] for row in rows(folder / "new.csv")]
    assert found["known_label"].dropna().tolist() == ["red"]
    # And where a model is measured, or shown.
    given, table = Given(Roles(), []), [folder / "colours.csv"]
    _, _, _, tags = load_and_read(
        folder / "m.unbag", table, given, compare=True, corrections=folder / LOG
    )
    assert tags is not None
    assert name not in tags.to_sets()[frame["recording"].unique().tolist().index(bag)]


def test_corrections_of_tags_are_not_ignored_with_the_tags(struck, run):
    arguments = ["annotate", "m.unbag", "colours.csv", "-o", "new.csv", "--corrections", LOG]
    code, _, errors = run(*arguments, "--ignore-labels")
    assert code == 1
    assert "--corrections corrects tags: leave out --ignore-labels" in errors
    with pytest.raises(DataError, match="leave out ignore_labels=True"):
        unbag.load("m.unbag").annotate_frame(
            pd.read_csv("colours.csv"), corrections=LOG, ignore_labels=True
        )
    pd.read_csv("colours.csv").to_parquet("colours.parquet")
    arguments[2] = "colours.parquet"
    code, _, errors = run(*arguments, "--out-of-core")
    assert code == 1
    assert "--corrections cannot be used out of core" in errors


def test_an_annotation_with_a_class_that_is_new_says_what_to_do(answered, run):
    code, _, errors = run(
        "annotate", "m.unbag", "colours.csv", "-o", "new.csv", "--corrections", LOG
    )
    assert code == 1
    assert "unknown label 'violet'" in errors
    assert "fit again with it" in errors


def test_an_export_that_fails_leaves_nothing(answered, run):
    before = sorted(answered.iterdir())
    for outputs in (["new.csv", "missing/new.txt"], ["new.csv", "new.xyz"], ["colours.csv"]):
        more = [word for output in outputs for word in ("--export", output)]
        code, _, errors = run("review", "m.unbag", "colours.csv", *more)
        assert code in (1, 2), errors
        assert sorted(answered.iterdir()) == before


def test_nothing_is_exported_where_nothing_was_answered(folder, run, monkeypatch):
    monkeypatch.chdir(folder)
    code, _, errors = run("review", "m.unbag", "colours.csv", "--export", "new.csv")
    assert code == 1
    assert "nothing has been answered yet" in errors


@pytest.mark.skipif(os.name != "posix", reason="Windows has other signals")
def test_ctrl_c_ends_a_review(command, folder):
    with command("--log", "mine.jsonl") as review:
        review.ask("answers", RED)
        errors = review.interrupt()
    assert review.process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "mine.jsonl holds 1 answer." in errors
    assert len(read_answers(folder / "mine.jsonl").answers) == 1


RECORDER = """#!{python}
import os, pathlib, sys, urllib.parse
path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[1]).path))
text = f"{{sys.argv[1]}}\\n{{os.stat(path).st_mode & 0o777:o}}\\n{{path.read_text()}}"
pathlib.Path(os.environ["HOME"], "seen").write_text(text)
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has other signals")
def test_the_command_line_of_the_browser_holds_no_token(folder, tmp_path):
    home = tmp_path / "home of the browser"
    home.mkdir()
    (browser := tmp_path / "browser").write_text(RECORDER.format(python=sys.executable))
    browser.chmod(0o755)
    environment = {"HOME": str(home), "BROWSER": str(browser),
                   "NUMBA_CACHE_DIR": platformdirs.user_cache_dir("unbag", False)}  # fmt: skip
    with Command(folder, environment=environment) as review:
        end = time.monotonic() + 60
        while not (home / "seen").exists() or not (home / "seen").read_text().endswith(">"):
            assert time.monotonic() < end
            time.sleep(0.02)
        address, mode, page = (home / "seen").read_text().split("\n", 2)
        assert address.startswith("file:///")
        assert (review.token not in address, mode) == (True, "600")
        assert review.address in page
        # A session that ends without the page leaves nothing either.
        review.interrupt()
    assert [path.name for path in home.iterdir()] == ["seen"]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux alone limits other processes")
def test_half_sent_requests_do_not_stall_the_page(command):
    with command("--refit-every", "0") as review, ExitStack() as connections:
        resource.prlimit(review.process.pid, resource.RLIMIT_NOFILE, (150, 150))
        port = int(review.origin.rpartition(":")[2])
        for _ in range(300):
            connection = socket.create_connection(("127.0.0.1", port), 30)
            connections.enter_context(connection).sendall(b"GET / HTTP/1.1\r\nHost: ")
        begun = time.monotonic()
        assert review.ask("answers", RED)["answer"] == 1
        assert time.monotonic() - begun < 10


def test_two_servers_share_a_log(command, folder):
    with command() as first, command() as second:
        for number in range(6):
            review = (first, second)[number % 2]
            review.ask("answers", {**RED, "bag": number})
        assert first.ask("status")["answers"] == second.ask("status")["answers"] == 6
        assert first.ask("bags/5")["instances"][1]["pin"] == "red"
    assert [each.number for each in read_answers(folder / LOG).answers] == [1, 2, 3, 4, 5, 6]


def test_a_refit_happens_in_the_background(command, folder):
    with command("--refit-every", "2") as review:
        review.ask("answers", RED)
        review.ask("answers", {**RED, "bag": 4})
        end = time.monotonic() + 60
        while review.ask("status")["model"] == 0 and time.monotonic() < end:
            # The page stays usable.
            assert review.ask("bags/3")["instances"][1]["pin"] == "red"
        assert review.ask("status")["model"] == 1
        assert review.ask("bags/3")["instances"][1]["pin"] == "red"


def answer_until_killed(review, confirmed, numbers):
    """Answer as fast as possible, each time something new; keep what is confirmed."""
    for number in numbers:
        label = ("blue", "green", "red")[number // 30 % 3]
        request = {**RED, "bag": number % 30, "instance": 0, "label": label}
        try:
            found = review.ask("answers", request)
        except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError):
            return
        if found["answer"] is not None:
            confirmed.append((found["answer"], f"bag-{number % 30}.wav", label))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows has other signals")
def test_no_confirmed_answer_is_lost(command, folder):
    rng = random.Random(SEED)
    confirmed, numbers = [], itertools.count()
    for _ in range(KILLS):
        with command("--refit-every", "0") as review:
            asking = threading.Thread(target=answer_until_killed, args=(review, confirmed, numbers))
            n_before = len(confirmed)
            asking.start()
            # On a busy machine, the first answer takes a while.
            while len(confirmed) == n_before and asking.is_alive():
                time.sleep(0.01)
            time.sleep(rng.random() * 0.5)
            review.kill()
            asking.join(60)
        found = {
            (each.number, each.bag, each.labels[0].label)
            for each in read_answers(folder / LOG).answers
        }
        assert set(confirmed) <= found
    # Each was killed in the middle of answers.
    assert len(confirmed) > 2 * KILLS
    read = read_answers(folder / LOG)
    assert [each.number for each in read.answers] == list(range(1, len(read.answers) + 1))


def test_starting_without_the_extra_says_what_to_install(folder):
    code = (
        "import sys; sys.modules['starlette'] = None; from unbag.cli import main; "
        "main(['review', 'm.unbag', 'colours.csv'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert 'pip install ".[review]"' in done.stderr


def made_pictures(folder):
    """Write pictures and a table of their regions; return the folder of the pictures."""
    pytest.importorskip("PIL", reason="the extra images is not installed")
    from synthetic.pictures import make_pictures, write_pictures

    made = make_pictures(4, n_classes=2, classes_per_picture=(1, 2), random_state=0)
    write_pictures(made, folder / "photos")
    unbag.extract.images(folder / "photos", folder / "t.parquet", folder / "photos" / "tags.csv")
    return folder / "photos"


def made_signals(folder):
    """Write signals and a table of their windows; return the folder of the signals."""
    from synthetic.signals import make_signals, write_signals

    made = make_signals(4, n_activities=2, activities_per_recording=(1, 2), random_state=0)
    write_signals(made, folder)
    unbag.extract.signals(folder / "days", folder / "t.parquet", folder / "tags.csv")
    return folder / "days"


@pytest.mark.parametrize(
    ("make", "kind", "shape"),
    [(made_pictures, "region", "halo"), (made_signals, "signal", "trace")],
)
def test_regions_and_windows_are_shown(make, kind, shape, tmp_path):
    pytest.importorskip("uvicorn", reason="the extra review is not installed")
    root = make(tmp_path)
    unbag.fit(tmp_path / "t.parquet").save(tmp_path / "m.unbag")
    with Command(tmp_path, "--media-root", str(root), table="t.parquet") as review:
        instances = review.ask("bags/1")["instances"]
        assert all(each["media"] for each in instances)
        first, second = (review.ask(f"media/{each['row']}") for each in instances[:2])
    assert first["kind"] == second["kind"] == kind
    assert first["reason"] is None
    assert first["drawing"].startswith("<svg")
    assert f'class="{shape}"' in first["drawing"]
    assert first["drawing"] != second["drawing"]
    if kind == "region":
        assert first["sources"][first["place"]].startswith("data:image/")
