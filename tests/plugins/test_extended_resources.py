"""Extended resources that a DeviceClass offers: pods get devices where nodes have no such resource."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import pytest
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.resource_claims.extended_claims import ANNOTATION
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.catalog import offered_by
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision

from kdsl_plugins.dynamic_resources.extended import extended_requests
from tests.plugins.device_manifests import (
    Manifest,
    allocated_on,
    claiming_pod,
    device_class,
    resource_claim,
    resource_slice,
)
from tests.plugins.storage import node

GPU = "example.com/gpu"
CLASS = {**device_class(), "spec": {**device_class()["spec"], "extendedResourceName": GPU}}
NO_PREEMPTION = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."


def with_resource(name: str, amount: str, resource: str = GPU) -> Manifest:
    """A node whose device plugin offers the resource."""
    made = node(name)
    made["status"]["allocatable"][resource] = amount
    return made


def container(name: str, gpus: int = 0, resource: str = GPU, **fields: Any) -> Manifest:
    amounts = {"cpu": "100m", **({resource: str(gpus)} if gpus else {})}
    return {"name": name, "image": "i", "resources": {"requests": amounts, "limits": amounts}, **fields}


def pod(name: str, *containers: Manifest, init: tuple[Manifest, ...] = (), **spec: Any) -> Manifest:
    made = claiming_pod(name)
    made["spec"] |= {"containers": list(containers), "initContainers": list(init), **spec}
    return made


class World:
    """A cluster with the default profile."""

    def __init__(self, *objects: Manifest, profile: str = "kubernetes.v1_36.default") -> None:
        read = read_values(objects)
        assert read.diagnostics == ()
        self.cache = ClusterCache.of([*read.nodes, *read.catalog])
        self.claims = MemoryClaims(self.cache)
        self.claims.follow()
        checked = check_rules((shipped_rules(),))
        assert checked.rules is not None
        self._stack = ExitStack()
        ports = MemoryBinder(self.cache), ManualClock(), Settings(profile=profile)
        engine = build_engine(checked.rules, self.cache, *ports, claims=self.claims)
        self.engine = self._stack.enter_context(engine)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def schedule(self, manifest: Manifest) -> Decision:
        read = read_values([manifest])
        assert read.diagnostics == ()
        return self.engine.schedule_one(PodInfo.of(read.pods[0]))

    def claim_of(self, pod: str) -> ResourceClaim:
        """The claim that was created for a pod."""
        made = [
            claim
            for claim in self.cache.resource_claims.values()
            if any(owner.name == pod for owner in claim.metadata.owner_references)
        ]
        assert len(made) == 1
        return made[0]

    def devices(self, pod: str) -> dict[str, str]:
        """The devices of the claim of a pod by request."""
        allocation = self.claim_of(pod).status.allocation
        assert allocation is not None
        return {one.request: one.device for one in allocation.devices.results}


def test_a_node_without_the_resource_gives_devices() -> None:
    with World(node("a"), CLASS, resource_slice("a", "g0", "g1", "g2")) as world:
        assert world.schedule(pod("p", container("c", 2))).node == "a"
        claim = world.claim_of("p")
        assert claim.metadata.name.startswith("p-extended-resources-")
        assert claim.metadata.annotations == {ANNOTATION: "true"}
        assert [user.name for user in claim.status.reserved_for] == ["p"]
        assert world.devices("p") == {"container-0-request-1": "g1"}
        found = world.schedule(pod("q", container("c", 2)))
        assert found.message == (
            f"0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
            f"{NO_PREEMPTION.format(1)}"
        )
        # The claim goes with its pod.
        world.cache.remove_pod("default/p")
        assert not world.cache.resource_claims
        assert world.schedule(pod("q", container("c", 2))).node == "a"


def test_a_node_with_the_resource_gives_it() -> None:
    with World(with_resource("a", "1"), CLASS, resource_slice("a", "g0")) as world:
        assert world.schedule(pod("p", container("c", 1))).node == "a"
        assert not world.cache.resource_claims
        # Its devices are those of the device plugin.
        assert world.schedule(pod("q", container("c", 1))).message.startswith(
            f"0/1 nodes are available: 1 Insufficient {GPU}."
        )


@pytest.mark.parametrize("resource", ["deviceclass.resource.kubernetes.io/gpu", GPU])
def test_nodes_differ(resource: str) -> None:
    nodes = (with_resource("a", "1", resource), with_resource("b", "0", resource), node("c"))
    with World(*nodes, CLASS, resource_slice("c", "g0"), resource_slice("b", "g0")) as world:
        places = [world.schedule(pod(name, container("c", 1, resource))).node for name in "pqr"]
        assert sorted(places) == ["a", "b", "c"]
        assert len(world.cache.resource_claims) == 2
        found = world.schedule(pod("s", container("c", 1, resource)))
        assert found.message.startswith(
            f"0/3 nodes are available: 1 Insufficient {resource}, 2 cannot allocate all claims."
        )


def test_resources_that_no_class_offers_are_short() -> None:
    other = "example.com/other"
    with World(node("a"), CLASS, resource_slice("a", "g0")) as world:
        found = world.schedule(pod("p", container("c", 1, other)))
        assert found.message.startswith(f"0/1 nodes are available: 1 Insufficient {other}.")
        world.cache.remove("DeviceClass", "gpu")
        found = world.schedule(pod("q", container("c", 1)))
        assert found.message.startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")


def test_kubernetes_1_34_knows_no_such_classes() -> None:
    with World(node("a"), CLASS, resource_slice("a", "g0"), profile="kubernetes.v1_34.default_1_34") as world:
        found = world.schedule({**pod("p", container("c", 1))})
        assert found.message.startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")


def test_claims_that_the_pod_names_come_first() -> None:
    with World(node("a"), CLASS, resource_slice("a", "g0", "g1"), resource_claim("c")) as world:
        both = pod("p", container("c", 1), resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        assert world.schedule(both).node == "a"
        assert world.devices("p") == {"container-0-request-1": "g1"}
        named = world.cache.resource_claims["default/c"].status.allocation
        assert named is not None and named.devices.results[0].device == "g0"


def test_a_claim_that_is_left_over_is_deleted_first() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    left = resource_claim(
        "p-extended-resources-x",
        status=allocated_on("a", "g0"),
        annotations={ANNOTATION: "true"},
        ownerReferences=[owner],
    )
    with World(node("a"), CLASS, resource_slice("a", "g0"), left) as world:
        found = world.schedule(pod("p", container("c", 1)))
        assert found.message == (
            "0/1 nodes are available: 1 cannot schedule extended resource claim. "
            f"deletion of ResourceClaim completed, {NO_PREEMPTION.format(1)}"
        )
        assert not world.cache.resource_claims
        assert world.schedule(pod("p", container("c", 1))).node == "a"


def test_a_failed_binding_deletes_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    with World(node("a"), CLASS, resource_slice("a", "g0")) as world:
        monkeypatch.setattr(MemoryBinder, "bind", _fail)
        assert not world.schedule(pod("p", container("c", 1))).node
        assert not world.cache.resource_claims and not world.claims.pending()
        monkeypatch.undo()
        assert world.schedule(pod("q", container("c", 1))).node == "a"


def _fail(*args: object) -> None:
    raise RuntimeError("no")


def test_the_newest_class_offers_a_resource() -> None:
    def classes(*created: tuple[str, str, str]) -> Mapping[str, str]:
        read = read_values(
            {
                **device_class(name),
                "metadata": {"name": name, "creationTimestamp": time},
                "spec": {"extendedResourceName": resource},
            }
            for name, time, resource in created
        )
        offered = offered_by(each for each in read.catalog)  # type: ignore[misc]
        return {name: each.metadata.name for name, each in offered.items() if name.startswith("e")}

    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    assert classes(("b", new, "e.com/g"), ("a", old, "e.com/g")) == {"e.com/g": "b"}
    assert classes(("b", new, "e.com/g"), ("a", new, "e.com/g")) == {"e.com/g": "a"}
    assert classes(("a", new, "requests.e/g"), ("b", new, "memory"), ("c", new, "e.kubernetes.io/g")) == {}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("init", "containers", "requests", "mappings"),
    [
        ((), (2, 0, 1), {"0": 2, "2": 1}, ["c0 0", "c2 2"]),
        # An init container uses the devices of those that start after it, and more where they are too few.
        (((1, {}),), (2,), {"1": 2}, ["c0 1", "i0 1"]),
        (((3, {}),), (1, 1), {"0": 1, "1": 1, "2": 1}, ["c0 1", "c1 2", "i0 1", "i0 2", "i0 0"]),
        # Init containers use the devices of one another.
        (((1, {}), (3, {}), (2, {})), (0,), {"1": 3}, ["i0 1", "i1 1", "i2 1"]),
        # A sidecar stays: only those before it can use its devices first.
        (((1, SIDECAR), (2, {})), (0,), {"0": 1, "1": 2}, ["i0 0", "i1 1"]),
        (((2, {}), (1, SIDECAR)), (1,), {"1": 1, "2": 1}, ["i1 1", "c0 2", "i0 1", "i0 2"]),
    ],
)
def test_containers_share_devices_where_they_do_not_run_together(
    init: tuple[tuple[int, Manifest], ...],
    containers: tuple[int, ...],
    requests: dict[str, int],
    mappings: list[str],
) -> None:
    before = tuple(container(f"i{at}", gpus, **fields) for at, (gpus, fields) in enumerate(init))
    made = pod("p", *(container(f"c{at}", gpus) for at, gpus in enumerate(containers)), init=before)
    read = read_values([made, CLASS])
    (thing,) = read.catalog
    found = extended_requests(PodInfo.of(read.pods[0]), (GPU,), {GPU: thing})  # type: ignore[dict-item]

    def short(name: str) -> str:
        assert name.startswith("container-") and name.endswith("-request-1")
        return name.removeprefix("container-").removesuffix("-request-1")

    assert {short(one.name): one.exactly.count for one in found.requests if one.exactly} == requests
    assert [f"{one.container} {short(one.request)}" for one in found.mappings] == mappings
    assert {one.resource for one in found.mappings} == {GPU}


def test_nodes_that_lack_different_resources_are_asked_for_different_devices() -> None:
    others = [with_resource("b", "2"), with_resource("e", "0")]
    slices = [resource_slice(name, "g0") for name in "acde"]
    with World(*map(node, "acd"), *others, CLASS, *slices) as world:
        made = [pod(f"p{at}", container("c", 1)) for at in range(7)]
        assert sorted(world.schedule(each).node for each in made) == ["", "a", "b", "b", "c", "d", "e"]
