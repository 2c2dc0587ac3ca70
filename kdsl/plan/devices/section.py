"""One section of a device, compiled: its names, its `let`s and its fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from kdsl.base.span import Span
from kdsl.check.model.devices import CheckedDevice, CheckedFields
from kdsl.check.model.rule_set import CheckedLet, CheckedTemplate
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Const, TypedExpr, Var
from kdsl.cluster.devices.cards import INT32_MAX
from kdsl.cluster.devices.codec import SEPARATORS, shown
from kdsl.eval.scalar import UNSET, Closure, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value, kind_of
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.compiler import Lowering
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.scope import NO_NODE, BodyColumns
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.passes.inline import inline_calls, substitute
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.template import Text, compile_template
from kdsl.plan.devices.device_error import DeviceError, located

_SEPARATORS: Final = frozenset(SEPARATORS)
OPEN_DEPTH: Final = 8
"""The deepest nesting of calls that analyses look into."""
FIRST_OPEN: Final = 1_000_000
"""The first slot of variables of analyses, above those of frames."""
_MOST_PARTS: Final = 2_000
"""The most parts of an expression with its `let`s: each use of a `let` is a copy of its value."""


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """The source of a device's sections: the device, its kind, and the functions of rules."""

    device: CheckedDevice
    kind: str
    functions: CompiledFunctions

    def section(self, names: Mapping[str, Var]) -> Section:
        """Return a new section with names that are filled in frames."""
        return Section(names, self.device, self.functions)

    def fields(self, checked: CheckedFields, section: Section | None = None) -> FieldsProgram:
        """Compile a block of fields, in a section of its own or in this one."""
        return FieldsProgram(checked, section or self.section(checked.scope))


class Section:
    """The compiler of the expressions of one section; its names are filled in frames."""

    def __init__(self, names: Mapping[str, Var], device: CheckedDevice, functions: CompiledFunctions) -> None:
        self._scope = RuleScope(names, device.params, device.slots, functions)
        self._functions = functions
        self._slots = {name: variable.slot for name, variable in names.items()}
        self._given: dict[int, TypedExpr] = {variable.slot: variable for variable in names.values()}
        self._given |= {
            param.variable.slot: param.value for param in device.params if isinstance(param.value, Const)
        }
        self._resets: list[int] = []
        self._new_frame: Callable[..., Frame] | None = None
        self.exprs: list[TypedExpr] = []
        """The compiled expressions, with functions inlined."""

    def compile(self, expr: TypedExpr) -> Closure:
        return self.closure(self.optimised(expr))

    def optimised(self, expr: TypedExpr) -> TypedExpr:
        """Return the expression as both back ends compile it."""
        return self._scope.optimised(self._inlined(expr))

    def closure(self, expr: TypedExpr) -> Closure:
        """Compile an `optimised` expression."""
        return self._scope.closure(expr)

    def columns(self, *varying: str) -> CardLowering:
        """Return a compiler over columns; the values of these names differ from card to card."""
        return CardLowering(self._scope, self._functions, [self._slots[name] for name in varying])

    def maybe(self, expr: TypedExpr | None) -> Closure | None:
        return None if expr is None else self.compile(expr)

    def template(self, template: CheckedTemplate) -> str | Text:
        self.exprs += template.holes
        return compile_template(template, self._scope)

    def let(self, let: CheckedLet) -> int:
        """Declare a `let` and return its slot."""
        slot = self._scope.let(replace(let, value=self._inlined(let.value)))
        if slot is not None:
            self._resets.append(slot)
        return let.variable.slot

    def _inlined(self, expr: TypedExpr) -> TypedExpr:
        """Return the expression with functions inlined and constants folded."""
        scope = self._scope
        # A probe observes expressions as they are written.
        if self._functions.probe is None:
            expr = fold_constants(substitute(expr, self._given, scope.variable), scope)
            expr = inline_calls(expr, self._functions.fns, self._given, scope.variable)
        self.exprs.append(expr)
        return expr

    @property
    def opened(self) -> tuple[TypedExpr, ...]:
        """The expressions with all functions inlined, for analyses of what they read."""
        slots = count(FIRST_OPEN)

        def variable(bound: TypedExpr) -> Var:
            assert isinstance(bound, Var)
            return replace(bound, slot=next(slots))

        exprs = [substitute(expr, self._given, variable) for expr in self.exprs]
        return tuple([inline_calls(each, self._functions.fns, None, variable, OPEN_DEPTH) for each in exprs])

    def keep(self, slots: Collection[int]) -> None:
        """Keep the values of these `let`s as long as the frame."""
        self._resets = [slot for slot in self._resets if slot not in slots]

    def frame(self, **values: Value) -> Frame:
        """Return a frame with names filled. Call it when everything is compiled."""
        if self._new_frame is None:
            self._new_frame = self._scope.frames()
        return self._new_frame(**values)

    @staticmethod
    def rewind(frame: Frame) -> Meter:
        """Reset the steps of a frame, and return the meter that counts them."""
        meter: Meter = frame[-1]
        meter.left = meter.limit
        return meter

    def fill(self, frame: Frame, **values: Value) -> None:
        """Give names other values, and forget the values of `let`s."""
        for name, value in values.items():
            frame[self._slots[name]] = value
        for slot in self._resets:
            frame[slot] = UNSET


