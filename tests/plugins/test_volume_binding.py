"""VolumeBinding: what it says of pods and nodes, and what it sets aside, gives back and binds."""

from __future__ import annotations

import json
from importlib import resources
from random import Random
from typing import Any, Final

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, Resource
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.specs import Wait
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status

from kdsl_plugins.default_binder.plugin import DefaultBinder
from kdsl_plugins.volume_binding.needs import LOST_VOLUME, NO_STORAGE, NO_VOLUME, WRONG_NODE, VolumeNeeds
from kdsl_plugins.volume_binding.plugin import UNBOUND, VolumeBinding
from tests.cycle.world import plugin, table
from tests.plugins.storage import (
    Manifest,
    changed,
    claim,
    cluster,
    csi,
    node,
    pod,
    storage_class,
    volume,
)

SELECTED = "volume.kubernetes.io/selected-node"
NOW = "2026-01-01T00:00:00Z"
LOCAL, DYNAMIC = storage_class(), storage_class("dynamic", "csi.example.com")
NODES = node("a", disk="a", zone="z1"), node("b", disk="b", zone="z2")
ON_A, ON_B = {"disk": ["a"]}, {"disk": ["b"]}


class World:
    """A cluster and a scheduler of this plugin, perhaps with others behind it."""

    def __init__(self, *objects: Manifest, **others: object) -> None:
        self.cache: ClusterCache = cluster(*NODES, *objects)
        self.waiting: WaitingPods[Any] = WaitingPods()
        self.volumes = MemoryVolumes(self.cache)
        context = PluginContext(MemoryBinder(self.cache), ManualClock(), self.waiting, self.volumes)
        binder = DefaultBinder({}, context)
        plugins = {"VolumeBinding": VolumeBinding({}, context), **others, "binder": binder}
        options = EngineOptions(detail=Detail.FULL)
        self.engine = Engine([table(plugins)], self.cache, ManualClock(), options, waiting=self.waiting)

    def schedule(self, manifest: Manifest) -> Decision:
        (read,) = read_values([manifest]).pods
        return self.engine.schedule_one(PodInfo.of(read))

    def owner_of(self, name: str) -> str:
        """The claim that a volume belongs to."""
        reference = self.cache.snapshot().catalog.volumes[name].spec.claim_ref
        return reference.name if reference is not None else ""

    def volume_of(self, name: str) -> str:
        """The volume that a claim is bound to."""
        return self.cache.snapshot().catalog.claims[f"default/{name}"].spec.volume_name


def reasons(decision: Decision) -> dict[str, tuple[str, ...]]:
    """Return the reasons by node, which must all be of one code; none for a node that passes."""
    codes = {verdict.status.code for verdict in decision.verdicts if verdict.status is not None}
    assert codes <= {Code.UNRESOLVABLE}
    return {verdict.node: verdict.status.reasons if verdict.status else () for verdict in decision.verdicts}


OWNED = changed(
    claim("p-tmp", bound="pv"),
    ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}],
)
EPHEMERAL = pod("p", volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])


