"""Why cards of a node are given or refused: the devices of a profile run once more, card by card.

A listener records the choice of cards as it is made, so the explanation follows the cycle. The deciding
values of a card come from the parts of the `require` that refused it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kdsl.base.clock import ManualClock
from kdsl.check.model.devices import CheckedDevice, CheckedTest
from kdsl.check.model.rule_set import CheckedLet, CheckedProfile, RuleSet
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.cluster.devices.policy import CARD_POLICY, Policy
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.scalar.meter import Meter, Steps
from kdsl.eval.values import EvalError, Value
from kdsl.explain.atoms import Atom
from kdsl.explain.deciding import Deciding, Why
from kdsl.explain.failed_requires import FailedRequire, broken, explained
from kdsl.hooks.context import NO_ANNOTATIONS
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.template import Text, compile_template, text_in
from kdsl.plan.devices.attempt import UNREGISTERED, ContainerAttempt, Unplaced
from kdsl.plan.devices.demand import Demand, DeviceRequest
from kdsl.plan.devices.fullness import card_score, node_score
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.devices.plugin import DevicesPlugin, compile_devices
from kdsl.plan.devices.reads import parts

READS: Final = frozenset(("pod.annotations", "pod.devices", "node.usage", "node.static", "node.annotations"))
"""The reads that decide whether devices let a pod onto a node, for the search for cures."""
_COUNTED: Final = re.compile(r"(\d+)/\d+ (.+)")
"""A part of a node's reason: the number of its cards that were refused for this."""


class CardOutcome(StrEnum):
    """The outcome for a card. `LEFT`: the card fits, but others were taken; `UNASKED`: it comes after
    those.
    """

    GIVEN = "given"
    REFUSED = "refused"
    LEFT = "left"
    UNASKED = "not asked"


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """One card from the view of a container.

    `fullness` is the value by which the pod's policy orders cards, from 0. `failed` is the `require` that
    refused the card; `grants` are the parts that it gives, several where it is cut.
    """

    card: Card
    fullness: float
    outcome: CardOutcome
    reason: str = ""
    failed: FailedRequire | None = None
    grants: tuple[DeviceGrant, ...] = ()

    @property
    def shortage(self) -> float:
        """Return how far the card is from fitting: see `JudgedNode.shortage`."""
        known = [1.0 if each.shortage is None else each.shortage for each in self.atoms]
        return sum(known) if known else 1.0

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return () if self.failed is None else self.failed.atoms


@dataclass(frozen=True, slots=True)
class ContainerCards:
    """A container's request for one kind of device, and every card of that kind in the order of trying.

    `reason` says why the container gets no cards, empty where it gets them; `failed` is the `require` about
    the node as a whole that does not hold. `order` has the keys of `order by` before the pod's policy,
    empty where the policy decides alone.
    """

    container: str
    request: DeviceRequest
    chooser: str
    order: str
    cards: tuple[CardVerdict, ...]
    reason: str = ""
    failed: FailedRequire | None = None


@dataclass(frozen=True, slots=True)
class CardsOfNode:
    """The cards of a node for one pod, container by container up to the first that gets none.

    `score` is the node's, None where the pod does not get its cards; `fullness` is the fullness of all its
    cards, 0 to 30, the part of the score that does not come from the devices' `value`. `is_own_policy` is
    true if the pod's annotations define the order of cards.
    """

    node: str
    policy: Policy
    is_own_policy: bool
    containers: tuple[ContainerCards, ...]
    reason: str
    fullness: float
    score: float | None

    @property
    def nearest(self) -> CardVerdict | None:
        """Return the refused card that is nearest to fitting."""
        refused = [
            each
            for one in self.containers
            if one.reason
            for each in one.cards
            if each.outcome is CardOutcome.REFUSED
        ]
        return min(refused, key=lambda each: each.shortage, default=None)

    @property
    def failed(self) -> FailedRequire | None:
        """Return the deciding test: the `require` that the node fails as a whole, else the one of its nearest
        card.
        """
        whole = next((one.failed for one in self.containers if one.failed is not None), None)
        nearest = self.nearest
        return whole or (None if nearest is None else nearest.failed)


