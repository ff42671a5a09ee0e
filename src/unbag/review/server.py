"""The server of a review: what a browser may ask, and who may ask it.

It listens on the loopback address only. Every request needs the token that is in the printed
address: in the query of what the browser loads by itself, else in the header ``X-Unbag-Token``,
which no other site can send. The host that a browser thinks it talks to must be this one, so that
no name of another site can be pointed here, and so must the origin of what changes something. Media
are asked for by the number of an instance, never by a path. See `unbag.review.session` for what is
answered.
"""

import logging
import secrets
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unbag._files import DataError, PathLike, parsed_json
from unbag._messages import argument
from unbag.report.bag_view import timeline
from unbag.report.media import Media

from .log import LogError
from .refitting import Refitting
from .session import Refused, Session

HOST = "127.0.0.1"
#: Largest body of a request, and longest path and query of an address, in bytes. No number in it is
#: too long to be read.
MOST_BODY, LONGEST_ADDRESS = 64 << 10, 4096
#: Instances on a page of the gallery, and bags in a list.
GALLERY_PAGE, BAG_PAGE = 24, 50
#: Media that are kept, rendered.
KEPT_MEDIA = 64
TOKEN_HEADER = b"x-unbag-token"
#: What the page loads: its type, and the package that has it.
PAGES = {
    "page.js": ("text/javascript", "unbag.review"), "text.js": ("text/javascript", "unbag.review"),
    "page.css": ("text/css", "unbag.review"), "bag.css": ("text/css", "unbag.report"),
}  # fmt: skip
#: Only what this server sends is loaded, and nothing that stands in the page is run. Media come as
#: data, which run nothing.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; media-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

logger: logging.Logger = logging.getLogger(__name__)
Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]


class Doorkeeper:
    """Let only requests of our own page in, and only such of a bounded size.

    Parameters
    ----------
    app : ASGI application
    token : str
    port : int
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app = app
        self.token: bytes = token.encode()
        self.hosts: set[bytes] = {f"{name}:{port}".encode() for name in (HOST, "localhost")}
        self.origins: set[bytes] = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        refusal = self.refusal(scope)
        if refusal is None and scope["method"] == "POST":
            body = await read_body(receive, MOST_BODY)
            if body is None:
                refusal = (413, "this is too large")
            else:
                receive = given_body(body)
        if refusal is None:
            await self.app(scope, receive, with_headers(send))
            return
        status, why = refusal
        answer = JSONResponse({"error": why}, status, headers={"Connection": "close"})
        await answer(scope, receive, with_headers(send))

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return why a request is refused, by its head alone; None if it is not."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)

        def header(name: bytes) -> bytes | None:
            found = headers.get(name, [])
            # Two hosts, or two tokens, are none.
            return found[0] if len(found) == 1 else None

        if header(b"host") not in self.hosts:
            return 421, "this server answers to its own address only"
        method = scope["method"]
        if method not in ("GET", "POST"):
            return 405, "this is not possible here"
        origin_needed = method == "POST" or b"origin" in headers
        if origin_needed and header(b"origin") not in self.origins:
            return 403, "this server answers to its own page only"
        if max(len(scope["query_string"]), len(scope["path"])) > LONGEST_ADDRESS:
            return 414, "this address is too long"
        given = header(TOKEN_HEADER)
        if given is None and method == "GET":
            query = parse_qs(scope["query_string"])
            tokens = query.get(b"token", [])
            given = tokens[0] if len(tokens) == 1 else None
        if given is None or not secrets.compare_digest(given, self.token):
            return 403, "open the address that unbag review has printed"
        if method == "POST":
            kind = (header(b"content-type") or b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                return 415, "answers are JSON"
            length = header(b"content-length") or b"0"
            if not length.isdigit() or int(length) > MOST_BODY:
                return 413, "this is too large"
        return None


async def read_body(receive: Receive, most: int) -> bytes | None:
    """Read the body of a request; None if it is longer than that."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body"):
            return body


