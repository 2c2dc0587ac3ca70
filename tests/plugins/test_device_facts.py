"""The facts that decided a rejection by DynamicResources, in words: the lack of a node for each request."""

from random import Random
from typing import Any

import pytest
from kdsl.base.clock import ManualClock
from kdsl.cluster.api.device_objects import DeviceClass
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.state import CycleState
from kdsl.plan.compile.device_conditions import CelConditions
from msgspec import convert

from kdsl_plugins.dynamic_resources.allocator import AllocationError, Allocator
from kdsl_plugins.dynamic_resources.plugin import DynamicResources
from tests.plugins import device_manifests as manifests
from tests.plugins import storage
from tests.plugins.device_manifests import Manifest
from tests.plugins.devices import (
    DRIVER,
    allocated,
    allocator,
    claim,
    device,
    either,
    node,
    request,
    slice_of,
)
from tests.plugins.test_device_search_laws import some_claim, some_slices
from tests.plugins.test_extended_resources import CLASS as EXTENDED
from tests.plugins.test_extended_resources import GPU, pod

OF_KIND = f'device.attributes["{DRIVER}"].kind == "a"'
OTHER = convert(
    {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "device.driver == 'x'"}}]}},
    DeviceClass,
)
KINDS = slice_of(device("a", {"kind": "a"}), device("b", {"kind": "b"}))
TAINTED = slice_of(device("d", taints=[{"key": "k", "effect": "NoSchedule"}]))
SMALL = slice_of(device("d", capacity={"memory": {"value": "2Gi"}}))
SHARED = slice_of(device("d", capacity={"memory": {"value": "2Gi"}}, allowMultipleAllocations=True))
ELSEWHERE = slice_of(
    {"name": "d", "nodeName": "n2"}, {"name": "e", "nodeName": "n1"}, perDeviceNodeSelection=True
)
BIG = request("r", 1, capacity={"requests": {"memory": "4Gi"}})
SAME = {"matchAttribute": f"{DRIVER}/kind"}
OTHERS = {"distinctAttribute": f"{DRIVER}/numa", "requests": ["r", "s"]}


@pytest.mark.parametrize(
    ("asked", "slices", "in_use", "facts"),
    [
        (claim(request()), [], [], ["claim c, request r: no driver reports devices for the node"]),
        (
            claim(request()),
            [slice_of("d", count=2)],
            [],
            [f"claim c, request r: pool {DRIVER}/n1 is being updated: not all of its slices are there"],
        ),
        (
            claim(request("r", 2)),
            [slice_of("d")],
            [],
            ["claim c, request r: it needs 2 devices, and the node has 1"],
        ),
        (
            claim(request("r", 2, OF_KIND)),
            [KINDS],
            [],
            ["claim c, request r: it needs 2 devices, and 1 of 2 devices of class gpu meet its selectors"],
        ),
        (
            claim(request("r", 2)),
            [ELSEWHERE],
            [],
            ["claim c, request r: it needs 2 devices, and 1 of 2 devices that it selects are for this node"],
        ),
        (
            claim(BIG),
            [SMALL],
            [],
            [
                "claim c, request r: it needs 1 device, and 0 of 1 devices that it selects have enough capacity left"
            ],
        ),
        (
            claim(request()),
            [TAINTED],
            [],
            [
                "claim c, request r: it needs 1 device, and 0 of 1 devices that fit have only taints that it tolerates"
            ],
        ),
        (
            claim(request("r", "All")),
            [KINDS],
            [allocated("a", name=f"o{at}") for at in range(5)],
            [
                "claim c, request r: it needs all devices, and 1 of 2 devices that fit are free"
                " (in use by default/o0, default/o1, default/o2 and 2 more)"
            ],
        ),
        (
            claim(either("r", request("a", 3), request("b", "All", "false"))),
            [KINDS],
            [],
            [
                "claim c, request r: a: it needs 3 devices, and the node has 2; or b: it needs all devices,"
                " and 0 of 2 devices of class gpu meet its selectors"
            ],
        ),
        (
            claim(*(request(f"r{at}", 3) for at in range(5))),
            [KINDS],
            [],
            [
                *(f"claim c, request r{at}: it needs 3 devices, and the node has 2" for at in range(3)),
                "and 2 more requests",
            ],
        ),
        (
            [claim(request("r", 2)), claim(request(), name="d")],
            [KINDS],
            [],
            ["devices fit each request, but too few are left for all of them together"],
        ),
        (
            claim(request("r", 2, capacity={"requests": {"memory": "2Gi"}})),
            [SHARED],
            [],
            ["devices fit each request, but too few are left for all of them together"],
        ),
        (
            claim(request("r"), request("s"), constraints=[SAME]),
            [KINDS],
            [],
            [f"claim c: no free devices agree in attribute {DRIVER}/kind"],
        ),
        (
            claim(request("r"), request("s"), constraints=[OTHERS]),
            [slice_of(device("a", {"numa": 1}), device("b", {"numa": 1}))],
            [],
            [f"claim c: no free devices of requests r, s differ in attribute {DRIVER}/numa"],
        ),
    ],
)
def test_what_a_node_lacks(asked: Any, slices: list[Any], in_use: list[Any], facts: list[str]) -> None:
    found = allocator(asked, slices, in_use)
    assert found.on(node()) is None
    assert found.shortages(node(), {}).facts() == facts


