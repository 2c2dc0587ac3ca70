"""The search of the allocator: which devices are tried, and for which requests."""

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from kdsl.cluster.api.device_objects import DeviceAttribute, DeviceClass, ResourceClaim
from msgspec import convert

from kdsl_plugins.dynamic_resources.allocator import AllocationError, Allocator, prioritized_score
from kdsl_plugins.dynamic_resources.steps import NODE_STEPS, PATIENCE, Steps
from tests.plugins.devices import (
    DRIVER,
    allocated,
    allocator,
    claim,
    device,
    either,
    node,
    request,
    results,
    slice_of,
    written,
)

IS_A = f'device.attributes["{DRIVER}"].kind == "a"'
IS_B = f'device.attributes["{DRIVER}"].kind == "b"'


def kinds(text: str) -> list[dict[str, Any]]:
    """Return devices `d1`, `d2`, … with the kinds that the letters of a text name."""
    return [device(f"d{at}", {"kind": letter}) for at, letter in enumerate(text, 1)]


def test_an_earlier_request_gives_way_to_a_later_one() -> None:
    wanted = claim(request("any"), request("a", 1, IS_A))
    assert results(allocator(wanted, [slice_of(*kinds("ab"))]).on(node())) == [["any: d2", "a: d1"]]


def test_an_earlier_claim_gives_way_to_a_later_one() -> None:
    wanted = [claim(request("any", 2), name="c1"), claim(request("a", 1, IS_A), name="c2")]
    assert results(allocator(wanted, [slice_of(*kinds("abb"))]).on(node())) == [
        ["any: d2", "any: d3"],
        ["a: d1"],
    ]


def test_two_claims_do_not_share_a_device() -> None:
    wanted = [claim(request(), name="c1"), claim(request(), name="c2")]
    assert allocator(wanted, [slice_of("d1")]).on(node()) is None


def test_no_claims_and_claims_without_requests_need_no_devices() -> None:
    assert allocator([], []).on(node()) == ()
    assert results(allocator([claim(), claim(request(), name="c2")], [slice_of("d1")]).on(node())) == [
        [],
        ["r: d1"],
    ]


# ---- alternatives --------------------------------------------------------------------------------------------


def test_the_first_alternative_that_can_be_had_is_taken() -> None:
    wanted = claim(either("gpu", request("big", 1, IS_A), request("small", 2, IS_B)))
    taken = allocator(wanted, [slice_of(*kinds("bab"))]).on(node())
    assert results(taken) == [["gpu/big: d2"]]
    assert prioritized_score([wanted], taken or ()) == 8
    taken = allocator(wanted, [slice_of(*kinds("bbb"))]).on(node())
    assert results(taken) == [["gpu/small: d1", "gpu/small: d2"]]
    assert prioritized_score([wanted], taken or ()) == 7
    assert allocator(wanted, [slice_of(*kinds("b"))]).on(node()) is None


def test_an_alternative_gives_way_to_a_later_request() -> None:
    wanted = claim(either("gpu", request("one", 1, IS_A), request("other", 1, IS_B)), request("a", 1, IS_A))
    assert results(allocator(wanted, [slice_of(*kinds("ab"))]).on(node())) == [["gpu/other: d2", "a: d1"]]


def test_an_alternative_with_too_many_devices_gives_way() -> None:
    devices = [slice_of(*(f"d{at}" for at in range(40)))]
    wanted = claim(request("r", 20), either("x", request("many", 13), request("few", 12)))
    found = allocator(wanted, devices).on(node())
    assert found is not None
    assert [one.request for one in found[0].devices.results[20:]] == ["x/few"] * 12


def test_too_many_devices_of_earlier_alternatives_are_found_out_later() -> None:
    devices = [slice_of(*(f"d{at:02}" for at in range(70)))]
    first = either("x", request("many", 20), request("few", 2))
    wanted = claim(first, request("r", 5), either("y", request("many", 28), request("few", 25)))
    found = allocator([claim(request(), name="c0"), wanted], devices).on(node())
    assert found is not None
    names = [one.request for one in found[1].devices.results]
    assert {name: names.count(name) for name in names} == {"x/few": 2, "r": 5, "y/few": 25}


def test_configuration_and_constraints_name_alternatives() -> None:
    wanted = claim(
        either("gpu", request("big", 1, IS_A), request("small", 1, IS_B)),
        config=[
            {"requests": ["gpu/big"], "opaque": {"driver": DRIVER, "parameters": 1}},
            {"requests": ["gpu/small"], "opaque": {"driver": DRIVER, "parameters": 2}},
            {"requests": ["gpu"], "opaque": {"driver": DRIVER, "parameters": 3}},
        ],
    )
    (found,) = written(allocator(wanted, [slice_of(*kinds("b"))]).on(node()))
    assert [each["opaque"]["parameters"] for each in found["devices"]["config"]] == [2, 3]


