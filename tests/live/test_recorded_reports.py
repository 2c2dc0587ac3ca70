"""Reports about decisions of the shipped rules equal those recorded of kube-scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.live.watching.changes import LivePod
from kdsl.live.writing.reporter import RULES, Reporter

from tests.live.recorded import SCHEDULER, scenarios

SCENARIOS = {each["name"]: each for each in scenarios()}
NAMES = [
    "no-nodes",
    "pod-deleted-pending",
    "pod-updated-pending",
    "unknown-scheduler-name",
    "unschedulable-no-hint",
    "unschedulable-then-fits",
]
pytestmark = pytest.mark.skipif(not SCENARIOS, reason=f"{SCHEDULER} is not there")


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    result = check_rules((shipped_rules(),))
    assert result.rules is not None, result.diagnostics
    return result.rules


def first_failure(scenario: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """Nodes and pods that were there when an attempt failed first, and what was said of it."""
    made: dict[str, list[dict[str, Any]]] = {"Node": [], "Pod": []}
    for entry in scenario["timeline"]:
        body = entry.get("driver", entry.get("request", {})).get("body") or {}
        if "driver" in entry and entry["driver"]["method"] == "POST" and body.get("kind") in made:
            meta = {"namespace": scenario["name"], "uid": entry["response"]["uid"], **body["metadata"]}
            made[body["kind"]].append({**body, "metadata": meta})
        elif body.get("reason") == "FailedScheduling":
            pods = [each for each in made["Pod"] if each["metadata"]["uid"] == body["regarding"]["uid"]]
            return made["Node"], pods, body["note"]
    raise AssertionError("no attempt failed")


@pytest.mark.parametrize("name", NAMES)
def test_conditions_and_events_say_what_kube_scheduler_says(rules: RuleSet, name: str) -> None:
    nodes, (pod,), note = first_failure(SCENARIOS[name])
    for node in nodes:
        node["metadata"].pop("namespace")
    read = read_values([*nodes, pod])
    cluster = ClusterCache()
    for each in read.nodes:
        cluster.add_node(NodeFacts.of(each))
    (info,) = map(PodInfo.of, read.pods)
    settings = Settings(profiles=("kubernetes.v1_36.default",))
    with build_engine(rules, cluster, MemoryBinder(cluster), ManualClock(), settings) as engine:
        decision = engine.schedule_one(info)
        report = Reporter("h").failed(decision, LivePod(info, "1", 1), engine.nominator.node_of(info))
    assert report is not None
    assert report.event.note == note
    assert report.wish is not None
    assert report.wish.condition is not None
    assert (report.wish.condition.reason, report.wish.condition.message) == ("Unschedulable", note)
    if nodes:
        assert ".kdsl:" in report.event.annotations[RULES]
