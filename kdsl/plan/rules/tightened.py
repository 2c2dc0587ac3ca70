"""A predicate with its tightenings as one plugin: a node passes where all of them let it pass.

The cycle knows a predicate by its name, and skips by name too. Were a tightening a plugin of its own, the one
that does not apply would take the other with it; so they are asked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.base.events import EventPattern
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.specs import Narrowed, hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.compile.verdicts import Verdicts
from kdsl.plan.rules.waking import Waking, WakingRule


class Part(Protocol):
    """A predicate, alone: `kdsl.plan.rules.plugins.PredicatePlugin` is one."""

    key: str
    name: str
    site: str
    waking_rule: WakingRule

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None: ...

    def judge(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, verdicts: Verdicts
    ) -> NDArray[np.int32] | None: ...


@dataclass(frozen=True, slots=True)
class _Skipped:
    """The parts that have no opinion on the pod."""

    keys: frozenset[str]


P = TypeVar("P", bound=Part)


class TightenedPlugin(Generic[P]):
    """The first part is the predicate, whose key, name and site it has; the others tighten it, in order."""

    def __init__(self, parts: tuple[P, ...]) -> None:
        self.parts = parts
        self.key, self.name, self.site = parts[0].key, parts[0].name, parts[0].site
        self._skips = f"{self.key}/skipped"
        self._waking = Waking(part.waking_rule for part in parts)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Ask all parts: the first rejection counts, and only where none applies the whole is skipped."""
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
        state.write(self._skips, _Skipped(frozenset(skipped)))
        return Status(Code.SKIP) if len(skipped) == len(self.parts) else narrowed

    def applying(self, state: CycleState) -> tuple[P, ...]:
        """Return the parts that apply, once PreFilter has not skipped all of them."""
        skips = state.get(self._skips)
        skipped = skips.keys if isinstance(skips, _Skipped) else frozenset()
        return tuple(part for part in self.parts if part.key not in skipped)

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        return self._waking.events()

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        return self._waking.is_cured(pod, event)

    @hookimpl
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        verdicts = Verdicts()
        return StatusColumn(self.judge(state, pod, nodes, verdicts), verdicts.table)

    def judge(self, state: CycleState, pod: PodInfo, nodes: NodeSet, verdicts: Verdicts) -> NDArray[np.int32]:
        """Return what `filter` answers for each node, as a number in `verdicts`: every part that applies is
        asked about the nodes that those before it let pass.
        """
        ids = np.zeros(len(nodes), np.int32)
        for part in self.applying(state):
            left = (ids == 0).nonzero()[0]
            found = part.judge(state, pod, nodes.take(left), verdicts) if len(left) else None
            if found is not None:
                ids[left] = found
        return ids
