"""A decision with everything that explains it."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.cycle.decision import Decision
from kdsl.explain.cards import CardsOfNode
from kdsl.explain.findings import Findings
from kdsl.explain.placement import Placement


@dataclass(frozen=True, slots=True)
class Explanation:
    """A `full` decision, what was found out before it, and what follows from it.

    `findings` is None for a pod that never came to its turn, as one that is gated. `wakes` are the events
    that would give the pod another attempt. `changes` are those that were supposed, as text; `before` is the
    decision without them. `cards` are those of the node that a placed pod is on, as the pod found them.

    `home` is the node that the pod has: the decision is the one it would get if it were taken off and had to
    wait again. Empty for a pod that waits.
    """

    decision: Decision
    findings: Findings | None
    placement: Placement | None
    wakes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    before: Decision | None = None
    cards: CardsOfNode | None = None
    home: str = ""
