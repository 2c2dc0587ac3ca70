"""Pods and nodes as rules see them: every field of the views, tolerations, ports, images, and adding and removing pods."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.images import NodeImage, tagged
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.selectors import NodeSelector, PreferredNodeTerm
from kdsl.cluster.objects.taints import Taint, Toleration

from tests.cluster.build import container, facts, pod_info, read_node

VIEWS = Path(__file__).parents[3] / "kdsl/check/views/v1_36.yaml"
CLASSES = {
    "Pod": PodInfo,
    "Node": NodeInfo,
    "NodeImage": NodeImage,
    "Taint": Taint,
    "Toleration": Toleration,
    "NodeSelector": NodeSelector,
    "PreferredNodeTerm": PreferredNodeTerm,
    "HostPort": HostPort,
}


@pytest.mark.parametrize("view", CLASSES)
def test_views_have_their_attributes(view: str) -> None:
    described = yaml.safe_load(VIEWS.read_text())["types"][view]
    for name in (*described.get("fields", {}), *described.get("methods", {})):
        attribute = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: f"_{letter[0]}", name).lower()
        assert hasattr(CLASSES[view], attribute), f"{view}.{name}"


def test_pod_fields() -> None:
    pod = pod_info(
        {
            "nodeName": "n1",
            "serviceAccountName": "sa",
            "priority": 7,
            "schedulingGates": [{"name": "g"}],
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "nodeSelector": {"x": "y"},
            "containers": [{"name": "c", "image": "app"}, {"name": "d", "image": "reg:5000/app"}],
            "initContainers": [{"name": "i", "image": "app:v1"}],
            "volumes": [{"name": "v", "image": {"reference": "data@sha256:00"}}, {"name": "w"}],
        },
        {"phase": "Running", "nominatedNodeName": "n2"},
        namespace="team",
        uid="u",
        labels={"l": "1"},
        annotations={"a": "2"},
        creationTimestamp="2026-01-01T00:00:00.000001+01:00",
    )
    assert pod.key == "team/p"
    assert pod.created_at == 1767222000_000001000
    assert (pod.uid, pod.node_name, pod.nominated_node_name) == ("u", "n1", "n2")
    assert (pod.service_account, pod.priority, pod.phase) == ("sa", 7, "Running")
    assert pod.scheduling_gates == ("g",)
    assert pod.labels == {"l": "1"}
    assert pod.annotations == {"a": "2"}
    assert pod.node_selector == {"x": "y"}
    assert pod.images == ("app:v1", "app:latest", "reg:5000/app:latest", "data@sha256:00")
    assert pod.container_count == 3
    assert pod.required_node_affinity is None
    assert pod.preferred_node_terms == ()
    assert not pod.is_terminating
    assert hash(pod) == hash(pod.on("n1"))
    assert pod.on("n3").node_name == "n3"


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("k", "", "v", ""), True),
        (Toleration("k", "Equal", "v", "NoSchedule"), True),
        (Toleration("k", "Equal", "w", ""), False),
        (Toleration("k", "Exists", "", ""), True),
        (Toleration("j", "Exists", "", ""), False),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
        (Toleration("", "Equal", "v", ""), True),
        (Toleration("k", "Gt", "v", ""), False),
    ],
)
def test_tolerations(toleration: Toleration, expected: bool) -> None:
    taint = Taint("k", "v", "NoSchedule")
    assert toleration.tolerates(taint) is expected
    assert PodInfo("p", tolerations=(toleration,)).tolerates(taint) is expected
    assert not PodInfo("p").tolerates(taint)


@pytest.mark.parametrize(
    ("a", "b", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
    ],
)
def test_port_conflicts(a: tuple[str, str, int], b: tuple[str, str, int], conflict: bool) -> None:
    assert HostPort(*a).conflicts_with(HostPort(*b)) is conflict
    assert HostPort(*b).conflicts_with(HostPort(*a)) is conflict


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def ports(number: int) -> list[dict[str, object]]:
        return [{"containerPort": 1, "hostPort": number}, {"containerPort": 2}]

    pod = pod_info(
        {
            "containers": [{"name": "c", "ports": ports(80)}],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "ports": ports(81)},
                {"name": "i", "ports": ports(82)},
            ],
        }
    )
    assert pod.host_ports == (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 81))


def test_image_names() -> None:
    assert tagged("a") == "a:latest"
    assert tagged("reg:5000/a") == "reg:5000/a:latest"
    assert tagged("reg:5000/a:v1") == "reg:5000/a:v1"
    assert tagged("reg/a@sha256:00") == "reg/a@sha256:00"


def test_node_fields() -> None:
    node = read_node(
        {
            "allocatable": {"cpu": "4", "memory": "1.5Gi"},
            "images": [
                {"names": ["a", "a@sha256:00"], "sizeBytes": 7},
                {"names": ["a"], "sizeBytes": 8},
            ],
        },
        {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
        labels={"l": "1"},
        annotations={"x": "y"},
    )
    info = NodeInfo.of(node)
    assert info.unschedulable
    assert info.taints == (Taint("k", "v", "NoExecute"),)
    assert (info.labels, info.annotations) == ({"l": "1"}, {"x": "y"})
    assert dict(info.allocatable.amounts()) == {"cpu": 4000, "memory": 3 * 2**29}
    # Names of a node's images are taken as they are, and of two images with one name the first counts.
    assert info.images == {"a": NodeImage(7, 1), "a@sha256:00": NodeImage(7, 1)}


def test_pods_come_and_go() -> None:
    port = {"containerPort": 1, "hostPort": 80}
    a = pod_info({"containers": [{**container(cpu="1"), "ports": [port]}]}, name="a")
    b = pod_info({"containers": [{**container(cpu="2"), "ports": [port]}]}, name="b")
    empty = NodeInfo.of(facts("n"))
    both = empty.with_pod(a).with_pod(b)
    assert (both.pod_count, both.requested.amount("cpu")) == (2, 3000)
    assert both.scored_requests.amount("memory") == 2 * 200 * 2**20
    assert both.used_host_ports == (HostPort("0.0.0.0", "TCP", 80),)
    assert both.without_pod(a).used_host_ports == both.used_host_ports
    assert both.without_pod(a) == empty.with_pod(b)
    assert both.without_pod(a).without_pod(b) == empty
    assert empty.pod_count == 0
    with pytest.raises(KeyError, match="default/a"):
        empty.without_pod(a)


def test_a_pod_on_a_node_is_the_same_pod_elsewhere() -> None:
    pod = pod_info({"containers": [container(cpu="1")], "priority": 3}, name="a")
    assert pod.on("n") == pod.with_fields(node_name="n") != pod


TERM = PodAffinityTerm("zone", 0, None, frozenset({"default"}), None)
AFFINE = ("required_affinity", "required_anti_affinity", "preferred_affinity", "preferred_anti_affinity")


@given(st.lists(st.sampled_from(("", *AFFINE)), max_size=6), st.randoms(use_true_random=False))
def test_nodes_know_how_many_pods_have_affinity_terms(kinds: list[str], random: Random) -> None:
    pods = [
        PodInfo(f"p{at}").with_fields(**({kind: (TERM,)} if kind else {})) for at, kind in enumerate(kinds)
    ]
    info = NodeInfo.of(facts("n"), pods)
    random.shuffle(pods)
    while pods:
        assert info.affine_pods == sum(pod.has_affinity_terms for pod in pods)
        info = info.without_pod(pods.pop())
    assert info.affine_pods == 0


def test_a_resized_pod_counts_with_its_usage() -> None:
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    pod = pod_info({"containers": [container(cpu="1")]}, status)
    assert NodeInfo.of(facts("n"), [pod]).requested == Resources({"cpu": 3000})


@given(st.dictionaries(st.text(), st.text()))
def test_frozen_maps_are_values(items: dict[str, str]) -> None:
    frozen = FrozenMap(items)
    assert frozen == items
    assert hash(frozen) == hash(FrozenMap(dict(reversed(items.items()))))
    items["new key that was not there"] = ""
    assert frozen != items


def test_equal_facts_are_equal_values() -> None:
    assert facts("n", {"a": 1}, zone="z") == facts("n", {"a": 1}, zone="z")
    assert facts("n") != NodeFacts("n")


@pytest.mark.parametrize(
    ("condition", "is_so"),
    [
        (("DisruptionTarget", "True", "PreemptionByScheduler"), True),
        (("Ready", "True", "PreemptionByScheduler"), False),
        (("DisruptionTarget", "False", "PreemptionByScheduler"), False),
        (("DisruptionTarget", "True", "TerminationByKubelet"), False),
    ],
)
def test_a_victim_of_a_scheduler_is_known_by_its_condition(condition: tuple[str, ...], is_so: bool) -> None:
    status: dict[str, object] = {
        "conditions": [dict(zip(("type", "status", "reason"), condition, strict=True))]
    }
    assert pod_info({}, status, deletionTimestamp="2026-01-01T00:00:00Z").being_preempted is is_so
    assert not pod_info({}, status).being_preempted
