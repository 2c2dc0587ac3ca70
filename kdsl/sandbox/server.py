"""The ASGI application: reads requests, applies faults, sends replies and watch streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any, Final, TypeAlias, cast

from kdsl.sandbox.faults import Action, Answer, BreakWatch, Delay, Faults, LoseAnswer, LoseRequest
from kdsl.sandbox.formats.decoding import MAX_BODY
from kdsl.sandbox.model.errors import ApiError, bad_request, status
from kdsl.sandbox.model.store import encode
from kdsl.sandbox.recorder import RecordedRequest, RequestRecorder
from kdsl.sandbox.requests.api import Api
from kdsl.sandbox.requests.call import Reply, failure
from kdsl.sandbox.requests.rights import ANONYMOUS

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_KEPT_BODY: Final = 65_536
"""The largest number of bytes of a body that the recorder keeps."""

ADMIN_PATH: Final = "/kdsl-sandbox"
_HEADERS: Final = {
    b"accept": "accept", b"content-type": "content-type", b"authorization": "authorization",
    b"user-agent": "user-agent", b"impersonate-user": "impersonate-user",
    b"impersonate-group": "impersonate-group",
}  # fmt: skip


class _LostError(Exception):
    """The connection is to be closed without an answer."""


class Server:
    """Serves one sandbox. `abort` closes the connection of a client's address without an answer."""

    def __init__(
        self,
        api: Api,
        faults: Faults,
        recorder: RequestRecorder,
        admin: Application,
        abort: Callable[[tuple[str, int]], None],
    ) -> None:
        self._api = api
        self._faults = faults
        self._recorder = recorder
        self._admin = admin
        self._abort = abort

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        if scope["path"].startswith(ADMIN_PATH):
            await self._admin(scope, receive, send)
            return
        headers = {
            _HEADERS[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS
        }
        request = RecordedRequest(
            asyncio.get_running_loop().time(),
            scope["method"],
            scope["path"],
            scope["query_string"].decode("latin-1"),
            headers.get("content-type", ""),
            headers.get("accept", ""),
            headers.get("user-agent", ""),
        )
        if self._recorder.is_on:
            self._recorder.add(request)
        try:
            reply = await self._reply(scope, receive, request, headers)
        except _LostError:
            self._abort(cast("tuple[str, int]", tuple(scope["client"] or ())))
            await _until_disconnected(receive)
            return
        request.status = reply.code
        request.body = request.body[:_KEPT_BODY]
        await self._send(reply, receive, send)

    async def _reply(
        self, scope: Scope, receive: Receive, request: RecordedRequest, headers: dict[str, str]
    ) -> Reply:
        action: Action | None = None
        try:
            request.body = await _read_body(receive)
            action = self._faults.take(request) if self._faults.rules else None
            if self._faults.latency:
                await asyncio.sleep(self._faults.latency)
            if action is not None:
                early = await _before(action, request)
                if early is not None:
                    return early
            user = self._api.identify(
                headers.get("authorization", ""),
                headers.get("impersonate-user", ""),
                headers.get("impersonate-group", ""),
            )
            request.user = user.name if user is not ANONYMOUS else ""
            reply = await self._api.answer(
                user, request.method, request.path, scope["query_string"], headers, request.body
            )
        except ApiError as error:
            reply = failure(error, request.accept)
        except RecursionError:
            # Bodies are read before anything is stored, so nothing is half done.
            reply = failure(bad_request("the request is nested too deeply"), request.accept)
        if isinstance(action, LoseAnswer):
            request.fault = "answer lost"
            await asyncio.sleep(action.seconds)
            raise _LostError
        return reply

    async def _send(self, reply: Reply, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", reply.content_type.encode())]
        headers += [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        headers += [(b"warning", _warning(text)) for text in reply.warnings]
        if reply.stream is None:
            headers.append((b"content-length", str(len(reply.body)).encode()))
            await send({"type": "http.response.start", "status": reply.code, "headers": headers})
            await send({"type": "http.response.body", "body": reply.body})
            return
        await send({"type": "http.response.start", "status": reply.code, "headers": headers})
        sender = asyncio.ensure_future(_send_stream(reply.stream, send))
        listener = asyncio.ensure_future(_until_disconnected(receive))
        try:
            await asyncio.wait({sender, listener}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sender, listener):
                task.cancel()
            await asyncio.gather(sender, listener, return_exceptions=True)


async def _before(action: Action, request: RecordedRequest) -> Reply | None:
    """Apply a fault before a request is carried out; return the answer where the fault ends the request."""
    if isinstance(action, Delay):
        request.fault = f"delayed by {action.seconds} s"
        await asyncio.sleep(action.seconds)
    elif isinstance(action, LoseRequest):
        request.fault = "request lost"
        await asyncio.sleep(action.seconds)
        raise _LostError
    elif isinstance(action, Answer):
        request.fault = f"answered {action.code}"
        headers = {} if action.retry_after is None else {"retry-after": str(action.retry_after)}
        return failure(ApiError(action.document(), action.code, headers), request.accept)
    elif isinstance(action, BreakWatch):
        request.fault = f"watch broken by {action.code}"
        frame = {"type": "ERROR", "object": Answer(action.code).document()}
        return Reply(200, encode(frame) + b"\n")
    return None


async def _read_body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            text = f"Request entity too large: limit is {MAX_BODY}"
            raise ApiError(status(413, text, "RequestEntityTooLarge", {}), 413)
    return b"".join(parts)


async def _send_stream(stream: AsyncIterator[bytes], send: Send) -> None:
    async with aclosing(cast("Any", stream)) as frames:
        async for frame in frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _warning(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode()
