"""A plugin that misbehaves costs the pod it misbehaved for: its name is in the decision, and the next pod is
decided as if nothing had happened.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.base.clock import ManualClock
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.engine import Engine
from kdsl.hooks.status import Code, Status, StatusColumn

from tests.cycle.world import always, cluster, plugin, pod, table


def engine_with(bad: object, **scores: int) -> Engine:
    """An engine of three nodes whose profile has one plugin beside the one that binds."""
    frozen = table({"Bad": bad, "Binder": plugin(bind=always(None))}, scores=scores)
    return Engine([frozen], cluster(3), ManualClock())


def nothing_fits(nodes: Any) -> StatusColumn:
    return StatusColumn.of([Status(Code.UNSCHEDULABLE, ("full",))] * len(nodes))


def zeros(nodes: Any) -> Any:
    return np.zeros(len(nodes), np.int64)


# What else a plugin needs, so that the cycle comes to the hook.
BESIDE: dict[str, dict[str, Any]] = {
    "post_filter": {"filter": nothing_fits},
    "pre_score": {"score": zeros},
    "normalize_score": {"score": zeros},
    "add_pod": {"pre_filter": always(None), "filter": always(None)},
}
FAILING = (
    *("pre_filter", "add_pod", "filter", "filter_node", "post_filter", "pre_score", "score", "score_node"),
    *("normalize_score", "reserve", "permit", "pre_bind", "bind"),
)


def decide(hook: str, call: Any) -> tuple[Decision, Decision]:
    """Decide two pods, of which only the first meets a hook that misbehaves."""

    def sometimes(pod: Any, **others: Any) -> Any:
        return call() if pod.name == "first" else fine(hook, others)

    # pluggy passes what a hook names: this one names everything that its answer needs.
    source = f"def hook({', '.join(('pod', *_needs(hook)))}): return sometimes(**locals())"
    names: dict[str, Any] = {"sometimes": sometimes}
    exec(source, names)
    bad = plugin(**(BESIDE.get(hook, {}) | {hook: names["hook"]}))
    scores = {"Bad": 1} if {"score", "score_node"} & set(dir(bad)) else {}
    engine = engine_with(bad, **scores)
    engine.nominator.add(pod("vip", priority=9), "n0")
    first, second = engine.decisions([pod("first"), pod("second")])
    return first, second


def _needs(hook: str) -> tuple[str, ...]:
    return {"score": ("nodes",), "normalize_score": ("scores",)}.get(hook, ())


def fine(hook: str, others: dict[str, Any]) -> Any:
    match hook:
        case "score":
            return zeros(others["nodes"])
        case "score_node":
            return 0
        case "normalize_score":
            return others["scores"]
    return None


def boom() -> Any:
    raise LookupError("odd")


@pytest.mark.parametrize("hook", FAILING)
def test_a_hook_that_raises_ends_the_attempt_and_names_its_plugin(hook: str) -> None:
    first, second = decide(hook, boom)
    assert first.outcome is Outcome.ERROR
    assert '"Bad"' in first.message and "LookupError: odd" in first.message
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


@pytest.mark.parametrize("hook", [hook for hook in FAILING if hook not in ("score", "normalize_score")])
def test_so_does_an_answer_of_another_kind(hook: str) -> None:
    first, second = decide(hook, lambda: {"not": "an answer"})
    assert first.outcome is Outcome.ERROR
    assert '"Bad"' in first.message and "not dict" in first.message
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


@pytest.mark.parametrize("hook", ["unreserve", "post_bind"])
def test_what_comes_after_the_decision_changes_nothing(hook: str) -> None:
    def refuse_first(pod: Any) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("no",)) if pod.name == "first" else None

    engine = engine_with(plugin(**{hook: boom, "reserve": refuse_first}))
    outcomes = [each.outcome for each in engine.decisions([pod("first"), pod("second")])]
    assert outcomes == [Outcome.UNSCHEDULABLE, Outcome.PLACED]


def test_a_pod_whose_admission_fails_stays_out_and_the_queue_goes_on() -> None:
    def refuse(pod: Any) -> None:
        if pod.name == "first":
            boom()

    engine = engine_with(plugin(pre_enqueue=refuse))
    first, second = engine.decisions([pod("first"), pod("second")])
    assert second.outcome is Outcome.PLACED
    assert first.outcome is not Outcome.PLACED
    assert '"Bad"' in first.message and "LookupError: odd" in first.message
