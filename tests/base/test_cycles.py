"""Decisions leave no cycles of objects: memory is free at once, and the collector finds nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice

import pytest
from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision
from kdsl.plan.columns.batch import MIN_ROWS

from tests.bench.decisions import prepared
from tests.plan.lab import DEFAULT_QUEUE, node, rules

PODS = 120


# `stuck-full` has what-ifs; pods of the others repeat signatures, whose skips read counts of terms.
@pytest.mark.parametrize("shape", ["unlike", "unlike+affinity", "stuck-full"])
def test_decisions_leave_no_cycles(shape: str) -> None:
    with prepared(shape, nodes=100, pods=PODS, bound=100) as (engine, pending, _):
        _leave_no_cycles(engine.decisions(pending))


@pytest.mark.parametrize(
    "condition",
    [
        'int(node.labels[?"n"].orValue("")) > 0',
        'cluster.nodes.exists(m, int(m.labels[?"n"].orValue("")) > 9)',
        'node.labels[?"n"].value() == pod.name || node.labels[?"n"].value() != "x"',
    ],
)
@pytest.mark.parametrize("nodes", [MIN_ROWS - 1, MIN_ROWS])
def test_errors_of_rules_leave_no_cycles(condition: str, nodes: int) -> None:
    # Each pod has an answer of its own.
    found = rules(f"""
predicate P {{ require node.name != pod.name else "name" require {condition} else "label" }}
{DEFAULT_QUEUE}
profile p {{ scheduler "default-scheduler" queue Q predicates {{ P }} }}
""")
    cache = ClusterCache()
    for number in range(nodes):
        cache.add_node(node(f"n{number}", labels={"n": "x"} if number % 2 else {}))
    with build_engine(found, cache, MemoryBinder(cache), ManualClock(), Settings(profile="t.p")) as engine:
        _leave_no_cycles(engine.decisions([PodInfo(f"p{number}") for number in range(PODS)]))


def _leave_no_cycles(decisions: Iterator[Decision]) -> None:
    # Objects that are made once, such as compiled rules, may be in cycles.
    first = list(islice(decisions, PODS // 2))
    gc.collect()
    gc.disable()
    try:
        rest = list(decisions)
        assert len(first) + len(rest) == PODS and gc.collect() == 0
    finally:
        gc.enable()
