"""Bindings without a clear answer: the pod is read until it is clear what became of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.bindings import BindingEnd
from kdsl.live.writing.api import SeenPod
from kdsl.live.writing.binding_requests import FIRST_PAUSE, BindAnswer, BindingRequests
from kdsl.live.writing.outcomes import Done, Lost, Refused, Result

POD = PodInfo("a", "default", "u")
FREE, BOUND, ELSEWHERE = (Done(SeenPod("u", "1", node=node)) for node in ("", "n1", "n2"))
AWAY = Lost("refused", may_be_done=False)


@dataclass
class Told:
    """An API that answers a binding with `answer`, and reads of the pod in turn."""

    answer: Result[None]
    reads: list[Result[SeenPod]]
    pauses: list[float] = field(default_factory=list)

    async def bind(self, pod: PodInfo, node: str) -> Result[None]:
        return self.answer

    async def read_pod(self, namespace: str, name: str) -> Result[SeenPod]:
        return self.reads.pop(0)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def ended(told: Told) -> BindAnswer:
    return asyncio.run(BindingRequests(told, told.sleep).bind(POD, "n1"))


@pytest.mark.parametrize(
    "answer", [Lost("EOF", may_be_done=True), Refused(504, "Timeout", "request did not complete")]
)
@pytest.mark.parametrize(
    ("reads", "end"),
    [
        ([BOUND], BindingEnd.BOUND),
        ([FREE, BOUND], BindingEnd.BOUND),
        ([FREE, ELSEWHERE], BindingEnd.DROPPED),
        ([FREE, FREE], BindingEnd.FAILED),
        ([AWAY, FREE, AWAY, BOUND], BindingEnd.BOUND),
    ],
)
def test_a_request_that_may_still_be_carried_out_is_looked_for_twice(
    answer: Result[None], reads: list[Result[SeenPod]], end: BindingEnd
) -> None:
    told = Told(answer, list(reads))
    assert ended(told).end is end
    assert not told.reads and len(told.pauses) == len(reads) - 1
    assert told.pauses[:1] in ([], [FIRST_PAUSE])


@pytest.mark.parametrize("status", [409, 500])
def test_what_the_server_refused_is_looked_for_once(status: int) -> None:
    told = Told(Refused(status, "", "no"), [FREE])
    assert ended(told) == BindAnswer(BindingEnd.FAILED, "no") and not told.pauses


def test_what_never_reached_the_server_is_not_looked_for() -> None:
    assert ended(Told(AWAY, [])) == BindAnswer(BindingEnd.FAILED, "refused")
