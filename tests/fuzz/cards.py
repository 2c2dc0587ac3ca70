"""Puts devices that the checker let pass to work: their nodes, and pods that ask for cards, as vendors have them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec
import yaml
from kdsl.base.clock import ManualClock
from kdsl.base.span import Source
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.state import CycleState
from kdsl.lang.program import Program
from kdsl.lang.tree import Device
from kdsl.plan.devices.plugin import DevicesPlugin, compile_devices

from tests.rules.devices.test_vendors import CASES, pod

PACKAGE = "fuzzed_devices"


def profile_of(program: Program, path: str) -> Source | None:
    """Write a profile that shares the devices of one file, None where it has none."""
    file = next(each for each in program.files if each.span.source.path == path)
    names = [each.name.text for each in file.declarations if isinstance(each, Device)]
    if not names or file.package is None:
        return None
    listed = ", ".join(f"it.{name}" for name in names)
    return Source(
        "profile.kdsl",
        f"kdsl 1\npackage {PACKAGE}\nimport {file.package.text} as it\nimport kubernetes.v1_36 as kubernetes\n"
        f'profile fuzzed extends kubernetes.default {{\n  scheduler "fuzzed"\n  devices {listed}\n}}\n',
    )


def serve(found: RuleSet) -> None:
    """Let pods of all vendors ask the devices of every profile for cards, and give them what they get."""
    for profile in found.profiles.values():
        annotations = MemoryAnnotations(ClusterCache())
        plugin = compile_devices(found, profile, annotations, ManualClock(), eager=True)
        if plugin is not None:
            _serve(plugin, annotations, profile)


def _serve(plugin: DevicesPlugin, annotations: MemoryAnnotations, profile: CheckedProfile) -> None:
    nodes, pods = _vendors()
    annotations.cluster = ClusterCache()
    for facts in nodes:
        annotations.cluster.add_node(facts)
    for each in pods:
        annotations.cluster.add_pod(each)
        state = CycleState()
        everywhere = NodeSet.all(annotations.cluster.snapshot())
        if plugin.pre_filter(state, each, everywhere) is not None:
            continue
        column = plugin.filter(state, each, everywhere)
        assert column is not None
        feasible = everywhere.take(column.ids == 0)
        if not len(feasible):
            continue
        plugin.pre_score(state, each, feasible)
        scores = plugin.normalize_score(state, each, feasible, plugin.score(state, each, feasible))
        assert all(0 <= score <= 100 for score in scores.tolist()), profile.qualified
        name = feasible.names()[0]
        plugin.reserve(state, each, name)
        plugin.pre_bind(state, each, name)


@cache
def _vendors() -> tuple[tuple[NodeFacts, ...], tuple[PodInfo, ...]]:
    """Return a node of each vendor, and its first pods."""
    cases = [(path.stem, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in CASES]
    nodes = (
        NodeFacts.of(
            msgspec.convert(
                case["node"] | {"metadata": case["node"].get("metadata", {}) | {"name": name}},
                Node,
                strict=False,
            )
        )
        for name, case in cases
    )
    return tuple(nodes), tuple(_pods(cases))


def _pods(cases: Iterable[tuple[str, dict[str, list[dict[str, object]]]]]) -> Iterable[PodInfo]:
    for name, case in cases:
        for number, written in enumerate(case["pods"][:3]):
            said = pod(number, written)
            said["metadata"] |= {"name": f"{name}-{number}", "namespace": "n", "uid": f"{name}-{number}"}
            yield PodInfo.of(msgspec.convert(said, Pod, strict=False))
