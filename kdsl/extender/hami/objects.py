"""Decodes the nodes of calls, and pods without defaults."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.read.defaults import default_node
from kdsl.extender.objects import UNUSABLE, decode_values
from kdsl.extender.protocol import UnreadableError, json_values
from kdsl.live.decode import UNREADABLE

T = TypeVar("T")
_node: Final = msgspec.json.Decoder(Node)


def node_of(raw: Raw) -> NodeFacts:
    """Decode a node; raise UnreadableError."""
    try:
        node = _node.decode(raw)
    except UNREADABLE:
        node = _decoded(json_values(raw), Node)
    try:
        return NodeFacts.of(default_node(node))
    except UNUSABLE as error:
        raise UnreadableError(f"the node cannot be read: {error}") from None


def written_pod(raw: dict[str, Any]) -> Pod:
    """Decode a pod as written, without defaults; raise UnreadableError."""
    return _decoded(raw, Pod)


def _decoded(values: object, into: type[T]) -> T:
    try:
        return decode_values(values, into, into.__name__)
    except UnreadableError as error:
        raise UnreadableError(f"the {into.__name__.lower()} cannot be read: {error}") from None
