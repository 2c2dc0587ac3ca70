"""Pools of devices: generations, complete and valid ones, and the nodes that can use them."""

from typing import Any

import pytest

from kdsl_plugins.dynamic_resources.allocator import AllocationError
from kdsl_plugins.dynamic_resources.pools import SliceIndex
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

ALL = claim(request("r", "All"))
ONE = claim(request())


def zone(*values: str) -> dict[str, Any]:
    """Return a node selector for zones."""
    return {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}]
    }


def test_only_the_newest_generation_counts() -> None:
    slices = [slice_of("old", name="a", generation=1), slice_of("new", name="b", generation=2)]
    assert results(allocator(ALL, slices).on(node())) == [["r: new"]]


def test_a_pool_whose_newest_generation_is_elsewhere_is_gone() -> None:
    slices = [
        slice_of("old", name="a", pool="p", generation=1, count=2),
        slice_of("new", name="b", pool="p", node_name="n2", generation=2, count=2),
    ]
    assert allocator(ALL, slices).on(node()) is None
    assert allocator(ONE, slices).on(node()) is None


def test_nothing_is_taken_from_an_incomplete_pool() -> None:
    slices = [slice_of("d1", name="a", pool="p", count=2)]
    assert allocator(ONE, slices).on(node()) is None
    text = f"claim default/c, request r: asks for all devices, but resource pool {DRIVER}/p is currently being updated"
    with pytest.raises(AllocationError) as error:
        allocator(ALL, slices).on(node())
    assert (str(error.value), error.value.is_local) == (text, False)
    other = [*slices, slice_of("d2", name="b", pool="q")]
    assert results(allocator(ONE, other).on(node())) == [["r: d2"]]


def test_a_pool_is_complete_with_its_slices_on_other_nodes() -> None:
    slices = [
        slice_of("d1", name="a", pool="p", count=2),
        slice_of("d2", name="b", pool="p", node_name="n2", count=2),
    ]
    assert results(allocator(ALL, slices).on(node())) == [["r: d1"]]


def test_nothing_is_taken_from_a_pool_with_one_name_twice() -> None:
    slices = [slice_of("d1", name="a", pool="p", count=2), slice_of("d1", name="b", pool="p", count=2)]
    with pytest.raises(AllocationError) as error:
        allocator(ONE, slices).on(node())
    assert (str(error.value), error.value.is_local) == ("invalid resource pools were encountered", True)
    with pytest.raises(AllocationError) as error:
        allocator(ALL, slices).on(node())
    text = (
        f"claim default/c, request r: asks for all devices, but resource pool {DRIVER}/p is currently invalid"
    )
    assert (str(error.value), error.value.is_local) == (text, False)
    other = [*slices, slice_of("d2", name="c", pool="q")]
    assert results(allocator(ONE, other).on(node())) == [["r: d2"]]


def test_the_nodes_of_a_slice_may_be_selected_or_all() -> None:
    selected = [slice_of("d1", pool="p", nodeSelector=zone("a"))]
    assert results(allocator(ONE, selected).on(node(zone="a"))) == [["r: d1"]]
    assert allocator(ONE, selected).on(node(zone="b")) is None
    assert allocator(ONE, selected).on(node()) is None
    everywhere = [slice_of("d1", pool="p", allNodes=True)]
    found = allocator(ONE, everywhere).on(node())
    assert results(found) == [["r: d1"]]
    assert "nodeSelector" not in written(found)[0]


def test_a_slice_that_names_no_nodes_is_ignored() -> None:
    assert allocator(ONE, [slice_of("d1", pool="p", allNodes=False)]).on(node()) is None


def test_selectors_of_slices_are_joined_in_one_term() -> None:
    rack = {"key": "rack", "operator": "Exists", "values": []}
    in_zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    same_zone = {"key": "zone", "operator": "In", "values": ["b", "a"]}
    slices = [
        slice_of("d1", pool="p", nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}),
        slice_of(
            "d2", pool="q", nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [same_zone, rack]}]}
        ),
    ]
    (found,) = written(allocator(claim(request("r", 2)), slices).on(node(zone="a", rack="1")))
    assert found["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchExpressions": [in_zone, rack], "matchFields": []}]
    }


def test_one_local_device_binds_the_claim_to_its_node() -> None:
    slices = [slice_of("d1", pool="a", allNodes=True), slice_of("d2", pool="b")]
    (found,) = written(allocator(claim(request("r", 2)), slices).on(node()))
    (term,) = found["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]


def test_a_slice_may_select_nodes_in_two_terms_only_if_nothing_is_taken() -> None:
    terms = {"nodeSelectorTerms": zone("a")["nodeSelectorTerms"] * 2}
    with pytest.raises(
        AllocationError,
        match=r"^create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms$",
    ):
        allocator(ONE, [slice_of("d1", pool="p", nodeSelector=terms)]).on(node(zone="a"))


def test_devices_may_have_nodes_of_their_own() -> None:
    slices = [
        slice_of(
            device("d1", nodeName="n2"),
            device("d2", nodeSelector=zone("a")),
            device("d3", allNodes=True),
            device("d4"),
            pool="p",
            perDeviceNodeSelection=True,
        )
    ]
    assert results(allocator(ALL, slices).on(node())) == [["r: d3"]]
    assert results(allocator(ALL, slices).on(node("n2", zone="b"))) == [["r: d1", "r: d3"]]
    found = allocator(ALL, slices).on(node("n3", zone="a"))
    assert results(found) == [["r: d2", "r: d3"]]
    assert written(found)[0]["nodeSelector"]["nodeSelectorTerms"][0]["matchExpressions"][0]["key"] == "zone"
    (local,) = written(allocator(claim(request("r", 2)), slices).on(node("n2")))
    assert local["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n2"]


def test_many_selected_slices_are_found_by_the_labels_of_a_node() -> None:
    slices = [slice_of("d", pool=f"p{at}", nodeSelector=zone(f"z{at % 3}")) for at in range(9)]
    found = allocator(ALL, slices)
    pools = [[one.pool for one in each.devices.results] for each in found.on(node("n1", zone="z1")) or ()]
    assert pools == [["p1", "p4", "p7"]]
    same = found.on(node("n2", zone="z1"))
    assert same is not None
    assert [one.pool for one in same[0].devices.results] == pools[0]
    assert found.on(node("n3", zone="z9")) is None


def test_pools_with_binding_conditions_come_last() -> None:
    slow = device("d1", bindingConditions=["Ready"], bindingFailureConditions=["Failed"])
    slices = [slice_of(slow, pool="a"), slice_of("d2", pool="b")]
    assert results(allocator(ONE, slices).on(node())) == [["r: d2"]]
    (found,) = written(allocator(claim(request("r", 2)), slices).on(node()))
    assert found["devices"]["results"][1] == {
        "request": "r",
        "driver": DRIVER,
        "pool": "a",
        "device": "d1",
        "bindingConditions": ["Ready"],
        "bindingFailureConditions": ["Failed"],
    }


def test_a_device_that_binds_to_its_node_binds_the_claim() -> None:
    slices = [slice_of(device("d1", bindsToNode=True), pool="p", allNodes=True)]
    (found,) = written(allocator(ONE, slices).on(node()))
    assert found["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n1"]


def test_a_kept_index_serves_other_attempts() -> None:
    index = SliceIndex([slice_of("d1", "d2")])
    first = allocator(ONE, index)  # type: ignore[arg-type]
    assert results(first.on(node())) == [["r: d1"]]
    second = allocator(ONE, index, [allocated("d1")])  # type: ignore[arg-type]
    assert results(second.on(node())) == [["r: d2"]]
