"""The fields of every kind and their types, read from the models of the Kubernetes API in lightkube-models.

Decoding, merging and the OpenAPI documents use these trees; a tree is made when its kind is first used.
"""

from __future__ import annotations

import importlib
import types
import typing
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final

import msgspec

from kdsl.sandbox.model.resources import Resource


class JsonShape(StrEnum):
    """The JSON type of a value."""

    STRING = "string"
    INTEGER = "int64"
    BOOLEAN = "bool"
    NUMBER = "float64"
    TIME = "Time"
    MICRO_TIME = "MicroTime"
    QUANTITY = "Quantity"
    QUANTITIES = "ResourceList"
    STRINGS = "map[string]string"
    MAP = "map"
    LIST = "list"
    STRUCT = "struct"
    ANY = "any"


@dataclass(slots=True, eq=False)
class Node:
    """The type of one field. `name` is the type's name; `item` is for lists, `fields` for structs."""

    shape: JsonShape
    name: str = ""
    item: Node | None = None
    fields: dict[str, Node] = field(default_factory=dict)


_QUANTITY_MAPS: Final = frozenset(
    {"limits", "requests", "overhead", "allocatable", "hard", "used", "allocatedResources", "min", "max"}
    | {"default", "defaultRequest", "maxLimitRequestRatio"}
)
_STRING_MAPS: Final = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "selector", "parameters", "data", "binaryData"}
)
_RAW: Final = frozenset(
    {
        ("OpaqueDeviceConfiguration", "parameters"),
        ("AllocatedDeviceStatus", "data"),
        ("ControllerRevision", "data"),
    }
)
"""Structs and their fields with any JSON inside, some of whose names are those of maps of texts elsewhere."""
_MICRO_TIMES: Final = frozenset({"eventTime", "lastObservedTime", "acquireTime", "renewTime"})
_CAPACITY_LISTS: Final = frozenset({"PersistentVolumeSpec", "NodeStatus", "PersistentVolumeClaimStatus"})
_MODULES: Final = {
    "": "core", "rbac.authorization.k8s.io": "rbac", "flowcontrol.apiserver.k8s.io": "flowcontrol",
}  # fmt: skip


def schema_of(resource: Resource) -> Node:
    """Return the tree of a resource's kind."""
    group = _MODULES.get(resource.group, resource.group.split(".", maxsplit=1)[0])
    return _tree(group, resource.version, resource.kind)


def schema_named(kind: str) -> Node:
    """Return the tree of a kind that is posted to a subresource."""
    group, version = {"Eviction": ("policy", "v1"), "Scale": ("autoscaling", "v1")}.get(kind, ("core", "v1"))
    return _tree(group, version, kind)


@cache
def _tree(group: str, version: str, kind: str) -> Node:
    module = importlib.import_module(f"lightkube.models.{group}_{version}")
    return _struct(getattr(module, kind))


@cache
def _struct(model: type[msgspec.Struct]) -> Node:
    node = Node(JsonShape.STRUCT, model.__name__)
    for item in msgspec.structs.fields(model):
        name = item.encode_name.rstrip("_")
        node.fields[name] = _field(name, item.type, model.__name__)
    return node


def _field(name: str, kind: Any, owner: str) -> Node:
    if (owner, name) in _RAW:
        return Node(JsonShape.ANY)
    if name == "capacity" and owner in _CAPACITY_LISTS:
        return Node(JsonShape.QUANTITIES, name)
    if kind_of(kind) is dict:
        if name in _QUANTITY_MAPS:
            return Node(JsonShape.QUANTITIES, name)
        return Node(JsonShape.STRINGS if name in _STRING_MAPS else JsonShape.MAP, name)
    if name in _MICRO_TIMES:
        return Node(JsonShape.MICRO_TIME)
    return _node(kind, name, owner)


def kind_of(kind: Any) -> Any:
    """Return a type without `| None`, and `dict` for any mapping."""
    kind = _present(kind)
    return dict if typing.get_origin(kind) is dict else kind


def _present(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = [item for item in typing.get_args(kind) if item not in (type(None), msgspec.UnsetType)]
        return members[0] if len(members) == 1 else Any
    return kind


def _node(kind: Any, name: str, owner: str) -> Node:
    kind = _present(kind)
    if typing.get_origin(kind) is list:
        return Node(JsonShape.LIST, name, _field("", typing.get_args(kind)[0], owner))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    if kind is str:
        is_quantity = name in ("maximumVolumeSize", "sizeLimit", "divisor") or (
            name == "capacity" and owner == "CSIStorageCapacity"
        )
        return Node(JsonShape.QUANTITY if is_quantity else JsonShape.STRING)
    plain = {
        int: JsonShape.INTEGER,
        bool: JsonShape.BOOLEAN,
        float: JsonShape.NUMBER,
        datetime: JsonShape.TIME,
    }
    return Node(plain.get(kind, JsonShape.ANY))
