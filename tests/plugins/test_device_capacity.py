"""Devices that several claims share, and devices that use up the counters of their pool."""

from typing import Any

import pytest

from kdsl_plugins.dynamic_resources.allocator import AllocationError
from tests.plugins.devices import (
    DRIVER,
    allocated,
    allocator,
    claim,
    device,
    node,
    request,
    results,
    slice_of,
    written,
)


def shared(name: str = "d1", value: str = "10", **policy: Any) -> dict[str, Any]:
    """Return a device with a capacity that claims share."""
    capacity = {"value": value} | ({"requestPolicy": policy} if policy else {})
    return device(name, capacity={"bandwidth": capacity}, allowMultipleAllocations=True)


def wants(amount: str | None, name: str = "c", count: int | str = 1) -> Any:
    capacity = {} if amount is None else {"capacity": {"requests": {"bandwidth": amount}}}
    return claim(request("r", count, **capacity), name=name)


def consumed(amount: str | None, *, value: str = "10", **policy: Any) -> str | None:
    """Return the capacity that a request consumes, None where the device cannot be had."""
    found = allocator(wants(amount), [slice_of(shared(value=value, **policy))]).on(node())
    return None if found is None else str(found[0].devices.results[0].consumed_capacity["bandwidth"])


@pytest.mark.parametrize(
    ("amount", "policy", "expected"),
    [
        (None, {}, "10"),
        ("3", {}, "3"),
        ("11", {}, None),
        (None, {"default": "2"}, "2"),
        ("3", {"default": "2", "validValues": ["2", "4", "8"]}, "4"),
        ("9", {"default": "2", "validValues": ["2", "4", "8"]}, None),
        ("1", {"default": "2", "validRange": {"min": "2", "max": "6"}}, "2"),
        ("3", {"default": "2", "validRange": {"min": "2", "max": "6"}}, "3"),
        ("7", {"default": "2", "validRange": {"min": "2", "max": "6"}}, None),
        ("3", {"default": "2", "validRange": {"min": "2", "step": "2"}}, "4"),
        ("4", {"default": "2", "validRange": {"min": "2", "step": "2"}}, "4"),
        ("5", {"default": "1", "validRange": {"min": "1", "step": "3"}}, "7"),
        ("9", {"default": "1", "validRange": {"min": "1", "step": "3"}}, "10"),
        (None, {"default": "5", "validRange": {"min": "2", "max": "4"}}, "5"),
    ],
)
def test_the_policy_says_what_a_request_consumes(
    amount: str | None, policy: dict[str, Any], expected: str | None
) -> None:
    assert consumed(amount, **policy) == expected


def test_quantities_keep_their_form() -> None:
    assert consumed("1.5Gi", value="10Gi") == "1536Mi"
    assert consumed("3Gi", value="10Gi", default="2Gi", validRange={"min": "2Gi", "step": "2Gi"}) == "4Gi"


def test_a_step_that_is_not_above_zero_is_an_error() -> None:
    with pytest.raises(AllocationError, match=r"the step of the valid range is not above zero$"):
        consumed("3", default="2", validRange={"min": "2", "step": "0"})


def test_claims_share_a_device_until_its_capacity_is_used_up() -> None:
    slices = [slice_of(shared("d1"), shared("d2"))]
    claims = [wants("6", "c1"), wants("4", "c2"), wants("6", "c3")]
    assert results(allocator(claims, slices).on(node())) == [["r: d1"], ["r: d1"], ["r: d2"]]
    assert allocator([*claims, wants("6", "c4")], slices).on(node()) is None


def test_capacity_of_allocated_claims_is_used_up() -> None:
    in_use = [
        allocated("d1", name="one", shareID="s1", consumedCapacity={"bandwidth": "4"}),
        allocated("d1", name="two", shareID="s2", consumedCapacity={"bandwidth": "3"}),
    ]
    slices = [slice_of(shared())]
    assert allocator(wants("4"), slices, in_use).on(node()) is None
    assert results(allocator(wants("3"), slices, in_use).on(node())) == [["r: d1"]]
    assert allocator(wants("1"), slices, [allocated("d1")]).on(node()) is None


