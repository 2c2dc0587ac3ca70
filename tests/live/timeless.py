"""An event loop whose time jumps to the next timer, and a sender that answers by a script.

Nothing waits for real: `run` is what `asyncio.run` is, hours pass in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError

T = TypeVar("T")


class _Jump(selectors.DefaultSelector):
    """Sleeps no time: moves the loop's clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("nothing will ever happen")
        if not ready and timeout:
            self.now += timeout
        return ready


class Timeless(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jump = _Jump()
        super().__init__(self.jump)

    def time(self) -> float:
        return self.jump.now


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=Timeless) as runner:
        return runner.run(work)


class LoopClock:
    """A wall clock that goes with the running loop."""

    def __init__(self, start: int = 1_763_868_483 * 10**9) -> None:
        self.start = start

    def now(self) -> int:
        return self.start + round(asyncio.get_running_loop().time() * 10**9)


def status(code: int, message: str, reason: str = "", field: str = "") -> HttpAnswer:
    """The answer of a server that refuses."""
    details = {"causes": [{"reason": "FieldValueInvalid", "message": "m", "field": field}]} if field else {}
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "details": details}
    return HttpAnswer(code, json.dumps({**body, "code": code}).encode())


OK = HttpAnswer(200, b'{"kind": "Pod", "metadata": {"uid": "uid-a"}}')
LOST = NoAnswerError("EOF", may_be_done=True)
REFUSED = NoAnswerError("connection refused", may_be_done=False)


@dataclass
class Script:
    """Answers requests after `delay` seconds by `answer`; keeps what was sent, and when.

    `under_way` is how many were not answered yet, `most` how many at once.
    """

    answer: Callable[[HttpRequest], HttpAnswer | NoAnswerError] = lambda request: OK
    delay: Callable[[HttpRequest], float] = lambda request: 0.001
    sent: list[tuple[float, HttpRequest]] = field(default_factory=list)
    under_way: int = 0
    most: int = 0

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        self.sent.append((asyncio.get_running_loop().time(), request))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.delay(request))
        finally:
            self.under_way -= 1
        answer = self.answer(request)
        if isinstance(answer, NoAnswerError):
            raise NoAnswerError(answer.reason, may_be_done=answer.may_be_done)
        return answer

    try_once = send

    @property
    def lines(self) -> list[str]:
        return [f"{request.method} {request.path}" for _, request in self.sent]

    def bodies(self, method: str = "", part: str = "") -> list[Any]:
        return [
            json.loads(request.body)
            for _, request in self.sent
            if request.body and method in request.method and part in request.path
        ]


class Counts:
    """An observer that keeps all its observations."""

    def __init__(self) -> None:
        self.dropped_events: dict[str, int] = {}
        self.longest: dict[str, int] = {}
        self.preemptions: list[tuple[bool, float]] = []

    def event_dropped(self, reason: str) -> None:
        self.dropped_events[reason] = self.dropped_events.get(reason, 0) + 1

    def queue(self, write: str, length: int) -> None:
        self.longest[write] = max(self.longest.get(write, 0), length)

    def preempted(self, is_done: bool, seconds: float) -> None:
        self.preemptions.append((is_done, seconds))
