"""Every hook is documented, every hook is called: an extension point that does not work cannot exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.events import EVERYTHING
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.hooks.manager import hook_arguments, hook_names
from kdsl.hooks.specs import Backoff, SchedulingHooks
from kdsl.hooks.status import Code, Status, StatusColumn

from tests.cycle.world import cluster, plugin, pod, table

# Preemption undoes pods in its dry runs; the other hooks are all met on the way of three pods.
ASKED_ONCE = {"backoff", "events"}
FOR_EXPLANATIONS = {"decided_by"}


@pytest.mark.parametrize("name", hook_names())
def test_every_hook_has_a_doc_string_and_takes_keywords_only_from_it(name: str) -> None:
    doc = inspect.getdoc(getattr(SchedulingHooks, name))
    assert doc
    assert doc[0].isupper()
    assert doc.rstrip().endswith((".", "`"))
    assert bool(hook_arguments(name)) == (name not in ASKED_ONCE)


def test_every_hook_is_called_by_the_cycle() -> None:
    called: set[str] = set()

    def reject_giants(pod: Any, nodes: NodeSet) -> StatusColumn | None:
        called.add("filter")
        if pod.name != "giant":
            return None
        too_big = Status(Code.UNSCHEDULABLE, ("too big",))
        has_room = [
            "remove_pod" in called and not any(each.name == "fine" for each in node.pods)
            for node in nodes.nodes()
        ]
        return StatusColumn.of(None if each else too_big for each in has_room)

    def note(name: str, answer: Any = None) -> Callable[[], Any]:
        def hook() -> Any:
            called.add(name)
            return answer

        return hook

    def score(nodes: NodeSet) -> Any:
        called.add("score")
        return np.zeros(len(nodes), np.int64)

    def normalize(scores: Any) -> Any:
        called.add("normalize_score")
        return scores

    def find_victims(pods: Any) -> Any:
        called.add("find_victims")
        return pods

    def trim(candidates: Any) -> Any:
        called.add("trim_candidates")
        return candidates

    def choose(candidates: Any) -> Any:
        called.add("choose_candidate")
        return candidates[0]

    def may_have_victims(nodes: NodeSet) -> Any:
        called.add("may_have_victims")
        return [True] * len(nodes)

    columns = {"filter", "filter_node", "queue_sort", "score", "score_node", "normalize_score"}
    simple = set(hook_names()) - ASKED_ONCE - FOR_EXPLANATIONS - columns
    hooks: dict[str, Any] = {name: note(name) for name in simple}
    hooks |= {"filter": reject_giants, "score": score, "normalize_score": normalize}
    hooks |= {"find_victims": find_victims, "enough_candidates": note("enough_candidates", 1)}
    hooks |= {"add_scores": note("add_scores", ()), "trim_candidates": trim}
    hooks["post_filter"] = note("post_filter", Status(Code.UNSCHEDULABLE))
    hooks |= {"choose_candidate": choose, "may_have_victims": may_have_victims}
    hooks["queue_sort"] = note("queue_sort", 0)
    hooks |= {"backoff": note("backoff", Backoff()), "events": note("events", EVERYTHING)}
    hooks["queueing_hints"] = note("queueing_hints", [False])
    picky = plugin(reserve=lambda pod: Status(Code.UNSCHEDULABLE) if pod.name == "unlucky" else None)
    per_node = plugin(filter_node=note("filter_node"), score_node=note("score_node", 1))
    plugins = {"All": plugin(**hooks), "PerNode": per_node, "Picky": picky}

    frozen = table(
        plugins,
        scores={"All": 1, "PerNode": 1},
        queue="All",
        preemption="All",
        predicates=("All", "PerNode"),
    )
    cache = cluster(2)
    engine = Engine([frozen], cache, ManualClock())
    engine.nominator.add(pod("vip", priority=9), "n0")
    outcomes = [one.outcome for one in engine.decisions([pod("fine"), pod("giant"), pod("unlucky")])]

    assert outcomes == [Outcome.PLACED, Outcome.UNSCHEDULABLE, Outcome.UNSCHEDULABLE]
    cache.remove_node("n1")
    engine.queue.update(pod("giant", labels={"a": "b"}))
    assert set(hook_names()) - FOR_EXPLANATIONS == called
