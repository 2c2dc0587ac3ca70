"""Validation of an object's metadata: its name, labels, annotations, owners and finalizers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from kdsl.sandbox.model import names
from kdsl.sandbox.model.errors import Causes, Json
from kdsl.sandbox.model.resources import Resource

_MAX_ANNOTATIONS: Final = 256 * 1024
_FREE_NAMES: Final = frozenset({"rbac.authorization.k8s.io"})
_NAMES: Final[dict[str, Callable[[str], list[str]]]] = {
    "namespaces": names.label_name,
    "services": names.service_name,
}
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def check_metadata(resource: Resource, metadata: Json, causes: Causes) -> None:
    """Add the errors in the metadata of a new object to `causes`."""
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    check_name = _NAMES.get(resource.collection, names.subdomain)
    if prefix and resource.group not in _FREE_NAMES:
        # A prefix may end in a hyphen.
        whole = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        say_all(causes, "metadata.generateName", prefix, check_name(whole))
    if not name:
        causes.required("metadata.name", "name or generateName is required")
    elif resource.group not in _FREE_NAMES:
        say_all(causes, "metadata.name", name, check_name(name))
    check_marks(metadata, causes)
    check_owners(metadata.get("ownerReferences", ()), causes)
    for finalizer in metadata.get("finalizers", ()):
        say_all(causes, "metadata.finalizers", finalizer, names.qualified(finalizer))
    if not resource.group:
        for index, finalizer in enumerate(metadata.get("finalizers", ())):
            if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
                why = "name is neither a standard finalizer name nor is it fully qualified"
                causes.invalid(f"metadata.finalizers[{index}]", json.dumps(finalizer), why)


def check_marks(metadata: Json, causes: Causes) -> None:
    """Add the errors in labels and annotations to `causes`."""
    check_labels(metadata.get("labels") or {}, "metadata.labels", causes)
    annotations = metadata.get("annotations") or {}
    for name in annotations:
        say_all(causes, "metadata.annotations", name, names.qualified(name.lower()))
    if (
        sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
        > _MAX_ANNOTATIONS
    ):
        causes.too_long("metadata.annotations", _MAX_ANNOTATIONS)


def check_labels(labels: Json, path: str, causes: Causes) -> None:
    """Add the errors in keys and values of labels to `causes`."""
    for name, value in labels.items():
        say_all(causes, path, name, names.qualified(name))
        say_all(causes, path, value, names.label_value(value))


def check_selector(selector: Json, path: str, causes: Causes) -> None:
    """Add the errors in a label selector to `causes`."""
    check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels", causes)
    for index, item in enumerate(selector.get("matchExpressions", ())):
        check_requirement(item, f"{path}.matchExpressions[{index}]", ("In", "NotIn"), (), causes)


def check_requirement(
    item: Json, path: str, several: tuple[str, ...], single: tuple[str, ...], causes: Causes
) -> None:
    """Add the errors in an expression of a selector to `causes`; `several` and `single` are operators with
    values.
    """
    operator, values = item.get("operator", ""), item.get("values", ())
    if operator in several:
        if not values:
            causes.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in single:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.forbidden(f"{path}.values", detail)
    else:
        causes.invalid(f"{path}.operator", json.dumps(operator), "not a valid selector operator")
    check_key(item.get("key", ""), f"{path}.key", causes)
    for index, value in enumerate(values):
        say_all(causes, f"{path}.values[{index}]", value, names.label_value(value))


def check_key(key: str, path: str, causes: Causes) -> None:
    """Add the errors in the key of a label to `causes`."""
    say_all(causes, path, key, names.qualified(key))


def check_owners(owners: list[Json], causes: Causes) -> None:
    path, leader = "metadata.ownerReferences", ""
    for owner in owners:
        api = owner.get("apiVersion", "")
        if not api.rpartition("/")[2]:
            causes.invalid(f"{path}.apiVersion", json.dumps(api), "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                causes.invalid(f"{path}.{name}", '""', f"{name} must not be empty")
        if owner.get("controller"):
            if leader:
                why = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{leader} and {owner.get('name', '')}"
                )
                causes.invalid(path, json.dumps(owners, separators=(",", ":")), why)
                return
            leader = owner.get("name", "")


def say_all(causes: Causes, path: str, value: str, reasons: list[str]) -> None:
    """Add one error for each reason against a text."""
    for why in reasons:
        causes.invalid(path, json.dumps(value, ensure_ascii=False), why)
