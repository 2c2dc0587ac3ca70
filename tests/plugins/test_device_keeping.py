"""What is kept between attempts, and shared by nodes and devices that look alike, changes no answer."""

from random import Random
from typing import Any

import pytest
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.catalog import Catalog
from msgspec import to_builtins

from kdsl_plugins.dynamic_resources.allocator import AllocationError, Allocator
from kdsl_plugins.dynamic_resources.catalog_devices import CatalogDevices, is_allocated
from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.looks import Attributes, Looks
from kdsl_plugins.dynamic_resources.pools import SliceIndex
from tests.plugins.devices import (
    CLASS,
    CONDITIONS,
    DRIVER,
    allocated,
    attribute,
    claim,
    node,
    request,
    slice_of,
)
from tests.plugins.test_device_search_laws import some_claim, some_device

NODES = [node(f"n{at}", zone="ab"[at % 2]) for at in range(10)]
SELECTORS = (
    f'device.attributes["{DRIVER}"].id < 3',
    f'device.attributes["{DRIVER}"].uuid != "u2"',
    f'device.attributes["{DRIVER}"].kind == "a" || has(device.attributes["x.example.com"].kind)',
    f'"rare" in device.attributes["{DRIVER}"]',
    f'cel.bind(own, device.attributes["{DRIVER}"], has(own.version) && own.version.major() == 1)',
    'device.capacity.all(domain, domain == "gpu.example.com")',
    f'device.driver == "{DRIVER}" || device.allowMultipleAllocations',
    "device.driver ==",
)
CLASSES = {"gpu": CLASS}
OTHER = "other.example.com"


class EachUnlike(Looks):
    """No two devices look alike."""

    def _seen(self, device: PoolDevice) -> tuple[object, ...]:
        return (device,)


class FreshIndex(SliceIndex):
    def looks(self, attributes: Attributes, constrained: tuple[str, ...] = ()) -> Looks:
        return EachUnlike(attributes, constrained)


def answer(allocator: Allocator, node: NodeInfo) -> object:
    """Return what the plugin gets for a node, which can be written in any case."""
    try:
        found = allocator.found(node)
    except AllocationError as error:
        return (str(error), error.is_local)
    return None if found is None else to_builtins(found.allocations)