def given_body(body: bytes) -> Receive:
    """Return what gives a body that was read already."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def with_headers(send: Send) -> Send:
    """Add the headers to each answer that keep a browser from doing anything else with it."""

    async def send_with(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return send_with


class Instances:
    """Where instances lie, and their media, for a page.

    Parameters
    ----------
    paths : sequence of str of length n_instances, optional
        The file of each instance; None or empty where there is none.
    root : str or path
        The folder that must contain them.
    places : sequence of Place of length n_instances, optional
        Where instances lie in their recordings.
    **options
        More of what `unbag.report.media.Media` takes.
    """

    def __init__(
        self,
        paths: Sequence[str | None] | None = None,
        root: PathLike = ".",
        places: Sequence[Any] | None = None,
        **options: Any,
    ) -> None:
        self.paths = paths
        self.root = root
        self.places = places
        self.options = options
        self._kept: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def place(self, i: int) -> list[float | None] | None:
        """Return the start, end, low and high of an instance."""
        if self.places is None:
            return None
        found = self.places[i]
        values = (getattr(found, name, None) for name in ("start", "end", "low", "high"))
        return [None if value is None else float(value) for value in values]

    def timeline(self, first: int, last: int) -> dict[str, Any] | None:
        """Return where a run of instances lies in its recording, as a drawing."""
        found = None if self.places is None else timeline(self.places[first:last])
        return None if found is None else found._asdict()

    def has_media(self, i: int) -> bool:
        """Return whether an instance has a file."""
        return self.paths is not None and bool(self.paths[i])

    def medium(self, i: int) -> dict[str, Any]:
        """Return the picture, sound or clip of an instance, or why there is none."""
        kept = self._kept.get(i)
        if kept is not None:
            return kept
        # A new one for each: what a report may hold in all is no bound here.
        media: Any = Media(self.paths, self.root, self.places, **self.options)
        found = media.of_instance(i)
        described: dict[str, Any] = {"kind": None}
        if found is not None:
            described = {**found._asdict(), "sources": media.sources}
        if described["kind"] == "signal":
            # Drawn when it is known which of them are asked for.
            media.draw()
            drawing, reason = media.drawings[described["place"]]
            kind = "gap" if drawing is None else "signal"
            described |= {"kind": kind, "drawing": drawing, "reason": reason}
        self._kept[i] = described
        if len(self._kept) > KEPT_MEDIA:
            self._kept.popitem(last=False)
        return described


class ReviewServer:
    """A page for a review, on this machine only.

    Parameters
    ----------
    session : Session
    instances : Instances
    refitting : Refitting, optional
    port : int, default=0
        0 for one that is free.
    title : str
    notes : list of str
        What to say at the beginning, such as what is wrong with the log.
    """

    def __init__(
        self,
        session: Session,
        instances: Instances | None = None,
        refitting: Refitting | None = None,
        *,
        port: int = 0,
        title: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self.session = session
        self.instances: Instances = instances or Instances()
        self.refitting = refitting
        self.title = title
        self.notes: list[str] = list(notes)
        self.token: str = secrets.token_urlsafe(24)
        self.socket: socket.socket = bound(port)
        self.port: int = self.socket.getsockname()[1]
        self.app: Doorkeeper = Doorkeeper(self._routes(), self.token, self.port)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Answer until the program is stopped."""
        self.uvicorn().run(sockets=[self.socket])

    def uvicorn(self) -> Any:
        """Return the server, which has not started yet."""
        import uvicorn

        config = uvicorn.Config(
            self.app, http="h11", ws="none", lifespan="off", log_level="warning", access_log=False,
            server_header=False, date_header=False, proxy_headers=False, timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        return uvicorn.Server(config)

    def _routes(self) -> Starlette:
        routes = [
            Route("/", self._page),
            *(Route(f"/{name}", self._static) for name in PAGES),
            Route("/api/status", self._status),
            Route("/api/bags", self._bags),
            Route("/api/bags/{number:int}", self._bag),
            Route("/api/next", self._next),
            Route("/api/gallery", self._gallery),
            Route("/api/media/{instance:int}", self._media),
            Route("/api/answers", self._answer, methods=["POST"]),
            Route("/api/refit", self._refit, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {
            Refused: _refused, LogError: _not_saved, HTTPException: _http_error,
            DataError: _bad_data,
        }  # fmt: skip
        app = Starlette(routes=routes, exception_handlers=handlers)
        # What is not an address here is no other one, either.
        app.router.redirect_slashes = False
        return app

    # Pages.

    async def _page(self, _: Request) -> Response:
        text = (files("unbag.review") / "page.html").read_text(encoding="utf-8")
        # The token has only letters, digits, - and _.
        return Response(text.replace("TOKEN", self.token), media_type="text/html")

    async def _static(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        kind, package = PAGES[name]
        text = (files(package) / name).read_text(encoding="utf-8")
        return Response(text, media_type=kind)

    # Answers to questions.

    async def _status(self, _: Request) -> Response:
        def status() -> dict[str, Any]:
            self.session.take_in_others()
            return {
                **self._state(), "title": self.title, "notes": self.notes,
                "log": self.session.log.path.name,
            }  # fmt: skip

        return JSONResponse(await run_in_threadpool(status))

    def _state(self) -> dict[str, Any]:
        refit = None if self.refitting is None else self.refitting.status()
        return {**self.session.status(), "refit": refit}

    async def _bags(self, request: Request) -> Response:
        part = request.query_params.get("name", "").casefold()
        ids = self.session.bags.ids

        def found() -> list[dict[str, Any]]:
            shown = []
            # First the one that is called so.
            named = enumerate(ids.tolist())
            for b, name in sorted(named, key=lambda each: str(each[1]).casefold() != part):
                if part in str(name).casefold():
                    shown.append({"number": b, "id": str(name)})
                    if len(shown) == BAG_PAGE:
                        break
            return shown

        return JSONResponse({"bags": await run_in_threadpool(found)})

    async def _bag(self, request: Request) -> Response:
        number = request.path_params["number"]
        return JSONResponse(await run_in_threadpool(self._bag_view, number))

    def _bag_view(self, b: int) -> dict[str, Any]:
        self.session.take_in_others()
        return self._with_places(self.session.bag_view(b))

    def _with_places(self, view: dict[str, Any]) -> dict[str, Any]:
        for instance in view["instances"]:
            instance["span"] = self.instances.place(instance["row"])
            instance["media"] = self.instances.has_media(instance["row"])
        first, last = self.session.bags.offsets[view["number"] : view["number"] + 2].tolist()
        view["timeline"] = self.instances.timeline(first, last)
        return view

    async def _next(self, request: Request) -> Response:
        after = _number(request, "after", None)

        def chosen() -> dict[str, Any]:
            found = self.session.next_question(after)
            if found is None:
                return {"question": None, "surveyed": self.session.is_surveyed}
            first = int(self.session.bags.offsets[found.bag])
            return {
                "question": {"bag": found.bag, "place": max(found.instance - first, 0),
                             "gain": round(found.gain, 3), "asked": found.strategy,
                             "label": found.label},
                "surveyed": True,
            }  # fmt: skip

        return JSONResponse(await run_in_threadpool(chosen))

    async def _gallery(self, request: Request) -> Response:
        name = request.query_params.get("class", "")
        order = request.query_params.get("order", "typical")
        first = _number(request, "first", 0)
        rows = _rows(request, self.session.bags.n_instances)

        def shown() -> dict[str, Any]:
            self.session.take_in_others()
            found = self.session.gallery(name, order, first, GALLERY_PAGE)
            for instance in found["instances"]:
                instance["media"] = self.instances.has_media(instance["row"])
            # What another page has answered about the instances that this one shows.
            return {**found, "pins": [self.session.pin_text(i) for i in rows]}

        return JSONResponse(await run_in_threadpool(shown))

    async def _media(self, request: Request) -> Response:
        i = request.path_params["instance"]
        if i >= self.session.bags.n_instances:
            raise Refused(404, "there is no such instance")
        return JSONResponse(await run_in_threadpool(self.instances.medium, i))

    async def _answer(self, request: Request) -> Response:
        try:
            given = parsed_json(await request.body())
        except ValueError:
            raise Refused(400, "this is not JSON") from None

        def answered() -> dict[str, Any]:
            answer = self.session.answer(given)
            if answer["bag"] is not None:
                self._with_places(answer["bag"])
            if self.refitting is not None:
                self.refitting.start_if_due()
            return {**answer, "status": self._state()}

        return JSONResponse(await run_in_threadpool(answered))

    async def _refit(self, _: Request) -> Response:
        if self.refitting is None:
            raise Refused(409, "this review goes on with one model")
        if not await run_in_threadpool(self.refitting.start):
            raise Refused(409, "a fit is running already, or there is no answer yet")
        return JSONResponse({"refit": self.refitting.status()})


def bound(port: int) -> socket.socket:
    """Return a socket on the loopback address, so that no other machine can connect to it."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        # A browser may come before the first answer is ready: it waits.
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"port {port} cannot be used ({reason}): choose another one with "
            f"{argument('port')}, or none."
        ) from error
    return found


def _number(request: Request, name: str, default: Any) -> Any:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise Refused(422, f"{name} must be a number")
    return int(text)


def _rows(request: Request, n_instances: int) -> list[int]:
    """Return the rows that a request names, with commas between them."""
    texts = request.query_params.get("rows", "").split(",")
    parts = [each for each in texts if each]
    if not all(each.isascii() and each.isdigit() and len(each) <= 12 for each in parts):
        raise Refused(422, "rows must be numbers")
    rows = [int(each) for each in parts]
    if len(rows) > GALLERY_PAGE or any(row >= n_instances for row in rows):
        raise Refused(422, "there are no such instances")
    return rows


async def _refused(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, getattr(error, "status", 400))


async def _http_error(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 400)
    return JSONResponse({"error": "there is nothing here"}, status)


async def _not_saved(_: Request, error: Exception) -> Response:
    """Say that an answer is not on disk: the page must not claim that it is."""
    logger.error("%s", error)
    return JSONResponse({"error": str(error), "saved": False}, 507)


async def _bad_data(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 422)
