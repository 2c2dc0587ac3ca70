"""Counts the function calls of one event while pods wait for room: `python -m tests.bench.waking`.

50 full nodes, the shipped profile. The pods request unlike amounts of CPU, or equal ones. They may evict nobody, or
half of the pods on each node. Either a pod leaves that they may evict, or one that they may not. No pod is woken.
Prints one JSON document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from types import FrameType
from typing import Any

from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.resources import Resources
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder

SETTINGS = Settings(profile="kubernetes.v1_36.default")
LOW, HIGH = 0, 7


def calls(work: Callable[[], object]) -> int:
    """Return the number of function calls of `work`."""
    found = 0

    def count(frame: FrameType, event: str, value: Any) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def measured(rules: RuleSet, waiting: int, is_unlike: bool, may_evict: bool) -> dict[str, object]:
    """Return the calls of two events while pods wait."""
    cluster = ClusterCache()
    for at in range(50):
        cluster.add_node(NodeFacts(f"n{at}", allocatable=Resources({"cpu": 4000, "pods": 110})))
        for each in range(30):
            cluster.add_pod(_pod(f"x{at}-{each}", 130, HIGH if each % 2 else LOW, f"n{at}"))
    pods = [_pod(f"p{at}", 3000 + at * is_unlike, LOW + may_evict) for at in range(waiting)]
    with build_engine(rules, cluster, MemoryBinder(cluster), ManualClock(), SETTINGS) as engine:
        for _ in engine.decisions(pods):
            pass
        # Values that are computed once per pod do not count for the event.
        cluster.remove_pod("default/x0-1")
        low, high = (
            calls(lambda key=key: cluster.remove_pod(key)) for key in ("default/x1-0", "default/x2-1")
        )
        assert len(engine.queue.unschedulable) == waiting
    return {
        "waiting": waiting,
        "requests": "unlike" if is_unlike else "equal",
        "mayEvict": may_evict,
        "lowLeaves": low,
        "highLeaves": high,
    }


def _pod(name: str, cpu: int, priority: int, node: str = "") -> PodInfo:
    amount = Resources({"cpu": cpu})
    return PodInfo(name, uid=name, priority=priority, node_name=node, requests=amount, usage=amount)


def main() -> None:
    """Measure 10, 200 and 2,000 pods."""
    rules = check_rules((shipped_rules(),)).rules
    assert rules is not None
    cases = product((10, 200, 2000), (False, True), (False, True))
    print(json.dumps([measured(rules, *case) for case in cases], indent=1))


if __name__ == "__main__":
    main()
