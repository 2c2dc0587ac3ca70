"""The HTTP paths for kube-scheduler and the API server, answered by a behaviour.

Errors are JSON, `{"Error": text}`. No request ends the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kdsl.base.visible import visible
from kdsl.extender import protocol
from kdsl.extender.gate import FullError, Gate, Held
from kdsl.extender.ports import Behaviour, NotReadyError, RefusedError
from kdsl.extender.protocol import UnreadableError

T = TypeVar("T")

RETRY_AFTER: Final = "1"
"""Seconds until a refused call may be repeated."""
LARGE: Final = 262_144
"""Bodies of this size are decoded and encoded on a worker thread, so that watches do not wait."""
_GONE: Final = 499
"""The status in the metrics for a caller that disconnected; there is no answer."""
_LOG: Final = logging.getLogger(__name__)


class CallObserver(Protocol):
    """Receives the verb, the status and the duration of each call."""

    def called(self, verb: str, status: int, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Verb:
    """A path below the prefix, with its reader and its answer.

    With `has_error` the answer has an `Error` field. With `waits` calls mostly wait for the API server: they
    need no place among the calls that are worked on.
    """

    name: str
    read: Callable[[bytes], Any]
    answer: Callable[[Any], Awaitable[Any]]
    has_error: bool = False
    waits: bool = False


class _TooLargeError(Exception):
    pass


class _SlowError(Exception):
    pass


class ExtenderServer:
    """The paths of one process, answered by a behaviour."""

    def __init__(self, behaviour: Behaviour, gate: Gate, observer: CallObserver, prefix: str = "") -> None:
        self._gate, self._observer = gate, observer
        verbs = (
            Verb("filter", protocol.read_args, behaviour.filter, has_error=True),
            Verb("prioritize", protocol.read_args, behaviour.prioritize),
            Verb("preempt", protocol.read_preemption, behaviour.preempt),
            Verb("bind", protocol.read_binding, behaviour.bind, has_error=True, waits=True),
            Verb("webhook", protocol.read_review, behaviour.admit),
        )
        base = prefix.rstrip("/")
        self._paths = frozenset(f"{base}/{verb.name}" for verb in verbs)
        self._app = Starlette(
            routes=[Route(f"{base}/{verb.name}", self._route(verb), methods=["POST"]) for verb in verbs],
            exception_handlers={405: _not_allowed},
        )

    def beside(self, app: ASGIApp) -> ASGIApp:
        """Return an app with the paths of the verbs, and those of `app`."""

        async def choose(scope: Scope, receive: Receive, send: Send) -> None:
            is_ours = scope["type"] == "http" and scope["path"] in self._paths
            await (self._app if is_ours else app)(scope, receive, send)

        return choose

    def _route(self, verb: Verb) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            started = perf_counter()
            response = await self._call(verb, request)
            self._observer.called(verb.name, response.status_code, perf_counter() - started)
            return response

        return answer

    async def _call(self, verb: Verb, request: Request) -> Response:
        gate = self._gate
        try:
            gate.check()
            with gate.holding() as held:
                # Callers that send slowly must not keep others away: a call counts from its last byte on.
                body = await self._body(request, held)
                with gate.enter():
                    return await self._in_turn(verb, body, request)
        except UnreadableError as error:
            return _failure(400, str(error))
        except _SlowError:
            return _failure(408, "the body came slowly, and another needed its room")
        except TimeoutError:
            return _failure(408, f"the body did not come within {gate.limits.body_within:g} s")
        except _TooLargeError:
            return _failure(413, f"the body has more than {gate.limits.body} bytes")
        except FullError as error:
            return _failure(503, str(error), {"Retry-After": RETRY_AFTER})
        except NotReadyError as error:
            return _failure(503, str(error), {"Retry-After": RETRY_AFTER})
        except ClientDisconnect:
            return Response(status_code=_GONE)

    async def _in_turn(self, verb: Verb, body: bytes, request: Request) -> Response:
        """Answer a call, when it has a place among those that are worked on."""
        if verb.waits:
            return await self._answer(verb, body)
        async with self._gate.slot():
            if await request.is_disconnected():
                return Response(status_code=_GONE)
            return await self._answer(verb, body)

    async def _body(self, request: Request, held: Held) -> bytes:
        """Read the body, within the limits."""
        most, said = self._gate.limits.body, request.headers.get("content-length", "")
        if said.isdecimal() and int(said[:20]) > most:
            raise _TooLargeError
        parts: list[bytes] = []
        size = 0
        now = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self._gate.limits.body_within) as limit:
                held.arriving(lambda: limit.reschedule(now()))
                async for part in request.stream():
                    if held.is_given_up:
                        raise _SlowError  # the end came before the timeout
                    size += len(part)
                    if size > most:
                        raise _TooLargeError
                    held.add(len(part))
                    parts.append(part)
                held.arrived()
        except TimeoutError:
            if held.is_given_up:
                raise _SlowError from None
            raise
        return b"".join(parts)

    async def _answer(self, verb: Verb, body: bytes) -> Response:
        args = await _aside(len(body), lambda: verb.read(body))
        try:
            answer = await verb.answer(args)
        except (UnreadableError, NotReadyError):
            raise
        except RefusedError as error:
            return _refusal(verb, str(error))
        except Exception as error:  # noqa: BLE001 - one failed call must not end the others
            _LOG.exception("a call of %s ended with an error", verb.name)
            return _refusal(verb, f"{type(error).__name__}: {error}")
        written = await _aside(len(body), lambda: protocol.write(answer))
        return Response(written, media_type="application/json")


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Run `work` on a worker thread if `size` is large, else here."""
    return work() if size < LARGE else await asyncio.to_thread(work)


def _refusal(verb: Verb, text: str) -> Response:
    """Return an error: in the answer's `Error` if it has one, so that the pod's event shows the text."""
    return _failure(200 if verb.has_error else 500, text)


def _failure(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    # kube-scheduler shows the text in events and logs; parts of it are the caller's.
    body = protocol.write({"Error": visible(text)})
    return Response(body, status, headers, media_type="application/json")


async def _not_allowed(request: Request, error: Exception | None) -> Response:
    return _failure(405, f"{request.method} is not answered here: only POST is", {"Allow": "POST"})
