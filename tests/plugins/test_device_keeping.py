"""What is kept between attempts, and shared by nodes and devices that look alike, changes no answer."""

import gc
import weakref
from random import Random
from typing import Any

import pytest
from kdsl.cluster.api.device_objects import ResourceClaim, ResourceSlice
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.catalog import Catalog
from kdsl.hooks.context import DeviceAnswer, DeviceCondition
from msgspec import convert, to_builtins

from kdsl_plugins.dynamic_resources.alike import Found
from kdsl_plugins.dynamic_resources.allocator import AllocationError, Allocator
from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.kept import Kept, is_allocated
from kdsl_plugins.dynamic_resources.looks import Attributes, Looks
from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.search import Search
from tests.plugins.devices import (
    CLASS,
    CONDITIONS,
    DRIVER,
    allocated,
    attribute,
    claim,
    device,
    node,
    request,
    results,
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
    try:
        found = allocator.on(node)
    except AllocationError as error:
        return (str(error), error.is_local)
    return None if found is None else to_builtins(found)


class Life:
    """A cluster that changes at random: slices of nodes, of several nodes, and claims."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.catalog = Catalog()
        self.pending: dict[str, ResourceClaim] = {}
        self.kept = Kept()
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


def test_an_index_is_kept_until_a_slice_changes() -> None:
    catalog, kept = Catalog(), Kept()
    catalog.put(slice_of("d1", "d2"))
    slices, usage = kept.of(catalog, {})
    catalog.put(allocated("d1"))
    assert kept.of(catalog, {}) == (slices, usage)
    assert list(usage.devices) == [(DRIVER, "n1", "d1")]
    catalog.remove("ResourceClaim", "default/other")
    assert not kept.of(catalog, {})[1].devices
    catalog.put(slice_of("d1"))
    assert kept.of(catalog, {})[0] is not slices


def test_a_device_that_two_claims_have_is_in_use_until_both_are_gone() -> None:
    catalog, kept = Catalog(), Kept()
    for name in ("one", "two"):
        catalog.put(allocated("d1", name=name))
    for name in ("one", "two"):
        assert kept.of(catalog, {})[1].devices
        catalog.remove("ResourceClaim", f"default/{name}")
    assert not kept.of(catalog, {})[1].devices


def test_each_catalog_has_its_own_index_and_none_is_kept_alive() -> None:
    catalog, kept = Catalog(), Kept()
    catalog.put(slice_of("d1"))
    other = catalog.copy()
    other.put(allocated("d1"))
    assert kept.of(catalog, {})[0] is not kept.of(other, {})[0]
    assert not kept.of(catalog, {})[1].devices and kept.of(other, {})[1].devices
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None
    assert len(kept._known) == 1


class CountingConditions:
    """Conditions that count their evaluations."""

    def __init__(self) -> None:
        self.count = 0

    def compile(self, text: str) -> DeviceCondition:
        condition = CONDITIONS.compile(text)

        def answer(value: Any) -> DeviceAnswer:
            self.count += 1
            return condition.answer(value)

        return DeviceCondition(answer, condition.attributes)


def numbered_slices(count: int) -> list[ResourceSlice]:
    """Return slices of nodes, whose devices have two models and are all different."""
    return [
        slice_of(
            *(device(f"d{each}", {"model": "ab"[at % 2], "uuid": f"{at}-{each}"}) for each in range(4)),
            node_name=f"n{at}",
        )
        for at in range(count)
    ]


def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each node that is searched."""
    names: list[str] = []
    run = Search.run

    def counted(self: Search) -> Any:
        names.append(self._node.name)
        return run(self)

    monkeypatch.setattr(Search, "run", counted)
    return names


def test_a_condition_is_evaluated_once_for_devices_that_look_alike_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names, conditions = searched(monkeypatch), CountingConditions()
    index = SliceIndex(numbered_slices(50))
    for model in ("a", "b", "a"):
        wanted = claim(request("r", 2, f'device.attributes["{DRIVER}"].model == "{model}"'))
        found = Allocator.of([wanted], CLASSES, index, [], conditions)
        taken = [found.on(node(f"n{at}")) for at in range(50)]
        assert [at % 2 for at, each in enumerate(taken) if each] == ["ab".index(model)] * 25
    assert conditions.count == 4
    # The devices in use tell nodes apart, as far as a pod may get them.
    assert names == ["n0", "n1"] * 3
    found = Allocator.of(
        [wanted], CLASSES, index, [allocated("d1", pool="n4"), allocated("d3", pool="n6")], conditions
    )
    assert [results(found.on(node(f"n{at}"))) for at in (2, 4, 6)] == [
        [["r: d0", "r: d1"]],
        [["r: d0", "r: d2"]],
        [["r: d0", "r: d1"]],
    ]
    assert names[6:] == ["n2", "n4"] and conditions.count == 4


def test_a_condition_on_what_tells_devices_apart_is_evaluated_once_for_each() -> None:
    conditions, index = CountingConditions(), SliceIndex(numbered_slices(10))
    wanted = claim(request("r", 4, f'device.attributes["{DRIVER}"].uuid != "3-0"'))
    for _ in range(3):
        found = Allocator.of([wanted], CLASSES, index, [], conditions)
        assert [bool(found.on(node(f"n{at}"))) for at in range(10)] == [at != 3 for at in range(10)]
        assert conditions.count == 40


def test_kept_answers_cost_each_attempt_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.conditions.CONDITION_STEPS", 2_000)
    text = f'device.attributes["{DRIVER}"].uuid != "x"' + " " * 800
    conditions, index = CountingConditions(), SliceIndex(numbered_slices(20))
    wanted, short = claim(request("r", 4, text)), claim(request("r", 4, text.strip()))
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.conditions.COMPILING", 0)

    def passed() -> list[bool]:
        found = Allocator.of([wanted], CLASSES, index, [], conditions)
        return ["steps" not in str(answer(found, node(f"n{at}"))) for at in range(20)]

    first = passed()
    assert any(first) and not all(first)
    assert passed() == first
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.conditions.COMPILING", 100)
    with pytest.raises(AllocationError, match=r"CEL compile error: more than [0-9]+ steps"):
        Allocator.of([short], CLASSES, index, [], conditions).on(node("n1"))


def test_found_devices_stay_those_of_the_attempt() -> None:
    catalog, kept = Catalog(), Kept()
    catalog.put(slice_of("d1", "d2", "d3"))
    catalog.put(allocated("d1"))
    found = Allocator.of([claim(request())], CLASSES, *kept.of(catalog, {}), CONDITIONS).found(node())
    assert isinstance(found, Found)
    catalog.put(convert({"metadata": {"name": "other", "namespace": "default"}}, ResourceClaim))
    kept.of(catalog, {})
    assert results(found.allocations) == [["r: d2"]]
