"""Coloured points to review: a model, its bags, and a log beside them."""

import http.client
import itertools
import json
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from review.command import Command
from toys import make_colours
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.review.log import AnswerLog
from unbag.review.session import Session

NAMES = ["blue", "green", "red"]


@pytest.fixture(scope="session")
def colours():
    """Bags, label sets, true labels as text, and a model."""
    bags, y = make_colours(np.random.default_rng(0), n_bags=30, spread=1.2)
    truth = np.array(NAMES)[bags.instance_labels]
    bags = Bags(bags.X, bags.offsets, ids=[f"bag {b}" for b in range(len(bags))])
    labels = LabelSets(y, NAMES)
    return SimpleNamespace(
        bags=bags, labels=labels, truth=truth, model=ORLogisticRegression().fit(bags, labels)
    )


@pytest.fixture
def begin(colours, tmp_path):
    """A function that begins a review, or goes on with it."""
    sessions = []

    def begin(path="answers.jsonl", **options):
        given = {"model": colours.model, "bags": colours.bags, "labels": colours.labels, **options}
        log = AnswerLog(tmp_path / path, given["bags"], "colours.csv")
        try:
            session = Session(log=log, **given)
        except BaseException:
            log.close()
            raise
        sessions.append(session)
        return session

    yield begin
    for session in sessions:
        session.stop()
        session.log.close()


class Client:
    """What a browser would send to a server, and what it would not."""

    def __init__(self, server):
        self.server = server
        self.own = f"127.0.0.1:{server.port}"

    def send(self, method, path, body=None, headers=None, *, token=True, origin=True, host=None):
        """Send a request; return the status, the headers and the content of the answer."""
        sent = {"Host": host or self.own, **(headers or {})}
        if token:
            sent.setdefault("X-Unbag-Token", self.server.token)
        if origin and method == "POST":
            sent.setdefault("Origin", f"http://{self.own}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if method == "POST":
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, content = self.send("GET", path)
        assert status == 200, content
        return json.loads(content)

    def answer(self, **request):
        status, _, content = self.send("POST", "/api/answers", request)
        return status, json.loads(content)


@pytest.fixture
def serve():
    """A function that serves a session in a thread of this process."""
    pytest.importorskip("uvicorn", reason="the extra review is not installed")
    running = []

    def serve(session, **options):
        from unbag.review.refitting import Refitting
        from unbag.review.server import ReviewServer

        server = ReviewServer(session, options.pop("refitting", Refitting(session, 0)), **options)
        uvicorn = server.uvicorn()
        uvicorn.install_signal_handlers = lambda: None
        thread = threading.Thread(target=uvicorn.run, kwargs={"sockets": [server.socket]})
        thread.start()
        running.append((uvicorn, thread, server))
        return Client(server)

    yield serve
    for uvicorn, thread, server in running:
        uvicorn.should_exit = True
        thread.join(30)
        server.socket.close()


def write_colours(folder, colours):
    """Write a table of coloured points, as if they were calls in recordings."""
    lines = ["recording,tags,start,end,low,high,x,y"]
    cells = colours.labels.to_cells()
    for b, (first, last) in enumerate(itertools.pairwise(colours.bags.offsets.tolist())):
        for i in range(first, last):
            x, y = colours.bags.X[i].tolist()
            start = 2 * (i - first)
            name = colours.bags.ids[b].replace(" ", "-")
            lines.append(f"{name}.wav,{cells[b]},{start},{start + 1},500,2500,{x!r},{y!r}")
    (folder / "colours.csv").write_text("\n".join(lines) + "\n")
    return folder / "colours.csv"


@pytest.fixture(scope="session")
def fitted(colours, tmp_path_factory):
    """A table of recordings, and a model that was fitted to it."""
    import unbag

    table = write_colours(tmp_path_factory.mktemp("fitted"), colours)
    roles = {"bag": "recording", "labels": "tags", "media": "recording", "start": "start",
             "end": "end", "features": ["x", "y"], "carry": ["low", "high"]}  # fmt: skip
    model = unbag.fit(str(table), background=False, **roles)
    model.save(table.with_name("m.unbag"))
    return table.parent


@pytest.fixture
def folder(fitted, tmp_path):
    """A folder with a table of recordings and a model."""
    for name in ("colours.csv", "m.unbag"):
        shutil.copy(fitted / name, tmp_path)
    return tmp_path


@pytest.fixture
def command(folder):
    """A function that starts ``unbag review`` in a process of its own."""
    pytest.importorskip("uvicorn", reason="the extra review is not installed")
    return lambda *options: Command(folder, *options)
