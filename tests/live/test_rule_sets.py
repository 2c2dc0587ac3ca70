"""The rule sets of a process: one, or two of which each pod gets one by its uid."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kdsl.app import shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.errors import InvalidInputError
from kdsl.base.resources import CPU, MEMORY, PODS, Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.engine import Engine
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.live.options import CanaryOptions, RunOptions
from kdsl.live.rule_sets import RuleSets, load
from kdsl.live.rules.canary import CANARY, Side, side_of, side_of_profile
from kdsl.reload import Sources

DEFAULT = "kubernetes.v1_36.default"


class Takes:
    def bind(self, pod: PodInfo, node: str) -> None:
        return None


def context() -> PluginContext:
    return PluginContext(Takes(), ManualClock(), WaitingPods())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> RuleSets:
    """The shipped rules, and for half of the pods a copy that takes no node."""
    other = tmp_path_factory.mktemp("canary") / "rules"
    shutil.copytree(shipped_rules(), other)
    file = other / "kubernetes" / "v1_36.kdsl"
    text = file.read_text(encoding="utf-8")
    assert "require !node.unschedulable" in text
    file.write_text(
        text.replace("require !node.unschedulable", "require node.unschedulable"), encoding="utf-8"
    )
    canary = CanaryOptions(Sources(rules=(other,), profiles=(DEFAULT,)), 50)
    return load(RunOptions("h", "i", Sources(profiles=(DEFAULT,)), canary=canary), context())


def test_two_rule_sets_are_one_scheduler(both: RuleSets) -> None:
    stable, canary = (both.digests[side] for side in Side)
    assert stable != canary
    assert [table.profile for table in both.scheduler.tables] == [DEFAULT, DEFAULT + CANARY]
    assert [side_of_profile(table.profile) for table in both.scheduler.tables] == list(Side)


def test_a_pod_is_decided_by_the_rules_of_its_side(both: RuleSets) -> None:
    made, cache = both.scheduler, ClusterCache()
    cache.add_node(NodeFacts("n1", allocatable=Resources({CPU: 4000, MEMORY: 2**33, PODS: 110})))
    sides = set()
    with Engine(made.tables, cache, ManualClock(), made.options, router=made.router) as engine:
        for number in range(20):
            pod = PodInfo(f"p{number}", uid=f"uid-{number}")
            side = side_of(pod, 50)
            sides.add(side)
            decision = engine.preview(pod)
            assert decision is not None
            assert decision.rules == both.digests[side]
            assert (decision.outcome == "placed") is (side is Side.STABLE)
    assert sides == set(Side)


def test_without_a_canary_there_is_one_side() -> None:
    options = RunOptions("h", "i", Sources(profiles=(DEFAULT,)))
    sets = load(options, context())
    assert list(sets.digests) == [Side.STABLE] and options.named() == ()
    assert {"pods", "nodes"} <= {need.resource.name for need in sets.needs}


def test_broken_rules_of_the_canary_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(
        'kdsl 1\n\npackage a\n\npredicate P {\n  require node.nam == 1 else "no"\n}\n'
    )
    canary = CanaryOptions(Sources(rules=(tmp_path,)), 5)
    with pytest.raises(InvalidInputError, match="nam"):
        load(RunOptions("h", "i", Sources(profiles=(DEFAULT,)), canary=canary), context())
