"""What is kept between attempts, and what nodes and devices that look alike share: how long, and how often."""

import gc
import weakref
from typing import Any

import pytest
from kdsl.cluster.api.device_objects import ResourceClaim, ResourceSlice
from kdsl.cluster.snapshot.catalog import Catalog
from kdsl.hooks.context import DeviceAnswer, DeviceCondition
from msgspec import convert

from kdsl_plugins.dynamic_resources.alike import Found
from kdsl_plugins.dynamic_resources.allocator import AllocationError, Allocator
from kdsl_plugins.dynamic_resources.catalog_devices import CatalogDevices
from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.search import Search
from tests.plugins.devices import (
    CONDITIONS,
    DRIVER,
    allocated,
    claim,
    device,
    node,
    request,
    results,
    slice_of,
)
from tests.plugins.test_device_keeping import CLASSES, NODES, answer, zone_selector


def zoned(zones: str, **fields: Any) -> ResourceSlice:
    return slice_of("d1", name=f"s-{zones}", pool=zones, nodeSelector=zone_selector(*zones), **fields)


@pytest.mark.parametrize(
    ("slices", "wanted", "expected"),
    [
        (
            # Only a constraint reads the attribute.
            [
                slice_of(device("d1", {"numa": 0}), device("d2", {"numa": at}), node_name=f"n{at}")
                for at in range(2)
            ],
            claim(request("r", 2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
            [True, False],
        ),
        (
            # A condition that may read any attribute.
            [slice_of(device("d1", {"numa": at}), node_name=f"n{at}") for at in range(2)],
            claim(request("r", 1, f'cel.bind(own, device.attributes["{DRIVER}"], own.numa == 1)')),
            [False, True],
        ),
        (
            # The nodes of a device cannot be written into the allocation.
            [zoned("bc"), zoned("a")],
            claim(request()),
            [True, "unsupported ResourceSlice.NodeSelector with 2 terms"],
        ),
        (
            # A selector that fails for a device names it.
            [slice_of("d1", node_name=f"n{at}") for at in range(2)],
            claim(request("r", 1, f'device.attributes["{DRIVER}"].numa == 1')),
            ["device gpu.example.com/n0/d1", "device gpu.example.com/n1/d1"],
        ),
    ],
)  # fmt: skip
def test_nodes_that_differ_do_not_look_alike(
    slices: list[ResourceSlice], wanted: ResourceClaim, expected: list[bool | str]
) -> None:
    allocator = Allocator.of([wanted], CLASSES, slices, [], CONDITIONS)
    for each, found in zip(NODES, expected, strict=False):
        answered = answer(allocator, each)
        if isinstance(found, str):
            assert found in str(answered)
        else:
            assert bool(answered) == found


def test_counters_of_devices_in_use_follow_the_claims() -> None:
    catalog, kept = Catalog(), CatalogDevices()
    sets = [{"name": "set", "counters": {"cores": {"value": "2"}}}]
    uses = [{"counterSet": "set", "counters": {"cores": {"value": "1"}}}]
    catalog.put(slice_of(name="counters", count=2, sharedCounters=sets))
    catalog.put(slice_of(*(device(f"d{at}", consumesCounters=uses) for at in range(3)), name="s", count=2))

    def count() -> int:
        known = kept.of(catalog, {})
        wanted = [claim(request("r", count)) for count in (1, 2)]
        return sum(
            Allocator.of([each], CLASSES, *known, CONDITIONS).on(node()) is not None for each in wanted
        )

    assert count() == 2
    catalog.put(allocated("d0"))
    assert count() == 1
    catalog.put(allocated("d1", name="more"))
    assert count() == 0
    catalog.remove("ResourceClaim", "default/other")
    assert count() == 1


def test_an_index_is_kept_until_a_slice_changes() -> None:
    catalog, kept = Catalog(), CatalogDevices()
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
    catalog, kept = Catalog(), CatalogDevices()
    for name in ("one", "two"):
        catalog.put(allocated("d1", name=name))
    for name in ("one", "two"):
        assert kept.of(catalog, {})[1].devices
        catalog.remove("ResourceClaim", f"default/{name}")
    assert not kept.of(catalog, {})[1].devices


def test_each_catalog_has_its_own_index_and_none_is_kept_alive() -> None:
    catalog, kept = Catalog(), CatalogDevices()
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
    catalog, kept = Catalog(), CatalogDevices()
    catalog.put(slice_of("d1", "d2", "d3"))
    catalog.put(allocated("d1"))
    found = Allocator.of([claim(request())], CLASSES, *kept.of(catalog, {}), CONDITIONS).found(node())
    assert isinstance(found, Found)
    catalog.put(convert({"metadata": {"name": "other", "namespace": "default"}}, ResourceClaim))
    kept.of(catalog, {})
    assert results(found.allocations) == [["r: d2"]]