@pytest.mark.parametrize(
    ("objects", "asked", "message"),
    [
        ([], pod("p", "x"), 'persistentvolumeclaim "x" not found'),
        (
            [],
            EPHEMERAL,
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"',
        ),
        (
            [changed(OWNED, ownerReferences=[])],
            EPHEMERAL,
            "PVC default/p-tmp was not created for pod default/p (pod is not owner)",
        ),
        (
            [{**claim("x", bound="pv"), "status": {"phase": "Lost"}}],
            pod("p", "x"),
            'persistentvolumeclaim "x" bound to non-existent persistentvolume "pv"',
        ),
        (
            [changed(claim("x"), deletionTimestamp=NOW)],
            pod("p", "x"),
            'persistentvolumeclaim "x" is being deleted',
        ),
        # Neither waits for its pod: no class, a class that is not there, one that binds at once, a volume it names.
        (
            [claim("x", storageClassName="")],
            pod("p", "x"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("x", storageClassName="no")],
            pod("p", "x"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("x", storageClassName="now"), storage_class("now", volumeBindingMode="Immediate")],
            pod("p", "x"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        ([claim("x", volumeName="pv")], pod("p", "x"), "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_claims_that_no_node_can_help(objects: list[Manifest], asked: Manifest, message: str) -> None:
    decision = World(LOCAL, volume("pv"), *objects).schedule(asked)
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message == f"0/2 nodes are available: {message}."
    assert decision.prefilter.status is not None
    assert decision.prefilter.status.code is Code.UNRESOLVABLE


def test_pods_without_claims_are_none_of_its_business() -> None:
    decision = World().schedule(pod("p"))
    assert decision.outcome is Outcome.PLACED
    assert decision.prefilter.skipped == ("VolumeBinding",)


@pytest.mark.parametrize(
    ("objects", "a", "b"),
    [
        pytest.param([claim("x", bound="pv"), volume("pv", on=ON_A)], (), (WRONG_NODE,), id="bound"),
        pytest.param([claim("x", bound="pv"), volume("pv")], (), (), id="bound-anywhere"),
        pytest.param([claim("x", bound="gone")], (LOST_VOLUME,), (LOST_VOLUME,), id="bound-to-nothing"),
        pytest.param([claim("x"), volume("pv", on=ON_B)], (NO_VOLUME,), (), id="matched"),
        pytest.param([claim("x", 11), volume("pv")], (NO_VOLUME,), (NO_VOLUME,), id="too-small"),
        pytest.param([claim("x", 10), volume("pv")], (), (), id="just-fits"),
        pytest.param([claim("x", None), volume("pv")], (), (), id="any-size"),
        pytest.param(
            [claim("x"), volume("pv", storageClassName="other")], (NO_VOLUME,), (NO_VOLUME,), id="class"
        ),
        pytest.param(
            [claim("x"), volume("pv", accessModes=["ReadOnlyMany"])], (NO_VOLUME,), (NO_VOLUME,), id="modes"
        ),
        pytest.param(
            [claim("x"), volume("pv", volumeMode="Block")], (NO_VOLUME,), (NO_VOLUME,), id="volume-mode"
        ),
        pytest.param(
            [claim("x"), volume("pv", volumeAttributesClassName="gold")],
            (NO_VOLUME,),
            (NO_VOLUME,),
            id="attributes",
        ),
        pytest.param([claim("x"), volume("pv", phase="Released")], (NO_VOLUME,), (NO_VOLUME,), id="phase"),
        pytest.param(
            [claim("x"), changed(volume("pv"), deletionTimestamp=NOW)],
            (NO_VOLUME,),
            (NO_VOLUME,),
            id="deleting",
        ),
        pytest.param(
            [claim("x"), volume("pv", claimRef={"namespace": "default", "name": "y"})],
            (NO_VOLUME,),
            (NO_VOLUME,),
            id="taken",
        ),
        pytest.param(
            [claim("x", selector={"matchLabels": {"tier": "fast"}}), volume("pv")],
            (NO_VOLUME,),
            (NO_VOLUME,),
            id="selector",
        ),
        pytest.param(
            [
                claim("x", selector={"matchLabels": {"tier": "fast"}}),
                changed(volume("pv"), labels={"tier": "fast"}),
            ],
            (),
            (),
            id="selected",
        ),
        # A volume that is the claim's own is the only one for it, whatever its phase; others do not help.
        pytest.param(
            [
                claim("x"),
                volume("own", on=ON_A, phase="Pending", claimRef={"namespace": "default", "name": "x"}),
                volume("pv"),
            ],
            (),
            (NO_VOLUME,),
            id="reserved",
        ),
        pytest.param(
            [claim("x"), volume("own", claimRef={"namespace": "default", "name": "x", "uid": "another"})],
            (NO_VOLUME,),
            (NO_VOLUME,),
            id="reserved-for-an-earlier-one",
        ),
        pytest.param(
            [changed(claim("x", storageClassName="dynamic"), annotations={SELECTED: "b"})],
            (NO_VOLUME,),
            (),
            id="selected-node",
        ),
        pytest.param([claim("x", storageClassName="dynamic")], (), (), id="provisioned"),
    ],
)
def test_what_nodes_answer(objects: list[Manifest], a: tuple[str, ...], b: tuple[str, ...]) -> None:
    assert reasons(World(LOCAL, DYNAMIC, *objects).schedule(pod("p", "x"))) == {"a": a, "b": b}


ELSEWHERE = changed(claim("x", storageClassName="dynamic"), annotations={SELECTED: "b"})


@pytest.mark.parametrize(
    ("objects", "facts"),
    [
        (
            [claim("x", bound="pv"), volume("pv", on=ON_B)],
            {WRONG_NODE: ["volume pv of claim x is on nodes with disk=b"]},
        ),
        (
            [claim("x", bound="gone")],
            {LOST_VOLUME: ["claim x is bound to volume gone, which does not exist"]},
        ),
        (
            [claim("x"), volume("pv", on=ON_B)],
            {
                NO_VOLUME: [
                    "claim x needs 5Gi: no free volume of class local fits it on the node, and the class makes none"
                ]
            },
        ),
        (
            [claim("x"), volume("own", on=ON_B, claimRef={"namespace": "default", "name": "x"})],
            {
                NO_VOLUME: [
                    "claim x needs 5Gi: volume own is reserved for it and not accessible from the node, "
                    "and the class makes none"
                ]
            },
        ),
        (
            [
                claim("x", bound="pv"),
                volume("pv", phase="Bound", nodeAffinity={"required": {"nodeSelectorTerms": [{}]}}),
            ],
            {WRONG_NODE: ["volume pv of claim x is on no node: its node affinity has no valid term"]},
        ),
        ([ELSEWHERE], {NO_VOLUME: ["claim x was assigned to node b"]}),
        (
            [
                claim("x", storageClassName="there"),
                storage_class(
                    "there",
                    "csi.example.com",
                    allowedTopologies=[
                        {"matchLabelExpressions": [{"key": "zone", "values": ["z2", "z3"]}]},
                        {"matchLabelExpressions": [{"key": "disk", "values": ["b"]}]},
                    ],
                ),
            ],
            {
                NO_VOLUME: [
                    "claim x needs 5Gi: no free volume of class there fits it on the node, and the class makes "
                    "some on nodes with zone in (z2,z3) or disk in (b) only"
                ]
            },
        ),
        (
            [
                claim("x", storageClassName="dynamic"),
                csi("CSIDriver", "csi.example.com", spec={"storageCapacity": True}),
            ],
            {NO_STORAGE: ["claim x needs 5Gi: class dynamic reports less free storage for the node"]},
        ),
        ([claim("x", storageClassName="")], {UNBOUND: ["claim x: it has no storage class"]}),
        ([claim("x", storageClassName="no")], {UNBOUND: ["claim x: no storage class no"]}),
        (
            [claim("x", volumeName="pv"), volume("pv")],
            {UNBOUND: ["claim x names volume pv and is not bound to it yet"]},
        ),
        (
            [claim("x", storageClassName="now"), storage_class("now", volumeBindingMode="Immediate")],
            {UNBOUND: ["claim x of class now is bound before its pod, and is not yet"]},
        ),
        ([], {}),
    ],
)
def test_what_decided_in_words(objects: list[Manifest], facts: dict[str, list[str]]) -> None:
    nodes = NodeSet.all(cluster(*NODES, LOCAL, DYNAMIC, *objects).snapshot())
    context = PluginContext(MemoryBinder(ClusterCache()), ManualClock(), WaitingPods())
    state, binding = CycleState(), VolumeBinding({}, context)
    (read,) = read_values([pod("p", "x")]).pods
    binding.pre_filter(state, PodInfo.of(read), nodes)
    assert binding.decided_by(state, next(nodes.nodes())) == facts


def test_nodes_with_equal_labels_share_an_answer_that_is_the_one_of_each() -> None:
    random = Random(3)
    places = [
        {key: random.choice(values) for key, values in _PLACES if random.random() < 0.8} for _ in range(60)
    ]
    objects = [
        *(node(f"n{at}", **labels) for at, labels in enumerate(places)),
        *(volume(f"pv-{at}", random.randrange(1, 9), on={"disk": [disk]}) for at, disk in enumerate("abca")),
        *(volume(f"bound-{zone}", on={"zone": [zone]}, phase="Bound") for zone in ("z1", "z2")),
        *(claim(f"in-{zone}", bound=f"bound-{zone}") for zone in ("z1", "z2")),
        *(claim(f"local-{size}", size) for size in (1, 4, 7)),
        *({**DYNAMIC, "allowedTopologies": allowing({"zone": ["z1", "z3"]})}, LOCAL, TRACKED),
        capacity("c", nodeTopology={"matchLabels": {"rack": "r1"}}, capacity="6Gi"),
        *(claim(f"new-{size}", size, storageClassName="dynamic") for size in (2, 8)),
        changed(claim("retried", storageClassName="dynamic"), annotations={SELECTED: "n7"}),
    ]
    snapshot = cluster(*objects).snapshot()
    nodes = NodeSet.all(snapshot)
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "PersistentVolumeClaim"]
    context = PluginContext(MemoryBinder(ClusterCache()), ManualClock(), WaitingPods())
    outcomes = set[tuple[str, ...]]()
    for _ in range(40):
        (read,) = read_values([pod("p", *random.sample(names, random.randrange(1, 4)))]).pods
        state, binding = CycleState(), VolumeBinding({}, context)
        assert binding.pre_filter(state, PodInfo.of(read), nodes) is None
        together = binding.filter(state, nodes)
        for at in range(len(nodes)):
            alone = binding.filter(state, nodes.take(np.array([at])))
            assert together[at] == alone[0], snapshot.info(int(nodes.rows[at])).labels
            outcomes.add(together[at].reasons)
    assert len(outcomes) >= 6


def test_nodes_without_local_volumes_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{at}" for at in range(30)]
    objects = [*(node(name, host=name) for name in names), LOCAL, claim("c", 1)]
    objects += [volume(f"pv-{name}", on={"host": [name]}) for name in names[:3]]
    nodes = NodeSet.all(cluster(*objects).snapshot())
    (read,) = read_values([pod("p", "c")]).pods
    context = PluginContext(MemoryBinder(ClusterCache()), ManualClock(), WaitingPods())
    state, binding = CycleState(), VolumeBinding({}, context)
    binding.pre_filter(state, PodInfo.of(read), nodes)
    asked, on = list[str](), VolumeNeeds.on
    monkeypatch.setattr(VolumeNeeds, "on", lambda needs, node: asked.append(node.name) or on(needs, node))
    statuses = binding.filter(state, nodes)
    assert sorted(asked) == names[:4]
    assert [statuses[at].reasons for at in range(30)] == [()] * 3 + [(NO_VOLUME,)] * 27


_PLACES: Final = (("zone", ("z1", "z2", "z3")), ("disk", ("a", "b", "c")), ("rack", ("r1", "r2")))


def test_reasons_of_bound_and_unbound_claims_come_together() -> None:
    world = World(LOCAL, claim("x", bound="pv"), volume("pv", on=ON_A, phase="Bound"), claim("y"))
    assert reasons(world.schedule(pod("p", "y", "x"))) == {"a": (NO_VOLUME,), "b": (WRONG_NODE, NO_VOLUME)}


def allowing(*terms: dict[str, list[str]]) -> list[Manifest]:
    """Allowed topologies of a storage class."""
    return [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]}
        for term in terms
    ]


@pytest.mark.parametrize(
    ("terms", "a", "b"),
    [
        (allowing({"zone": ["z1", "z3"]}), (), (NO_VOLUME,)),
        (allowing({"zone": ["z1"]}, {"disk": ["b"]}), (), ()),
        (allowing({"zone": ["z1"], "disk": ["b"]}), (NO_VOLUME,), (NO_VOLUME,)),
        (allowing({}), (NO_VOLUME,), (NO_VOLUME,)),
    ],
)
def test_provisioning_keeps_to_allowed_topologies(
    terms: list[Manifest], a: tuple[str, ...], b: tuple[str, ...]
) -> None:
    world = World(claim("x", storageClassName="dynamic"), {**DYNAMIC, "allowedTopologies": terms})
    assert reasons(world.schedule(pod("p", "x"))) == {"a": a, "b": b}


TRACKED = csi("CSIDriver", "csi.example.com", spec={"storageCapacity": True})


def capacity(name: str, **fields: Any) -> Manifest:
    return csi("CSIStorageCapacity", name, storageClassName="dynamic", **fields)


ZONE_1, ALL = {"matchLabels": {"zone": "z1"}}, {"matchLabels": {}}


@pytest.mark.parametrize(
    ("objects", "a", "b"),
    [
        pytest.param([csi("CSIDriver", "csi.example.com", spec={})], (), (), id="untracked"),
        pytest.param([TRACKED], (NO_STORAGE,), (NO_STORAGE,), id="nothing-known"),
        pytest.param(
            [TRACKED, capacity("c", nodeTopology=ZONE_1, capacity="5Gi")], (), (NO_STORAGE,), id="one-zone"
        ),
        pytest.param(
            [TRACKED, capacity("c", nodeTopology=ALL, capacity="9Gi", maximumVolumeSize="4Gi")],
            (NO_STORAGE,),
            (NO_STORAGE,),
            id="largest-volume",
        ),
        pytest.param([TRACKED, capacity("c", capacity="9Gi")], (NO_STORAGE,), (NO_STORAGE,), id="no-nodes"),
        pytest.param(
            [TRACKED, capacity("c", nodeTopology=ALL)], (NO_STORAGE,), (NO_STORAGE,), id="no-amount"
        ),
    ],
)
def test_provisioning_needs_storage_that_is_left(
    objects: list[Manifest], a: tuple[str, ...], b: tuple[str, ...]
) -> None:
    world = World(DYNAMIC, claim("x", storageClassName="dynamic"), *objects)
    assert reasons(world.schedule(pod("p", "x"))) == {"a": a, "b": b}


def test_small_claims_get_small_volumes() -> None:
    world = World(
        LOCAL, claim("large", 8), claim("small", 2), volume("v20", 20), volume("v3", 3), volume("v9", 9)
    )
    assert world.schedule(pod("p", "large", "small")).outcome is Outcome.PLACED
    assert {name: world.volume_of(name) for name in ("large", "small")} == {"large": "v9", "small": "v3"}
    assert world.owner_of("v20") == ""


def test_two_claims_of_a_pod_do_not_share_a_volume() -> None:
    world = World(LOCAL, claim("x"), claim("y"), volume("pv"))
    assert reasons(world.schedule(pod("p", "x", "y"))) == {"a": (NO_VOLUME,), "b": (NO_VOLUME,)}


def test_a_claim_of_two_volumes_needs_one() -> None:
    world = World(LOCAL, claim("x"), volume("pv"), volume("pv2"))
    assert world.schedule(pod("p", "x", "x")).outcome is Outcome.PLACED
    assert (world.volume_of("x"), world.owner_of("pv2")) == ("pv", "")


def test_of_two_pods_one_gets_the_volume() -> None:
    world = World(LOCAL, claim("x"), claim("y"), volume("pv", on=ON_A))
    assert world.schedule(pod("first", "x")).node == "a"
    assert reasons(world.schedule(pod("second", "y"))) == {"a": (NO_VOLUME,), "b": (NO_VOLUME,)}
    assert (world.volume_of("x"), world.owner_of("pv")) == ("pv", "x")


def test_a_held_pod_keeps_its_volume_from_others_until_it_is_refused() -> None:
    gate = plugin(permit=lambda pod: Wait(10**9) if pod.name == "first" else None)
    world = World(LOCAL, claim("x"), claim("y"), volume("pv"), gate=gate)
    assert world.schedule(pod("first", "x")).outcome is Outcome.WAITING
    assert (world.owner_of("pv"), world.volume_of("x")) == ("x", "")
    assert world.schedule(pod("second", "y")).outcome is Outcome.UNSCHEDULABLE

    assert world.waiting.reject("default/first", "gate", "no")
    (refused,) = world.engine.settle()
    assert refused.outcome is Outcome.UNSCHEDULABLE
    assert world.owner_of("pv") == ""
    assert world.schedule(pod("second", "y")).outcome is Outcome.PLACED
    assert world.volume_of("y") == "pv"


def test_a_failed_reservation_gives_back_volumes_and_nodes() -> None:
    refusal = Status(Code.UNSCHEDULABLE, ("no",))
    world = World(
        LOCAL,
        DYNAMIC,
        claim("x"),
        claim("y", storageClassName="dynamic"),
        volume("pv"),
        refusing=plugin(reserve=lambda: refusal),
    )
    before = world.cache.snapshot().catalog.version("cluster.storage")
    assert world.schedule(pod("p", "x", "y")).outcome is Outcome.UNSCHEDULABLE
    catalog = world.cache.snapshot().catalog
    assert world.owner_of("pv") == ""
    assert SELECTED not in catalog.claims["default/y"].metadata.annotations
    assert catalog.version("cluster.storage") > before


def test_a_binding_that_fails_is_an_error_and_gives_the_volume_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(LOCAL, claim("x"), volume("pv"))
    monkeypatch.setattr(world.volumes, "bind", lambda pod, plan: Status(Code.ERROR, ("conflict",)))
    decision = world.schedule(pod("p", "x"))
    assert decision.outcome is Outcome.ERROR
    assert decision.message == 'running PreBind plugin "VolumeBinding": conflict'
    assert world.owner_of("pv") == ""


def test_what_was_provisioned_is_where_its_driver_put_it() -> None:
    drivers = {"drivers": [{"name": "csi.example.com", "nodeID": "a", "topologyKeys": ["disk"]}]}
    world = World(
        DYNAMIC,
        claim("x", storageClassName="dynamic"),
        csi("CSINode", "a", spec=drivers),
        csi("CSINode", "b"),
    )
    assert world.schedule(pod("p", "x", nodeSelector={"disk": "a"})).node == "a"
    assert reasons(world.schedule(pod("q", "x"))) == {"a": (), "b": (WRONG_NODE,)}


@pytest.mark.parametrize(
    ("resource", "action", "wakes"),
    [
        (Resource.PERSISTENT_VOLUME, Action.ADD, True),
        (Resource.PERSISTENT_VOLUME, Action.DELETE, False),
        (Resource.NODE, Action.NODE_LABEL, True),
        (Resource.NODE, Action.NODE_TAINT_REMOVED, False),
        (Resource.ASSIGNED_POD, Action.DELETE, True),
        (Resource.SERVICE, Action.ADD, False),
    ],
)
def test_what_wakes_the_pods_it_rejected(resource: Resource, action: Action, wakes: bool) -> None:
    context = PluginContext(MemoryBinder(cluster()), ManualClock(), WaitingPods[Any]())
    patterns = VolumeBinding({}, context).events()
    assert any(pattern.matches(resource, action) for pattern in patterns) is wakes


def test_its_schema_takes_no_arguments() -> None:
    schema = resources.files("kdsl_plugins.volume_binding").joinpath("args.schema.json")
    validator = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert validator.is_valid({})
    assert not validator.is_valid({"bindTimeoutSeconds": 600})


def test_a_pod_waits_for_its_own_claims_and_for_pods_that_give_volumes_back() -> None:
    world = World(LOCAL)
    waiting, plain, other = map(PodInfo.of, read_values([pod("p", "mine"), pod("x"), pod("y", "other")]).pods)
    assert [each.outcome for each in world.engine.decisions([waiting])] == [Outcome.UNSCHEDULABLE]
    for each in (plain, other):
        world.cache.add_pod(each.on("a"))
    world.cache.remove_pod("default/x")
    (theirs, mine) = read_values([claim("other"), claim("mine")]).objects
    world.cache.put(theirs)
    assert world.engine.queue.place_of("default/p") == "unschedulable"
    world.cache.remove_pod("default/y")
    assert world.engine.queue.place_of("default/p") != "unschedulable"
    assert [each.outcome for each in world.engine.decisions([], attempts=9)] == [Outcome.UNSCHEDULABLE]
    world.cache.put(mine)
    assert world.engine.queue.place_of("default/p") != "unschedulable"
