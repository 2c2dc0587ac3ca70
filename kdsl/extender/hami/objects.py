"""Nodes that come with calls, and pods as they are written, read as the rest of the program reads them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.defaults import default_node
from kdsl.cluster.read.problems import Problems
from kdsl.extender.protocol import UnreadableError, json_values

T = TypeVar("T")
_nodes = msgspec.json.Decoder(Node)
_NO_SUCH_VALUES = (ValueError, ArithmeticError, TypeError, LookupError)


def node_of(raw: Raw) -> NodeFacts:
    """Read a node; raise UnreadableError."""
    try:
        return NodeFacts.of(default_node(_read(_nodes, raw, Node)))
    except _NO_SUCH_VALUES as error:
        raise UnreadableError(f"the node cannot be read: {error}") from None


def written_pod(raw: dict[str, Any]) -> Pod:
    """Read a pod as it is written, without defaults; raise UnreadableError."""
    return _converted(raw, Pod)


def _read(decoder: msgspec.json.Decoder[T], raw: Raw, into: type[T]) -> T:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _converted(json_values(raw), into)


def _converted(values: object, into: type[T]) -> T:
    """Read plain values, which may have nulls where the API has none."""
    found: list[Diagnostic] = []
    thing = decode(values, into, Problems(found, into.__name__))
    if thing is None:
        said = f"{found[0].where}: {found[0].title}" if found else "it is no object"
        raise UnreadableError(f"the {into.__name__.lower()} cannot be read: {said}")
    return thing