def test_a_share_has_an_id_that_depends_on_inputs_only() -> None:
    slices = [slice_of(shared())]
    (first,) = written(allocator(wants("1"), slices).on(node()))
    (second,) = written(allocator(wants("1"), slices).on(node()))
    (other,) = written(allocator(wants("1", "c9"), slices).on(node()))
    (result,) = first["devices"]["results"]
    assert result["consumedCapacity"] == {"bandwidth": "1"}
    assert len(result["shareID"]) == 36
    assert first == second
    assert result["shareID"] != other["devices"]["results"][0]["shareID"]


def test_one_claim_may_have_two_shares_for_two_requests() -> None:
    bandwidth = {"capacity": {"requests": {"bandwidth": "5"}}}
    wanted = claim(request("a", **bandwidth), request("b", **bandwidth))
    (found,) = written(allocator(wanted, [slice_of(shared())]).on(node()))
    assert len({one["shareID"] for one in found["devices"]["results"]}) == 2


def test_one_request_may_have_a_shared_device_more_than_once() -> None:
    def found(count: int, amount: str, **fields: Any) -> list[list[str]] | None:
        wanted = request("a", count, capacity={"requests": {"bandwidth": amount}})
        return results(allocator(claim(wanted, **fields), [slice_of(shared("d1"), shared("d2"))]).on(node()))

    assert found(3, "5") == [["a: d1", "a: d1", "a: d2"]]
    assert found(4, "5") == [["a: d1", "a: d1", "a: d2", "a: d2"]]
    assert found(5, "5") is None
    # Two devices without an attribute that differs cannot be had.
    assert found(2, "5", constraints=[{"distinctAttribute": f"{DRIVER}/id"}]) is None


def test_a_capacity_that_the_device_lacks_cannot_be_had() -> None:
    slices = [slice_of(device("d1"), shared("d2"))]
    assert results(allocator(wants("1"), slices).on(node())) == [["r: d2"]]
    assert results(allocator(wants("1", count="All"), slices).on(node())) == [["r: d2"]]


def test_a_device_that_is_not_shared_is_taken_as_a_whole() -> None:
    whole = device("d1", capacity={"bandwidth": {"value": "10"}})
    found = allocator(wants("3"), [slice_of(whole)]).on(node())
    assert written(found)[0]["devices"]["results"] == [
        {"request": "r", "driver": DRIVER, "pool": "n1", "device": "d1"}
    ]
    assert allocator([wants("3", "c1"), wants("3", "c2")], [slice_of(whole)]).on(node()) is None
    assert allocator(wants("11"), [slice_of(whole)]).on(node()) is None


# ---- counters ------------------------------------------------------------------------------------------------


def counters(**amounts: str) -> dict[str, Any]:
    return {name: {"value": amount} for name, amount in amounts.items()}


def part(name: str, memory: str, **fields: Any) -> dict[str, Any]:
    """Return a device that uses up memory of the set `gpu0`."""
    return device(
        name, consumesCounters=[{"counterSet": "gpu0", "counters": counters(memory=memory)}], **fields
    )


def partitions(*devices: dict[str, Any], memory: str = "10", **fields: Any) -> list[Any]:
    """Return the two slices of a pool: its counters and its devices."""
    sets = [{"name": "gpu0", "counters": counters(memory=memory)}]
    return [
        slice_of(name="a", pool="p", count=2, sharedCounters=sets),
        slice_of(*devices, name="b", pool="p", count=2, **fields),
    ]


def test_devices_use_up_counters() -> None:
    slices = partitions(part("d1", "6"), part("d2", "6"), part("d3", "4"))
    assert results(allocator(claim(request("r", 2)), slices).on(node())) == [["r: d1", "r: d3"]]
    assert allocator(claim(request("r", 3)), slices).on(node()) is None


def test_devices_in_use_use_up_counters() -> None:
    slices = partitions(part("d1", "6"), part("d2", "6"), part("d3", "4"))
    assert results(allocator(claim(request()), slices, [allocated("d1", pool="p")]).on(node())) == [["r: d3"]]
    assert results(allocator(claim(request()), slices, [allocated("d1", pool="q")]).on(node())) == [["r: d1"]]
    both = [allocated("d1", "d2", pool="p")]
    assert allocator(claim(request()), slices, both).on(node()) is None


