"""The smallest changes that make a rule let a pod onto a node: found by search, verified by running the
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kdsl.explain.atoms import Atom
from kdsl.explain.judgement import FilterHooks
from kdsl.explain.levers import Amount, ChangedObject, LeverFamily, families
from kdsl.explain.patience import Patience
from kdsl.explain.worlds import RunInput, WorldChange

MAX_QUESTIONS = 400
"""The largest number of rule runs in one search; a search that needs more finds nothing."""

Passes = Callable[[Sequence[WorldChange]], bool]


@dataclass(frozen=True, slots=True)
class Cure:
    """Changes after which `rule` lets the pod onto `node`; all of them are needed."""

    rule: str
    node: str
    kind: ChangedObject
    steps: tuple[WorldChange, ...]


class _TooManyQuestionsError(Exception):
    """A search needed too many rule runs."""


class CureFinder:
    """Finds cures over one world; the search stops when `patience` is over."""

    def __init__(self, world: RunInput, patience: Patience) -> None:
        self._world = world
        self._patience = patience

    def cures(
        self, rule: FilterHooks, row: int, atoms: Iterable[Atom], reads: frozenset[str] | None
    ) -> tuple[Cure, ...]:
        """Return the smallest cure of each kind of change, if any; of freed resources both the amounts and
        the pods to evict.
        """
        node = self._world.snapshot.info(row)
        found: dict[tuple[ChangedObject, bool], Cure] = {}
        for family in families(self._world, node, tuple(atoms), reads):
            key = family.kind, bool(family.amounts) and family.kind is ChangedObject.FREED
            if key not in found:
                steps = self._smallest(family, self._asking(rule, row))
                if steps:
                    found[key] = Cure(rule.name, node.name, family.kind, steps)
        return tuple(sorted(found.values(), key=lambda cure: _KINDS.index(cure.kind)))

    def passes(self, rules: Iterable[FilterHooks], row: int, steps: Sequence[WorldChange]) -> bool:
        """Return whether all `rules` let the pod onto a node after some steps."""
        world, rows = self._world.after(steps), np.array([row], dtype=np.intp)
        return all(not rule.judge(world.pod, world.snapshot, rows).ids[0] for rule in rules)

    def _asking(self, rule: FilterHooks, row: int) -> Passes:
        left = MAX_QUESTIONS

        def passes(steps: Sequence[WorldChange]) -> bool:
            nonlocal left
            left -= 1
            if left < 0 or self._patience.is_over():
                raise _TooManyQuestionsError
            return self.passes((rule,), row, steps)

        return passes

    @staticmethod
    def _smallest(family: LeverFamily, passes: Passes) -> tuple[WorldChange, ...]:
        """Return the steps of a family that are needed; empty where it does not help."""
        try:
            if family.amounts:
                return _closest(family.amounts, passes)
            return _fewest(family.steps, passes)
        except _TooManyQuestionsError:
            return ()


_KINDS = tuple(ChangedObject)


def _fewest(steps: tuple[WorldChange, ...], passes: Passes) -> tuple[WorldChange, ...]:
    """Remove steps, in halves where possible, until every remaining one is needed."""
    if not steps or not passes(steps):
        return ()
    kept = list(steps)
    size = max(1, len(kept) // 2)
    while True:
        at = 0
        while at < len(kept):
            rest = kept[:at] + kept[at + size :]
            if passes(rest):
                kept = rest
            else:
                at += size
        if size == 1:
            return tuple(kept)
        size = max(1, size // 2)


def _closest(amounts: tuple[Amount, ...], passes: Passes) -> tuple[WorldChange, ...]:
    """Choose one amount after the other, as close to its present value as the rule allows."""
    chosen = [amount.least for amount in amounts]

    def steps() -> tuple[WorldChange, ...]:
        return tuple(
            amount.step(value) for amount, value in zip(amounts, chosen, strict=True) if value != amount.most
        )

    if not passes(steps()):
        return ()
    for at, amount in enumerate(amounts):
        chosen[at] = amount.most
        if passes(steps()):
            continue
        good, bad = amount.least, amount.most
        while abs(good - bad) > 1:
            chosen[at] = (good + bad) // 2
            if passes(steps()):
                good = chosen[at]
            else:
                bad = chosen[at]
        chosen[at] = good
    return steps()
