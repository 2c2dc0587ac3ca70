"""A decision with its complete explanation."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.cycle.decision import Decision
from kdsl.explain.cards import CardsOfNode
from kdsl.explain.findings import Findings
from kdsl.explain.placement import Placement


@dataclass(frozen=True, slots=True)
class Explanation:
    """A `full` decision, the findings before it, and its consequences.

    `findings` is None for a pod that never came to its turn, such as a gated one. `wakes` are the events that
    would give the pod another attempt. `changes` are the hypothetical changes, as text; `before` is the
    decision without them. `cards` are the cards of a placed pod's node, before the pod took its own.

    `home` is the node that the pod has: the decision is the one it would get if it were removed and waited
    again. Empty for a pod that waits.
    """

    decision: Decision
    findings: Findings | None
    placement: Placement | None
    wakes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    before: Decision | None = None
    cards: CardsOfNode | None = None
    home: str = ""