# ---- constraints ---------------------------------------------------------------------------------------------


def numa(*values: Any) -> list[dict[str, Any]]:
    return [device(f"d{at}", {} if value is None else {"numa": value}) for at, value in enumerate(values, 1)]


def agreeing(*requests: str, name: str = f"{DRIVER}/numa") -> dict[str, Any]:
    return {"constraints": [{"requests": requests, "matchAttribute": name}]}


def test_devices_agree_in_an_attribute() -> None:
    wanted = claim(request("r", 2), **agreeing())
    assert results(allocator(wanted, [slice_of(*numa(0, 1, 2, 1))]).on(node())) == [["r: d2", "r: d4"]]
    assert allocator(wanted, [slice_of(*numa(0, 1, 2))]).on(node()) is None


def test_a_device_without_the_attribute_agrees_with_none() -> None:
    assert allocator(claim(request("r", 1), **agreeing()), [slice_of(*numa(None))]).on(node()) is None


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (1, True), ("v1.2.3", "1.2.3"), ("v1.2.3", "v1.2.4")])
def test_values_of_two_types_differ(one: Any, other: Any) -> None:
    wanted = claim(request("r", 2), **agreeing())
    assert allocator(wanted, [slice_of(*numa(one, other))]).on(node()) is None
    apart = claim(request("r", 2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    assert allocator(apart, [slice_of(*numa(one, other))]).on(node()) is not None


def test_devices_differ_in_an_attribute() -> None:
    wanted = claim(request("r", 2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    assert results(allocator(wanted, [slice_of(*numa(1, 1, 2))]).on(node())) == [["r: d1", "r: d3"]]
    assert allocator(wanted, [slice_of(*numa(1, 1, None))]).on(node()) is None


def test_attributes_have_full_names() -> None:
    full = [device("d1", {"other.example.com/numa": 1}), device("d2", {"other.example.com/numa": 1})]
    of_other = claim(request("r", 2), **agreeing(name="other.example.com/numa"))
    assert allocator(of_other, [slice_of(*full)]).on(node()) is not None
    assert allocator(of_other, [slice_of(*numa(1, 1))]).on(node()) is None
    mixed = [device("d1", {f"{DRIVER}/numa": 1}), device("d2", {"numa": 1})]
    assert allocator(claim(request("r", 2), **agreeing()), [slice_of(*mixed)]).on(node()) is not None


def test_a_constraint_concerns_its_requests() -> None:
    devices = [slice_of(*numa(0, 1, 0))]
    wanted = claim(request("a"), request("b"), request("c"), **agreeing("a", "c"))
    assert results(allocator(wanted, devices).on(node())) == [["a: d1", "b: d2", "c: d3"]]
    wanted = claim(either("a", request("x")), either("b", request("y")), **agreeing("a/x", "b/y"))
    assert results(allocator(wanted, devices).on(node())) == [["a/x: d1", "b/y: d3"]]
    wanted = claim(either("a", request("x")), either("b", request("y")), **agreeing("a", "b/z"))
    assert results(allocator(wanted, devices).on(node())) == [["a/x: d1", "b/y: d2"]]


def test_all_devices_must_meet_the_constraints() -> None:
    wanted = claim(request("r", "All"), **agreeing())
    text = f"claim default/c, request r: cannot add device {DRIVER}/n1/d2 because a claim constraint would not be satisfied"
    with pytest.raises(AllocationError) as error:
        allocator(wanted, [slice_of(*numa(0, 1))]).on(node())
    assert str(error.value) == text
    assert results(allocator(wanted, [slice_of(*numa(1, 1))]).on(node())) == [["r: d1", "r: d2"]]


def test_a_constraint_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(
        AllocationError,
        match=r"^claim default/c, constraint #0: empty constraint \(unsupported constraint type\?\)$",
    ):
        allocator(claim(request(), constraints=[{"requests": ["r"]}]), [slice_of("d1")]).on(node())


# ---- administrators and taints -------------------------------------------------------------------------------


def test_an_administrator_gets_devices_in_use() -> None:
    wanted = claim(request("r", "All", adminAccess=True))
    found = allocator(wanted, [slice_of("d1", "d2")], [allocated("d1", "d2")]).on(node())
    assert results(found) == [["r: d1", "r: d2"]]
    assert all(one["adminAccess"] is True for one in written(found)[0]["devices"]["results"])


def test_access_of_administrators_uses_up_nothing() -> None:
    in_use = [allocated("d1", adminAccess=True)]
    assert results(allocator(claim(request()), [slice_of("d1")], in_use).on(node())) == [["r: d1"]]


def test_one_claim_gets_a_device_once_even_for_administrators() -> None:
    wanted = claim(request("a", adminAccess=True), request("b", adminAccess=True))
    assert allocator(wanted, [slice_of("d1")]).on(node()) is None
    both = [claim(request("a"), name="c1"), claim(request("b", adminAccess=True), name="c2")]
    assert results(allocator(both, [slice_of("d1")]).on(node())) == [["a: d1"], ["b: d1"]]


@pytest.mark.parametrize(
    ("effect", "tolerations", "is_taken"),
    [
        ("NoSchedule", [], False),
        ("NoExecute", [], False),
        ("None", [], True),
        ("NoSchedule", [{"key": "broken", "operator": "Exists"}], True),
        ("NoSchedule", [{"key": "broken", "operator": "Equal", "value": "yes"}], True),
        ("NoSchedule", [{"key": "broken", "value": "no"}], False),
        ("NoSchedule", [{"operator": "Exists"}], True),
        ("NoSchedule", [{"operator": "Exists", "effect": "NoExecute"}], False),
        ("NoExecute", [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}], True),
    ],
)
def test_taints_repel_requests_that_do_not_tolerate_them(
    effect: str, tolerations: list[dict[str, Any]], is_taken: bool
) -> None:
    tainted = device("d1", taints=[{"key": "broken", "value": "yes", "effect": effect}])
    for count in (1, "All"):
        found = allocator(claim(request("r", count, tolerations=tolerations)), [slice_of(tainted)]).on(node())
        assert (found is not None) is is_taken
        if found is not None and tolerations:
            assert written(found)[0]["devices"]["results"][0]["tolerations"] == tolerations


# ---- conditions that fail ------------------------------------------------------------------------------------


def test_a_condition_that_fails_for_a_device_is_an_error() -> None:
    wanted = claim(request("r", 1, "true", f'device.attributes["{DRIVER}"].x == 1'))
    with pytest.raises(AllocationError) as error:
        allocator(wanted, [slice_of("d1")]).on(node())
    place = f"claim default/c: selector #1 on device {DRIVER}/n1/d1"
    assert str(error.value) == f"{place}: CEL runtime error: no such key: x"
    # Devices in use are not asked about.
    assert allocator(wanted, [slice_of("d1")], [allocated("d1")]).on(node()) is None


def test_a_condition_that_does_not_compile_is_an_error() -> None:
    gpu = convert(
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "device.x"}}]}},
        DeviceClass,
    )
    with pytest.raises(AllocationError) as error:
        allocator(claim(request()), [slice_of("d1")], classes=[gpu]).on(node())
    assert str(error.value) == "class gpu: selector #0: CEL compile error: `device` has no field `x`"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"x": {}}, "attribute x: unsupported attribute value"),
        ({"x": {"version": "1"}}, "attribute x: parse semantic version: "),
    ],
)
def test_an_attribute_that_cannot_be_read_is_an_error(attributes: dict[str, Any], reason: str) -> None:
    slices = [slice_of({"name": "d1", "attributes": attributes})]
    assert allocator(claim(request()), slices).on(node()) is not None
    with pytest.raises(AllocationError, match=reason):
        allocator(claim(request("r", 1, "true")), slices).on(node())


