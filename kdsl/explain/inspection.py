"""Inspects a pod before its decision: runs every rule on every node and searches for remedies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kdsl.base.reasons import shortened
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.model.sharing import DEVICES
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.meter import Steps
from kdsl.explain.atoms import Atom
from kdsl.explain.cards import READS as CARD_READS
from kdsl.explain.cards import CardExplainer, CardsOfNode, RefusedCards, count_refused
from kdsl.explain.cures import Cure, CureFinder
from kdsl.explain.deciding import MAX_ATOMS
from kdsl.explain.failed_requires import ExplainedPredicates, FailedRequire
from kdsl.explain.findings import Findings, JudgedNode, NodeFit, Rejected, RejectionGroup
from kdsl.explain.judgement import Contested, Facts, FilterHooks, Judgement, judge_all, rules_of, with_pods
from kdsl.explain.levers import ChangedObject
from kdsl.explain.patience import Patience
from kdsl.explain.worlds import RunInput, WorldChange
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import HookTable
from kdsl.plan.compile.scope import CompiledFunctions

SHOWN = 10
"""The number of nodes that are listed one by one, unless all are requested."""
MAX_COMPARED = 512
"""The number of nodes that are compared by their shortage: those with the fewest failing rules and
reasons.
"""
MAX_NEAREST = 3
"""The number of nearest nodes for which fits are searched."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The scope of an inspection: `node` requests one node, `everything` all of them.

    Without `is_needed` only the decision is wanted. `home` is the node from which the pod was removed to be
    decided again: then all nodes are inspected. `begin` starts the time limit of the search for remedies.
    """

    node: str = ""
    everything: bool = False
    is_needed: bool = True
    home: str = ""
    begin: Callable[[], Patience] = Patience


def inspect(
    rules: RuleSet,
    table: HookTable,
    pod: PodInfo,
    snapshot: Snapshot,
    contested: Contested,
    steps: Steps,
    inspection: Inspection = Inspection(),
) -> Findings:
    """Run all rules of a profile for `pod` on every node, and search for changes that help."""
    profile = rules.profiles[table.profile]
    asked = rules_of(table)
    inspector = _Inspector(
        asked,
        ExplainedPredicates(profile.predicates, CompiledFunctions(rules.fns, steps=steps)),
        pod,
        snapshot,
        contested,
        judge_all(asked, pod, snapshot, contested),
        CardExplainer.of(rules, profile, steps),
        inspection.begin(),
    )
    return inspector.findings(inspection)


@dataclass(frozen=True, slots=True)
class _Inspector:
    rules: tuple[FilterHooks, ...]
    predicates: ExplainedPredicates
    pod: PodInfo
    snapshot: Snapshot
    contested: Contested
    judgement: Judgement
    cards: CardExplainer | None
    patience: Patience
    facts: dict[str, Facts] = field(default_factory=dict)

    def findings(self, inspection: Inspection) -> Findings:
        counts = self.judgement.counts()
        rejected = np.flatnonzero(counts)
        asked, home = self._named(inspection.node), self._named(inspection.home)
        nearest = self._nearest(counts, inspection.everything)
        is_stuck = len(rejected) == len(counts)
        cures: tuple[Cure, ...] = ()
        fits: tuple[NodeFit, ...] = ()
        if asked is not None:
            cures, fits = self._help({each.rule: asked for each in asked.rejected}, [asked])
        elif is_stuck and nearest:
            cures, fits = self._help(self._by_rule(counts, nearest), nearest[:MAX_NEAREST])
        never = self._any(lambda status: status.code is Code.UNRESOLVABLE and not status.is_error)
        return Findings(
            total=len(counts),
            passing=len(counts) - len(rejected),
            never=int(never.sum()),
            errors=int((self._any(lambda status: status.is_error) & ~never).sum()),
            rules=tuple(rule.name for rule in self.rules),
            groups=self._groups(counts, nearest),
            nodes=nearest,
            asked=asked,
            cures=cures,
            fits=fits,
            cards=self._refused_cards(),
            home=home,
            unfinished=self.patience.ran_out,
        )

    def _named(self, name: str) -> JudgedNode | None:
        """Return the answers of all rules for the node called `name`; None where it does not exist."""
        row = self.snapshot.row_of(name) if name else None
        if row is None:
            return None
        return self._node(int(np.flatnonzero(self.judgement.rows == row)[0]), is_asked=True)

    def _any(self, matches: Callable[[Status], bool]) -> NDArray[np.bool_]:
        """Return for each node whether some rule gives it a status that matches."""
        found = np.zeros(len(self.judgement.rows), dtype=np.bool_)
        for column in self.judgement.columns.values():
            found |= np.array([matches(status) for status in column.table])[column.ids]
        return found

    def _groups(self, counts: NDArray[np.int64], nearest: Sequence[JudgedNode]) -> tuple[RejectionGroup, ...]:
        nodes: Counter[tuple[int, str, str, Code, bool]] = Counter()
        alone: Counter[tuple[int, str, str, Code, bool]] = Counter()
        first: dict[tuple[int, str, str, Code, bool], int] = {}
        for order, column in enumerate(self.judgement.columns.values()):
            used = np.bincount(column.ids, minlength=1)
            only = np.bincount(column.ids[counts == 1], minlength=len(used))
            _, places = np.unique(column.ids, return_index=True)
            for number, place in zip(np.unique(column.ids).tolist(), places.tolist(), strict=True):
                status = column.table[number]
                for reason, site in _reasons(status) if number else ():
                    key = order, reason, site, status.code, status.is_error_in(reason)
                    nodes[key] += int(used[number])
                    alone[key] += int(only[number])
                    first.setdefault(key, place)
        names = tuple(self.judgement.columns)
        groups = [
            (
                RejectionGroup(
                    names[key[0]], key[3], key[1], key[2], nodes[key], alone[key], is_error=key[4]
                ),
                first[key],
            )
            for key in sorted(nodes, key=lambda key: (-nodes[key], key))
        ]
        shown = (self._with_nearest(group, at, nearest) for group, at in groups[:SHOWN])
        return (*shown, *(group for group, _ in groups[SHOWN:]))

    def _with_nearest(
        self, group: RejectionGroup, first: int, nearest: Sequence[JudgedNode]
    ) -> RejectionGroup:
        """Return a group with its nearest node: the first of the listed nodes in it, else its first node."""
        key = group.reason, group.site

        def rejections(node: JudgedNode) -> list[Rejected]:
            of_rule = (each for each in node.rejected if (each.rule, each.code) == (group.rule, group.code))
            return [each for each in of_rule if key in _reasons(each)]

        node = next((node for node in nearest if rejections(node)), None)
        if node is None and self.patience.is_over():
            return group
        node = node or self._node(first)
        failed = tuple(
            each
            for rejected in rejections(node)
            for each in rejected.failed
            if (each.reason, each.site) == key
        )
        return replace(group, nearest=node.node, failed=failed)

    def _nearest(self, counts: NDArray[np.int64], everything: bool) -> tuple[JudgedNode, ...]:
        """Return rejected nodes, the nearest first; the number compared is limited by count and time."""
        by_reasons = np.lexsort((self.judgement.reasons(), counts))
        order = [at for at in by_reasons.tolist() if counts[at]]
        compared = order if everything else order[:MAX_COMPARED]
        judged: list[tuple[JudgedNode, int]] = []
        for at in compared:
            if judged and self.patience.is_over():
                break
            judged.append((self._node(at), at))
        judged.sort(key=lambda pair: (len(pair[0].rejected), pair[0].shortage, pair[1]))
        kept = judged if everything else judged[:SHOWN]
        return tuple(node for node, _ in kept)

    def _refused_cards(self) -> tuple[RefusedCards, ...]:
        column = self.judgement.columns.get(DEVICES)
        if self.cards is None or column is None:
            return ()
        used = np.bincount(column.ids, minlength=len(column.table)).tolist()
        counted = zip(column.table, used, strict=True)
        return count_refused((reason, times) for status, times in counted for reason in status.reasons)

    def _node(self, at: int, is_asked: bool = False) -> JudgedNode:
        row = int(self.judgement.rows[at])
        node = self.snapshot.info(row)
        statuses = tuple(self.judgement.rejections(at))
        cards = None
        if self.cards is not None and (is_asked or any(each.plugin == DEVICES for each in statuses)):
            cards = self._cards_of(row)
        rejected = tuple(self._rejected(status, row, cards) for status in statuses)
        return JudgedNode(node.name, rejected, sum(map(_shortage, rejected)), cards)

    def _cards_of(self, row: int) -> CardsOfNode | None:
        """Return the cards of a node as the pod finds them: without those of nominated pods if need be."""
        assert self.cards is not None
        is_promised = (DEVICES, row) in self.judgement.promised
        return self.cards.explain(self.pod, self._around(row) if is_promised else self.snapshot, row)

    def _rejected(self, status: Status, row: int, cards: CardsOfNode | None) -> Rejected:
        promised = (status.plugin, row) in self.judgement.promised
        if status.plugin == DEVICES and cards is not None:
            known = () if cards.failed is None else (_with_reason_of(cards.failed, status),)
            return _rejection(status, known, promised)
        snapshot = self._around(row) if promised else self.snapshot
        node = snapshot.info(row)
        if (hooks := self._with_facts(status.plugin)) is not None:
            return _rejection(status, self._stated(hooks, status, snapshot, node), promised)
        failed = self.predicates.failures(status.plugin, self.pod, snapshot, node)
        # The rule's answer counts; a reason without a `require` behind it, such as `narrow to`, has no trace.
        confirmed = tuple(each for each in failed if each.site in status.sites)
        return _rejection(status, confirmed, promised)

    def _with_facts(self, plugin: str) -> FilterHooks | None:
        """Return the hooks of a plugin that explains its rejections."""
        return next((each for each in self.rules if each.name == plugin and each.decided_by), None)

    def _stated(
        self, hooks: FilterHooks, status: Status, snapshot: Snapshot, node: NodeInfo
    ) -> tuple[FailedRequire, ...]:
        """Return what decided a plugin's rejection of a node, in the plugin's words."""
        try:
            facts = self._facts(hooks, snapshot)(node)
        except PluginError as error:
            facts = dict.fromkeys(status.reasons, (f"unknown: {error}",))
        return tuple(
            FailedRequire(reason, site, "", tuple(Atom(shortened(each), (), holds=True) for each in known))
            for reason, site in _reasons(status)
            if (known := [each for each in facts.get(reason, ()) if each][:MAX_ATOMS])
        )

    def _facts(self, hooks: FilterHooks, snapshot: Snapshot) -> Facts:
        """Return what decided rejections by a plugin; its PreFilter runs once, even if it fails."""
        if snapshot is not self.snapshot:
            return hooks.facts_about(self.pod, snapshot)
        if hooks.name not in self.facts:
            try:
                self.facts[hooks.name] = hooks.facts_about(self.pod, snapshot)
            except PluginError as error:
                self.facts[hooks.name] = _failing(error)
        return self.facts[hooks.name]

    def _around(self, row: int) -> Snapshot:
        """Return the cluster as the pod finds it on a node: with the pods that are nominated for the node."""
        promised = self.contested.get(row, ())
        return with_pods(self.snapshot, row, promised) if promised else self.snapshot

    def _by_rule(self, counts: NDArray[np.int64], nearest: Sequence[JudgedNode]) -> dict[str, JudgedNode]:
        """Return for each rule the nearest node that it rejects."""
        found: dict[str, JudgedNode] = {}
        for node in nearest:
            for each in node.rejected:
                found.setdefault(each.rule, node)
        for name, column in self.judgement.columns.items():
            rejects = np.flatnonzero(column.ids)
            if name not in found and len(rejects) and not self.patience.is_over():
                found[name] = self._node(int(rejects[np.argmin(counts[rejects])]))
        return {rule.name: found[rule.name] for rule in self.rules if rule.name in found}

    def _help(
        self, by_rule: Mapping[str, JudgedNode], nearest: Iterable[JudgedNode]
    ) -> tuple[tuple[Cure, ...], tuple[NodeFit, ...]]:
        """Find changes that make each rule pass on its node, and all of them on the nearest nodes."""
        known: dict[tuple[str, str], tuple[Cure, ...]] = {}
        found: list[Cure] = []
        fits: list[NodeFit] = []
        for rule, node in by_rule.items():
            found += self._cures(known, node.node, next(each for each in node.rejected if each.rule == rule))
        for node in nearest:
            cures = [self._cures(known, node.node, each) for each in node.rejected]
            fits += self._fits(node.node, cures)
        return tuple(found), tuple(fits)

    def _cures(
        self, known: dict[tuple[str, str], tuple[Cure, ...]], node: str, rejected: Rejected
    ) -> tuple[Cure, ...]:
        key = rejected.rule, node
        if key not in known:
            row = self.snapshot.row_of(node)
            assert row is not None
            rule = next(rule for rule in self.rules if rule.name == rejected.rule)
            finder = CureFinder(RunInput.of(self.pod, self._around(row)), self.patience)
            atoms = [atom for failed in rejected.failed for atom in failed.atoms]
            reads = CARD_READS if rule.name == DEVICES else self.predicates.reads(rule.name)
            known[key] = finder.cures(rule, row, atoms, reads)
        return known[key]

    def _fits(self, node: str, cures: Sequence[tuple[Cure, ...]]) -> Iterable[NodeFit]:
        """Yield combinations of the cures of all failing rules: of one kind where possible, else the first of
        each.
        """
        row = self.snapshot.row_of(node)
        # A node without rejections needs no changes.
        if row is None or not cures or not all(cures):
            return
        finder = CureFinder(RunInput.of(self.pod, self._around(row)), self.patience)
        tried: set[tuple[WorldChange, ...]] = set()
        for kind in ChangedObject:
            chosen = [next((cure for cure in each if cure.kind is kind), each[0]) for each in cures]
            steps = tuple(dict.fromkeys(step for cure in chosen for step in cure.steps))
            if steps not in tried and not self.patience.is_over() and finder.passes(self.rules, row, steps):
                yield NodeFit(node, steps)
            tried.add(steps)


def _failing(error: PluginError) -> Facts:
    """Return a function that raises the error for every node."""

    def fail(node: NodeInfo) -> Mapping[str, Sequence[str]]:
        raise error

    return fail


def _rejection(status: Status, failed: tuple[FailedRequire, ...], promised: bool) -> Rejected:
    return Rejected(
        status.plugin, status.code, status.reasons, status.sites, failed, promised, status.is_error
    )


def _with_reason_of(failed: FailedRequire, status: Status) -> FailedRequire:
    """Return a card's deciding test in the form of the node's answer, which counts cards by reason."""
    site = status.sites[0] if status.sites else ""
    return replace(failed, reason=status.reasons[0] if status.reasons else "", site=site)


def _reasons(status: Status | Rejected) -> Iterable[tuple[str, str]]:
    sites = status.sites or ("",) * len(status.reasons)
    return zip(status.reasons or ("",), sites or ("",), strict=True)


def _shortage(rejected: Rejected) -> float:
    found = [atom.shortage for failed in rejected.failed for atom in failed.atoms if atom.parts]
    known = [1.0 if shortage is None else shortage for shortage in found]
    return sum(known) if known else 1.0
