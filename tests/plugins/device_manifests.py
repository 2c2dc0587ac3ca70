"""Manifests of devices for tests: slices, classes, claims, and pods that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Manifest = dict[str, Any]
API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def resource_slice(node: str, *devices: str | Manifest, **fields: Any) -> Manifest:
    """A slice that is the whole pool of a node."""
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": each} if isinstance(each, str) else each for each in devices],
            **fields,
        },
    }


def device_class(name: str = "gpu", expression: str = f"device.driver == '{DRIVER}'") -> Manifest:
    """A class of the devices that an expression selects."""
    selectors = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


def resource_claim(
    name: str, *, requests: Sequence[Manifest] | None = None, status: Manifest | None = None, **meta: Any
) -> Manifest:
    """A claim of one device of the class `gpu`, or with other requests."""
    one = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "uid": f"uid-{name}", **meta},
        "spec": {"devices": {"requests": one if requests is None else list(requests)}},
        **({} if status is None else {"status": status}),
    }


def allocated_on(node: str, device: str = "g0", *users: str) -> Manifest:
    """The status of a claim whose device is on a node, used by pods."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": device}]
    return {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        },
        "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users],
    }


def claiming_pod(name: str, *claims: str, templates: Sequence[str] = (), **status: Any) -> Manifest:
    """A pod with claims by name, and with claims that are created from templates."""
    named = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    made = [{"name": template, "resourceClaimTemplateName": template} for template in templates]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "resourceClaims": [*named, *made]},
        **({"status": status} if status else {}),
    }
