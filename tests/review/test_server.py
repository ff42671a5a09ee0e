"""The server of a review: what it answers, to whom, and that nobody else can change anything."""

import http.client
import json
import os
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from toys import PNG
from unbag import Bags, LabelSets, ORLogisticRegression
from unbag.report.media import Media

N_HOSTILE = 1000
KINDS_OF_HOSTILITY = (
    "token", "host", "origin", "path", "body", "type", "label", "order", "method"
)  # fmt: skip
GOOD = {"kind": "label", "bag": 0, "instance": 0, "label": "red", "seconds": 1.0}


def test_a_page_needs_nothing_from_elsewhere(begin, serve):
    client = serve(begin())
    path = client.server.address.partition(str(client.server.port))[2]
    status, headers, page = client.send("GET", path, token=False)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert client.server.token.encode() in page
    for name in ("page.js", "text.js", "page.css"):
        status, _, content = client.send("GET", f"/{name}?token={client.server.token}", token=False)
        assert status == 200
        assert b"://" not in content.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"<script>" not in page
    assert b"style=" not in page


def test_an_answer_is_on_disk_when_the_page_is_told(begin, serve):
    session = begin()
    session.survey()
    client = serve(session)
    status, found = client.answer(**GOOD)
    assert status == 200
    assert json.loads(session.log.path.read_text().splitlines()[-1])["answer"] == found["answer"]
    assert found["bag"]["instances"][0]["pin"] == "red"
    assert client.get("/api/status")["answers"] == 1
    assert client.get("/api/bags/0")["instances"][0]["pin"] == "red"
    question = client.get("/api/next")["question"]
    assert question["bag"] in range(30)
    assert client.get("/api/bags?name=bag%202")["bags"][0] == {"number": 2, "id": "bag 2"}
    gallery = client.get("/api/gallery?class=red&order=doubtful")
    assert gallery["instances"]


def test_a_disk_that_is_full_is_said_and_nothing_is_claimed(begin, serve, monkeypatch):
    session = begin()
    client = serve(session)
    before = client.get("/api/bags/0")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        status, found = client.answer(**GOOD)
    assert status == 507
    assert found["saved"] is False
    assert "No space left" in found["error"]
    assert client.get("/api/bags/0") == before
    assert client.answer(**GOOD)[0] == 200


