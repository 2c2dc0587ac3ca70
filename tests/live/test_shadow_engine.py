"""A shadow over a real engine: it decides in full, changes nothing, and names what tells the nodes apart."""

from __future__ import annotations

from functools import cache

from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.resources import CPU, MEMORY, PODS, Resources
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.engine import Engine
from kdsl.live.rules.differences import Difference, DifferenceCause
from kdsl.live.rules.shadow import Shadow
from kdsl.live.watching.changes import LivePod, ObjectChange, Verb

SETTINGS = Settings(profiles=("kubernetes.v1_36.default",))


class NoBinder:
    def bind(self, pod: PodInfo, node: str) -> None:
        raise AssertionError("a shadow binds nothing")


@cache
def shipped() -> RuleSet:
    rules = check_rules([shipped_rules()], SETTINGS.plugins, frozenset()).rules
    assert rules is not None
    return rules


def world() -> tuple[Engine, ClusterCache, Shadow]:
    cluster = ClusterCache()
    for name, cpu in (("small", 2000), ("large", 8000), ("large2", 8000)):
        amounts = {CPU: cpu, MEMORY: 2**33, PODS: 10}
        cluster.add_node(NodeFacts(name, allocatable=Resources(amounts)))
    engine = build_engine(shipped(), cluster, NoBinder(), ManualClock(10**18), SETTINGS)
    return engine, cluster, Shadow(engine.preview, lambda cause: None)


def seen(shadow: Shadow, cpu: int, node: str) -> Difference:
    asked = Resources({CPU: cpu, MEMORY: 2**20})
    pod = PodInfo("a", uid="u", requests=asked, scored_requests=asked)
    for each in (pod, pod.on(node)):
        found = shadow.take(ObjectChange(Verb.PUT, "pods", pod.key, "u", "1", LivePod(each, "1")))
    assert found is not None
    return found


def test_a_rule_that_rejects_the_other_node_is_named() -> None:
    _, cluster, shadow = world()
    found = seen(shadow, 4000, "small")
    assert (found.cause, found.rule, found.reason) == (
        DifferenceCause.REJECTED,
        "NodeResourcesFit",
        "Insufficient cpu",
    )
    assert ".kdsl:" in found.site
    assert cluster.pod("default/a") is None, "nothing is assumed"


def test_the_scores_that_differ_are_named() -> None:
    _, _, shadow = world()
    found = seen(shadow, 1000, "small")
    assert (found.cause, found.rule, found.ours[:5]) == (DifferenceCause.SCORE, "NodeResourcesFit", "large")
    assert sum(gap.points for gap in found.gaps) > 0


def test_equal_nodes_are_a_tie_and_the_same_node_is_equal() -> None:
    engine, _, shadow = world()
    ours = engine.preview(PodInfo("x"))
    assert ours is not None and ours.verdicts and ours.node
    causes = {seen(shadow, 1000, node).cause for node in ("large", "large2")}
    assert causes <= {DifferenceCause.EQUAL, DifferenceCause.TIE} and len(causes) == 2


def test_a_pod_that_fits_nowhere_and_one_of_another_scheduler() -> None:
    engine, _, shadow = world()
    assert seen(shadow, 99_000, "small").cause is DifferenceCause.REJECTED
    assert engine.preview(PodInfo("x", scheduler_name="other")) is None
    assert len(engine.queue) == 0
