"""The server of a review: which requests it answers, and whose.

It listens on the loopback address only. Every request needs the token that is in the printed
address: in the query of files that the browser loads by itself, otherwise in the header
``X-Unbag-Token``, which no other site can send. The host must be this one, so that the name of
another site cannot be pointed here, and so must the origin of a request that changes something.
Media are asked for by the number of an instance, never by a path. `unbag.review.session` has the
answers.
"""

import json
import logging
import secrets
import socket
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from unbag._files import DataError, parsed_json
from unbag._messages import argument, words
from unbag.report.bag_view import timeline
from unbag.report.media import Media

from .log import LogError
from .refitting import Refitting
from .session import Refused, Session

HOST = "127.0.0.1"
#: Largest body of a request, and longest path and query of an address, in bytes. No number in it is
#: too long to be read.
MOST_BODY, LONGEST_ADDRESS = 64 << 10, 4096
#: Seconds in which the head of a request must come; connections that wait for their first one, and
#: that are accepted before any other is closed.
HEAD_SECONDS, MOST_SILENT, BACKLOG = 10.0, 64, 32
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
#: The page loads only files of this server, and runs no script of its own text. Media are data
#: URLs, which cannot run anything.
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


class Json(Response):
    """An answer as JSON, in ASCII, since names of files may contain half a character."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Connection(H11Protocol):
    """A connection that is closed if its request stays half sent, or if there are too many.

    Every program of this machine can connect, and each connection takes one of the process's files.
    """

    timer: Any = None

    def connection_made(self, transport: Any) -> None:
        """Wait for a request; if too many connections have sent none, close the oldest."""
        super().connection_made(transport)
        self._wait()
        others: Any = self.connections
        silent = [each for each in others if each.cycle is None and each.timer is not None]
        if len(silent) > MOST_SILENT:
            min(silent, key=lambda each: each.timer.when()).hang_up()

    def data_received(self, data: bytes) -> None:
        """Stop waiting while a request is answered; the next one must come in time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self.timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def hang_up(self) -> None:
        """Close the connection."""
        self._stop_waiting()
        self.transport.close()

    def _wait(self) -> None:
        self.timer = self.loop.call_later(HEAD_SECONDS, self.hang_up)

    def _stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


class RequestGuard:
    """Let in only requests of our own page, of a bounded size."""

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
        if refusal is None:
            with suppress(ClientDisconnect):
                if scope["method"] == "POST":
                    # No longer than its head says, which `refusal` has read.
                    scope["body"] = await Request(scope, receive).body()
                await self.app(scope, receive, with_headers(send))
            return
        status, why = refusal
        answer = Json({"error": why}, status, headers={"Connection": "close"})
        await answer(scope, receive, with_headers(send))

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return why a request is refused, by its head alone; None if it is not."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)

        def header(name: bytes) -> bytes | None:
            found = headers.get(name, [])
            # Repeated headers are refused.
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
            length = header(b"content-length") or b""
            is_sized = length.isdigit() and b"transfer-encoding" not in headers
            if not is_sized or int(length) > MOST_BODY:
                return 413, "this is too large, or does not say how large it is"
        return None


