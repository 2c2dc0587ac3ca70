"""The rules of a profile whose answers are kept: one by one, by their own signatures, and together.

Predicates and scores have it in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.memo.answers import UNCACHED, Answers, answers_of
from kdsl.plan.memo.signature_memo import MAX_RULE_BYTES, SignatureMemo
from kdsl.plan.reads.dependencies import Dependencies, Epoch, reads_node_class_only
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin

P = TypeVar("P", PredicateRule, ScorePlugin)
EarlyAnswer: TypeAlias = Status | Narrowed | None
"""The answer of a rule for all nodes: that of a predicate at PreFilter, or of a score at PreScore."""


class RulePart(Struct, Generic[P], frozen=True, eq=False):
    """A score, a predicate or one of its tightenings. `name` and `position` are those of the whole rule.

    `by_node_class` and `on_usage` describe the reads of a predicate with all its tightenings. So their
    answers are kept together, and the first part that rejects a node gives its status.
    """

    name: str
    position: int
    plugin: P
    by_node_class: bool
    on_usage: bool

    @property
    def is_kept(self) -> bool:
        """Return whether to keep the answers of the rule by itself, for pods that are new to the profile.

        A rule that reads the pods on nodes runs again where they change; over columns that is as fast.
        """
        return not (self.on_usage and self.plugin.is_columnar)

    def answers(self, live: LiveSnapshot) -> Answers:
        """Return answers of this part alone."""
        plugin = self.plugin
        return answers_of(live, plugin.dtype, self.by_node_class, self.on_usage, plugin.can_prefetch)


Group: TypeAlias = tuple[tuple[RulePart[P], ...], Answers]
"""Parts whose answers are kept together, with these answers."""


class RuleEntry(Struct, Generic[P], frozen=True, eq=False):
    """The memo entry of one rule: its early answer, and the parts that apply. Their answers are `UNCACHED` if
    the signature is new, or if none are kept.
    """

    epoch: Epoch
    early: EarlyAnswer
    parts: tuple[tuple[RulePart[P], Answers], ...]

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in self.parts])


class KeptRule(Generic[P]):
    """A rule whose answers can be kept. `ask` returns its early answer; of a rule with several parts
    `applying` then returns those that apply. `uncached` are all parts, without kept answers.

    `memo` has the answers by the signature of the rule. It is None if there is nothing to keep: the early
    answer is always None, and no part keeps its answers.
    """

    def __init__(
        self,
        position: int,
        parts: tuple[P, ...],
        ask: Callable[[CycleState, PodInfo, NodeSet], EarlyAnswer],
        applying: Callable[[CycleState], tuple[P, ...]] | None = None,
    ) -> None:
        self.name = parts[0].name
        self._ask = ask
        self._applying: Callable[[CycleState], tuple[P, ...]] | None = applying
        by_node_class = all(reads_node_class_only(part.rule) for part in parts)
        on_usage = any("node.usage" in part.rule.reads for part in parts)
        self.parts: tuple[RulePart[P], ...] = tuple(
            RulePart(self.name, position, part, by_node_class, on_usage) for part in parts
        )
        self.uncached: tuple[tuple[RulePart[P], Answers], ...] = tuple(zip(self.parts, repeat(UNCACHED)))
        self.reads: frozenset[str] = frozenset().union(*(part.reads for part in parts))
        self._decides_early = any(part.decides_early for part in parts)
        self.memo: SignatureMemo[RuleEntry[P]] | None = None
        if self._decides_early or any(part.is_kept for part in self.parts):
            self.memo = SignatureMemo(self.reads, parts[0].node_steps, MAX_RULE_BYTES)

    def new_entry(self, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> RuleEntry[P]:
        """Return the entry of a signature; without answers if it is new."""
        early: EarlyAnswer = None
        applying = self.parts
        if self._decides_early:
            state = CycleState()
            early = self._ask(state, pod, nodes)
            if isinstance(early, Status) and early.code is Code.SKIP:
                return RuleEntry(epoch, early, ())
            if self._applying is not None:
                keys = [part.key for part in self._applying(state)]
                applying = tuple([part for part in applying if part.plugin.key in keys])
        live = epoch.snapshot
        kept = [(part, part.answers(live) if part.is_kept and not is_new else UNCACHED) for part in applying]
        return RuleEntry(epoch, early, tuple(kept))


class KeptRules(Generic[P]):
    """All rules of a profile whose answers are kept, predicates or scores."""

    def __init__(self, rules: Iterable[KeptRule[P]]) -> None:
        self._rules: tuple[KeptRule[P], ...] = tuple(rules)
        self.reads: frozenset[str] = frozenset().union(*(rule.reads for rule in self._rules))

    def clear(self) -> None:
        """Forget the answers of single rules."""
        for rule in self._rules:
            if rule.memo is not None:
                rule.memo.clear()

    def parts_for(
        self, pod: PodInfo, nodes: NodeSet, is_new: bool
    ) -> tuple[dict[str, Status | Narrowed], list[Group[P]], list[RulePart[P]]]:
        """Return the early answers by rule, and the parts that apply, in order: for a signature that `is_new`
        to the profile each with the answers that its rule keeps, for any other one without answers.
        """
        early: dict[str, Status | Narrowed] = {}
        known: list[Group[P]] = []
        others: list[RulePart[P]] = []
        for rule in self._rules:
            parts = rule.uncached
            if rule.memo is not None:
                entry = rule.memo.of(pod, nodes, rule.new_entry)
                parts = entry.parts
                if entry.early is not None:
                    early[rule.name] = entry.early
            for part, answers in parts:
                if is_new:
                    known.append(((part,), answers))
                else:
                    others.append(part)
        return early, known, others


def grouped(parts: Sequence[RulePart[P]], live: LiveSnapshot, dtype: np.dtype[Any]) -> list[Group[P]]:
    """Return the parts in groups, by their reads of nodes, each with answers to fill."""
    groups: dict[tuple[bool, bool], list[RulePart[P]]] = {}
    for part in parts:
        groups.setdefault((part.by_node_class, part.on_usage), []).append(part)
    found: list[Group[P]] = []
    for how, group in groups.items():
        prefetches = False not in [part.plugin.can_prefetch for part in group]
        found.append((tuple(group), answers_of(live, dtype, *how, prefetches)))
    return found


def can_keep(parts: Iterable[PredicateRule | ScorePlugin]) -> bool:
    """Return whether the answers of a rule can be kept."""
    return all(Dependencies.of(part.reads) is not None for part in parts)
