"""DynamicResources: which pods wait for their claims, and what is kept, written, given back and taken away."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.clock import ManualClock
from kdsl.cluster.api.device_objects import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.specs import Wait
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.compile.device_conditions import CelConditions
from msgspec import convert
from msgspec.structs import replace

from kdsl_plugins.default_binder.plugin import DefaultBinder
from kdsl_plugins.dynamic_resources.plugin import DynamicResources
from tests.cycle.world import always, plugin, table
from tests.plugins.device_manifests import (
    DRIVER,
    Manifest,
    allocated_on,
    claiming_pod,
    device_class,
    resource_claim,
    resource_slice,
)
from tests.plugins.storage import node

NODES = node("a"), node("b")
ON_A = resource_slice("a", "g0")
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
WAITS = "pod has no room"


class World:
    """Two nodes and a scheduler of this plugin, perhaps with others behind it."""

    def __init__(self, *objects: Manifest, **others: object) -> None:
        read = read_values([*NODES, device_class(), *objects])
        assert read.diagnostics == ()
        self.cache = ClusterCache.of([*read.nodes, *read.catalog])
        self.waiting: WaitingPods[Any] = WaitingPods()
        self.claims, self.clock = MemoryClaims(self.cache), ManualClock()
        context = PluginContext(
            MemoryBinder(self.cache),
            self.clock,
            self.waiting,
            claims=self.claims,
            conditions=CelConditions(),
        )
        plugins = {
            "DynamicResources": DynamicResources({}, context),
            **others,
            "binder": DefaultBinder({}, context),
        }
        options = EngineOptions(detail=Detail.FULL)
        self.engine = Engine(
            [table(plugins, scores={"DynamicResources": 2})],
            self.cache,
            ManualClock(),
            options,
            waiting=self.waiting,
        )

    def schedule(self, manifest: Manifest) -> Decision:
        return self.engine.schedule_one(pod_of(manifest))

    def claim(self, name: str) -> ResourceClaim:
        found = self.claims.find(f"default/{name}")
        assert found is not None
        return found

    def devices(self, name: str) -> list[tuple[str, str]]:
        """The pools and devices of a claim."""
        allocation = self.claim(name).status.allocation
        return [] if allocation is None else [(one.pool, one.device) for one in allocation.devices.results]

    def users(self, name: str) -> list[str]:
        return [user.name for user in self.claim(name).status.reserved_for]


def pod_of(manifest: Manifest) -> PodInfo:
    read = read_values([manifest])
    assert read.diagnostics == ()
    return PodInfo.of(read.pods[0])


def claim_of(manifest: Manifest) -> ResourceClaim:
    (claim,) = read_values([manifest]).catalog
    assert isinstance(claim, ResourceClaim)
    return claim


def test_a_pod_without_claims_is_placed() -> None:
    decision = World(ON_A).schedule(claiming_pod("p"))
    assert decision.outcome is Outcome.PLACED
    assert decision.prefilter.skipped == ("DynamicResources",)


def test_devices_are_allocated_with_the_pod() -> None:
    world = World(ON_A, resource_claim("c"))
    assert world.schedule(claiming_pod("p", "c")).node == "a"
    assert (world.devices("c"), world.users("c")) == ([("a", "g0")], ["p"])
    assert world.claims.pending() == {}


def test_a_claim_is_shared_and_its_devices_are_not() -> None:
    world = World(ON_A, resource_claim("c"), resource_claim("d"))
    world.schedule(claiming_pod("p", "c"))
    assert world.schedule(claiming_pod("q", "c")).node == "a"
    assert world.users("c") == ["p", "q"]
    decision = world.schedule(claiming_pod("r", "d"))
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message == "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable"
    assert {verdict.status.code for verdict in decision.verdicts if verdict.status} == {Code.UNRESOLVABLE}


@pytest.mark.parametrize(
    ("objects", "asked", "message"),
    [
        ([], claiming_pod("p", "c"), 'resourceclaim "c" not found'),
        ([], claiming_pod("p", templates=["t"]), 'pod "default/p": ResourceClaim not created yet'),
        (
            [resource_claim("c", deletionTimestamp="2026-01-01T00:00:00Z")],
            claiming_pod("p", "c"),
            'resourceclaim "c" is being deleted',
        ),
        (
            [resource_claim("p-t")],
            claiming_pod(
                "p", templates=["t"], resourceClaimStatuses=[{"name": "t", "resourceClaimName": "p-t"}]
            ),
            "ResourceClaim default/p-t was not created for pod default/p (pod is not owner)",
        ),
    ],
)
def test_a_pod_stays_out_of_the_queue_until_its_claims_exist(
    objects: list[Manifest], asked: Manifest, message: str
) -> None:
    world = World(ON_A, *objects)
    decision = world.engine.enqueue(pod_of(asked))
    assert decision is not None
    assert decision.outcome is Outcome.GATED and decision.message == message
    # An attempt that ran all the same says so as well.
    assert f": {message}." in world.schedule(asked).message


def test_a_claim_that_a_controller_creates_lets_the_pod_in() -> None:
    world = World(ON_A)
    statuses = [{"name": "t", "resourceClaimName": "p-t"}]
    waiting = pod_of(claiming_pod("p", templates=["t"]))
    assert world.engine.enqueue(waiting) is not None
    world.cache.put(claim_of(resource_claim("p-t", ownerReferences=[OWNER])))
    assert world.engine.queue.pop() is None
    world.engine.queue.update(pod_of(claiming_pod("p", templates=["t"], resourceClaimStatuses=statuses)))
    queued = world.engine.queue.pop()
    assert queued is not None
    assert world.engine.schedule_one(queued).node == "a"
    assert world.users("p-t") == ["p"]


def test_a_pod_whose_template_needs_no_claim_is_placed() -> None:
    asked = claiming_pod("p", templates=["t"], resourceClaimStatuses=[{"name": "t"}])
    assert World(ON_A).schedule(asked).outcome is Outcome.PLACED


def test_a_class_that_does_not_exist() -> None:
    requests = [
        {"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": "none"}]},
    ]
    decision = World(ON_A, resource_claim("c", requests=requests)).schedule(claiming_pod("p", "c"))
    assert "request r/x: device class none does not exist" in decision.message


def test_a_claim_with_too_many_users() -> None:
    users = [f"u{at}" for at in range(256)]
    world = World(ON_A, resource_claim("c", status=allocated_on("a", "g0", *users)))
    assert "resourceclaim in use" in world.schedule(claiming_pod("p", "c")).message
    assert world.schedule(claiming_pod("u7", "c")).node == "a"


def test_an_allocated_claim_decides_the_node_and_is_deallocated_where_that_is_full() -> None:
    def judge(nodes: Any) -> Any:
        return [Status(Code.UNSCHEDULABLE, (WAITS,)) if name == "a" else None for name in nodes.names()]

    world = World(
        ON_A,
        resource_claim("c", status=allocated_on("a")),
        other=plugin(filter=lambda nodes: StatusColumn.of(judge(nodes))),
    )
    decision = world.schedule(claiming_pod("p", "c"))
    assert decision.message == (
        f"0/2 nodes are available: 1 {WAITS}, 1 resourceclaim not available on the node. "
        "deallocation of ResourceClaim completed"
    )
    assert world.devices("c") == []


def test_a_claim_with_another_user_is_not_deallocated() -> None:
    world = World(
        ON_A,
        resource_claim("c", status=allocated_on("a", "g0", "other")),
        other=plugin(
            filter=lambda nodes: StatusColumn.of([Status(Code.UNSCHEDULABLE, (WAITS,))] * len(nodes))
        ),
    )
    assert world.schedule(claiming_pod("p", "c")).message.endswith("still not schedulable")
    assert world.devices("c") == [("a", "g0")]


def test_a_node_without_devices_for_a_new_claim_takes_none_away() -> None:
    world = World(ON_A, resource_claim("here", status=allocated_on("a", "g0")), resource_claim("new"))
    decision = world.schedule(claiming_pod("p", "here", "new"))
    assert decision.message == "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable"
    assert world.devices("here") == [("a", "g0")]


def test_a_claim_of_an_unknown_kind_of_request_waits() -> None:
    world = World(ON_A)
    spec = convert({"devices": {"requests": [{"name": "r"}]}}, ResourceClaimSpec)
    world.cache.put(replace(claim_of(resource_claim("c")), spec=spec))
    decision = world.schedule(claiming_pod("p", "c"))
    assert decision.message.startswith(
        "0/2 nodes are available: resource claim default/c, request r: unknown request type."
    )


@pytest.mark.parametrize(
    ("condition", "seconds", "is_kept"),
    [("ready", 700, True), ("", 600, True), ("", 601, False), ("broken", 0, False)],
)
def test_devices_that_do_not_get_ready_are_taken_away(condition: str, seconds: int, is_kept: bool) -> None:
    status = allocated_on("a", "g0", "p")
    status["allocation"]["allocationTimestamp"] = "1970-01-01T00:00:00Z"
    status["allocation"]["devices"]["results"][0] |= {
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["broken"],
    }
    if condition:
        reported = {"type": condition, "status": "True"}
        device = {"driver": DRIVER, "pool": "a", "device": "g0", "conditions": [reported]}
        status["devices"] = [device]
    world = World(ON_A, resource_claim("c", status=status))
    world.clock.advance(seconds * 1_000_000_000)
    decision = world.schedule(claiming_pod("p", "c"))
    if is_kept:
        assert decision.outcome is Outcome.PLACED
    else:
        assert decision.message == (
            "0/2 nodes are available: 2 resourceclaim not available on the node. "
            "deallocation of ResourceClaim completed"
        )
        assert world.claim("c").status == ResourceClaimStatus()


def test_devices_of_a_held_pod_are_kept_and_given_back() -> None:
    world = World(ON_A, resource_claim("c"), resource_claim("d"), gate=plugin(permit=always(Wait(10**9))))
    assert world.schedule(claiming_pod("p", "c")).outcome is Outcome.WAITING
    assert world.devices("c") == [] and set(world.claims.pending()) == {"default/c"}
    text = "resource claim default/c is in the process of being allocated"
    assert text in world.schedule(claiming_pod("q", "c")).message
    assert "2 cannot allocate all claims" in world.schedule(claiming_pod("r", "d")).message
    world.engine.give_up(pod_of(claiming_pod("p", "c")))
    assert world.claims.pending() == {}
    assert world.schedule(claiming_pod("r", "d")).outcome is Outcome.WAITING


def test_pods_that_are_held_together_all_become_users_of_their_claim() -> None:
    world = World(
        ON_A,
        resource_claim("c", status=allocated_on("a")),
        gate=plugin(permit=always(Wait(10**9))),
    )
    for name in ("p", "q"):
        assert world.schedule(claiming_pod(name, "c")).outcome is Outcome.WAITING
        assert world.waiting.allow(f"default/{name}", "gate")
    list(world.engine.decisions([]))
    assert world.users("c") == ["p", "q"]


def test_another_cluster_knows_no_assumed_devices() -> None:
    world = World(ON_A, resource_claim("c"), gate=plugin(permit=always(Wait(10**9))))
    world.schedule(claiming_pod("p", "c"))
    assert world.claims.pending()
    world.claims.use(ClusterCache())
    assert world.claims.pending() == {} and world.claims.find("default/c") is None


def test_a_failed_binding_takes_the_pod_from_its_claims_and_leaves_the_devices() -> None:
    failing = plugin(bind=always(Status(Code.ERROR, ("no",))))
    world = World(ON_A, resource_claim("c"), failing=failing)
    assert world.schedule(claiming_pod("p", "c")).outcome is Outcome.ERROR
    assert (world.devices("c"), world.users("c")) == ([("a", "g0")], [])


def test_claims_of_a_pod_that_leaves_are_released_and_without_users_deallocated() -> None:
    world = World(ON_A, resource_claim("c"))
    world.claims.follow()
    world.schedule(claiming_pod("p", "c"))
    world.schedule(claiming_pod("q", "c"))
    world.cache.remove_pod("default/p")
    assert (world.devices("c"), world.users("c")) == ([("a", "g0")], ["q"])
    world.cache.remove_pod("default/q")
    assert (world.devices("c"), world.users("c")) == ([], [])


def test_the_first_alternatives_are_preferred() -> None:
    requests = [
        {
            "name": "r",
            "firstAvailable": [
                {
                    "name": name,
                    "deviceClassName": "gpu",
                    "selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].kind == '{name}'"}}],
                }
                for name in ("big", "small")
            ],
        }
    ]
    slices = [
        resource_slice(node, {"name": "g0", "attributes": {"kind": {"string": kind}}})
        for node, kind in (("a", "small"), ("b", "big"))
    ]
    decision = World(*slices, resource_claim("c", requests=requests)).schedule(claiming_pod("p", "c"))
    assert decision.node == "b"


def test_events_that_wake_a_pod() -> None:
    world = World(ON_A, resource_claim("c"), resource_claim("d"), resource_claim("e"))
    world.schedule(claiming_pod("x", "c"))
    waiting = pod_of(claiming_pod("p", "d"))
    assert [each.outcome for each in world.engine.decisions([waiting])] == [Outcome.UNSCHEDULABLE]
    place = world.engine.queue.place_of
    assert place("default/p") == "unschedulable"
    world.cache.put(claim_of(resource_claim("e", labels={"a": "b"})))
    world.cache.put(claim_of(resource_claim("d", labels={"a": "b"})))
    assert place("default/p") == "unschedulable"
    world.cache.put(claim_of(resource_claim("c")))
    assert place("default/p") != "unschedulable"


def test_a_pod_wakes_up_when_devices_that_are_taken_go_away() -> None:
    """A claim for all devices of a node is met by those that are left."""
    everything = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]
    taken = resource_slice("a", "g0")
    left = resource_slice("a", "g1")
    taken["metadata"]["name"], taken["spec"]["pool"]["name"] = "taken", "other"
    world = World(taken, resource_claim("c"))
    world.schedule(claiming_pod("x", "c"))
    world.cache.put(read_values([left]).catalog[0])
    world.cache.put(claim_of(resource_claim("all", requests=everything)))
    waiting = pod_of(claiming_pod("p", "all"))
    assert [each.outcome for each in world.engine.decisions([waiting])] == [Outcome.UNSCHEDULABLE]
    world.cache.remove("ResourceSlice", "taken")
    assert [each.node for each in world.engine.decisions([], attempts=9)] == ["a"]
