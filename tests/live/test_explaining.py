"""Explanations beside a running scheduler: one at a time, on a thread that keeps no process alive."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kdsl.base.errors import InvalidInputError
from kdsl.live.serving import explaining
from kdsl.live.serving.explaining import PodExplainer
from kdsl.live.serving.questions import Explained, Question, TooManyError

ANSWER = Explained("unschedulable", "", False, "active", "")


async def ask(question: Callable[[], Any]) -> Any:
    return question()


@pytest.fixture
def explainer(monkeypatch: pytest.MonkeyPatch) -> PodExplainer:
    monkeypatch.setattr(explaining, "copy_state", lambda *of: object())
    nothing: Any = object()
    return PodExplainer(nothing, lambda: nothing, ask, lambda: 0)


def test_one_is_explained_after_another_on_daemon_threads(
    explainer: PodExplainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, at_work, most = threading.Event(), [0], [0]
    kinds: set[bool] = set()

    def explain(moment: object, question: Question) -> Explained:
        kinds.add(threading.current_thread().daemon)
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        goes_on.wait(10)
        at_work[0] -= 1
        return ANSWER

    monkeypatch.setattr(explainer, "_explain", explain)

    async def play() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(explainer.explain("a", "b", Question()), 0.05)
        others = [asyncio.create_task(explainer.explain("a", "b", Question())) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert most == [1], "the first one is still at work"
        goes_on.set()
        assert await asyncio.gather(*others) == [ANSWER] * 3
        explainer.close()
        with pytest.raises(TooManyError):
            await explainer.explain("a", "b", Question())

    asyncio.run(play())
    assert most == [1] and kinds == {True}


@pytest.mark.parametrize("pair", [("form", "poem"), ("width", "wide"), ("what-if", "x" * 1_001)])
def test_a_wrong_question_has_a_cure(pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Question.of([pair])
    (problem,) = raised.value.diagnostics
    assert problem.where == pair[0]
    assert problem.help