@dataclass(frozen=True, slots=True)
class RefusedCards:
    """The number of cards of all nodes that are refused for a reason, and of the nodes."""

    reason: str
    cards: int
    nodes: int


def count_refused(reasons: Iterable[tuple[str, int]]) -> tuple[RefusedCards, ...]:
    """Add up the reasons of nodes about their cards, such as `2/8 CardNotHealth, 6/8 CardInsufficientMemory`,
    given with their number of nodes. The most frequent comes first.
    """
    cards: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for text, times in reasons:
        for part in text.split(", "):
            counted = _COUNTED.fullmatch(part)
            if counted is not None:
                cards[counted[2]] += int(counted[1]) * times
                nodes[counted[2]] += times
    ordered = sorted(cards, key=lambda reason: (-cards[reason], reason))
    return tuple(RefusedCards(reason, cards[reason], nodes[reason]) for reason in ordered)


class CardExplainer:
    """Explains the cards of nodes for pods of one profile."""

    def __init__(self, plugin: DevicesPlugin, functions: CompiledFunctions) -> None:
        self._plugin = plugin
        self._functions = functions
        self._checked = {program.kind: program.checked for program in plugin.inventories.programs.values()}
        self._fits: dict[str, _Tests] = {}
        self._gates: dict[str, _Tests] = {}

    @staticmethod
    def of(rules: RuleSet, profile: CheckedProfile, steps: Steps) -> CardExplainer | None:
        """Return an explainer for the cards of a profile, None where it has no devices."""
        plugin = compile_devices(rules, profile, NO_ANNOTATIONS, ManualClock(), steps)
        return None if plugin is None else CardExplainer(plugin, CompiledFunctions(rules.fns, steps=steps))

    @property
    def records(self) -> tuple[str, ...]:
        """Return the annotations of pods that record their cards."""
        return self._plugin.records

    def explain(self, pod: PodInfo, snapshot: Snapshot, row: int) -> CardsOfNode | None:
        """Return the outcome of each card of a node; None for a pod that requests none or may have none."""
        demand = self._plugin.demand(pod, snapshot)
        if not isinstance(demand, Demand):
            return None
        listener = _CardListener(self, demand)
        at = self._plugin.cards_in(snapshot, row)
        reason, score = "" if at.cards else UNREGISTERED, None
        if at.cards:
            try:
                found = place(self._plugin.inventories.programs, demand, at, listener)
                if isinstance(found, Placed):
                    score = float(found.score)
                else:
                    reason = found.reason
            except EvalError as error:
                reason = error.message
        return CardsOfNode(
            node=at.node.name,
            policy=demand.policy,
            is_own_policy=CARD_POLICY in demand.pod.annotations,
            containers=tuple(listener.containers),
            reason=reason,
            fullness=float(node_score(at.cards)),
            score=score,
        )

    def order_of(self, kind: str) -> str:
        """Return the text of the keys of `order by` that do not depend on the policy of the pod."""
        keys = [key for key in self._checked[kind].order.steps if not _reads_policy(key.value)]
        return ", ".join(
            " ".join(key.value.span.text.split()) + (" desc" if key.descending else "") for key in keys
        )

    def fit(self, kind: str) -> _Tests:
        """Return the tests of a kind's cards."""
        if kind not in self._fits:
            device = self._checked[kind]
            steps = [step for step in device.fit.steps if isinstance(step, CheckedLet | CheckedTest)]
            self._fits[kind] = _Tests(device, device.fit.scope, steps, self._functions)
        return self._fits[kind]

    def gates(self, kind: str) -> _Tests:
        """Return the tests of a kind's `require`s about nodes as a whole."""
        if kind not in self._gates:
            device = self._checked[kind]
            self._gates[kind] = _Tests(device, device.gates.scope, device.gates.steps, self._functions)
        return self._gates[kind]


