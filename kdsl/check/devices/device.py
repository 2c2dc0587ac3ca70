"""One device: its statements in their sections, or everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.devices.folding import Folded
from kdsl.check.devices.forms import HANDSHAKE, LOCK, QUOTA, REQUEST, Forms
from kdsl.check.devices.sections import Sections
from kdsl.check.expressions.macros import declare_variable
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.devices import (
    CheckedAnnotation,
    CheckedChooser,
    CheckedDevice,
    CheckedFields,
    CheckedSection,
    CheckedTest,
    CheckedValue,
)
from kdsl.check.model.rule_set import CheckedParam, CheckedSortKey, CheckedTemplate
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import BOOL, DOUBLE, ERROR, INT, STRING, BindingTime, list_of
from kdsl.check.names.declarations import Located
from kdsl.check.names.functions import Functions
from kdsl.check.rules.block import BlockCheck, incomplete, once
from kdsl.check.views.view import Views
from kdsl.lang.device_tree import (
    Admit,
    Annotate,
    Charge,
    Choose,
    DeviceKind,
    Fit,
    HandshakeFields,
    Inventory,
    LockFields,
    QuotaFields,
    Record,
    Request,
    Resource,
)
from kdsl.lang.expression_tree import Expr
from kdsl.lang.tree import Device, OrderBy, Param, Require, Statement, Value

S = TypeVar("S", bound=Statement)

_ONCE: Final = {
    DeviceKind: "kind",
    Record: "record",
    Inventory: "inventory",
    Admit: "admit",
    Request: "request",
    QuotaFields: "quota",
    LockFields: "lock",
    HandshakeFields: "handshake",
    Charge: "charge",
    Fit: "fit",
    OrderBy: "order by",
    Value: "value",
}
_NEEDED: Final = {
    DeviceKind: "requests for its cards would have no name",
    Record: "nobody would know who has which card",
    Inventory: "no node would have a card",
    Request: "no container would request a card",
    Charge: "pods would use no part of their cards",
}
_KEYS: Final = (INT, DOUBLE, STRING, BOOL)
_SORTED: Final = (*_KEYS, *map(list_of, _KEYS), ERROR)
_TOO_FEW: Final = CheckedTemplate(("AllocatedCardsInsufficientRequest",))
"""The reason, as in HAMi, where too few cards fit and the chooser gives none."""


def check_device(
    located: Located[Device], folded: Folded, block: BlockCheck, functions: Functions, views: Views
) -> CheckedDevice | None:
    """Check a device with the devices that it extends; return None if a required section is missing.

    `block` belongs to the file of the device that has the statements. The result is valid only without
    reported errors.
    """
    run = _Run(located, folded, block, functions, views)
    return run.check()


class _Run:
    """One device as it is checked."""

    def __init__(
        self, located: Located[Device], folded: Folded, block: BlockCheck, functions: Functions, views: Views
    ) -> None:
        self._located = located
        self._device = folded.root.declaration
        self._folded = folded
        self._block = block
        self._functions = functions
        self._sections = Sections(block, views)
        self._resources: list[str] = []

    def check(self) -> CheckedDevice | None:
        for kind, word in _ONCE.items():
            once(self._block.diagnostics, self._all(kind), word)
        missing = [(kind, why) for kind, why in _NEEDED.items() if not self._all(kind)]
        name = self._device.name
        for kind, why in missing:
            incomplete(self._block.diagnostics, "device", name.text, name.span, _ONCE[kind], why)
        for statement in self._device.body:
            if isinstance(statement, Param | Resource):
                self._param(statement)
        return None if missing else self._checked()

    def _checked(self) -> CheckedDevice:
        sections, span = self._sections, self._device.name.span
        kind, record = self._one(DeviceKind), self._one(Record)
        request, charge = self._one(Request), self._one(Charge)
        return CheckedDevice(
            name=self._located.name,
            qualified=self._located.qualified,
            kind=self._constant(kind.word, "`kind`"),
            record=self._constant(record.key, "`record`"),
            inventory=sections.inventory(self._one(Inventory)),
            admit=sections.admit(self._maybe(Admit), span),
            request=sections.fields("request", request.body, REQUEST, "the request", request.span),
            quota=self._constants(QuotaFields, "quota", QUOTA),
            lock=self._constants(LockFields, "lock", LOCK),
            handshake=self._constants(HandshakeFields, "handshake", HANDSHAKE),
            charge=sections.charge(charge.body, charge.span),
            gates=self._gates(),
            fit=sections.fit(self._maybe(Fit), span),
            choosers=tuple(self._choosers()),
            order=self._order(),
            value=self._value(),
            annotations=self._annotations(),
            params=tuple(self._block.params),
            resources=tuple(self._resources),
            slots=self._block.frame.size,
            doc=self._located.declaration.doc,
            span=self._located.declaration.span,
        )

    # ---- statements --------------------------------------------------------------------------------------

    def _all(self, kind: type[S]) -> list[S]:
        return [each for each in self._device.body if isinstance(each, kind)]

    def _maybe(self, kind: type[S]) -> S | None:
        return next(iter(self._all(kind)), None)

    def _one(self, kind: type[S]) -> S:
        # INVARIANT: `check` has reported devices without a required section.
        return self._all(kind)[0]

    def _param(self, statement: Param | Resource) -> None:
        """Declare a parameter with the value it has in this device."""
        block, name = self._block, statement.name
        replacement = self._folded.replaced.get(name.text)
        if isinstance(statement, Resource):
            self._resources.append(name.text)
            value = self._constant(statement.value, f"`{name.text}`")
        else:
            value = self._functions.param_value(statement, self._folded.root.home, block.frame)
        if replacement is not None:
            value = self._functions.constant_value(
                replacement.statement.value, value.type, name.text, replacement.home, block.frame
            )
        scope = block.inference.scope
        variable = declare_variable(block.inference, scope, name.text, name.span, value.type, value)
        block.params.append(CheckedParam(variable, value))

    def _constant(self, expr: Expr, what: str) -> TypedExpr:
        """Check a text that is the same for all pods and nodes."""
        typed = self._block.expression(expr, STRING, what)
        self._block.known_by(typed, BindingTime.STATIC, what)
        return typed

    def _constants(
        self, kind: type[QuotaFields | LockFields | HandshakeFields], section: str, forms: Forms
    ) -> CheckedFields:
        """Check a section that a device need not have."""
        statement = self._maybe(kind)
        if statement is None:
            return CheckedFields({}, (), {})
        return self._sections.fields(section, statement.body, forms, f"the {section}", statement.span)

    def _gates(self) -> CheckedSection[CheckedTest]:
        with self._sections.within("gates", self._device.name.span) as scope:
            return CheckedSection(scope, tuple(map(self._sections.test, self._all(Require))))

    def _choosers(self) -> Iterator[CheckedChooser]:
        statements = self._all(Choose)
        for at, statement in enumerate(statements):
            if statement.where is None and at < len(statements) - 1:
                self._block.diagnostics.append(_never_asked(statements[at + 1].span))
            chooser = self._sections.chooser(statement, _TOO_FEW)
            if chooser is not None:
                yield chooser
        if not statements or statements[-1].where is not None:
            name = self._device.name
            why = "no `choose` holds for other pods" if statements else "no card would be chosen"
            incomplete(self._block.diagnostics, "device", name.text, name.span, "choose", why)

    def _order(self) -> CheckedSection[CheckedSortKey]:
        root = self._maybe(OrderBy)
        order, home = self._folded.order or (root, self._folded.root.home)
        with self._block.inside(home), self._sections.within("order", self._device.name.span) as scope:
            keys = tuple(self._sort_key(key.value, key.descending) for key in (order.keys if order else ()))
        return CheckedSection(scope, keys)

    def _sort_key(self, expr: Expr, descending: bool) -> CheckedSortKey:
        value = self._block.expression(expr)
        if value.type not in _SORTED:
            title = "a sort key of cards must be `int`, `double`, `string`, `bool` or a list of one of them"
            diagnostic = Diagnostic(CheckCode.UNFIT_SORT_KEY, title, value.span, f"this is `{value.type}`")
            self._block.diagnostics.append(diagnostic)
        return CheckedSortKey(value, descending)

    def _value(self) -> CheckedValue | None:
        root = self._maybe(Value)
        statement, home = self._folded.value or (root, self._folded.root.home)
        if statement is None:
            return None
        with self._block.inside(home), self._sections.within("value", statement.span) as scope:
            value = self._block.expression(statement.value)
        if value.type not in (INT, DOUBLE, ERROR):
            title = f"a device's value must be `int` or `double`, not `{value.type}`"
            self._block.diagnostics.append(Diagnostic(CheckCode.WRONG_TYPE, title, value.span))
        return CheckedValue(scope, value)

    def _annotations(self) -> CheckedSection[CheckedAnnotation]:
        with self._sections.within("annotate", self._device.name.span) as scope:
            return CheckedSection(scope, tuple(map(self._sections.annotation, self._all(Annotate))))


def _never_asked(span: Span) -> Diagnostic:
    help_ = ("give the `choose` before it a `where`, or put this one first",)
    title = "this `choose` is never used: the one before it always holds"
    return Diagnostic(CheckCode.MISPLACED, title, span, "never used", help=help_)
