"""Identity tests: tests in `fit` that read names of cards or the node, but nothing that pods change.

They run first, once per node and the part of the pod that they read. What they read is no part of the `facts`
in which nodes may differ: their answers are.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeGuard

from kdsl.check.model.devices import CheckedTest, FitStep
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    CallFn,
    CallOf,
    Comprehension,
    FieldOf,
    HasField,
    Macro,
    Typed,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import BindingTime
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, Value
from kdsl.plan.devices.facts import (
    ANY,
    NAMES,
    NODE_FIELDS,
    VIEWS,
    fields_read,
    hands_over,
    pod_parts,
    values_of,
)
from kdsl.plan.devices.reads import POD_FIELDS, needs, parts
from kdsl.plan.devices.section import DeviceSource

IdentityAnswer = tuple[bool | str, ...]
"""The answers of the identity tests about a card; a text is an error."""
IdentityAnswers = Mapping[str, IdentityAnswer]
"""The answers by name of card."""
NO_ANSWERS: Final[IdentityAnswers] = MappingProxyType({})

EQUAL_FIELDS: Final = frozenset(
    ("id", "index", "kind", "type", "numa", "mode", "healthy", "slots", "memory", "cores")
)
"""Fields of `Device` that no pod changes, and that are equal in cards of one shape, but for the name."""
FIXED_FIELDS: Final = EQUAL_FIELDS | {"attributes"}
"""Fields of `Device` that no pod changes."""
_NAMES: Final = NAMES.union(NODE_FIELDS) - {"DeviceNode.requested"}


class IdentityGroup:
    """Compiled identity tests. `fields` are those of a card that they read."""

    def __init__(self, tests: Sequence[CheckedTest], source: DeviceSource) -> None:
        scope = source.device.fit.scope
        read = needs([test.condition for test in tests], {})
        self.reads_node, self._reads_policy = (scope[name].slot in read for name in ("node", "policy"))
        names = {**scope, "node": replace(scope["node"], time=BindingTime.POD)} if self.reads_node else scope
        self.section = source.section(names)
        self._tests = [self.section.compile(test.condition) for test in tests]
        exprs = tuple(self.section.exprs)
        self._part = pod_parts(exprs)
        self.fields = tuple(sorted({part.field for part in parts(*exprs) if _is_of_card(part)} - {"id"}))
        of_pod = frozenset((scope["pod"].slot, scope["policy"].slot))
        lists = [each for expr in exprs for each in _lists(expr, of_pod)]
        known = [self.section.compile(each) for each in lists if each is not None]
        # The lists of the pod in which tests look for the name of a card; None if they do more with it.
        self._lists = None if self.reads_node or None in lists else known

    def sought(self, frame: Frame) -> list[Iterable[Value]] | None:
        """Return the lists of a pod in which tests look for the names of cards; None where these do not
        decide, or one has no value.
        """
        if self._lists is None:
            return None
        found: list[Iterable[Value]] = []
        try:
            for each in self._lists:
                self.section.rewind(frame)
                found.append(each(frame))
        except EvalError:
            return None
        return found

    def signature(self, pod: DevicePod, policy: Policy) -> Hashable:
        """Return the values of the pod that decide about the answers."""
        return values_of(pod, self._part), policy if self._reads_policy else None

    def frame(self, pod: DevicePod, policy: Policy) -> Frame:
        """Return a frame for all cards of one pod."""
        return self.section.frame(pod=pod, policy=policy)

    def answers(self, frame: Frame, node: DeviceNode, cards: Sequence[Card]) -> tuple[IdentityAnswer, ...]:
        """Run the tests on each card of a node."""
        if not self._tests:
            return ((),) * len(cards)
        if self.reads_node:
            # Values that do not depend on the card are computed once per node.
            frame = frame.copy()
            self.section.fill(frame, node=node)
        return tuple([self._answer(frame, card) for card in cards])

    def _answer(self, frame: Frame, card: Card) -> IdentityAnswer:
        answer: list[bool | str] = []
        self.section.fill(frame, device=card)
        meter = frame[-1]
        for test in self._tests:
            meter.left = meter.limit
            try:
                answer.append(bool(test(frame)))
            except EvalError as error:
                answer.append(error.message)
        return tuple(answer)


class IdentityTests:
    """The compiled identity tests of a device: its `own`, which read no pod, and those `asked` for each pod.

    The answer about a card has those of `own` first.
    """

    def __init__(self, source: DeviceSource) -> None:
        scope, steps = source.device.fit.scope, source.device.fit.steps
        lets = {step.variable.slot for step in steps if isinstance(step, CheckedLet)}
        tests = [
            step for step in steps if isinstance(step, CheckedTest) and _is_identity_test(step, scope, lets)
        ]
        of_pod = {scope["pod"].slot, scope["policy"].slot}
        own = [test for test in tests if needs([test.condition], {}).isdisjoint(of_pod)]
        asked = [test for test in tests if test not in own]
        self._numbers = {id(test): number for number, test in enumerate((*own, *asked))}
        self.own = IdentityGroup(own, source)
        self.asked = IdentityGroup(asked, source)

    def number(self, step: FitStep) -> int | None:
        """Return the place of a step among the answers; None for a step that is no identity test."""
        return self._numbers.get(id(step))

    def answers(
        self, pod: DevicePod, policy: Policy, node: DeviceNode, cards: Sequence[Card]
    ) -> IdentityAnswers:
        """Run the tests on each card."""
        if not self._numbers:
            return NO_ANSWERS
        own, asked = [
            group.answers(group.frame(pod, policy), node, cards) for group in (self.own, self.asked)
        ]
        return {card.id: one + other for card, one, other in zip(cards, own, asked, strict=True)}


def _lists(expr: TypedExpr, of_pod: frozenset[int]) -> Iterator[TypedExpr | None]:
    """Yield the lists, from these slots alone, in which an expression looks for the name of a card; None for
    another use of the name.
    """
    match expr:
        case CallOf(function="@in", args=(FieldOf(field="id") as name, items)) if (
            _is_of_card(name) and items.type.name in ("list", "map") and free_slots(items) <= of_pod
        ):
            yield items
        case FieldOf(field="id") | HasField(field="id") if _is_of_card(expr):
            yield None
        case _:
            for part in children(expr):
                yield from _lists(part, of_pod)


def _is_of_card(part: Typed) -> TypeGuard[FieldOf | HasField]:
    return isinstance(part, FieldOf | HasField) and part.view == "Device"


def reads_fixed_cards(exprs: Sequence[TypedExpr], cards: int) -> bool:
    """Return whether expressions read of the list in the slot `cards` only `size`, and by `exists` and `all`
    fields that no pod changes: then neither the order nor the use of the cards decides.
    """
    read = unordered = 0
    for part in parts(*exprs):
        match part:
            case Var(slot=slot):
                read += slot == cards
            case CallOf(function="size", args=(Var(slot=slot),)):
                unordered += slot == cards
            case Comprehension(macro=Macro.ALL | Macro.EXISTS, iterable=Var(slot=slot), variables=(_,)):
                unordered += slot == cards
            case FieldOf() | HasField() if part.view == "Device" and part.field not in FIXED_FIELDS:
                return False
    return read == unordered


def reads_only(exprs: Sequence[TypedExpr], fields: Collection[str]) -> bool:
    """Return whether expressions read only these fields of cards."""
    if any(ANY in fields_read(each) for each in exprs):
        return False
    return all(part.field in fields for part in parts(*exprs) if _is_of_card(part))


def _is_identity_test(test: CheckedTest, scope: Mapping[str, Var], lets: Collection[int]) -> bool:
    """Return whether a test reads names, and beside them only fixed fields of cards, the policy and the pod.

    The pod's containers do not count as fixed. `lets` are the slots of the `let`s of `fit`.
    """
    condition = test.condition
    read = set(fields_read(condition))
    if not read or not read <= _NAMES or any(set(fields_read(hole)) for hole in test.reason.holes):
        return False
    fixed = {scope[name].slot for name in ("pod", "node", "policy", "device")}
    changing = {variable.slot for variable in scope.values()}.union(lets) - fixed
    for part in parts(condition):
        if isinstance(part, Var) and part.slot in changing:
            return False
        if isinstance(part, FieldOf | HasField) and (
            (part.view == "Device" and part.field not in EQUAL_FIELDS)
            or (part.view == "DevicePod" and part.field not in POD_FIELDS)
        ):
            return False
        if isinstance(part, CallFn) and hands_over(part.args, VIEWS | {"DevicePod"}):
            return False
    return True
