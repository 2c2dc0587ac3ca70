"""API defaults that change decisions."""

from __future__ import annotations

import pytest

from tests.cluster.build import pod_info, read_node, read_pod


def test_identity_and_scheduler() -> None:
    pod = read_pod({})
    assert (pod.metadata.namespace, pod.metadata.uid) == ("default", "default/p")
    assert (pod.spec.scheduler_name, pod.spec.priority) == ("default-scheduler", 0)
    pod = read_pod({"schedulerName": "mine", "priority": -5}, namespace="n", uid="u")
    assert (pod.metadata.namespace, pod.metadata.uid) == ("n", "u")
    assert (pod.spec.scheduler_name, pod.spec.priority) == ("mine", -5)


def test_a_limit_becomes_the_request_it_lacks() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi", "x.com/y": "3"}}
    found = pod_info({"containers": [{"name": "c", "resources": resources}]}).requests
    assert dict(found.amounts()) == {"cpu": 1000, "memory": 2**30, "x.com/y": 3}


@pytest.mark.parametrize(
    ("pod_level", "cpu", "memory"),
    [
        ({"limits": {"cpu": "8"}}, 1000, 0),
        ({"limits": {"memory": "2Gi"}}, 1000, 2**31),
        ({"limits": {"cpu": "8", "memory": "2Gi"}, "requests": {"cpu": "4"}}, 4000, 2**31),
        ({"requests": {"memory": "2Gi"}}, 1000, 2**31),
    ],
)
def test_pod_level_limits_become_requests_where_no_container_asks(
    pod_level: dict[str, object], cpu: int, memory: int
) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    found = pod_info({"containers": [container], "resources": pod_level}).requests
    assert (found.amount("cpu"), found.amount("memory")) == (cpu, memory)


def test_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81, "protocol": "UDP"}]
    containers = [{"name": "c", "ports": ports}]
    (on_host,) = read_pod({"containers": containers, "hostNetwork": True}).spec.containers
    first = read_pod({"initContainers": [{**containers[0], "name": "i"}], "hostNetwork": True}).spec
    assert first.init_containers[0].ports == on_host.ports
    assert [(one.host_port, one.protocol) for one in on_host.ports] == [(80, "TCP"), (81, "UDP")]
    (inside,) = read_pod({"containers": containers}).spec.containers
    assert [one.host_port for one in inside.ports] == [0, 81]


def test_allocatable_is_the_capacity_where_it_is_absent() -> None:
    assert read_node({"capacity": {"cpu": "4"}}).status.allocatable == {"cpu": "4"}
    assert read_node({"capacity": {"cpu": "4"}, "allocatable": {}}).status.allocatable == {}
    assert "kubernetes.io/hostname" not in read_node({}).metadata.labels
