"""The sections of a device, each checked in a scope of its own on the one frame of the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kdsl.base.diagnostic import Diagnostic, Label, did_you_mean
from kdsl.base.span import Span
from kdsl.check.devices.forms import CHARGE, CHOOSERS, INVENTORY, TARGETS, Forms
from kdsl.check.expressions.guards import NO_FACTS
from kdsl.check.expressions.macros import declare_variable, not_iterable, ranges_over
from kdsl.check.expressions.mismatch import listing
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.devices import (
    AdmitStep,
    CheckedAnnotation,
    CheckedChange,
    CheckedChooser,
    CheckedFields,
    CheckedGate,
    CheckedInventory,
    CheckedSection,
    CheckedTest,
    CheckedTogether,
    FitStep,
)
from kdsl.check.model.rule_set import CheckedLet, CheckedTemplate
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.model.types import DYN, ERROR, INT, QUANTITY, STRING
from kdsl.check.rules.block import BlockCheck
from kdsl.check.views.view import Views, scope_reads, scope_time
from kdsl.lang.device_tree import (
    AdmissionChange,
    Admit,
    Annotate,
    Assign,
    Choose,
    FieldStatement,
    Fit,
    Inventory,
    Together,
)
from kdsl.lang.expression_tree import Expr
from kdsl.lang.tree import AppliesWhen, Let, Name, Require, Template


class Sections:
    """Checks the sections of one device. `block` is in the scope of its parameters."""

    def __init__(self, block: BlockCheck, views: Views) -> None:
        self.block = block
        self._views = views

    @contextmanager
    def within(self, section: str, span: Span) -> Iterator[dict[str, Var]]:
        """Enter the scope of a section; facts proven in it hold there only."""
        block = self.block
        scope = block.inference.scope.child()
        names = {
            name: scope.add(name, type_, scope_time(name), scope_reads(name), span)
            for name, type_ in self._views.scopes[f"device.{section}"].items()
        }
        outer, facts = block.within(scope), block.facts
        try:
            yield names
        finally:
            block.inference, block.facts = outer, facts

    # ---- fields ------------------------------------------------------------------------------------------

    def fields(
        self, section: str, body: Sequence[FieldStatement], forms: Forms, what: str, span: Span
    ) -> CheckedFields:
        """Check a block of fields against the closed table of its section."""
        with self.within(section, span) as scope:
            lets, values = self._assignments(body, forms, what, span)
        return CheckedFields(scope, lets, values)

    def _assignments(
        self, body: Sequence[FieldStatement], forms: Forms, what: str, span: Span
    ) -> tuple[tuple[CheckedLet, ...], Mapping[str, TypedExpr]]:
        lets: list[CheckedLet] = []
        values: dict[str, TypedExpr] = {}
        first: dict[str, Assign] = {}
        unknown: list[str] = []
        for statement in body:
            if isinstance(statement, Let):
                lets.append(self.block.let(statement))
                continue
            name = statement.name.text
            if name not in forms:
                unknown.append(name)
                self.block.diagnostics.append(_no_field(statement.name, forms, what))
            elif name in first:
                self.block.diagnostics.append(_set_twice(statement, first[name]))
            else:
                first[name] = statement
                values[name] = self.block.expression(statement.value, forms[name].type, f"`{name}`")
        missing = [name for name, form in forms.items() if form.required and name not in first]
        # A field whose name has a slip was meant to be set.
        missing = [each for each in missing if not any(did_you_mean(name, (each,)) for name in unknown)]
        if missing:
            title = f"{what} does not set {', '.join(f'`{name}`' for name in missing)}"
            help_ = tuple(f"`set {name} = …`: {forms[name].doc}" for name in missing)
            diagnostic = Diagnostic(CheckCode.INCOMPLETE, title, span, "has no default", help=help_)
            self.block.diagnostics.append(diagnostic)
        return tuple(lets), values

    def inventory(self, statement: Inventory) -> CheckedInventory:
        """Check where the cards of a node are read from."""
        block = self.block
        with self.within("inventory", statement.span) as scope:
            rows = block.expression(statement.rows)
            types = (ERROR,) if rows.type == ERROR else ranges_over(rows.type, 1)
            if types is None:
                block.diagnostics.append(not_iterable(rows))
                types = (ERROR,)
            inner = block.inference.scope.child()
            outer = block.within(inner)
            name = statement.name
            variable = declare_variable(block.inference, inner, name.text, name.span, types[0], rows)
            lets, values = self._assignments(statement.body, INVENTORY, "the inventory", statement.span)
            block.inference = outer
        return CheckedInventory(rows, variable, CheckedFields(scope, lets, values))

    def charge(self, body: Sequence[FieldStatement], span: Span) -> CheckedFields:
        return self.fields("charge", body, CHARGE, "the charge", span)

    # ---- statements --------------------------------------------------------------------------------------

    def admit(self, statement: Admit | None, span: Span) -> CheckedSection[AdmitStep]:
        """Check the admission of a container; the condition of `applies when` holds below it."""
        steps: list[AdmitStep] = []
        with self.within("admit", span) as scope:
            for each in statement.body if statement else ():
                match each:
                    case Let():
                        steps.append(self.block.let(each))
                    case AppliesWhen(condition=condition):
                        typed = self.block.condition(condition, "the condition of `applies when`")
                        self.block.facts |= self.block.guards.when(typed, True)
                        steps.append(CheckedGate(typed, each.span))
                    case Require():
                        steps.append(self.test(each))
                    case AdmissionChange():
                        change = self._change(each)
                        steps += [change] if change else []
                        # Facts proven so far hold for the pod before the change.
                        self.block.facts = NO_FACTS
        return CheckedSection(scope, tuple(steps))

    def _change(self, change: AdmissionChange) -> CheckedChange | None:
        target, block = change.target, self.block
        if target.text not in TARGETS:
            help_ = did_you_mean(target.text, TARGETS) or listing("it can set", list(TARGETS))
            title = f"admission cannot set `{target.text}`"
            block.diagnostics.append(
                Diagnostic(CheckCode.UNKNOWN_FIELD, title, target.span, "not a part of pods", help=help_)
            )
            return None
        if (change.key is not None) != TARGETS[target.text]:
            right = f'{target.text}["key"]' if TARGETS[target.text] else target.text
            title = f"`set {target.text}` is written `set {right} = …`"
            block.diagnostics.append(Diagnostic(CheckCode.MISPLACED, title, target.span))
            return None
        key = None if change.key is None else block.expression(change.key, STRING, "a key")
        where = self._where(change.where)
        # `where` holds where the value is needed.
        facts = block.facts
        if where is not None:
            block.facts |= block.guards.when(where, True)
        if target.text in ("limits", "requests"):
            value = block.expression(change.value)
            if value.type not in (INT, QUANTITY, DYN, ERROR):
                title = f"an amount must be `int` or `quantity`, not `{value.type}`"
                block.diagnostics.append(Diagnostic(CheckCode.WRONG_TYPE, title, value.span))
        else:
            value = block.expression(change.value, STRING, "the value of an annotation")
        block.facts = facts
        return CheckedChange(target.text, key, value, where, change.span)

    def fit(self, statement: Fit | None, span: Span) -> CheckedSection[FitStep]:
        """Check the conditions on a card."""
        steps: list[FitStep] = []
        with self.within("fit", span) as scope:
            for each in statement.body if statement else ():
                match each:
                    case Let():
                        steps.append(self.block.let(each))
                    case Require():
                        steps.append(self.test(each))
                    case Together(by=by, reason=reason):
                        typed = self.block.expression(by)
                        steps.append(CheckedTogether(typed, self.reason(reason), each.span))
        return CheckedSection(scope, tuple(steps))

    def test(self, statement: Require) -> CheckedTest:
        """Check a `require`; its condition holds for the statements after it."""
        block = self.block
        if statement.code is not None:
            title = "a `require` of a device has no code"
            help_ = (f"leave `{statement.code}` out",)
            block.diagnostics.append(Diagnostic(CheckCode.MISPLACED, title, statement.span, help=help_))
        condition = block.condition(statement.condition, "the condition of `require`")
        reason = block.template(statement.reason, block.guards.when(condition, False))
        block.facts |= block.guards.when(condition, True)
        return CheckedTest(condition, reason, statement.span)

    def chooser(self, statement: Choose, default: CheckedTemplate) -> CheckedChooser | None:
        """Check a `choose` line; None for an unknown chooser."""
        name = statement.name
        if name.text not in CHOOSERS:
            help_ = did_you_mean(name.text, CHOOSERS) or listing("there are", list(CHOOSERS))
            title = f"there is no chooser `{name.text}`"
            self.block.diagnostics.append(
                Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, "unknown", help=help_)
            )
            return None
        with self.within("gates", statement.span) as scope:
            where = self._where(statement.where)
            reason = default if statement.reason is None else self.reason(statement.reason)
        what = f"chooser `{name.text}`"
        fields = self.fields("choose", statement.body, CHOOSERS[name.text].fields, what, name.span)
        return CheckedChooser(name.text, where, scope, reason, fields, statement.span)

    def annotation(self, statement: Annotate) -> CheckedAnnotation:
        """Check an `annotate` line, in the scope that is current."""
        key = self.block.expression(statement.key, STRING, "an annotation's key")
        where = self._where(statement.where)
        facts = self.block.facts
        if where is not None:
            self.block.facts |= self.block.guards.when(where, True)
        value = self.block.expression(statement.value, STRING, "an annotation's value")
        self.block.facts = facts
        return CheckedAnnotation(key, value, where, statement.span)

    def reason(self, reason: Template) -> CheckedTemplate:
        return self.block.template(reason, NO_FACTS)

    def _where(self, condition: Expr | None) -> TypedExpr | None:
        return None if condition is None else self.block.condition(condition, "the condition of `where`")


def _no_field(name: Name, forms: Forms, what: str) -> Diagnostic:
    help_ = did_you_mean(name.text, forms) or listing("it may set", list(forms))
    title = f"{what} has no field `{name.text}`"
    return Diagnostic(CheckCode.UNKNOWN_FIELD, title, name.span, "not a field", help=help_)


def _set_twice(again: Assign, first: Assign) -> Diagnostic:
    label = (Label(first.name.span, "the first is here"),)
    title = f"`{again.name.text}` is set twice"
    return Diagnostic(CheckCode.WRITTEN_TWICE, title, again.name.span, "only one can hold", secondary=label)
