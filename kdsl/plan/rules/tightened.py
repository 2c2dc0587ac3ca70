"""A predicate with its tightenings as one plugin: a node passes if all of them let it pass.

The cycle identifies a predicate by its name, also for skipping. With a plugin per tightening, one that does
not apply would skip the others; so this plugin runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.specs import Narrowed, hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.rules.queueing_hints import QueueingHints

if TYPE_CHECKING:
    from kdsl.plan.rules.plugins import PredicatePlugin


Ask = Callable[[NodeSet], NDArray[np.int32] | None]
"""Returns the number of each node's status by one predicate; None if all pass."""


class TightenedPlugin(QueueingHints):
    """A predicate with its tightenings, in order. The first part gives key, name and site."""

    def __init__(self, parts: tuple[PredicatePlugin, ...]) -> None:
        self.parts = parts
        self.key, self.name, self.site = parts[0].key, parts[0].name, parts[0].site
        self._skips = f"{self.key}/skipped"
        super().__init__(part.hint_rule for part in parts)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Run all parts: the first rejection counts; the plugin skips the pod only if no part applies."""
        skipped: set[str] = set()
        narrowed: Narrowed | None = None
        for part in self.parts:
            answer = part.pre_filter(state, pod, nodes)
            if isinstance(answer, Narrowed):
                # INVARIANT: one part at most narrows, for a tightening cannot.
                narrowed = answer
            elif answer is not None and answer.code is Code.SKIP:
                skipped.add(part.key)
            elif answer is not None:
                return answer
        state.values[self._skips] = frozenset(skipped)
        return Status(Code.SKIP) if len(skipped) == len(self.parts) else narrowed

    def applying(self, state: CycleState) -> tuple[PredicatePlugin, ...]:
        """Return the parts that apply, if PreFilter did not skip all of them."""
        skipped = state.values.get(self._skips)
        if not isinstance(skipped, frozenset):
            return self.parts
        return tuple(part for part in self.parts if part.key not in skipped)

    @hookimpl
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        numbers = StatusNumbers()
        return StatusColumn(self.statuses(state, pod, nodes, numbers), numbers.table)

    def statuses(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32]:
        """Return each node's status as a number in `numbers`; every part gets the nodes that are left."""
        return first_rejections(
            nodes, (partial(part.statuses, state, pod, numbers=numbers) for part in self.applying(state))
        )


def first_rejections(nodes: NodeSet, predicates: Iterable[Ask]) -> NDArray[np.int32]:
    """Return each node's status by the first predicate that rejects it; each gets the nodes that are left."""
    ids = np.zeros(len(nodes), np.int32)
    for ask in predicates:
        left = (ids == 0).nonzero()[0]
        if not len(left):
            break
        found = ask(nodes if len(left) == len(ids) else nodes.take(left))
        if found is not None:
            ids[left] = found
    return ids
