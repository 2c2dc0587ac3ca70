"""The watched resources follow from the reads of rules and plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from kdsl.app import Settings, check_rules, hook_tables, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.events import EVERYTHING
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Status
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import Wake
from kdsl.live.watching.needs import needs
from kdsl.live.watching.resources import RESOURCES, resource_of

STORAGE = {
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "volumeattachments",
}
DEVICES = {"deviceclasses", "resourceclaims", "resourceslices"}
WORKLOADS = {"services", "replicationcontrollers", "replicasets", "statefulsets"}


class NoBinder:
    """Where nothing is bound."""

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        raise AssertionError("nothing is bound here")


@pytest.fixture(scope="module")
def shipped() -> RuleSet:
    rules = check_rules((shipped_rules(),)).rules
    assert rules is not None
    return rules


def reasons(rules: RuleSet, *profiles: str) -> Mapping[str, tuple[str, ...]]:
    return {need.resource.name: need.reasons for need in needs(rules, tables(rules, *profiles))}


def tables(rules: RuleSet, *profiles: str) -> tuple[HookTable, ...]:
    context = PluginContext(NoBinder(), ManualClock(), WaitingPods())
    return hook_tables(rules, context, Settings(profiles=profiles))


def own_rules(tmp_path: Path, text: str) -> RuleSet:
    (tmp_path / "own.kdsl").write_text(text)
    checked = check_rules((tmp_path,))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def test_the_default_profile_needs_what_kube_scheduler_watches(shipped: RuleSet) -> None:
    found = reasons(shipped, "default")
    others = {"pods", "nodes", "namespaces", "poddisruptionbudgets"}
    assert found.keys() == others | STORAGE | WORKLOADS | DEVICES
    assert found["resourceslices"] == ("plugin `DynamicResources`",)
    assert found["namespaces"] == ("rule `InterPodAffinity`",)
    assert found["poddisruptionbudgets"] == ("rule `LowerPriority`",)
    assert "plugin `VolumeBinding`" in found["persistentvolumeclaims"]
    assert "rule `PodTopologySpread`" in found["services"]


def test_devices_need_quotas(shipped: RuleSet) -> None:
    assert "resourcequotas" in reasons(shipped, "gpu")


def test_a_small_profile_needs_little(tmp_path: Path) -> None:
    rules = own_rules(
        tmp_path,
        """kdsl 1
package own

predicate Ready {
  require !node.unschedulable else "cordoned"
}

queue ByAge {
  order by pod.queuedAt
}

profile small {
  scheduler "small"
  queue ByAge
  predicates { Ready }
  scores { }
}
""",
    )
    assert reasons(rules, "small").keys() == {"pods", "nodes"}


def test_a_plugin_that_says_nothing_may_read_anything_that_kube_scheduler_may(shipped: RuleSet) -> None:
    [table] = tables(shipped, "default")
    wakes = {**table.wakes, "VolumeBinding": (Wake(EVERYTHING),)}
    found = needs(shipped, (replace(table, wakes=wakes),))
    assert {need.resource.name for need in found} == RESOURCES.keys() - {"resourcequotas"}
    capacities = next(need for need in found if need.resource.name == "csistoragecapacities")
    assert "plugin `VolumeBinding`, which does not declare its reads" in capacities.reasons


def test_paths_of_resources() -> None:
    assert RESOURCES["pods"].path == "/api/v1/pods" and RESOURCES["pods"].is_namespaced
    csi = resource_of("CSINode")
    assert (csi.path, csi.group) == ("/apis/storage.k8s.io/v1/csinodes", "storage.k8s.io")
    assert not csi.is_namespaced and not csi.field_selector
    assert RESOURCES["pods"].field_selector == "status.phase!=Succeeded,status.phase!=Failed"