class Life:
    """A cluster that changes at random: slices of nodes, of several nodes, and claims."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.catalog = Catalog()
        self.pending: dict[str, ResourceClaim] = {}
        self.kept = CatalogDevices()
        for _ in range(20):
            self.change_slice()

    def change(self) -> None:
        self.random.choice([self.change_slice, self.change_claim, self.change_claim, self.change_pending])()

    def change_slice(self) -> None:
        random, at = self.random, self.random.randrange(12)
        name = f"s{at}"
        self.catalog.remove("ResourceSlice", f"{name}-counters")
        if random.random() < (0.1 if at < 10 else 0.7):
            self.catalog.remove("ResourceSlice", name)
            return
        where: dict[str, Any] = {"node_name": f"n{at}"}
        devices = self.devices(Random(random.randrange(2)), is_usual=random.random() < 0.8)
        if at >= 10 and random.random() < 0.5:
            places = [{"allNodes": True}, {"nodeName": "n1"}, {"nodeSelector": zone_selector("a")}]
            devices = [{**each, **random.choice(places)} for each in devices]
            where = {"perDeviceNodeSelection": True}
        elif at >= 10:
            selectors = [zone_selector(*zones) for zones in ("b", "ab", "ab")]
            where = random.choice([{"allNodes": True}, *({"nodeSelector": each} for each in selectors)])
        place: dict[str, Any] = {
            "pool": f"p{at}",
            "driver": DRIVER if random.random() < 0.95 else OTHER,
            **where,
        }
        if random.random() < 0.05:
            devices.append(devices[0])
        count = 2 if random.random() < 0.05 else 1
        if any("consumesCounters" in each for each in devices) and random.random() < 0.8:
            count = 2
            sets = [{"name": "set", "counters": {"cores": {"value": "2"}}}]
            everywhere = place if "node_name" in place else {**place, "allNodes": True}
            self.put(slice_of(name=f"{name}-counters", count=2, sharedCounters=sets, **everywhere))
        self.put(slice_of(*devices, name=name, count=count, **place))

    def devices(self, random: Random, is_usual: bool) -> list[dict[str, Any]]:
        """Return few different lists of usual devices, so that nodes look alike."""
        found = [some_device(random, at) for at in range(3)]
        for each in found:
            if random.random() < 0.7:
                each.pop("consumesCounters", None)
            if random.random() < 0.2:
                each["bindsToNode"] = True
            more: dict[str, Any] = {"uuid": each["name"], "rare": random.randint(0, 1)}
            if not is_usual:
                more["uuid"] = f"u{self.random.randrange(5)}"
                more["x.example.com/kind"] = self.random.choice("ab")
                more["version"] = self.random.choice([*["v1.2.3", "v2.0.0"] * 20, "v1.bad"])
                more["kind"] = self.random.choice("ab")
            each["attributes"] |= {key: attribute(value) for key, value in more.items()}
        return found

    def change_claim(self) -> None:
        random, name = self.random, f"used{self.random.randrange(12)}"
        if random.random() < 0.3:
            self.catalog.remove("ResourceClaim", f"default/{name}")
            return
        self.put(self.some_allocated(name))

    def change_pending(self) -> None:
        name = f"used{self.random.randrange(12)}"
        if self.pending.pop(f"default/{name}", None) is None:
            self.pending[f"default/{name}"] = self.some_allocated(name)

    def some_allocated(self, name: str) -> ResourceClaim:
        random = self.random
        if random.random() < 0.2:
            return claim(request(), name=name)
        fields: dict[str, Any] = {}
        if random.random() < 0.3:
            amount = "bad" if random.random() < 0.003 else "2"
            fields = {"shareID": name, "consumedCapacity": {"memory": amount}}
        elif random.random() < 0.1:
            fields = {"adminAccess": True}
        devices = {f"d{random.randrange(3)}" for _ in range(2)}
        return allocated(*sorted(devices), name=name, pool=f"p{random.randrange(12)}", **fields)

    def put(self, thing: CatalogObject) -> None:
        self.catalog.put(thing)

    def some_claims(self) -> list[ResourceClaim]:
        random = self.random
        if random.random() < 0.5:
            return [some_claim(random, f"c{at}") for at in range(random.randint(1, 2))]
        chosen = random.choices(SELECTORS, (4, 4, 4, 4, 4, 4, 4, 1), k=random.randint(1, 2))
        count = random.choice([1, 1, 2, "All"])
        return [claim(request("r", count, *chosen))]

    def kept_answers(self, claims: list[ResourceClaim]) -> list[object]:
        allocator = Allocator.of(claims, CLASSES, *self.kept.of(self.catalog, self.pending), CONDITIONS)
        return [answer(allocator, each) for each in NODES]

    def fresh_answers(self, claims: list[ResourceClaim]) -> list[object]:
        present = self.catalog.resource_claims
        in_use = [each for each in present.values() if is_allocated(each)]
        in_use += [each for key, each in self.pending.items() if not is_allocated(present.get(key))]
        slices = self.catalog.resource_slices.values()
        return [
            answer(Allocator.of(claims, CLASSES, FreshIndex(slices), in_use, CONDITIONS), each)
            for each in NODES
        ]


def zone_selector(*zones: str) -> dict[str, Any]:
    """Return a selector with a term for each zone."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in zones]
    return {"nodeSelectorTerms": terms}


@pytest.mark.parametrize("seed", range(6))
def test_kept_answers_are_those_of_fresh_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.looks.MAX_ANSWERS", 5)
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.pools.MAX_LOOKS", 4)
    life = Life(seed)
    for _ in range(200):
        life.change()
        claims = life.some_claims()
        assert life.kept_answers(claims) == life.fresh_answers(claims)
