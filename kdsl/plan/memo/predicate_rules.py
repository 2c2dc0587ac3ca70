"""The predicates of a profile, one by one: their parts, and their answers by their own signatures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.memo.answers import Answers, answers_of, is_worth_keeping
from kdsl.plan.memo.signature_memo import MAX_RULE_BYTES, SignatureMemo
from kdsl.plan.reads.dependencies import Dependencies, reads_node_class_only
from kdsl.plan.reads.epochs import Epoch
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.rules.plugins import PredicatePlugin
from kdsl.plan.rules.tightened import TightenedPlugin

Predicate = PredicatePlugin | TightenedPlugin
IDS: Final = np.dtype(np.int32)
"""The type of status numbers."""


@dataclass(frozen=True, slots=True)
class Part:
    """A predicate or tightening, and the name and the position of the predicate.

    `by_node_class` and `on_usage` describe the reads of the predicate with all its tightenings. So their
    answers are kept together, and the first part that rejects a node gives its status.
    """

    name: str
    position: int
    plugin: PredicatePlugin
    by_node_class: bool
    on_usage: bool

    @property
    def is_kept(self) -> bool:
        """Return whether to keep the answers."""
        return is_worth_keeping(self.on_usage, self.plugin.is_columnar)

    def answers(self, live: LiveSnapshot) -> Answers | None:
        """Return answers to fill; None if they are not kept."""
        if not self.is_kept:
            return None
        return answers_of(live, IDS, self.by_node_class, self.on_usage, self.plugin.is_columnar, False)


def _parts_of(position: int, predicate: Predicate) -> list[Part]:
    """Return the parts of a predicate, in order."""
    rules = [part.rule for part in predicate.parts]
    by_node_class = all(map(reads_node_class_only, rules))
    on_usage = any("node.usage" in rule.reads for rule in rules)
    return [Part(predicate.name, position, part, by_node_class, on_usage) for part in predicate.parts]


class RuleEntry(Struct, frozen=True, eq=False):
    """The memo entry of one predicate: its PreFilter answer, and the parts that apply with their answers.

    A part without answers runs for each pod: its signature is new, or its answers are not kept.
    """

    epoch: Epoch
    answer: Status | Narrowed | None
    parts: tuple[tuple[Part, Answers | None], ...]

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in self.parts if answers is not None])


class KeptPredicate:
    """A predicate whose answers can be kept, with its position.

    `memo` has its answers by the signature of the rule. It is None if there is nothing to keep: every pod
    passes PreFilter, and no part keeps its answers.
    """

    def __init__(self, position: int, plugin: Predicate, signatures: Signatures) -> None:
        self.position, self.plugin = position, plugin
        self.parts = tuple(_parts_of(position, plugin))
        self._decides_early = any(part.plugin.decides_early for part in self.parts)
        self.memo: SignatureMemo[RuleEntry] | None = None
        if self._decides_early or any(part.is_kept for part in self.parts):
            steps = self.parts[0].plugin.node_steps
            self.memo = SignatureMemo(reads_of_parts(plugin), signatures, steps, MAX_RULE_BYTES)

    def new_entry(self, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> RuleEntry:
        """Return the entry of a signature; without answers if it is new."""
        answer: Status | Narrowed | None = None
        applying: Iterable[Part] = self.parts
        if self._decides_early:
            state = CycleState()
            answer = self.plugin.pre_filter(state, pod, nodes)
            is_skipped = isinstance(answer, Status) and answer.code is Code.SKIP
            keys = () if is_skipped else [part.key for part in self.plugin.applying(state)]
            applying = [part for part in self.parts if part.plugin.key in keys]
        kept = [(part, None if is_new else part.answers(epoch.snapshot)) for part in applying]
        return RuleEntry(epoch, answer, tuple(kept))


def reads_of_parts(plugin: Predicate) -> frozenset[str]:
    """Return the reads of a predicate with all its tightenings."""
    return frozenset().union(*(part.reads for part in plugin.parts))


def is_kept(plugin: Predicate) -> bool:
    """Return whether the answers of a predicate can be kept."""
    return all(Dependencies.of(part.reads) is not None for part in plugin.parts)
