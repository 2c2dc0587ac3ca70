"""Requests of pods: sidecars, init containers, overhead, pod level, defaults for scores, resizes under way."""

from __future__ import annotations

import pytest
from kdsl.base.quantity import INT64_MAX
from kdsl.base.resources import Resources
from kdsl.cluster.objects.requests import PodRequests, pod_requests

from tests.amounts import read_resources
from tests.cluster.build import container, read_pod


def requests(spec: dict[str, object], status: dict[str, object] | None = None) -> PodRequests:
    return pod_requests(read_pod(spec, status))


def sidecar(name: str, **amounts: str) -> dict[str, object]:
    return {**container(name, **amounts), "restartPolicy": "Always"}


def cpu(**amounts: str) -> Resources:
    return read_resources(amounts)


@pytest.mark.parametrize(
    ("init", "cpu_request"),
    [
        ([], "3"),
        ([container("i", cpu="2")], "3"),
        ([container("i", cpu="5")], "5"),
        ([sidecar("s", cpu="2")], "5"),
        ([sidecar("s", cpu="2"), container("i", cpu="4")], "6"),
        ([container("i", cpu="4"), sidecar("s", cpu="2")], "5"),
        ([sidecar("s", cpu="2"), container("i", cpu="1"), sidecar("t", cpu="4")], "9"),
        ([container("i", cpu="4"), container("j", cpu="4")], "4"),
    ],
)
def test_init_containers_and_sidecars(init: list[dict[str, object]], cpu_request: str) -> None:
    spec = {"containers": [container("a", cpu="1"), container("b", cpu="2")], "initContainers": init}
    assert str(requests(spec).requests["cpu"]) == cpu_request


def test_overhead_comes_on_top_of_everything() -> None:
    spec = {
        "containers": [container(cpu="1")],
        "initContainers": [container("i", cpu="2")],
        "overhead": {"cpu": "250m", "memory": "1Mi"},
    }
    assert requests(spec).requests == cpu(cpu="2250m", memory="1Mi")
    pod_level = {**spec, "resources": {"requests": {"cpu": "4"}}}
    assert requests(pod_level).requests == cpu(cpu="4250m", memory="1Mi")


def test_rounding_comes_after_adding() -> None:
    spec = {"containers": [container("a", cpu="100u"), container("b", cpu="100u")]}
    assert requests(spec).requests.amount("cpu") == 1


def test_containers_without_requests_count_in_scores() -> None:
    spec = {"containers": [container("a"), container("b", cpu="0"), container("c", memory="1Gi")]}
    found = requests(spec)
    assert found.requests == found.usage == cpu(memory="1Gi")
    assert found.scored == found.scored_usage == cpu(cpu="200m", memory="1424Mi")


def test_pod_level_requests_replace_those_of_containers_except_in_the_scores_of_a_pod_to_place() -> None:
    spec = {
        "containers": [container("a", cpu="1"), container("b", **{"example.com/foo": "2"})],
        "resources": {"requests": {"cpu": "4"}},
    }
    found = requests(spec)
    foo = {"example.com/foo": "2"}
    assert found.requests == found.usage == cpu(cpu="4", **foo)
    assert found.scored == cpu(cpu="1100m", memory="400Mi", **foo)
    # Neither the pod nor a container names memory, so every container counts at the default.
    assert found.scored_usage == cpu(cpu="4", memory="400Mi", **foo)
    both = {**spec, "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}
    assert requests(both).scored_usage == cpu(cpu="4", memory="1Gi", **foo)


def test_a_resize_counts_at_the_larger_amount_on_the_node_only() -> None:
    spec = {"containers": [container("a", cpu="1", memory="3Gi"), container("b", cpu="1")]}
    status: dict[str, object] = {
        "containerStatuses": [
            {
                "name": "a",
                "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
                "allocatedResources": {"cpu": "1500m", "memory": "2Gi"},
            },
            {"name": "b", "allocatedResources": {"cpu": "9"}},
        ]
    }
    found = requests(spec, status)
    assert found.requests == cpu(cpu="2", memory="3Gi")
    assert found.usage == cpu(cpu="3", memory="3Gi")
    assert found.scored_usage == cpu(cpu="3", memory="3272Mi")
    pending = {**status, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    assert requests(spec, pending).usage == cpu(cpu="3", memory="2Gi")
    deferred = {**status, "conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
    assert requests(spec, deferred).usage == found.usage


def test_an_infeasible_resize_of_a_container_without_requests_asks_for_nothing() -> None:
    status = {
        "containerStatuses": [{"name": "a", "resources": {}}],
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
    }
    found = requests({"containers": [container("a", cpu="64")]}, status)
    assert (found.usage, found.requests) == (cpu(), cpu(cpu="64"))
    assert found.scored_usage == cpu(cpu="100m", memory="200Mi")


def test_sums_stay_within_int64() -> None:
    many = [container(f"c{i}", memory="8Pi") for i in range(1025)]
    assert requests({"containers": many}).usage.amount("memory") == INT64_MAX
    limited = requests({"containers": many, "resources": {"limits": {"cpu": "1"}}})
    assert limited.usage.amount("memory") == INT64_MAX


def test_a_resize_of_sidecars_and_of_the_pod_level() -> None:
    spec = {
        "containers": [container("a", cpu="1")],
        "initContainers": [sidecar("s", cpu="1"), container("i", cpu="1")],
    }
    statuses = [{"name": name, "resources": {"requests": {"cpu": "3"}}} for name in ("s", "i")]
    assert requests(spec, {"initContainerStatuses": statuses}).usage == cpu(cpu="4")
    pod_level = {**spec, "resources": {"requests": {"cpu": "5"}}}
    assert requests(pod_level, {"resources": {"requests": {"cpu": "6"}}}).usage == cpu(cpu="6")
    assert requests(pod_level, {"resources": {"requests": {"cpu": "6"}}}).requests == cpu(cpu="5")
    assert requests(pod_level, {"allocatedResources": {"cpu": "6"}}).usage == cpu(cpu="5")