def test_a_class_that_selects_no_device() -> None:
    found = allocator(claim(request()), [KINDS], classes=[OTHER])
    assert found.shortages(node(), {}).facts() == [
        "claim c, request r: it needs 1 device, and 0 of 2 devices on the node are of class gpu"
    ]


def answer(found: Allocator) -> str:
    try:
        return "none" if found.on(node()) is None else "devices"
    except AllocationError:
        return "error"


def test_each_request_that_is_named_finds_no_devices_alone() -> None:
    named = 0
    for seed in range(400):
        random = Random(seed)
        slices = some_slices(random, cores=["0", "2"], most=4)
        claims = [some_claim(random, f"c{at}") for at in range(random.randint(1, 2))]
        in_use = [allocated("d0", pool="p")] if random.random() < 0.5 else []
        found = allocator(claims, slices, in_use)
        if answer(found) != "none":
            continue
        facts = found.shortages(node(), {}).facts()
        assert facts
        alone = {
            f"claim {one.metadata.name}, request {each.name}:": convert(
                {"metadata": {"name": "x"}, "spec": {"devices": {}}}, type(one)
            )
            for one in claims
            for each in one.spec.devices.requests
        }
        for one in claims:
            for each in one.spec.devices.requests:
                whole = alone[f"claim {one.metadata.name}, request {each.name}:"]
                whole.spec.devices.requests.append(each)
        for fact in facts:
            start = next((key for key in alone if fact.startswith(key)), None)
            if start is not None:
                named += 1
                assert answer(allocator(alone[start], slices, in_use)) != "devices", (seed, fact)
    assert named > 50


GPUS = manifests.device_class()


def facts_of(asked: Manifest, *objects: Manifest, gpus: Manifest = GPUS) -> dict[str, list[str]]:
    read = read_values([storage.node("a"), gpus, *objects, asked])
    assert read.diagnostics == ()
    cache = ClusterCache.of([*read.nodes, *read.catalog])
    context = PluginContext(
        MemoryBinder(cache),
        ManualClock(),
        WaitingPods(),
        claims=MemoryClaims(cache),
        conditions=CelConditions(),
    )
    wanted = cache.snapshot().catalog.complete(PodInfo.of(read.pods[0]))
    state, nodes, plugin = CycleState(), NodeSet.all(cache.snapshot()), DynamicResources({}, context)
    plugin.pre_filter(state, wanted, nodes)
    return plugin.decided_by(state, next(nodes.nodes()))


POOL = {"name": "a", "generation": 1, "resourceSliceCount": 2}
TWICE = [
    manifests.resource_slice("a", "g0", pool=POOL),
    {**manifests.resource_slice("a", "g0", pool=POOL), "metadata": {"name": "again"}},
]
USERS = [f"u{at}" for at in range(256)]


@pytest.mark.parametrize(
    ("objects", "facts"),
    [
        (
            [manifests.resource_claim("c")],
            {"cannot allocate all claims": ["claim c, request r: no driver reports devices for the node"]},
        ),
        (
            [manifests.resource_claim("c", status=manifests.allocated_on("b"))],
            {
                "resourceclaim not available on the node": [
                    "claim c has devices on nodes with metadata.name=b"
                ]
            },
        ),
        (
            [manifests.resource_claim("c", status=manifests.allocated_on("a", "g0", *USERS))],
            {"resourceclaim in use": ["claim c has 256 users, the most of a claim"]},
        ),
        (
            [manifests.resource_claim("c"), *TWICE],
            {
                "invalid resource pools were encountered": [
                    f"pool {DRIVER}/a is invalid: two devices have one name, or a device uses up counters"
                    " that it lacks"
                ]
            },
        ),
        ([manifests.resource_claim("c"), manifests.resource_slice("a", "g0")], {}),
        ([], {}),
    ],
)
def test_what_decided_a_rejection(objects: list[Manifest], facts: dict[str, list[str]]) -> None:
    assert facts_of(manifests.claiming_pod("p", "c"), *objects) == facts


@pytest.mark.parametrize(
    ("resources", "facts"),
    [
        (
            {GPU: 2},
            {"cannot allocate all claims": [f"resource {GPU}: it needs 2 devices, and the node has 1"]},
        ),
        (
            {GPU: 1, "example.com/fpga": 1},
            {"cannot fit resource": ["the node offers no example.com/fpga, nor does a device class"]},
        ),
    ],
)
def test_what_decided_for_extended_resources(resources: dict[str, int], facts: dict[str, list[str]]) -> None:
    asked = pod("p", {"name": "c", "image": "i", "resources": {"requests": resources, "limits": resources}})
    assert facts_of(asked, manifests.resource_slice("a", "g0"), gpus=EXTENDED) == facts