class CardLowering:
    """The compiler over columns of a section: the slots in `varying` differ from card to card."""

    def __init__(self, scope: RuleScope, functions: CompiledFunctions, varying: Iterable[int]) -> None:
        self.slots = tuple(varying)
        self._varying = frozenset(self.slots)
        self._needs = scope.needs
        columns = BodyColumns(functions, NO_NODE, self._varying, scope.closure, scope.needs)
        self._lowering = Lowering(columns, frozenset(), self._varying)
        # The values of `let`s that differ from card to card, and the number of their parts.
        self._lets: dict[int, TypedExpr] = {}
        self._sizes: dict[int, int] = {}
        for slot, value in scope.definitions.items():
            if self.varies(value):
                self._sizes[slot] = self._size(value)
                self._lets[slot] = self._with_lets(value) if self._sizes[slot] <= _MOST_PARTS else value

    def lower(self, expr: TypedExpr) -> ColumnClosure:
        """Compile an expression; NotColumnar if it has no form over columns."""
        if self._size(expr) > _MOST_PARTS:
            raise NotColumnar
        return self._lowering.lower(self._with_lets(expr))

    def varies(self, *exprs: TypedExpr) -> bool:
        """Return whether one of some values may differ from card to card."""
        return any(not self._needs(each).isdisjoint(self._varying | self._lets.keys()) for each in exprs)

    def _with_lets(self, expr: TypedExpr) -> TypedExpr:
        # INVARIANT: a `let` binds slots of its own, and is not used inside itself: they need no new names.
        return substitute(expr, self._lets, _same)

    def _size(self, expr: TypedExpr) -> int:
        return sum([self._sizes.get(part.slot, 1) if isinstance(part, Var) else 1 for part in walk(expr)])


class FieldsProgram:
    """A compiled block of fields."""

    def __init__(self, checked: CheckedFields, section: Section) -> None:
        self.section = section
        for let in checked.lets:
            self.section.let(let)
        self.exprs = {name: self.section.optimised(value) for name, value in checked.values.items()}
        self._values = {name: self.section.closure(value) for name, value in self.exprs.items()}
        self._spans = {name: value.span for name, value in checked.values.items()}

    def has(self, name: str) -> bool:
        """Return whether the block sets a field."""
        return name in self._values

    def integer(self, name: str, frame: Frame, default: int = 0) -> int:
        """Return a whole number within 32 bits; EvalError for anything else."""
        value = self.value(name, frame, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, f"must be a whole number, not {kind_word(value)}")
        if not -INT32_MAX - 1 <= value <= INT32_MAX:
            raise self.error(name, "is beyond 32 bits")
        return int(value)

    def amount(self, name: str, frame: Frame, default: int = 0) -> int:
        """Return a whole number within 32 bits that is not negative; EvalError for anything else."""
        value = self.integer(name, frame, default)
        if value < 0:
            raise self.error(name, f"must not be negative, got {value}")
        return value

    def text(self, name: str, frame: Frame, default: str = "") -> str:
        value = self.value(name, frame, default)
        if not isinstance(value, str):
            raise self.error(name, f"must be a text, not {kind_word(value)}")
        return value

    def word(self, name: str, frame: Frame, default: str = "") -> str:
        """Return a text that a record of cards can hold; EvalError for anything else."""
        text = self.text(name, frame, default)
        if not is_word(text):
            raise self.error(name, f"must be a text without any of `{SEPARATORS}`, got `{shown(text)}`")
        return text

    def flag(self, name: str, frame: Frame) -> bool:
        """Return true or false, true if the block does not set it; EvalError for anything else."""
        value = self.value(name, frame, True)
        if not isinstance(value, bool):
            raise self.error(name, f"must be true or false, not {kind_word(value)}")
        return value

    def value(self, name: str, frame: Frame, default: Value) -> Value:
        if name not in self._values:
            return default
        try:
            return self._values[name](frame)
        except EvalError as error:
            raise located(error, self._spans[name], name) from error

    def error(self, name: str, problem: str) -> DeviceError:
        """Return the error that the value of a field is."""
        site = str(self._spans[name]) if name in self._spans else ""
        return DeviceError(f"`{name}` {problem}", site=site, field=name)


def is_word(text: str) -> bool:
    """Return whether a record of cards can hold a text."""
    return bool(text) and _SEPARATORS.isdisjoint(text)


def value_of(read: Closure, frame: Frame, span: Span) -> Value:
    """Return the value of an expression; EvalError, with its place, if it has none."""
    try:
        return read(frame)
    except EvalError as error:
        raise located(error, span) from error


def kind_word(value: Value) -> str:
    """Return the type of a value for a message about JSON."""
    return "null" if value is None else kind_of(value)


def _same(bound: TypedExpr) -> Var:
    assert isinstance(bound, Var)
    return bound
