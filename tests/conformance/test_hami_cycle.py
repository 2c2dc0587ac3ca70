"""The profile `hami` in the whole cycle: the node and the annotations that HAMi's filter gives to a pod.

A sample of the HAMi vectors, through the engine: queue, all rules, host selection, reserve and bind. Each step
starts from the state in which HAMi left the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
import pytest
from kdsl.app import Settings, build_engine, check_rules
from kdsl.base.clock import ManualClock
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.api.workload_objects import ResourceQuota
from kdsl.cluster.devices.pods import DevicePod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.plan.devices.plugin import BIND_PHASE, CHOSEN_NODE

from tests.conformance.hami import NOW, STAMPS, Json, read_vectors, unpadded
from tests.conformance.tally import differences
from tests.conformance.test_hami import DATA, FAMILIES

SAMPLE = 5
"""Every fifth scenario of a family is run."""
OVER_QUOTA = "exceeding resource quota"
"""A pod that no node can help is refused beforehand: the vectors have HAMi's filter alone."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    """Return the rules with a profile for each pair of policies that the vectors have as defaults."""
    profiles = [
        f"""profile {node}_{card} extends profiles.hami {{
  scheduler "{node}-{card}"
  set Devices.nodePolicy = "{node}"
  set Devices.cardPolicy = "{card}"
}}
"""
        for node in ("binpack", "spread")
        for card in ("binpack", "spread")
    ]
    folder = tmp_path_factory.mktemp("rules")
    (folder / "vectors.kdsl").write_text(
        "kdsl 1\npackage vectors\n\nimport devices.profiles\n\n" + "\n".join(profiles)
    )
    checked = check_rules([folder])
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


class Lab:
    """One engine and a cluster that each scenario fills anew."""

    def __init__(self, rules: RuleSet, profile: str) -> None:
        self.cluster = ClusterCache()
        self.engine = build_engine(
            rules,
            self.cluster,
            MemoryBinder(self.cluster),
            ManualClock(NOW),
            Settings(profile=f"vectors.{profile}", detail=Detail.FULL),
            MemoryVolumes(self.cluster),
            annotator=MemoryAnnotations(self.cluster),
        )

    def run(self, vector: Json) -> Iterator[tuple[str, list[str]]]:
        """Yield the name of each step and how the decision differs from HAMi's."""
        for node in vector["nodes"]:
            self.cluster.add_node(NodeFacts.of(msgspec.convert(node, Node, strict=False)))
        quotas = [msgspec.convert(each, ResourceQuota, strict=False) for each in vector.get("quotas", ())]
        for quota in quotas:
            self.cluster.put(quota)
        there: list[str] = []
        for number, (written, expected) in enumerate(
            zip(vector["pods"], vector["expected"]["steps"], strict=True)
        ):
            pod = msgspec.convert(written, Pod, strict=False)
            info = PodInfo.of(pod)
            decision = self.engine.schedule_one(info)
            yield f"{vector['id']}[{number}]", list(self._compare(decision, pod, expected))
            if self.cluster.pod(info.key) is not None:
                self.cluster.remove_pod(info.key)
            if "chosen" in expected:
                self.cluster.add_pod(_placed(written, expected))
                there.append(info.key)
        for key in there:
            self.cluster.remove_pod(key)
        for quota in quotas:
            self.cluster.remove("ResourceQuota", f"{quota.metadata.namespace}/{quota.metadata.name}")
        for node in vector["nodes"]:
            self.cluster.remove_node(node["metadata"]["name"])

    def _compare(self, decision: Decision, pod: Pod, expected: Json) -> Iterator[str]:
        if "admission_error" in expected:
            if decision.outcome is not Outcome.UNSCHEDULABLE:
                yield f"admitted, expected {expected['admission_error']}"
            elif expected["admission_error"] not in decision.message:
                yield f"message: {decision.message}, expected {expected['admission_error']}"
            return
        if expected.get("unstable") or OVER_QUOTA in decision.message:
            if "chosen" in expected and not expected.get("unstable"):
                yield f"refused: {decision.message}"
            return
        said = {each.node: each.status.reasons for each in decision.verdicts if each.status is not None}
        if any(expected["requests"]):
            yield from differences({node: (why,) for node, why in expected.get("failed", {}).items()}, said)
        if "chosen" not in expected:
            if any(expected["requests"]) == bool(decision.node):
                yield f"node: {decision.node!r}, expected none"
            return
        if decision.node not in expected["best"]:
            yield f"node: {decision.node!r}, expected one of {expected['best']}; {decision.message}"
            return
        yield from self._compare_annotations(decision, DevicePod.of(pod), expected)

    def _compare_annotations(self, decision: Decision, pod: DevicePod, expected: Json) -> Iterator[str]:
        """Compare what is written: all of it on the node that HAMi took, its cards on an equal one."""
        placed = self.cluster.pod(decision.pod)
        assert placed is not None
        written = dict(placed.annotations)
        acceptable = expected["devices"][decision.node]
        alike = [unpadded(one, pod).items() <= unpadded(written, pod, like=one).items() for one in acceptable]
        if not any(alike):
            yield f"cards: {written}, expected one of {acceptable}"
        stated: Mapping[str, Any] = unpadded(expected["annotations"], pod)
        actual = unpadded(written, pod, like=expected["annotations"])
        actual = {key: text for key, text in actual.items() if text not in STAMPS and key != BIND_PHASE}
        if actual[CHOSEN_NODE] != decision.node or actual.keys() != stated.keys():
            yield f"annotations: {actual}, expected those of {stated}"
        if decision.node != expected["chosen"] or any(
            one.items() <= actual.items() and not one.items() <= stated.items() for one in acceptable
        ):
            return  # another node or allocation that HAMi may give
        yield from differences({"annotations": stated}, {"annotations": actual})


def _placed(written: Json, expected: Json) -> PodInfo:
    """Return the pod as HAMi left it on its node."""
    annotations = {**expected["admitted"]["annotations"], **expected["annotations"]}
    metadata = {**written["metadata"], "annotations": annotations}
    spec = {**written["spec"], "nodeName": expected["chosen"]}
    return PodInfo.of(msgspec.convert({**written, "metadata": metadata, "spec": spec}, Pod, strict=False))


@pytest.fixture(scope="module")
def labs(found: RuleSet) -> dict[str, Lab]:
    return {
        f"{node}_{card}": Lab(found, f"{node}_{card}")
        for node in ("binpack", "spread")
        for card in ("binpack", "spread")
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cycle_decides_as_hami(labs: dict[str, Lab], family: str) -> None:
    steps = [
        step
        for vector in islice(read_vectors(DATA, frozenset({family})), 0, None, SAMPLE)
        for step in labs[f"{vector['node_policy']}_{vector['gpu_policy']}"].run(vector)
    ]
    assert {name: problems for name, problems in steps if problems} == {}
    assert len(steps) >= FAMILIES[family] // (2 * SAMPLE)
