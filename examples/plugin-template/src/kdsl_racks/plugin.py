"""The part of the plugin that takes part in scheduling: a predicate and a score, placed by profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks import Code, PluginContext, Status, hookimpl
from numpy.typing import NDArray

from kdsl_racks.functions import rack_of


class Racks:
    """Keeps pods away from closed racks, and prefers nodes with few pods.

    kdsl has checked `args` against `args.schema.json`.
    """

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        self._closed = frozenset(args.get("closed", ()))
        self._full = args.get("fullAt", 100)

    @hookimpl
    def filter_node(self, node: NodeInfo) -> Status | None:
        """Judge one node: the predicate `plugins.Racks`."""
        rack = rack_of(node)
        if rack in self._closed:
            return Status(Code.UNRESOLVABLE, (f"rack {rack} is closed",))
        return None

    @hookimpl
    def score(self, nodes: NodeSet) -> NDArray[np.int64]:
        """Score all nodes at once: the score `plugins.Racks`."""
        pods = nodes.snapshot.pod_counts[nodes.rows]
        return 100 - np.minimum(pods, self._full) * 100 // self._full