def test_counters_are_used_up_on_other_nodes_too() -> None:
    sets = [{"name": "gpu0", "counters": counters(memory="10")}]
    slices = [
        slice_of(name="a", pool="p", count=3, sharedCounters=sets, allNodes=True),
        slice_of(part("d1", "6"), name="b", pool="p", count=3),
        slice_of(part("d2", "6"), name="c", pool="p", count=3, node_name="n2"),
    ]
    assert results(allocator(claim(request()), slices).on(node())) == [["r: d1"]]
    assert allocator(claim(request()), slices, [allocated("d2", pool="p")]).on(node()) is None


def test_counters_are_given_back_when_the_search_goes_on() -> None:
    devices = [part("d1", "6", attributes={"kind": "a"}), part("d2", "4"), part("d3", "10")]
    is_a = f'device.attributes["{DRIVER}"].?kind.orValue("") == "a"'
    wanted = claim(request("any"), request("a", 1, is_a))
    assert results(allocator(wanted, partitions(*reversed(devices))).on(node())) == [["any: d2", "a: d1"]]


ONE_SET = [{"name": "gpu0", "counters": {}}]
TWO_SETS = [{"name": "gpu0", "counters": {"memory": {"value": "1"}}}] * 2


@pytest.mark.parametrize("sets", [ONE_SET, TWO_SETS, [{"name": "gpu1", "counters": {}}]])
def test_a_pool_without_the_counters_of_its_devices_gives_none(sets: list[Any]) -> None:
    slices = [
        slice_of(name="a", pool="p", count=2, sharedCounters=sets),
        slice_of(part("d1", "1"), name="b", pool="p", count=2),
    ]
    with pytest.raises(AllocationError, match=r"^invalid resource pools were encountered$"):
        allocator(claim(request()), slices).on(node())


def test_a_pool_without_counters_gives_no_devices_that_use_them_up() -> None:
    with pytest.raises(AllocationError, match=r"^invalid resource pools were encountered$"):
        allocator(claim(request()), [slice_of(part("d1", "1"))]).on(node())


def test_two_drivers_with_one_pool_name_have_their_own_counters() -> None:
    sets = [{"name": "gpu0", "counters": counters(memory="10")}]
    slices = [
        one
        for driver in ("a.example.com", "b.example.com")
        for one in (
            slice_of(name=f"{driver}-a", pool="p", count=2, sharedCounters=sets, driver=driver),
            slice_of(part("d", "10"), name=f"{driver}-b", pool="p", count=2, driver=driver),
        )
    ]
    assert results(allocator(claim(request("r", 2)), slices).on(node())) == [["r: d", "r: d"]]


def test_a_shared_device_uses_up_its_counters_once() -> None:
    bandwidth = {"capacity": {"bandwidth": {"value": "10"}}, "allowMultipleAllocations": True}
    slices = partitions(part("d1", "6", **bandwidth), part("d2", "6"))
    claims = [wants("5", "c1"), wants("5", "c2")]
    assert results(allocator(claims, slices).on(node())) == [["r: d1"], ["r: d1"]]
    assert allocator([*claims, claim(request("r"), name="c3")], slices).on(node()) is None
    in_use = [allocated("d1", pool="p", shareID="s", consumedCapacity={"bandwidth": "5"})]
    assert results(allocator(wants("5"), slices, in_use).on(node())) == [["r: d1"]]
    assert allocator(wants("6"), slices, in_use).on(node()) is None


def test_amounts_beyond_the_range_are_errors() -> None:
    huge = "9e18"
    slices = partitions(part("d1", huge), part("d2", huge), memory=huge)
    with pytest.raises(AllocationError, match="a quantity holds at most"):
        allocator(claim(request("r", 2)), slices).on(node())
    with pytest.raises(AllocationError, match=r"counter memory"):
        allocator(claim(request()), partitions(part("d1", "x"))).on(node())
