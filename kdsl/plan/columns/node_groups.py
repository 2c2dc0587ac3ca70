"""Groups of nodes from which a rule reads the same values for one pod, so that they share one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, starmap
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdsl.cluster.snapshot.fact_columns import ABSENT, OF_PODS, FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.scalar import UNSET, Closure, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.groups import Digit, Groups, few_groups
from kdsl.plan.counts.topology import PodTermCount, TopologyCount

_STEPS: Final = 512
"""The steps for collecting reads; beyond that, columns are as fast."""
_SHARED: Final = 256
"""The most values of a fact that nodes may be grouped by: of more, the nodes of a call hardly share one."""

FactsVersion = tuple[LiveSnapshot, int, int, int]
"""A cluster, and the versions of its facts, nodes and images."""
Numbers = tuple[Value, str, str]
"""An object with a method per node, and the names of that method over columns of ints and of their bounds."""


class ClusterGroups(Struct, frozen=True, eq=False):
    """The groups of all nodes at a version of their facts: the number of its group for each row.

    `codes` is None until the version is asked for again; `number` is 0 if there are more than a few groups.
    """

    version: FactsVersion
    codes: NDArray[np.uint8] | None = None
    number: int = 0

    def groups(self, rows: Rows) -> Groups:
        """Return the groups of some rows."""
        assert self.codes is not None
        codes = self.codes.take(rows)
        text = codes.tobytes()
        firsts = sorted([place for place in map(text.find, range(self.number)) if place >= 0])
        return Groups(codes, [text[place] for place in firsts], firsts)


class NodeReads(Struct, eq=False):
    """The reads of nodes for one pod: attributes, keys of maps (values, or only presence in `tests`), and
    numbers by row. `lets` are the variables that were followed, `counts` those whose numbers are read; the
    closure reads the same count in another attempt, if it is known. `cluster` has the groups of all nodes.
    """

    fields: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    tests: set[tuple[str, str]] = field(default_factory=set)
    columns: dict[int, Numbers] = field(default_factory=dict)
    lets: set[int] = field(default_factory=set)
    counts: list[tuple[TopologyCount | PodTermCount, Closure | None]] = field(default_factory=list)
    cluster: ClusterGroups | None = None

    def hold(self, frame: Frame) -> bool:
        """Return whether they are those of the attempt of a frame, too."""
        try:
            for count, read in self.counts:
                if not (count.is_current() if read is None else read(frame) is count):
                    return False
        except EvalError:
            return False
        return True

    def add_labels(self, keys: Iterable[str]) -> None:
        """Add the labels with these keys."""
        for key in keys:
            self.keys.add(("labels", key))

    def are_equal(self, facts: FactColumns) -> bool:
        """Return whether all nodes are known to have equal values."""
        if self.columns:
            return False
        for name in self.fields:
            if not facts.field(name).is_constant:
                return False
        for place in self.keys:
            if not facts.key(*place).is_constant:
                return False
        for place in self.tests:
            if place not in self.keys and not facts.key(*place).is_everywhere:
                return False
        return True

    def groups(self, batch: Batch) -> Groups | None:
        """Return the groups of the rows of a batch; None if a fact has more than `_SHARED` values, or if
        there are more than a few groups.
        """
        if not self.columns:
            # Read once: other threads may begin anew meanwhile.
            cluster, version = self.cluster, _facts_version(batch.facts.snapshot)
            if cluster is None or cluster.version != version:
                # Numbering all nodes pays only if the facts stay.
                cluster = self.cluster = ClusterGroups(version)
            elif cluster.codes is None:
                cluster = self.cluster = self._groups_of_all(version, batch.facts)
            if cluster.number:
                return cluster.groups(batch.rows)
        digits = self.digits(batch.facts, batch.rows, _SHARED)
        return None if digits is None else few_groups(digits, len(batch))

    def _groups_of_all(self, version: FactsVersion, facts: FactColumns) -> ClusterGroups:
        """Return the groups of all nodes; those of the pods on nodes change too often."""
        live = facts.snapshot
        digits = None if self.fields & OF_PODS else self.digits(facts, live.order, _SHARED)
        groups = None if digits is None else few_groups(digits, len(live.order))
        if groups is None:
            return ClusterGroups(version, np.zeros(0, np.uint8))
        codes = np.zeros(len(live.names), np.uint8)
        codes[live.order] = groups.spread(range(len(groups.marks)), np.uint8)
        return ClusterGroups(version, codes, len(groups.marks))

    def digits(self, facts: FactColumns, rows: Rows, most: int) -> list[Digit] | None:
        """Return the digits in which some rows may differ; None if a fact has more than `most` values."""
        digits: list[Digit] = []
        for column in chain(map(facts.field, self.fields), starmap(facts.key, self.keys)):
            if len(column.values) > most:
                return None
            if not column.is_constant:
                digits.append(column.digit(rows))
        for place in self.tests - self.keys:
            held = facts.key(*place)
            if not held.is_everywhere:
                digits.append((held.codes.take(rows) != ABSENT, 2))
        for value, column_of, range_of in self.columns.values():
            least, largest = getattr(value, range_of)
            values = getattr(value, column_of)(rows) if least < largest else least
            if isinstance(values, np.ndarray):
                digits.append((values - least if least else values, largest - least + 1))
        return digits


Collect = Callable[[Frame, NodeReads], None]
"""Adds the possible reads of an expression to `NodeReads`; EvalError or NotColumnar if they are unknown."""


class NodeGroups:
    """Groups the rows of a batch that share an answer. `slot` holds the reads of nodes for the attempt; those
    of any pod are kept here.
    """

    def __init__(self, collect: Collect, slot: int, are_of_any_pod: bool) -> None:
        self._collect = collect
        self._slot = slot
        self._are_of_any_pod = are_of_any_pod
        self._reads: NodeReads | None = None

    def groups(self, batch: Batch) -> Groups | None:
        """Return the groups of rows; None if they cannot be grouped, or if columns are as fast."""
        frame = batch.frame
        reads = self._reads or frame[self._slot]
        if reads is UNSET or reads is None or not reads.hold(frame):
            reads = frame[self._slot] = collected_reads(self._collect, frame)
            if self._are_of_any_pod:
                self._reads = reads
        return None if reads is None else reads.groups(batch)


def _facts_version(live: LiveSnapshot) -> FactsVersion:
    return live, live.fact_changes.position, live.nodes_version, live.images_version


def collected_reads(collect: Collect, frame: Frame) -> NodeReads | None:
    """Return the reads of nodes for the pod of a frame; None if they are unknown."""
    reads, meter = NodeReads(), frame[-1]
    frame[-1] = Meter(_STEPS, _STEPS)
    try:
        collect(frame, reads)
    except (EvalError, NotColumnar):
        return None
    finally:
        frame[-1] = meter
    return reads


def distinct_digits(collect: Collect | None, batch: Batch) -> list[Digit] | None:
    """Return the digits in which reads of the rows of a batch may differ; None if they are unknown, or if
    hardly any rows share them.
    """
    if collect is None:
        return []
    # A variable that runs out of the steps for collecting must not stay failed.
    reads = collected_reads(collect, batch.frame.copy())
    return None if reads is None else reads.digits(batch.facts, batch.rows, len(batch))
