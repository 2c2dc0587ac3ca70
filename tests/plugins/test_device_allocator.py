"""The allocator: devices of pools for the requests of claims, on one node."""

import pytest
from kdsl.cluster.api.device_objects import DeviceClass
from msgspec import convert

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


def test_the_first_free_devices_are_taken_in_order() -> None:
    found = allocator(claim(request("r", 2)), [slice_of("d1", "d2", "d3")], [allocated("d1")]).on(node())
    assert results(found) == [["r: d2", "r: d3"]]


def test_a_node_without_enough_devices_gets_none() -> None:
    assert allocator(claim(request("r", 2)), [slice_of("d1")]).on(node()) is None
    assert allocator(claim(request()), [slice_of("d1")], [allocated("d1")]).on(node()) is None


def test_devices_of_another_node_are_not_taken() -> None:
    assert allocator(claim(request()), [slice_of("d1", node_name="n2")]).on(node()) is None


def test_all_takes_every_matching_device_and_fails_if_one_is_in_use() -> None:
    slices = [slice_of(device("d1", {"kind": "a"}), device("d2", {"kind": "b"}), device("d3", {"kind": "a"}))]
    wanted = claim(request("r", "All", f'device.attributes["{DRIVER}"].kind == "a"'))
    assert results(allocator(wanted, slices).on(node())) == [["r: d1", "r: d3"]]
    assert results(allocator(wanted, slices, [allocated("d2")]).on(node())) == [["r: d1", "r: d3"]]
    assert allocator(wanted, slices, [allocated("d3")]).on(node()) is None


def test_all_needs_at_least_one_device() -> None:
    wanted = claim(request("r", "All", "false"))
    assert allocator(wanted, [slice_of("d1")]).on(node()) is None


def test_class_and_request_select_together() -> None:
    gpu = convert(
        {
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        },
        DeviceClass,
    )
    wanted = claim(request("r", 1, f'device.capacity["{DRIVER}"].memory.compareTo(quantity("2Gi")) >= 0'))
    slices = [
        slice_of(device("a", capacity={"memory": {"value": "4Gi"}}), driver="other.example.com"),
        slice_of(
            device("b", capacity={"memory": {"value": "1Gi"}}),
            device("c", capacity={"memory": {"value": "2Gi"}}),
        ),
    ]
    assert results(allocator(wanted, slices, classes=[gpu]).on(node())) == [["r: c"]]


def test_pools_slices_and_devices_have_an_order() -> None:
    slices = [
        slice_of("z", pool="p2", name="s3"),
        slice_of("y", pool="p1", name="s2", count=2),
        slice_of("x", "w", pool="p1", name="s1", count=2),
    ]
    found = allocator(claim(request("r", 4)), slices).on(node())
    assert results(found) == [["r: x", "r: w", "r: y", "r: z"]]


def test_an_allocation_of_local_devices_is_for_their_node() -> None:
    found = allocator(claim(request()), [slice_of("d1")]).on(node())
    assert written(found) == [
        {
            "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n1", "device": "d1"}]},
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                    }
                ]
            },
        }
    ]


def test_configuration_is_that_of_classes_then_of_the_claim() -> None:
    gpu = convert(
        {
            "metadata": {"name": "gpu"},
            "spec": {"config": [{"opaque": {"driver": DRIVER, "parameters": {"mode": "fast"}}}]},
        },
        DeviceClass,
    )
    wanted = claim(
        request("a"),
        request("b"),
        config=[
            {"opaque": {"driver": DRIVER, "parameters": 1}},
            {"requests": ["b"], "opaque": {"driver": DRIVER, "parameters": 2}},
            {"requests": ["z"], "opaque": {"driver": DRIVER, "parameters": 3}},
        ],
    )
    (found,) = written(allocator(wanted, [slice_of("d1", "d2")], classes=[gpu]).on(node()))
    assert found["devices"]["config"] == [
        {
            "source": "FromClass",
            "requests": ["a", "b"],
            "opaque": {"driver": DRIVER, "parameters": {"mode": "fast"}},
        },
        {"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": 1}},
        {"source": "FromClaim", "requests": ["b"], "opaque": {"driver": DRIVER, "parameters": 2}},
    ]


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (
            request("r", 1, deviceClassName="gone"),
            'could not retrieve device class gone: deviceclass.resource.k8s.io "gone" not found',
        ),
        (request("r", 1, deviceClassName=""), "missing device class name (unsupported request type?)"),
        ({"name": "r"}, "missing device class name (unsupported request type?)"),
        (request("r", 1, allocationMode="Some"), "unsupported count mode Some"),
        (
            request("r", 1, selectors=[{"other": 1}]),
            "selector #0: CEL expression empty (unsupported selector type?)",
        ),
    ],
)
def test_a_request_that_cannot_be_read_is_an_error(wanted: dict[str, object], problem: str) -> None:
    with pytest.raises(AllocationError) as error:
        allocator(claim(wanted), [slice_of("d1")]).on(node())
    assert str(error.value).replace("request r, ", "request r: ") == f"claim default/c, request r: {problem}"
    assert not error.value.is_local


def test_a_claim_gets_at_most_32_devices() -> None:
    slices = [slice_of(*(f"d{at}" for at in range(40)))]
    assert allocator(claim(request("r", 32)), slices).on(node()) is not None
    with pytest.raises(
        AllocationError,
        match=r"^claim default/c: number of requested devices 33 exceeds the claim limit of 32$",
    ):
        allocator(claim(request("r", 33)), slices).on(node())