def hostile_requests(client, rng, secret):
    """Yield hostile requests without end: arguments of `Client.send`."""
    other = "https://evil.example"
    paths = ["/", "/page.js", "/api/status", "/api/bags/0", "/api/next", "/api/media/0"]
    places = [
        "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/page.js/../../session.py",
        "//etc/passwd", "/api/media/..%2f..%2fsecret.txt", "/api/media/0/../../secret.txt",
        f"/{secret}", "/session.py", "/__init__.py", "/page.html", "/api/media/-1",
        "/api/media/99999999", "/api/media/1e3", "/api/bags/-1", "/api/bags/99999999999999999999",
        "/api/bags/0x0", "/api/gallery?class=none", "/api/gallery?class=red&order=up",
        "/api/gallery?class=red&first=-1", "/api/gallery?class=red&first=1e9",
        "/api/next?after=x", "/api/media/%00", "/api/bags/%f0", "/api/answers", "/api/refit",
        "/page.css%00.js", "/api/unknown", "/api/bags/0/", f"/api/media/{'9' * 5000}",
        f"/api/bags/{'9' * 5000}",
    ]  # fmt: skip
    types = [
        b"", b"null", b"[]", b"3", b'"label"', b"{", b"\xff\xfe", b"[" * 5000, b'{"kind": "label"}',
        b'{"kind": {"$ne": 1}}', b"NaN",
    ]  # fmt: skip
    values = [None, -1, 10**30, 1.5, True, "x" * 2000, [], {}, "0", "__proto__", "\0", "../x"]
    while True:
        kind = rng.choice(KINDS_OF_HOSTILITY)
        if kind == "token":
            wrong = rng.choice(["", "x", client.server.token[:-1], client.server.token + "x", "é"])
            headers = {} if rng.random() < 0.3 else {"X-Unbag-Token": wrong.encode("latin-1")}
            if rng.random() < 0.5:
                many = "?" + "&".join(["token=x"] * 50) if rng.random() < 0.3 else ""
                path = rng.choice(paths) + many
                yield ("GET", path), {"headers": headers, "token": False}
            else:
                yield ("POST", "/api/answers", GOOD), {"headers": headers, "token": False}
        elif kind == "host":
            port = client.server.port
            host = rng.choice(["evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1",
                               "0.0.0.0", f"[::1]:{port}"])  # fmt: skip
            if rng.random() < 0.5:
                yield ("GET", rng.choice(paths)), {"host": host}
            else:
                yield ("POST", "/api/answers", GOOD), {"host": host}
        elif kind == "origin":
            origin = rng.choice([other, "null", "http://127.0.0.1", "http://127.0.0.1:1", ""])
            headers = {"Origin": origin} if rng.random() < 0.8 else {}
            yield ("POST", "/api/answers", GOOD), {"headers": headers, "origin": False}
        elif kind == "path":
            yield ("GET", rng.choice(places)), {}
        elif kind == "body":
            big = {**GOOD, "label": "x" * rng.randint(70_000, 300_000)}
            yield ("POST", rng.choice(["/api/answers", "/api/refit"]), big), {}
        elif kind == "type":
            body = rng.choice(types)
            if rng.random() < 0.6:
                body = {**GOOD, rng.choice(["kind", "bag", "instance"]): rng.choice(values)}
                if body.get("kind") == "label" and body.get("bag") == 0 and body["instance"] == 0:
                    body["label"] = 7
            headers = {}
            if rng.random() < 0.2:
                headers = {"Content-Type": rng.choice(["text/plain", "multipart/form-data"])}
            yield ("POST", "/api/answers", body), {"headers": headers}
        elif kind == "label":
            label = rng.choice([-1, 10**30, 1.5, True, [], {}, ["red"], {"red": 1}, "\0", "?red"])
            asked = {**GOOD, "kind": rng.choice(["label", "tag", "class", "skip"]), "label": label}
            yield ("POST", "/api/answers", {**asked, "state": "absent"}), {}
        elif kind == "order":
            yield ("POST", "/api/answers", rng.choice([
                {"kind": "undo", "answer": 77}, {"kind": "undo", "answer": 0},
                {"kind": "accept", "bag": 0, "revision": "9.9"}, {"kind": "accept", "bag": 0},
                {**GOOD, "label": "not made yet"},
                {"kind": "tag", "bag": 0, "label": "not made yet", "state": "present"},
            ])), {}  # fmt: skip
        else:
            method = rng.choice(["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "BREW"])
            yield (method, rng.choice([*paths, "/api/answers"])), {}


def test_hostile_requests_change_nothing(begin, serve, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    session = begin()
    session.survey()
    client = serve(session)
    rng = random.Random(int(os.environ.get("UNBAG_SEED", "0")))
    made = hostile_requests(client, rng, secret)
    requests = [next(made) for _ in range(N_HOSTILE)]
    views = [session.bag_view(b) for b in range(len(session.bags))]
    log, files = session.log.path.read_bytes(), sorted(tmp_path.iterdir())

    def send(request):
        arguments, options = request
        status, _, content = client.send(*arguments, **options)
        return status, content, request

    with ThreadPoolExecutor(8) as pool:
        for status, content, request in pool.map(send, requests):
            assert 400 <= status < 500, (status, request)
            assert b"a secret" not in content
            assert b"Traceback" not in content
    assert session.log.path.read_bytes() == log
    assert sorted(tmp_path.iterdir()) == files
    assert [session.bag_view(b) for b in range(len(session.bags))] == views
    assert client.answer(**GOOD)[0] == 200


def test_what_is_no_request_ends_the_connection(begin, serve):
    client = serve(begin())
    head = f"POST /api/answers HTTP/1.1\r\nHost: {client.own}\r\n".encode()
    own = f"Origin: http://{client.own}\r\nX-Unbag-Token: {client.server.token}\r\n".encode()
    own = head + own + b"Content-Type: application/json\r\n"
    chunk = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    for text, status in (
        (b"\0\1\2\r\n\r\n", 4), (b"GET\r\n\r\n", 4), (b"GET / HTTP/9.9\r\n\r\n", 4),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", 4),
        (head + head.splitlines(True)[1] + b"\r\n", 4),
        (head + b"Content-Length: -1\r\n\r\n", 4),
        (head + b"Content-Length: 99999999999\r\n\r\n", 4),
        # Without its size a body could be endless.
        (own + b"\r\n", 413), (own + chunk, 413), (own + b"Content-Length: 2\r\n" + chunk, 413),
    ):  # fmt: skip
        with socket.create_connection(("127.0.0.1", client.server.port), 30) as connection:
            connection.sendall(text)
            answer = connection.recv(1000)
        assert answer.startswith(f"HTTP/1.1 {status}".encode()), text[:40]
    assert client.answer(**GOOD)[0] == 200


def is_ended(connection):
    """Return whether a server ends a connection within some seconds, without a word."""
    connection.settimeout(10)
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


def test_half_sent_requests_are_ended(begin, serve, monkeypatch):
    monkeypatch.setattr("unbag.review.server.HEAD_SECONDS", 0.3)
    session = begin()
    client = serve(session)
    address = ("127.0.0.1", client.server.port)
    whole = f"GET /api/status HTTP/1.1\r\nHost: {client.own}\r\n"
    whole += f"X-Unbag-Token: {client.server.token}\r\n\r\n"
    for text in ("", "GET", whole[:40], whole[:-2]):
        with socket.create_connection(address) as connection:
            connection.sendall(text.encode())
            assert is_ended(connection), text
    with socket.create_connection(address) as connection:
        # Nor does it help to send more and more.
        for letter in "GET / HTTP/1.1\r\n" + 60 * "x":
            with suppress(OSError):
                connection.sendall(letter.encode())
            time.sleep(0.02)
        assert is_ended(connection)
    # An answer may take longer, and a connection may rest, but the next request must be in time.
    status = session.status
    monkeypatch.setattr(session, "status", lambda: time.sleep(0.6) or status())
    connection = http.client.HTTPConnection(*address, timeout=30)
    for _ in range(2):
        connection.request("GET", "/api/status", headers={"X-Unbag-Token": client.server.token})
        assert json.loads(connection.getresponse().read())["bags"] == 30
        time.sleep(0.6)
    connection.sock.sendall(whole[:40].encode())
    assert is_ended(connection.sock)
    connection.close()


def test_half_a_character_is_no_fault(begin, serve, colours):
    ids = [f"half \udce4 {b}" for b in range(len(colours.bags))]
    session = begin(bags=Bags(colours.bags.X, colours.bags.offsets, ids=ids))
    client = serve(session, title="n\udce4chte.csv")
    assert client.get("/api/status")["title"] == "n\udce4chte.csv"
    assert client.answer(**GOOD, asked="\ud83d")[1]["bag"]["id"] == ids[0]
    assert client.answer(kind="class", label="\ud83d")[0] == 422


def test_the_page_removes_what_leads_to_it(begin, serve, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    client = serve(begin())
    path = client.server.redirect()
    assert client.server.address in path.read_text()
    assert client.send("GET", "/", token=False)[0] == 403
    assert path.exists()
    assert client.send("GET", "/")[0] == 200
    assert not path.exists()
    client.server.end_redirect()


def test_only_this_machine_is_listened_to(begin, serve):
    client = serve(begin())
    assert client.server.socket.getsockname()[0] == "127.0.0.1"
    tokens = {client.server.token} | {serve(begin()).server.token for _ in range(2)}
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 32


def test_media_come_only_from_their_folder(begin, serve, tmp_path, colours):
    root = tmp_path / "media"
    root.mkdir()
    (root / "dot.png").write_bytes(PNG)
    (root / "page.html").write_text("<script>stolen = 1</script>")
    (tmp_path / "outside.png").write_bytes(PNG)
    (root / "link.png").symlink_to(tmp_path / "outside.png")
    cells = ["dot.png", "../outside.png", str(tmp_path / "outside.png"), "link.png", "page.html",
             "missing.png", "http://evil.example/x.png", None]  # fmt: skip
    paths = [*cells, "dot.png"] + [None] * (colours.bags.n_instances - len(cells) - 1)
    client = serve(begin(), media=Media(paths, root))
    found = [client.get(f"/api/media/{i}") for i in range(len(cells))]
    assert [each["kind"] for each in found] == ["image", *["gap"] * 6, None]
    assert all(not each["sources"] for each in found[1:-1])
    assert found[0]["sources"][0].startswith("data:image/png")
    assert "moved" not in found[5]["reason"]
    # The folder is moved meanwhile: gaps say so, and answers go on.
    root.rename(tmp_path / "elsewhere")
    assert client.get(f"/api/media/{len(cells)}")["reason"] == "missing"
    assert client.answer(**GOOD)[0] == 200


def test_names_are_text_and_nothing_else(begin, serve, colours):
    hostile = "</script><img src=x onerror=alert(1)>"
    bags = Bags(colours.bags.X, colours.bags.offsets, ids=[
        f"{hostile} {b}" for b in range(len(colours.bags))
    ])  # fmt: skip
    labels = LabelSets(colours.labels.indicator, [hostile, "b", "c"])
    model = ORLogisticRegression(max_iter=5).fit(bags, labels)
    client = serve(begin(model=model, bags=bags, labels=labels))
    _, headers, content = client.send("GET", "/api/bags/0")
    assert headers["Content-Type"] == "application/json"
    assert json.loads(content)["id"].startswith(hostile)


def test_a_port_that_is_taken_is_said(begin, serve):
    from unbag.review.server import ReviewServer
    from unbag.tables import DataError

    server = serve(begin()).server
    with pytest.raises(DataError, match="choose another one with"):
        ReviewServer(server.session, server.refitting, port=server.port)


def test_a_fit_can_be_asked_for(begin, serve):
    from unbag.review.refitting import Refitting

    session = begin()
    session.survey()
    refitting = Refitting(session, every=0)
    client = serve(session, refitting=refitting)
    assert client.send("POST", "/api/refit", {})[0] == 409
    client.answer(**GOOD)
    assert client.send("POST", "/api/refit", {})[0] == 200
    refitting.wait(60)
    found = client.get("/api/status")
    assert (found["model"], found["refit"]["error"]) == (1, None)
    assert found["refit"]["new"] == 0
