"""The time that hooks take: watched always, limited where a hook only looks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.containment import ForeignError
from kdsl.base.threads import Threads
from kdsl.base.times import SECOND
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.hooks.guard import CHANGING, Guard, HookTimes
from kdsl.hooks.manager import hook_names

from tests.cycle.world import always, cluster, plugin, pod, table
from tests.hooks.test_containment import Sly, zeros

SHORT = SECOND // 1_000
"""A limit that a hook which waits for the test is sure to pass."""


def watched(*took: int, slow: int = SECOND) -> Guard:
    """A guard for whose stopwatch calls take so many nanoseconds, one after the other."""
    times = iter([tick for each in took for tick in (0, each)])
    return Guard(HookTimes(slow, 0), lambda: next(times))


def test_a_hook_that_takes_long_is_a_warning_that_names_it() -> None:
    guard = watched(SECOND, SECOND + 1, 5, 3 * SECOND)
    hook = guard.around("Bad", "filter", always(7))
    assert [hook() for _ in range(4)] == [7] * 4
    (warning,) = guard.warnings()
    assert warning.title == "plugin `Bad` was slow in `filter`: 3s at most, 2 times"
    assert (warning.code, warning.where, warning.is_error) == ("K1024", "plugins.Bad", False)
    assert warning.notes == ("a hook should take 1s at most: `limits.slowHook`",)


def test_so_is_one_that_raises_in_the_end() -> None:
    guard = watched(2 * SECOND)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        guard.around("Bad", "bind", lambda: 1 / 0)()
    assert [each.title for each in guard.warnings()] == ["plugin `Bad` was slow in `bind`: 2s"]


def test_without_a_threshold_nothing_is_slow() -> None:
    guard = watched(2**60, slow=0)
    guard.around("Bad", "bind", always(None))()
    assert guard.warnings() == ()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """The event that a hook waits for; the test sets it at its end."""
    event = threading.Event()
    yield event
    event.set()


class Patient(Threads):
    """Threads that hand out a call when it has returned, but the one that hangs when it has begun.

    The limit then ends that one alone, however late a busy machine runs the threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hung: Future[None] = Future()
        self.begun: list[Future[Any]] = []

    def begin(self, call: Callable[[], Any]) -> Future[Any]:
        begun = super().begin(call)
        self.begun.append(begun)
        wait((begun,) if self.hung.done() else (begun, self.hung), return_when=FIRST_COMPLETED)
        return begun


BESIDE: dict[str, dict[str, Any]] = {
    "pre_score": {"score": zeros},
    "normalize_score": {"score": zeros},
    "filter_node": {},
}
LOOKING = ("pre_filter", "filter", "filter_node", "filter_feasible", "pre_score", "score", "normalize_score")


@pytest.mark.parametrize("hook", LOOKING)
def test_a_hook_that_hangs_is_given_up_and_its_plugin_named(hook: str, release: threading.Event) -> None:
    threads, asked = Patient(), list[int]()

    def hang() -> None:
        asked.append(1)
        threads.hung.set_result(None)
        release.wait()

    bad = plugin(**(BESIDE.get(hook, {}) | {hook: hang}))
    scores = {"Bad": 1} if "score" in hook else {}
    plugins = {"Bad": bad, "Binder": plugin(bind=always(None))}
    frozen = table(plugins, scores=scores, guard=Guard(HookTimes(0, SHORT), threads=threads))
    engine = Engine([frozen], cluster(3), ManualClock())
    first, second = engine.decisions([pod("first"), pod("second")])
    assert first.outcome is second.outcome is Outcome.ERROR
    assert "Bad" in first.message or hook == "filter_feasible"
    assert "no answer within 0.001s" in first.message or "has not come back" in first.message
    assert f"it has not come back from `{hook}`" in second.message
    assert len(asked) == 1


def test_a_plugin_that_comes_back_is_asked_again(release: threading.Event) -> None:
    threads = Patient()
    guard = Guard(HookTimes(0, SHORT), threads=threads)

    def hang() -> str:
        threads.hung.set_result(None)
        release.wait()
        return "late"

    with pytest.raises(ForeignError, match="no answer within"):
        guard.around("Bad", "filter", hang)()
    score = guard.around("Bad", "score", always("answer"))
    with pytest.raises(ForeignError, match="it has not come back from `filter`, which was given up"):
        score()
    release.set()
    assert threads.begun[0].result() == "late"
    assert score() == "answer"


def test_an_answer_that_hangs_whoever_reads_it_is_given_up_as_well(release: threading.Event) -> None:
    class Slow:
        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            release.wait()

    def score() -> Any:
        return Slow()

    plugins = {"Bad": plugin(score=score), "Binder": plugin(bind=always(None))}
    frozen = table(plugins, scores={"Bad": 1}, guard=Guard(HookTimes(0, SHORT)))
    (decision,) = Engine([frozen], cluster(3), ManualClock()).decisions([pod()])
    assert decision.outcome is Outcome.ERROR and "no answer within 0.001s" in decision.message


@pytest.mark.parametrize("hook", sorted(CHANGING))
def test_what_changes_something_runs_to_its_end_on_the_thread_of_the_cycle(hook: str) -> None:
    guard = Guard(HookTimes(0, SHORT))
    assert guard.around("Bad", hook, threading.current_thread)() is threading.current_thread()
    assert hook in hook_names()


def test_without_a_limit_nothing_runs_on_a_thread() -> None:
    for guard, is_limited in ((Guard(HookTimes(0, 0)), True), (Guard(), False)):
        hook = guard.around("Bad", "filter", threading.current_thread, is_limited=is_limited)
        assert hook() is threading.current_thread()
    assert Guard().around("Bad", "filter", threading.current_thread)() is not threading.current_thread()


def test_threads_are_used_again_and_hand_on_what_is_raised() -> None:
    threads = Threads()
    first = threads.begin(threading.current_thread).result()
    assert threads.begin(threading.current_thread).result() is first
    assert first.daemon
    with pytest.raises(SystemExit):
        threads.begin(lambda: Sly().anything).result()
    assert threads.begin(threading.current_thread).result() is first
