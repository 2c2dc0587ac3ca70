"""Every hook is documented, every hook is called: an extension point that does not work cannot exist."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kdsl.base.clock import ManualClock
from kdsl.cluster.nodeset import NodeSet
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.hooks.manager import hook_arguments, hook_names
from kdsl.hooks.specs import SchedulingHooks
from kdsl.hooks.status import Code, Status, StatusColumn

from tests.cycle.world import cluster, plugin, pod, table

# Preemption undoes pods in its dry runs; the other hooks are all met on the way of three pods.
NOT_MET = {"remove_pod"}


@pytest.mark.parametrize("name", hook_names())
def test_every_hook_has_a_doc_string_and_takes_keywords_only_from_it(name: str) -> None:
    doc = inspect.getdoc(getattr(SchedulingHooks, name))
    assert doc
    assert doc[0].isupper()
    assert doc.rstrip().endswith((".", "`"))
    assert hook_arguments(name)


def test_every_hook_is_called_by_the_cycle() -> None:
    called: set[str] = set()

    def reject_giants(pod: Any, nodes: NodeSet) -> StatusColumn | None:
        called.add("filter")
        if pod.name != "giant":
            return None
        return StatusColumn.of([Status(Code.UNSCHEDULABLE, ("too big",))] * len(nodes))

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

    simple = set(hook_names()) - {"filter", "filter_node", "queue_sort", "score", "normalize_score"}
    hooks: dict[str, Any] = {name: note(name) for name in simple}
    hooks |= {"filter": reject_giants, "score": score, "normalize_score": normalize}
    hooks["queue_sort"] = note("queue_sort", 0)
    picky = plugin(reserve=lambda pod: Status(Code.UNSCHEDULABLE) if pod.name == "unlucky" else None)
    plugins = {"All": plugin(**hooks), "PerNode": plugin(filter_node=note("filter_node")), "Picky": picky}

    frozen = table(plugins, scores={"All": 1}, queue="All", predicates=("All", "PerNode"))
    engine = Engine([frozen], cluster(2), ManualClock())
    engine.nominator.add(pod("vip", priority=9), "n0")
    outcomes = [one.outcome for one in engine.decisions([pod("fine"), pod("giant"), pod("unlucky")])]

    assert outcomes == [Outcome.PLACED, Outcome.UNSCHEDULABLE, Outcome.UNSCHEDULABLE]
    assert set(hook_names()) - called == NOT_MET
    assert [name for name, _ in frozen.remove_pods] == ["All"]