def test_an_error_is_repeated_for_its_node() -> None:
    failing = allocator(claim(request("r", 1, "1 / 0 == 1")), [slice_of("d1")])
    for _ in range(2):
        with pytest.raises(AllocationError, match=r"division by zero$"):
            failing.on(node())


# ---- bounds --------------------------------------------------------------------------------------------------


def test_devices_that_can_stand_for_each_other_are_tried_once() -> None:
    devices = [slice_of(*(f"d{at}" for at in range(64)))]
    wanted = [
        claim(request("r", 32), name="c1"),
        claim(request("r", 30), name="c2"),
        claim(request("r", 3), name="c3"),
    ]
    assert allocator(wanted, devices).on(node()) is None
    halves = [slice_of(*numa(*(at % 2 for at in range(40))))]
    assert allocator(claim(request("r", 21), **agreeing()), halves).on(node()) is None


@pytest.mark.parametrize("are_in_one_claim", [True, False])
def test_requests_that_cannot_be_met_end_a_search(are_in_one_claim: bool) -> None:
    # Sixteen cards that differ in what the network cards, of which no two agree, are compared by.
    devices = [slice_of(*kinds("a" * 16 + "b" * 2))]
    for at, each in enumerate(devices[0].spec.devices):
        each.attributes["root"] = DeviceAttribute(integer=at)
    cards, links = request("card", 8, IS_A), request("link", 2, IS_B)
    same = {"constraints": [{"matchAttribute": f"{DRIVER}/root", "requests": ["link"]}]}
    claims = (
        [claim(cards, links, **same)] if are_in_one_claim else [claim(cards), claim(links, name="d", **same)]
    )
    assert allocator(claims, devices).on(node()) is None