def with_headers(send: Send) -> Send:
    """Add the headers that keep a browser from using an answer elsewhere."""

    async def send_with(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return send_with


class ReviewServer:
    """A page for a review, on this machine only."""

    def __init__(
        self,
        session: Session,
        refitting: Refitting,
        media: Media | None = None,
        *,
        port: int = 0,
        title: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self.session = session
        self.media: Media = media or Media(None)
        self._medium = lru_cache(KEPT_MEDIA)(self.media.alone)
        self.refitting = refitting
        self.title = title
        self.notes: list[str] = list(notes)
        self.token: str = secrets.token_urlsafe(24)
        self.socket: socket.socket = bound(port)
        self.port: int = self.socket.getsockname()[1]
        self.app: RequestGuard = RequestGuard(self._routes(), self.token, self.port)
        self._redirect: Path | None = None

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def redirect(self) -> Path:
        """Write a file that leads a browser to the page, which removes it.

        Every user can read the command line of a browser, but only the user who started the server
        can read this file. Some browsers open only files in the home folder that are not hidden.
        """
        descriptor, name = tempfile.mkstemp(".html", "unbag-review-", Path.home())
        self._redirect = Path(name)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={self.address}">')
        return self._redirect

    def end_redirect(self) -> None:
        """Remove the file that leads to the page, if it is still there."""
        if self._redirect is not None:
            with suppress(OSError):
                self._redirect.unlink()

    def run(self) -> None:
        """Answer until the program is stopped."""
        self.uvicorn().run(sockets=[self.socket])

    def uvicorn(self) -> Any:
        """Return the server, which has not started yet."""
        import uvicorn

        config = uvicorn.Config(
            self.app, http=Connection, ws="none", lifespan="off", log_level="warning",
            access_log=False, server_header=False, date_header=False, proxy_headers=False,
            timeout_keep_alive=30, timeout_graceful_shutdown=2, backlog=BACKLOG,
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
            Refused: _refused, DataError: _refused, LogError: _not_saved,
            HTTPException: _http_error,
        }  # fmt: skip
        app = Starlette(routes=routes, exception_handlers=handlers)
        # An unknown address is refused, never completed.
        app.router.redirect_slashes = False
        return app

    # Pages. Each request is answered in a thread of its own.

    def _page(self, _: Request) -> Response:
        self.end_redirect()
        text = (files("unbag.review") / "page.html").read_text(encoding="utf-8")
        # The token has only letters, digits, - and _.
        text = text.replace("TOKEN", self.token)
        instances, bags = words()
        text = text.replace("INSTANCES", instances).replace("BAGS", bags)
        return Response(text, media_type="text/html")

    def _static(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        kind, package = PAGES[name]
        text = (files(package) / name).read_text(encoding="utf-8")
        return Response(text, media_type=kind)

    # Answers to questions.

    def _status(self, _: Request) -> Response:
        self.session.take_in_others()
        return Json({**self._state(), "title": self.title})

    def _state(self) -> dict[str, Any]:
        notes = [*self.notes, *self.session.notes()]
        return {**self.session.status(), "refit": self.refitting.status(), "notes": notes}

    def _bags(self, request: Request) -> Response:
        part = request.query_params.get("name", "").casefold()
        named = [(b, str(name)) for b, name in enumerate(self.session.bags.ids.tolist())]
        found = [each for each in named if part in each[1].casefold()]
        # Bags of exactly this name come first.
        found.sort(key=lambda each: each[1].casefold() != part)
        return Json({"bags": [{"number": b, "id": name} for b, name in found[:BAG_PAGE]]})

    def _bag(self, request: Request) -> Response:
        self.session.take_in_others()
        return Json(self._with_places(self.session.bag_view(request.path_params["number"])))

    def _with_places(self, view: dict[str, Any]) -> dict[str, Any]:
        self._say_what_has_media(view["instances"])
        places = self.media.places
        found = None if places is None else timeline(places[self.session.rows(view["number"])])
        view["timeline"] = None if found is None else found._asdict()
        return view

    def _say_what_has_media(self, instances: list[dict[str, Any]]) -> None:
        paths = self.media.paths
        for each in instances:
            each["media"] = paths is not None and bool(paths[each["row"]])

    def _next(self, request: Request) -> Response:
        after, *_ = _numbers(request, "after") or [None]
        found = self.session.next_question(after)
        if found is None:
            return Json({"question": None, "surveyed": self.session.is_surveyed})
        place = max(found.instance - self.session.rows(found.bag).start, 0)
        label = None if found.column < 0 else self.session.names[found.column]
        question = {"bag": found.bag, "place": place, "gain": round(found.gain, 3),
                    "asked": found.strategy, "label": label}  # fmt: skip
        return Json({"question": question, "surveyed": True})

    def _gallery(self, request: Request) -> Response:
        name = request.query_params.get("class", "")
        order = request.query_params.get("order", "typical")
        first, *_ = _numbers(request, "first") or [0]
        rows = _numbers(request, "rows")
        if len(rows) > GALLERY_PAGE or max(rows, default=-1) >= self.session.bags.n_instances:
            raise Refused(422, f"there are no such {words().instances}")
        self.session.take_in_others()
        found = self.session.gallery(name, order, first, GALLERY_PAGE)
        self._say_what_has_media(found["instances"])
        # What another page has answered about the instances that this one shows.
        return Json({**found, "pins": [self.session.text(self.session.pins[i]) for i in rows]})

    def _media(self, request: Request) -> Response:
        i = request.path_params["instance"]
        if i >= self.session.bags.n_instances:
            raise Refused(404, f"there is no such {words().instance}")
        return Json(self._medium(i))

    def _answer(self, request: Request) -> Response:
        try:
            given = parsed_json(request.scope["body"])
        except ValueError:
            raise Refused(400, "this is not JSON") from None
        answer = self.session.answer(given)
        if answer["bag"] is not None:
            self._with_places(answer["bag"])
        self.refitting.start_if_due()
        return Json({**answer, "status": self._state()})

    def _refit(self, _: Request) -> Response:
        if not self.refitting.start():
            raise Refused(
                409, "a fit is running already, or nothing has been answered since the last one"
            )
        return Json({"refit": self.refitting.status()})


def bound(port: int) -> socket.socket:
    """Return a socket on the loopback address, so that no other machine can connect to it."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        # Browsers that connect before the server has started wait.
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"port {port} cannot be used ({reason}): choose another one with "
            f"{argument('port')}, or none."
        ) from error
    return found


def _numbers(request: Request, name: str) -> list[int]:
    """Return the whole numbers of a query, with commas between them."""
    texts = [each for each in request.query_params.get(name, "").split(",") if each]
    if not all(each.isascii() and each.isdigit() and len(each) <= 12 for each in texts):
        raise Refused(422, f"{name} must be a number")
    return [int(each) for each in texts]


def _refused(_: Request, error: Exception) -> Response:
    return Json({"error": str(error)}, getattr(error, "status", 422))


def _http_error(_: Request, error: Exception) -> Response:
    return Json({"error": "there is nothing here"}, getattr(error, "status_code", 400))


def _not_saved(_: Request, error: Exception) -> Response:
    """Say that an answer is not on disk: the page must not claim that it is."""
    logger.error("%s", error)
    return Json({"error": str(error), "saved": False}, 507)
