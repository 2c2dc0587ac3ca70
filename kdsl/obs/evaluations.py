"""Counts of evaluated rules and their rejections, derived from decisions.

On the scheduling thread a decision only adds a few numbers to one entry of a dictionary. The number of nodes
of each rule follows from the order of the profile, and is computed at the scrape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from msgspec import Struct

from kdsl.cycle.decision import Decision
from kdsl.hooks.table import HookTable
from kdsl.obs.instruments import LabelledNumbers

MAX_KINDS: Final = 512
"""The number of attempt kinds that triggers the computation before the next scrape."""


@dataclass(frozen=True, slots=True)
class ProfileRules:
    """The rules and plugins of a profile by extension point, in its order."""

    pre_filters: tuple[str, ...]
    filters: tuple[str, ...]
    pre_scores: tuple[str, ...]
    scores: tuple[str, ...]
    check_all: bool = False
    scheduler: str = ""

    @staticmethod
    def of(table: HookTable) -> ProfileRules:
        """Return the rules and plugins of a frozen profile."""
        return ProfileRules(
            tuple(name for name, _ in table.pre_filters),
            tuple(name for name, _ in table.filters),
            tuple(name for name, _ in table.pre_scores),
            tuple(hook.plugin for hook in table.scores),
            table.check_all,
            table.scheduler,
        )


class _Attempts(Struct):
    """Attempts of one kind: pods, their visited nodes, scored pods, the scored nodes."""

    pods: int = 0
    nodes: int = 0
    scored_pods: int = 0
    scored_nodes: int = 0


class Evaluations:
    """Counts attempts by kind, and computes evaluations of rules from them."""

    def __init__(
        self,
        questions: LabelledNumbers,
        nodes: LabelledNumbers,
        rejections: LabelledNumbers,
        errors: LabelledNumbers,
    ) -> None:
        self._questions, self._nodes = questions, nodes
        self._rejections, self._errors = rejections, errors
        self._profiles: dict[str, ProfileRules] = {}
        # A scrape reads the counts of the scheduling thread.
        self._lock = Lock()
        self._kinds: dict[tuple[str, tuple[str, ...], str], _Attempts] = {}
        self._rejected: dict[tuple[str, tuple[str, ...]], Counter[str]] = {}

    def adopt(self, tables: Iterable[HookTable]) -> None:
        """Count for these profiles from now on; new rules start at 0."""
        with self._lock:
            self._work_out()
            self._adopt(tables)

    def _adopt(self, tables: Iterable[HookTable]) -> None:
        self._profiles = {table.profile: ProfileRules.of(table) for table in tables}
        for profile, rules in self._profiles.items():
            for point, names in _points(rules):
                for name in names:
                    self._questions.add((point, name, rules.scheduler), 0)
                    self._errors.add((profile, name), 0)
            for name in rules.filters:
                self._nodes.add((profile, name), 0)
                self._rejections.add((profile, name), 0)

    def record(self, decision: Decision) -> None:
        """Count a decision."""
        with self._lock:
            self._record(decision)

    def _record(self, decision: Decision) -> None:
        before = decision.prefilter
        ended_by = "" if before.status is None else before.status.plugin
        key = (decision.profile, before.skipped, ended_by)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MAX_KINDS:
                self._work_out()
            kind = self._kinds.setdefault(key, _Attempts())
        kind.pods += 1
        kind.nodes += decision.evaluated
        if decision.total is not None:
            kind.scored_pods += 1
            kind.scored_nodes += decision.feasible
        if decision.rejections and not ended_by:
            rejected = self._rejected.setdefault(key[:2], Counter())
            for each in decision.rejections:
                if each.plugin:
                    rejected[each.plugin] += each.nodes
        for fault in decision.faults:
            self._errors.add((decision.profile, fault.source))

    def work_out(self) -> None:
        """Compute evaluations from the counted attempts: at a scrape, and at too many kinds of attempts."""
        with self._lock:
            self._work_out()

    def _work_out(self) -> None:
        kinds, self._kinds = self._kinds, {}
        rejected, self._rejected = self._rejected, {}
        asked: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for (profile, skipped, ended_by), kind in kinds.items():
            rules = self._profiles.get(profile)
            if rules is not None:
                self._add_pods(rules, frozenset(skipped), ended_by, kind)
                asked[profile, skipped] += kind.nodes
        for (profile, skipped), nodes in asked.items():
            self._add_nodes(profile, frozenset(skipped), nodes, rejected.get((profile, skipped), Counter()))

    def _add_pods(self, rules: ProfileRules, skipped: frozenset[str], ended_by: str, kind: _Attempts) -> None:
        for name in rules.pre_filters:
            if name not in skipped:
                self._questions.add(("PreFilter", name, rules.scheduler), kind.pods)
            if name == ended_by:
                break
        for name in rules.pre_scores:
            self._questions.add(("PreScore", name, rules.scheduler), kind.scored_pods)
        for name in rules.scores:
            self._questions.add(("Score", name, rules.scheduler), kind.scored_nodes)

    def _add_nodes(self, profile: str, skipped: frozenset[str], nodes: int, rejected: Counter[str]) -> None:
        """Count the nodes that each predicate evaluated: those that passed the predicates before it."""
        rules = self._profiles[profile]
        for name in rules.filters:
            if name not in skipped:
                self._questions.add(("Filter", name, rules.scheduler), nodes)
                self._nodes.add((profile, name), nodes)
            refused = min(rejected.get(name, 0), nodes)
            if refused:
                self._rejections.add((profile, name), refused)
                nodes -= 0 if rules.check_all else refused


def _points(rules: ProfileRules) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        ("PreFilter", rules.pre_filters),
        ("Filter", rules.filters),
        ("PreScore", rules.pre_scores),
        ("Score", rules.scores),
    )
