"""Guards the endpoints: checks caller and rights, and limits size and duration of a request."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection
from typing import Any, Final

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kdsl.base.visible import visible
from kdsl.live.serving.reviews import ANONYMOUS, Caller, CallerReviews, UndecidedError, Wanted

OPEN: Final = ("/healthz", "/livez", "/readyz")
"""The paths that need no rights."""
MAX_BODY: Final = 65_536
MAX_PATH: Final = 1_024
SECONDS: Final = 30.0
AT_ONCE: Final = 64
"""The most concurrent requests that need a right. Each may wait for the API server, and health must not."""
_METHODS: Final = ("GET", "HEAD", "POST")
_LOG: Final = logging.getLogger(__name__)


class Guard:
    """Answers 401, 403, 413 and the like, or passes a request on.

    Without `reviews` only the open paths are available.
    """

    def __init__(
        self, app: ASGIApp, reviews: CallerReviews | None, open_paths: Collection[str] = OPEN
    ) -> None:
        self._app, self._reviews = app, reviews
        self._open = frozenset(open_paths)
        self._logged = ""
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        if scope["path"] in self._open:
            await self._answer(scope, receive, send)
        elif self._under_way >= AT_ONCE:
            await PlainTextResponse("503 too many requests are under way\n", 503)(scope, receive, send)
        else:
            self._under_way += 1
            try:
                await self._answer(scope, receive, send)
            finally:
                self._under_way -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # The limit also ends a request with a slow body or a slow reader.
            async with asyncio.timeout(SECONDS):
                refusal = await self._refusal(scope)
                if refusal is not None:
                    await refusal(scope, receive, send)
                else:
                    await self._app(scope, receive, send)
        except TimeoutError:
            return

    async def _refusal(self, scope: Scope) -> Response | None:
        path, method = scope["path"], scope["method"]
        if len(path) > MAX_PATH or method not in _METHODS or not path.isprintable():
            return PlainTextResponse("400 bad request\n", 400)
        if _length(scope) > MAX_BODY or _header(scope, b"transfer-encoding"):
            return PlainTextResponse("413 request too large\n", 413)
        if path in self._open:
            return None
        return await self._check_rights(scope, wanted(method, path))

    async def _check_rights(self, scope: Scope, thing: Wanted) -> Response | None:
        kind, _, token = _header(scope, b"authorization").partition(" ")
        has_token = kind.lower() == "bearer" and bool(token.strip())
        if self._reviews is None:
            return forbidden(ANONYMOUS, thing)
        user: Caller | None = ANONYMOUS
        try:
            if has_token:
                user = await self._reviews.user_of(token.strip())
        except UndecidedError as error:
            # As in kube-scheduler: an unverified caller is unauthenticated.
            user = None
            self._log("callers of the endpoints cannot be authenticated", error)
        if user is None:
            return unauthorized()
        try:
            return None if await self._reviews.is_allowed(user, thing) else forbidden(user, thing)
        except UndecidedError as error:
            self._log("the rights of callers of the endpoints cannot be checked", error)
            text = f'Internal Server Error: "{visible(thing.path)}": {visible(str(error))}\n'
            return PlainTextResponse(text, 500)

    def _log(self, failure: str, error: UndecidedError) -> None:
        """Log a failure once, not for every caller: a right of this scheduler may be missing."""
        text = ": ".join(filter(None, (failure, str(error), error.detail)))
        if text != self._logged:
            self._logged = text
            _LOG.warning("%s", text)


def wanted(method: str, path: str) -> Wanted:
    """Return the right that a request needs.

    The right to get a pod includes its explanation. Any other path needs the right to it, with the HTTP
    method as verb.
    """
    parts = path.split("/")
    if len(parts) == 4 and parts[1] == "explain" and parts[2] and parts[3]:
        return Wanted("get", path, parts[2], parts[3])
    return Wanted("get" if method == "HEAD" else method.lower(), path)


def forbidden(user: Caller, thing: Wanted) -> Response:
    """Answer 403 as the API server does."""
    details: dict[str, Any] = {"name": thing.pod, "kind": "pods"} if thing.namespace else {}
    return _status(403, "Forbidden", thing.refusal(visible(user.name)), details)


def unauthorized() -> Response:
    """Answer 401 as the API server does."""
    return _status(401, "Unauthorized", "Unauthorized", None)


def _status(code: int, reason: str, message: str, details: dict[str, Any] | None) -> Response:
    status: dict[str, Any] = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason,
    }  # fmt: skip
    if details is not None:
        status["details"] = details
    return Response(json.dumps({**status, "code": code}), code, media_type="application/json")


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _length(scope: Scope) -> int:
    text = _header(scope, b"content-length")
    # The server has already refused headers with a length that is no number.
    return int(text) if text.isdecimal() and len(text) < 20 else 0 if not text else MAX_BODY + 1