def some_of_many(count: int, **fields: Any) -> Allocator:
    """Return an allocator for single devices of kind b, which come after 77 others."""
    devices = slice_of(*kinds("a" * 77 + "b" * 30))
    for at, each in enumerate(devices.spec.devices):
        each.attributes["numa"] = DeviceAttribute(integer=at)
    return allocator(claim(*(request(f"r{at}", 1, IS_B) for at in range(count)), **fields), [devices])


def test_searches_in_vain_take_no_steps_from_other_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.steps.ATTEMPT_STEPS", 16 * 77 + sum(range(17)))
    assert some_of_many(16).on(node()) is not None


def test_searches_for_many_requests_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, take = list[Steps](), Steps.take
    monkeypatch.setattr(Steps, "take", lambda steps: (taken.append(steps), take(steps))[1])
    with pytest.raises(AllocationError, match="more than 20000 steps"):
        some_of_many(31, constraints=[{"distinctAttribute": f"{DRIVER}/numa"}]).on(node())
    assert len(taken) < 2 * sum(PATIENCE) + NODE_STEPS + 10


def test_a_search_has_a_bound() -> None:
    # Values that differ everywhere: no device stands for another.
    devices = [slice_of(*numa(*range(30)))]
    wanted = claim(request("a", 15), request("b", 16), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    searching = allocator(wanted, devices)
    for _ in range(2):
        with pytest.raises(
            AllocationError, match=r"^more than 20000 steps to search for devices on one node$"
        ):
            searching.on(node())


def test_all_searches_of_an_attempt_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.steps.ATTEMPT_STEPS", 3)
    # Nodes that look alike are searched once.
    sizes = [{"memory": {"value": at}} for at in range(5)]
    slices = [slice_of(device("d1", capacity=size), node_name=f"n{at}") for at, size in enumerate(sizes)]
    searching = allocator(claim(request()), slices)
    for at in range(3):
        assert searching.on(node(f"n{at}")) is not None
    with pytest.raises(AllocationError, match=r"^more than 3 steps to search for devices on all nodes$"):
        searching.on(node("n3"))


# ---- against plain enumeration -------------------------------------------------------------------------------


def choices(letters: str, wanted: Sequence[tuple[str, int]]) -> Iterator[list[int]]:
    """Yield all ways to choose devices, in the order of the search."""
    for chosen in product(range(len(letters)), repeat=sum(count for _, count in wanted)):
        at, is_valid = 0, len(set(chosen)) == len(chosen)
        for kind, count in wanted:
            part = chosen[at : at + count]
            is_valid = (
                is_valid and list(part) == sorted(part) and all(kind in ("?", letters[one]) for one in part)
            )
            at += count
        if is_valid:
            yield list(chosen)


@pytest.mark.parametrize("seed", range(60))
def test_the_first_solution_is_found(seed: int) -> None:
    random = Random(seed)
    letters = "".join(random.choice("ab") for _ in range(random.randint(1, 5)))
    wanted = [(random.choice("ab?"), random.randint(1, 2)) for _ in range(random.randint(1, 2))]
    selectors = {"a": [IS_A], "b": [IS_B], "?": []}
    requests = [request(f"r{at}", count, *selectors[kind]) for at, (kind, count) in enumerate(wanted)]
    constraints = random.choice(
        [[], [{"matchAttribute": f"{DRIVER}/kind"}], [{"distinctAttribute": f"{DRIVER}/kind"}]]
    )

    def is_allowed(chosen: list[int]) -> bool:
        values = [letters[one] for one in chosen]
        if not constraints:
            return True
        return len(set(values)) == (1 if "matchAttribute" in constraints[0] else len(values))

    claims: list[ResourceClaim] = [claim(*requests, constraints=constraints)]
    found = results(allocator(claims, [slice_of(*kinds(letters))]).on(node()))
    expected = next(filter(is_allowed, choices(letters, wanted)), None)
    names = None if found is None else [int(one.partition(": d")[2]) - 1 for one in found[0]]
    assert names == expected
