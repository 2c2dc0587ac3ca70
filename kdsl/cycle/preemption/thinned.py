"""Nodes without some of their pods: what-ifs about many nodes at once, over columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.columns import MAX_SUMMED, Int64Column
from kdsl.cluster.snapshot.snapshot import REQUESTS, AmountsOf, Rows, Snapshot


class ThinnedNodes:
    """The nodes in some rows of a snapshot; `pods` can be removed from each and put back.

    `absent` holds whether they are removed, by place of the row and place of the pod. At first all are.
    """

    def __init__(self, snapshot: Snapshot, rows: Rows, pods: Sequence[Sequence[PodInfo]]) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self.pods = pods
        self.counts = np.array([len(each) for each in pods], np.int64)
        # Whether there is a pod, like `absent`.
        self._places = np.arange(self.counts.max(initial=0)) < self.counts[:, np.newaxis]
        self.absent = self._places.copy()
        self._amounts: dict[tuple[str, str], NDArray[np.int64] | None] = {}
        self._counted: dict[Hashable, NDArray[np.int64]] = {}
        # The nodes without any of the pods, and as they were read last for these absent ones, by place.
        self._emptied: dict[int, NodeInfo] = {}
        self._latest: dict[int, tuple[bytes, NodeInfo]] = {}

    def part(self, places: NDArray[np.intp]) -> ThinnedPart:
        """Return the nodes at some places, as they are now."""
        return ThinnedPart(self, places)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """The place of each row."""
        return {row: place for place, row in enumerate(self.rows.tolist())}

    def info(self, row: int) -> NodeInfo:
        """Return the node of a row without the absent pods; those put back come last, as if added again."""
        place = self.place_of[row]
        state, latest = self.absent[place].tobytes(), self._latest.get(place)
        if latest is not None and latest[0] == state:
            return latest[1]
        node = self._emptied.get(place)
        if node is None:
            node = self.snapshot.info(row)
            for pod in self.pods[place]:
                node = node.without_pod(pod)
            self._emptied[place] = node
        for pod, is_absent in zip(self.pods[place], self.absent[place].tolist(), strict=False):
            if not is_absent:
                node = node.with_pod(pod)
        self._latest[place] = state, node
        return node

    def amounts(self, family: str, name: str) -> NDArray[np.int64] | None:
        """Return the amounts of a resource of all pods, like `absent`; None if some are too large to sum."""
        place = family, name
        if place not in self._amounts:
            self._amounts[place] = self._read(REQUESTS[family], name)
        return self._amounts[place]

    def counted(self, key: Hashable, amounts_of: AmountsOf) -> NDArray[np.int64]:
        """Return the amounts of all pods, like `absent`; `key` stands for `amounts_of`."""
        found = self._counted.get(key)
        if found is None:
            found = np.zeros(self.absent.shape, np.int64)
            for place, (row, pods) in enumerate(zip(self.rows.tolist(), self.pods, strict=True)):
                amounts = amounts_of(row, pods, False)
                if amounts:
                    found[place, : len(pods)] = amounts
            self._counted[key] = found
        return found

    def _read(self, attribute: str, name: str) -> NDArray[np.int64] | None:
        found = np.zeros(self.absent.shape, np.int64)
        requests = list(map(attrgetter(attribute), chain.from_iterable(self.pods)))
        # Many pods share one object. Hashing its amounts would take longer than reading them.
        known = dict(zip(map(id, requests), requests, strict=True))
        amounts = {key: each.amounts().get(name, 0) for key, each in known.items()}
        if max(amounts.values(), default=0) > MAX_SUMMED:
            return None
        found[self._places] = list(map(amounts.__getitem__, map(id, requests)))
        return found


class ThinnedPart:
    """Some of the nodes, each in a what-if of its own."""

    has_more = False

    def __init__(self, nodes: ThinnedNodes, places: NDArray[np.intp]) -> None:
        self.base = nodes.snapshot
        self.rows: Rows = nodes.rows[places]
        self._nodes = nodes
        self._places = places

    def info(self, row: int) -> NodeInfo:
        return self._nodes.info(row)

    def removed(self, key: Hashable, amounts_of: AmountsOf) -> Int64Column:
        amounts, absent = self._nodes.counted(key, amounts_of)[self._places], self._nodes.absent[self._places]
        found: Int64Column = np.where(absent, amounts, 0).sum(axis=1)
        return found

    def cells(self, family: str, name: str) -> Int64Column:
        nodes, rows = self._nodes, self.rows
        absent = nodes.absent[self._places]
        if family == "pods":
            counts: Int64Column = nodes.snapshot.pod_counts[rows] - absent.sum(axis=1)
            return counts
        before: Int64Column = getattr(nodes.snapshot, family)(name)[rows]
        if family not in REQUESTS:
            return before
        amounts = nodes.amounts(family, name)
        if amounts is None or before.max(initial=0) > MAX_SUMMED:
            infos = map(nodes.info, rows.tolist())
            exact = [getattr(info, family).amount(name) for info in infos]
            return np.array(exact, np.int64)
        left: Int64Column = before - np.where(absent, amounts[self._places], 0).sum(axis=1)
        return left
