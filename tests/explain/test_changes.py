"""The notation of changes: read, written back, done, and refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.explain.changes import ChangeError, parse_change

from tests.amounts import read_resources
from tests.explain.cases import node, pod

NODES = ("n", "n.dotted.name", "n.labels")
POD = pod("p", "2", {"app": "web"}, node_selector=FrozenMap({"disk": "ssd"}))
NODE = node("n", {"zone": "a"}, (Taint("a", "x", "NoSchedule"), Taint("a", "y", "NoExecute")))


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("pod.labels.app=db", POD.with_fields(labels=FrozenMap({"app": "db"}))),
        (
            "pod.labels.example.com/tier=",
            POD.with_fields(labels=FrozenMap({"app": "web", "example.com/tier": ""})),
        ),
        ("pod.labels.app-", POD.with_fields(labels=FrozenMap())),
        ("pod.nodeSelector-", POD.with_fields(node_selector=FrozenMap())),
        ("pod.nodeSelector.disk-", POD.with_fields(node_selector=FrozenMap())),
        ("pod.priority=-5", POD.with_fields(priority=-5)),
        ("pod.tolerations+=gpu", POD.with_fields(tolerations=(Toleration("gpu", "Exists", "", ""),))),
        (
            "pod.tolerations+=gpu=a:NoSchedule",
            POD.with_fields(tolerations=(Toleration("gpu", "Equal", "a", "NoSchedule"),)),
        ),
    ],
)
def test_changes_of_a_pod(text: str, changed: PodInfo) -> None:
    change = parse_change(text, NODES)
    assert change.text == text
    assert change.to_pod(POD) == changed
    assert change.to_node(NODE) is NODE


def test_a_request_counts_wherever_it_is_counted() -> None:
    changed = parse_change("pod.requests.cpu=500m", NODES).to_pod(POD)
    half = read_resources({"cpu": "500m"})
    assert (changed.requests, changed.usage, changed.scored_requests, changed.scored_usage) == (half,) * 4


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("node.n.labels.zone=b", replace(NODE, labels=FrozenMap({"zone": "b"}))),
        ("node.n.labels.zone-", replace(NODE, labels=FrozenMap())),
        ("node.n.unschedulable=true", replace(NODE, unschedulable=True)),
        ("node.n.taints-", replace(NODE, taints=())),
        ("node.n.taints-=a", replace(NODE, taints=())),
        ("node.n.taints-=a=y:NoExecute", replace(NODE, taints=NODE.taints[:1])),
        ("node.n.taints-=a:NoSchedule", replace(NODE, taints=NODE.taints[1:])),
        ("node.n.taints+=b:NoSchedule", replace(NODE, taints=(*NODE.taints, Taint("b", "", "NoSchedule")))),
    ],
)
def test_changes_of_a_node(text: str, changed: NodeFacts) -> None:
    change = parse_change(text, NODES)
    assert change.text == text
    assert change.to_node(NODE) == changed
    assert change.to_pod(POD) is POD


@pytest.mark.parametrize(
    ("text", "on"),
    [("node.n.dotted.name.labels.a.b=c", "n.dotted.name"), ("node.n.labels.labels.a=c", "n.labels")],
)
def test_names_of_nodes_have_dots(text: str, on: str) -> None:
    assert parse_change(text, NODES).on == on


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cpu", "`cpu` is nothing that can be changed"),
        ("pod.label", "`label` of a pod cannot be changed"),
        ("pods", "pods can only be taken away"),
        ("pod.labels.app", "there is no value"),
        ("pod.requests.mem=8Gi", "unknown resource `mem`"),
        ("node.n.allocatable.mem=8Gi", "unknown resource `mem`"),
        ("pod.labels.app=a b", "`a b` is not a label value"),
        ("pod.labels.a/b.c/d=x", "`a/b.c/d` is not a label key"),
        ("pod.nodeSelector.disk=a b", "`a b` is not a label value"),
        ("pod.annotations.a b=x", "`a b` is not an annotation key"),
        ("node.n.labels.zone=a b", "`a b` is not a label value"),
        ("cpu=1", "`cpu` is nothing that can be changed"),
        ("pods=a/b", "pods can only be taken away"),
        ("pods-=b", "`b` has no namespace"),
        ("pods-=", "pods can only be taken away"),
        ("pod.request.cpu=1", "`request` of a pod cannot be changed"),
        ("pod.requests=1", "`requests` is a map"),
        ("pod.requests.cpu=-1", "`-1` is negative"),
        ("pod.requests.cpu=1x", "`1x` is not a quantity, `x` is no suffix"),
        ("pod.labels=1", "`labels` is a map"),
        ("pod.labels-", "`labels` is a map"),
        ("pod.priority=high", "`high` is no priority"),
        ("pod.priority=2147483648", "`2147483648` is no priority"),
        ("pod.tolerations-=a", "a single toleration cannot be taken away"),
        ("pod.tolerations+=a:NoSchedul", "`NoSchedul` is no effect of a taint"),
        ("pod.hostPorts=1", "`=` cannot be done to `hostPorts`"),
        ("node.m.labels.a=b", "there is no node `m`"),
        ("node.n.requested.cpu=1", "`requested` of a node cannot be changed"),
        ("node.n.unschedulable=yes", "`yes` is neither `true` nor `false`"),
        ("node.n.taints+=a", "a taint needs an effect"),
    ],
)
def test_what_is_no_change(text: str, reason: str) -> None:
    with pytest.raises(ChangeError) as caught:
        parse_change(text, NODES)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("x", ("changes begin with `pod.`, `node.NAME.` or `pods-=`",)),
        ("pod.labels", ("write `pod.labels.KEY=VALUE`, or `pod.labels.KEY-` to take it away",)),
        ("pod.requests.cpu", ("write `pod.requests.cpu=VALUE`",)),
        ("pod.tolerations", ("write `pod.tolerations+=KEY:EFFECT`, or `pod.tolerations-` to take it away",)),
        ("pod.hostPorts", ("write `pod.hostPorts-` to take it away",)),
        ("node.n.unschedulable", ("write `node.n.unschedulable=VALUE`",)),
        ("pod.requests.memry=1Gi", ("did you mean `memory`?",)),
        ("node.n.allocatable.pod=1", ("did you mean `pods`?",)),
    ],
)
def test_help_is_a_change_that_is_possible(text: str, help_: tuple[str, ...]) -> None:
    with pytest.raises(ChangeError) as caught:
        parse_change(text, NODES)
    assert caught.value.help == help_


@pytest.mark.parametrize(
    "text",
    [
        "pod.labels.a b-",
        "pod.annotations.example.com/note=any text: at all",
        "pod.requests.nvidia.com/gpu=1",
        "pod.requests.hugepages-2Mi=4Mi",
        "node.n.allocatable.pods=5",
        "node.n.allocatable.attachable-volumes-csi-x=5",
    ],
)
def test_what_the_api_server_accepts_is_a_change(text: str) -> None:
    assert parse_change(text, NODES).text == text