class _Tests:
    """The tests of one section of a device, compiled for explanations."""

    def __init__(
        self,
        device: CheckedDevice,
        names: Mapping[str, Var],
        steps: Sequence[CheckedLet | CheckedTest],
        functions: CompiledFunctions,
    ) -> None:
        self.slots = {name: variable.slot for name, variable in names.items()}
        self._limit = functions.steps.pod
        scope = RuleScope(names, device.params, device.slots, functions)
        deciding = Deciding(scope, functions)
        self._tests: list[tuple[CheckedTest, Closure, Why, str | Text]] = []
        for step in steps:
            if isinstance(step, CheckedLet):
                scope.let(step)
                deciding.lets[step.variable.slot] = step.value
            else:
                condition, why = scope.compile(step.condition), deciding.why(step.condition)
                self._tests.append((step, condition, why, compile_template(step.reason, scope)))
        self._blank = scope.new_frame()

    def why(self, values: Mapping[str, Value]) -> FailedRequire | None:
        """Return the first test that fails with these values for the section's names."""
        frame = self._blank.copy()
        frame[-1] = Meter.of(self._limit)
        for name, value in values.items():
            frame[self.slots[name]] = value
        for test, condition, why, reason in self._tests:
            source = " ".join(test.condition.span.text.split())
            try:
                if condition(frame):
                    continue
            except EvalError as error:
                return broken(source, test.span, error)
            return FailedRequire(
                text_in(reason, frame), test.span.site, source, explained(why, source, frame)
            )
        return None


class _CardListener:
    """A listener that records the outcome of every card, container by container."""

    def __init__(self, explainer: CardExplainer, demand: Demand) -> None:
        self.containers: list[ContainerCards] = []
        self._explainer = explainer
        self._weights = demand.policy.weights
        self._attempt: ContainerAttempt | None = None
        self._chooser = ""
        self._refusals: dict[str, tuple[str, FailedRequire | None]] = {}

    def begins(self, attempt: ContainerAttempt) -> None:
        self._attempt, self._chooser, self._refusals = attempt, "", {}

    def chooses(self, chooser: str) -> None:
        self._chooser = chooser

    def asked(self, card: Card, frame: Frame, reason: str) -> None:
        failed = None
        if reason and self._attempt is not None:
            tests = self._explainer.fit(self._attempt.request.kind)
            failed = tests.why({name: frame[slot] for name, slot in tests.slots.items()})
        self._refusals[card.id] = reason, failed

    def ends(self, found: tuple[DeviceGrant, ...] | Unplaced) -> None:
        s = self._attempt
        assert s is not None
        kind = s.request.kind
        reason, grants = (found.reason, ()) if isinstance(found, Unplaced) else ("", found)
        whole = None
        if reason and not self._refusals:
            whole = self._explainer.gates(kind).why({**s.names, "devices": tuple(s.cards)})
        verdicts = tuple(self._verdict(card, s.request, grants) for card in s.cards)
        order = self._explainer.order_of(kind)
        self.containers.append(
            ContainerCards(s.container.name, s.request, self._chooser, order, verdicts, reason, whole)
        )

    def _verdict(self, card: Card, request: DeviceRequest, grants: Sequence[DeviceGrant]) -> CardVerdict:
        fullness = float(card_score(card, (request,), self._weights))
        given = tuple(grant for grant in grants if grant.id == card.id)
        if given:
            return CardVerdict(card, fullness, CardOutcome.GIVEN, grants=given)
        if card.id not in self._refusals:
            return CardVerdict(card, fullness, CardOutcome.UNASKED)
        reason, failed = self._refusals[card.id]
        outcome = CardOutcome.REFUSED if reason else CardOutcome.LEFT
        return CardVerdict(card, fullness, outcome, reason, failed)


def _reads_policy(key: TypedExpr) -> bool:
    return any(isinstance(part, Var) and part.type.name == "DevicePolicy" for part in parts(key))
