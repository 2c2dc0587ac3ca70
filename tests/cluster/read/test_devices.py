"""Classes, claims and slices of devices from files: mistakes, defaults, and claims created from templates."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.objects.device_claims import DeviceClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values

from tests.plugins.device_manifests import (
    Manifest,
    claiming_pod,
    device_class,
    resource_claim,
    resource_slice,
)

EXACT = {"deviceClassName": "gpu"}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t"},
    "spec": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": EXACT}]}},
    },
}


def titles(*manifests: Manifest) -> list[str]:
    return [f"{one.where.partition('#1: ')[2]}: {one.title}" for one in read_values(manifests).diagnostics]


def claim(*requests: Manifest, **devices: Any) -> Manifest:
    made = resource_claim("c", requests=requests)
    made["spec"]["devices"].update(devices)
    return made


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (claim({"name": "r"}), "a request needs either `exactly` or `firstAvailable`"),
        (claim({"name": "r", "exactly": {}}), "the name of a device class is needed"),
        (claim({"exactly": EXACT}), "the request needs a name"),
        (
            claim({"name": "r", "exactly": EXACT}, {"name": "r", "exactly": EXACT}),
            "a second request is named `r`",
        ),
        (
            claim({"name": "r", "exactly": {**EXACT, "allocationMode": "Exactcount"}}),
            "unknown allocationMode `Exactcount`",
        ),
        (claim({"name": "r", "exactly": {**EXACT, "count": -1}}), "-1 is not a number of devices"),
        (
            claim({"name": "r", "exactly": {**EXACT, "allocationMode": "All", "count": 2}}),
            "`All` devices have no count",
        ),
        (
            claim({"name": "r", "exactly": {**EXACT, "selectors": [{"cel": {"expression": ""}}]}}),
            "a CEL expression is needed",
        ),
        (
            claim(
                {"name": "r", "exactly": EXACT}, constraints=[{"requests": ["q"], "matchAttribute": "d/a"}]
            ),
            "the claim has no request `q`",
        ),
        (
            claim({"name": "r", "exactly": EXACT}, constraints=[{"requests": ["r"]}]),
            "a constraint needs either `matchAttribute` or `distinctAttribute`",
        ),
        (
            claim({"name": "r", "exactly": EXACT}, config=[{"requests": ["x"]}]),
            "the claim has no request `x`",
        ),
        (device_class(expression=""), "a CEL expression is needed"),
        (resource_slice("n", "g", "g"), "a second device is named `g`"),
        (
            resource_slice("n", "g", allNodes=True),
            "one of `nodeName`, `nodeSelector`, `allNodes` and `perDeviceNodeSelection` is needed",
        ),
        (resource_slice("n", pool={"name": "n"}), "the number of slices of the pool is needed"),
        (
            resource_slice("n", {"name": "g", "attributes": {"a": {"int": 1, "bool": True}}}),
            "an attribute has one of `int`, `bool`, `string` and `version`",
        ),
        (resource_slice("n", {"name": "g", "capacity": {"m": {"value": "-1"}}}), "`-1` is negative"),
        (
            resource_slice("n", {"name": "g", "taints": [{"key": "k", "effect": "NoShedule"}]}),
            "unknown taint effect `NoShedule`",
        ),
    ],
)
def test_a_mistake_is_reported_and_the_object_skipped(manifest: Manifest, found: str) -> None:
    read = read_values([manifest])
    assert [one.title for one in read.diagnostics] == [found]
    assert all(one.help for one in read.diagnostics if one.code == "K1109")
    assert read.objects == ()


def test_unknown_fields_and_references_of_pods() -> None:
    assert "no ResourceClaim has a field `request` here: it is passed over" in titles(claim(request=[]))[0]
    pod = claiming_pod("p", "c")
    pod["spec"]["resourceClaims"][0].pop("resourceClaimName")
    assert titles(pod) == [
        "spec.resourceClaims[0]: either `resourceClaimName` or `resourceClaimTemplateName` is needed"
    ]


def test_a_request_is_for_one_device_unless_it_says_otherwise() -> None:
    (made,) = read_values(
        [
            claim(
                {"name": "r", "exactly": EXACT},
                {"name": "q", "firstAvailable": [{"name": "x", **EXACT, "allocationMode": "All"}]},
            )
        ]
    ).catalog
    assert isinstance(made, ResourceClaim)
    first, second = made.spec.devices.requests
    assert first.exactly is not None and (first.exactly.allocation_mode, first.exactly.count) == (
        "ExactCount",
        1,
    )
    assert (second.first_available[0].allocation_mode, second.first_available[0].count) == ("All", 0)


def test_claims_are_created_from_templates_and_named_in_the_status() -> None:
    read = read_values([claiming_pod("p", templates=["t"]), TEMPLATE])
    assert read.diagnostics == ()
    (made,) = read.catalog
    assert isinstance(made, ResourceClaim)
    assert (made.metadata.name, made.metadata.labels) == ("p-t", {"app": "a"})
    assert made.metadata.owner_references[0].uid == "uid-p"
    assert PodInfo.of(read.pods[0]).resource_claims == (DeviceClaim("t", "p-t", True),)


def test_no_claim_is_created_twice_or_for_a_pod_on_a_node() -> None:
    known = claiming_pod(
        "p", templates=["t"], resourceClaimStatuses=[{"name": "t", "resourceClaimName": "x"}]
    )
    placed = claiming_pod("q", templates=["t"])
    placed["spec"]["nodeName"] = "n"
    read = read_values([known, placed, TEMPLATE])
    assert read.catalog == ()
    assert [PodInfo.of(pod).resource_claims[0].claim for pod in read.pods] == ["x", None]


def test_a_template_without_a_claim() -> None:
    broken = {**TEMPLATE, "spec": {}}
    assert [one.title for one in read_values([broken]).diagnostics] == [
        "a template needs a name and the spec of a claim (`spec.spec`)"
    ]
