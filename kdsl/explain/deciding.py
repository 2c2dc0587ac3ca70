"""Finds the parts that decided a condition: compiles them beside it, and evaluates them where it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kdsl.base.quantity import Quantity
from kdsl.base.resources import Resources
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallFn, CallOf, Comprehension, HasField, KeyOf, Macro, TypedExpr, Var
from kdsl.check.model.types import BOOL, QUANTITY, STRING
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.scalar.comprehensions import each_of
from kdsl.eval.values import EvalError, Value
from kdsl.explain.atoms import Atom, Handle, Shown
from kdsl.explain.places import FactPlace, Places
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

Why = Callable[[Frame], tuple[Atom, ...]]
"""Explains the value of a condition in a frame."""

MAX_ATOMS = 4
"""The largest number of atoms that explain one condition."""

_COMPARISONS = {"_<=_": "<=", "_<_": "<", "_>=_": ">=", "_>_": ">", "_==_": "==", "_!=_": "!=", "@in": "in"}
_ARITHMETIC = {"_+_": ("+", 1), "_-_": ("-", 1), "_*_": ("*", 2), "_/_": ("/", 2), "_%_": ("%", 2)}
_NUMERIC = ("int", "uint", "double", "quantity", "duration", "timestamp")


@dataclass(frozen=True, slots=True)
class Deciding:
    """Compiles explanations of conditions in the scope of one rule or function.

    `lets` are the expressions behind names, by slot.
    """

    scope: RuleScope
    functions: CompiledFunctions
    lets: dict[int, TypedExpr] = field(default_factory=dict)

    def why(self, expr: TypedExpr) -> Why:
        """Compile the explanation of a condition's value."""
        match expr:
            case CallOf(function="_&&_" | "_||_" as function, args=args):
                return self._junction(args, decides=function == "_||_")
            case CallOf(function="!_", args=(inner,)):
                return self.why(inner)
            case CallOf(function="_?_:_", args=(condition, yes, no)):
                return self._choice(condition, yes, no)
            case Var(slot=slot) if slot in self.lets and expr.type == BOOL:
                return self.why(self.lets[slot])
            case CallFn(fn=fn) if isinstance(self.functions.fns[fn], CheckedFn):
                return self._call(expr)
            case Comprehension(macro=Macro.ALL | Macro.EXISTS):
                return self._quantified(expr)
        return self._atom(expr)

    def _junction(self, args: tuple[TypedExpr, ...], *, decides: bool) -> Why:
        """Explain `&&` and `||`: a part whose value `decides` does so alone, else all parts do together."""
        parts = [(self.scope.compile(arg), self.why(arg)) for arg in args]

        def why(frame: Frame) -> tuple[Atom, ...]:
            values = [(_truth(value, frame), explain) for value, explain in parts]
            alone = [explain for value, explain in values if value is decides]
            if alone:
                # One true part is enough for `||`; of `&&` every failing part has to change.
                chosen = alone[:1] if decides else alone
            else:
                broken = [explain for value, explain in values if value is None]
                chosen = broken or [explain for _, explain in values]
            return tuple(atom for explain in chosen for atom in explain(frame))[:MAX_ATOMS]

        return why

    def _choice(self, condition: TypedExpr, yes: TypedExpr, no: TypedExpr) -> Why:
        chooses, because = self.scope.compile(condition), self.why(condition)
        branches = {True: (yes, self.why(yes)), False: (no, self.why(no))}

        def why(frame: Frame) -> tuple[Atom, ...]:
            chosen = _truth(chooses, frame)
            if chosen is None:
                return because(frame)
            branch, explain = branches[chosen]
            # A constant branch explains nothing: the condition that chose it does.
            return because(frame) if not branch.reads and not _has_variables(branch) else explain(frame)

        return why

    def _call(self, expr: CallFn) -> Why:
        """Explain a call of a function by its body, in a separate frame."""
        fn = self.functions.fns[expr.fn]
        assert isinstance(fn, CheckedFn)
        scope = RuleScope({}, (), fn.slots, self.functions)
        body = Deciding(scope, self.functions).why(fn.body)
        args = [(param, self._shown(arg)) for param, arg in zip(fn.params, expr.args, strict=True)]
        blank = scope.new_frame()

        def why(frame: Frame) -> tuple[Atom, ...]:
            inner = blank.copy()
            inner[-1] = frame[-1]
            items = []
            for param, show in args:
                shown = show(frame)
                inner[param.slot] = shown.value
                items.append(replace(shown, source=param.name))
            return tuple(replace(atom, items=(*items, *atom.items)) for atom in body(inner))

        return _or_error(why, expr)

    def _quantified(self, expr: Comprehension) -> Why:
        """Explain `all` and `exists` by the first item that decides, or by the only item."""
        slots = tuple(variable.slot for variable in expr.variables)
        each = each_of(expr.iterable.type, self.scope.compile(expr.iterable), slots)
        condition, inner, whole = self.scope.compile(expr.body), self.why(expr.body), self._atom(expr)
        decides = expr.macro is Macro.EXISTS
        variables = expr.variables

        def why(frame: Frame) -> tuple[Atom, ...]:
            found: list[tuple[Atom, ...]] = []
            for _ in each(frame):
                value = _truth(condition, frame)
                if value is decides or len(found) < 2:
                    atoms = with_items(inner(frame), variables, frame)
                    if value is decides:
                        return atoms
                    found.append(atoms)
            return found[0] if len(found) == 1 else whole(frame)

        return _or_error(why, expr)

    def _atom(self, expr: TypedExpr) -> Why:
        """Explain a condition by the values of its operands, or as a whole where it has none to show."""
        if isinstance(expr, CallOf) and expr.function in _COMPARISONS:
            return self._comparison(expr, _COMPARISONS[expr.function])
        value, source = self.scope.compile(expr), _source(expr)
        place = Places(self.functions, self.lets).of(expr)

        def why(frame: Frame) -> tuple[Atom, ...]:
            holds = bool(value(frame))
            return (Atom(source, (Shown(source, holds, BOOL),), holds, handles=_switch(place, holds)),)

        return _or_error(why, expr)

    def _comparison(self, expr: CallOf, operator: str) -> Why:
        left, right = expr.args
        truth, source = self.scope.compile(expr), _source(expr)
        sides = self._operands(left), self._operands(right)
        values = self.scope.compile(left), self.scope.compile(right)
        handles = self._handles(left, operator), self._handles(right, operator)
        is_numeric = left.type.name in _NUMERIC

        def why(frame: Frame) -> tuple[Atom, ...]:
            holds = bool(truth(frame))
            found = values[0](frame), values[1](frame)
            if all(isinstance(value, Resources) for value in found):
                return tuple(_by_resource(source, operator, *found, holds))[:MAX_ATOMS]
            parts = (*_parts(sides[0], frame), f" {operator} ", *_parts(sides[1], frame))
            shortage = None if holds or not is_numeric else _gap(*found)
            able = (*handles[0](frame, found[1]), *handles[1](frame, found[0]))
            return (Atom(source, parts, holds, shortage=shortage, handles=able),)

        return _or_error(why, expr)

    def _operands(self, expr: TypedExpr, level: int = 0) -> list[str | Callable[[Frame], Shown]]:
        """Split arithmetic into its operands, with the parentheses it needs; `level` is the precedence of its
        place.
        """
        if isinstance(expr, CallOf) and expr.function in _ARITHMETIC and expr.type.name in _NUMERIC:
            sign, own = _ARITHMETIC[expr.function]
            left, right = expr.args
            inner = [*self._operands(left, own), f" {sign} ", *self._operands(right, own + 1)]
            return ["(", *inner, ")"] if own < level else inner
        return [self._shown(expr)]

    def _shown(self, expr: TypedExpr) -> Callable[[Frame], Shown]:
        value, source, type_ = self.scope.compile(expr), _source(expr), expr.type
        return lambda frame: Shown(source, value(frame), type_)

    def _handles(self, expr: TypedExpr, operator: str) -> Callable[[Frame, Value], Iterator[Handle]]:
        """Return a function for one side of a comparison: it yields handles that set the side's place to the
        other side.
        """
        found = Places(self.functions, self.lets).of(expr)
        if found is None or operator == "!=":
            return lambda frame, value: iter(())
        place: FactPlace = found
        key = None if place.key is None else self.scope.compile(place.key)

        def handles(frame: Frame, value: Value) -> Iterator[Handle]:
            name = "" if key is None else key(frame)
            for each in _candidates(operator, value):
                yield Handle(place.on, place.field, name, each)

        def keys(frame: Frame, value: Value) -> Iterator[Handle]:
            # `"key" in node.labels`: any value is right.
            if isinstance(value, str):
                yield Handle(place.on, place.field, value, "true")

        return keys if operator == "in" and key is None and expr.type.name == "map" else handles


def _candidates(operator: str, value: Value) -> Iterator[Value]:
    """Yield values for a place that may change a comparison with `value`: `value` and its neighbours."""
    if operator == "in":
        yield from list(value)[:1] if isinstance(value, (tuple, list)) else ()
        return
    yield value
    if type(value) is int:
        yield from (value + 1, value - 1)


def _switch(place: FactPlace | None, holds: bool) -> tuple[Handle, ...]:
    return () if place is None or place.key is not None else (Handle(place.on, place.field, "", not holds),)


def with_items(atoms: tuple[Atom, ...], variables: tuple[Var, ...], frame: Frame) -> tuple[Atom, ...]:
    """Return the atoms with the items of a loop that they are about."""
    items = tuple(Shown(each.name, frame[each.slot], each.type) for each in variables)
    return tuple(replace(atom, items=(*items, *atom.items)) for atom in atoms)


def _parts(operands: list[str | Callable[[Frame], Shown]], frame: Frame) -> Iterator[str | Shown]:
    for each in operands:
        yield each if isinstance(each, str) else each(frame)


def _by_resource(
    source: str, operator: str, left: Resources, right: Resources, holds: bool
) -> Iterator[Atom]:
    """Explain a comparison of resources by the resources that fail it."""
    for name in dict.fromkeys((*left, *right)):
        one, other = left[name], right[name]
        if _COMPARES[operator](one, other) is not holds:
            continue
        parts = Shown(f"{source}[{name}]", one, QUANTITY), f" {operator} ", Shown(name, other, QUANTITY)
        item = Shown("resource", name, STRING)
        yield Atom(source, parts, holds, (item,), None if holds else _gap(one, other))


_COMPARES: Mapping[str, Callable[[Quantity, Quantity], bool]] = {
    "<=": lambda one, other: one <= other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
    ">": lambda one, other: one > other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
}


def _gap(left: Value, right: Value) -> float | None:
    """Return the difference of two numbers as a share of the larger."""
    one, other = (
        float(each.nanos if isinstance(each, Quantity) else each)
        if isinstance(each, (int, float, Quantity))
        else None
        for each in (left, right)
    )
    if one is None or other is None:
        return None
    largest = max(abs(one), abs(other))
    return abs(one - other) / largest if largest else 0.0


def _truth(value: Closure, frame: Frame) -> bool | None:
    try:
        return bool(value(frame))
    except EvalError:
        return None


def _or_error(why: Why, expr: TypedExpr) -> Why:
    """Return an explanation that reports a condition without a value as an error."""
    source = _source(expr)

    def guarded(frame: Frame) -> tuple[Atom, ...]:
        try:
            return why(frame)
        except EvalError as error:
            return (Atom(source, (source,), holds=False, error=error.message),)

    return guarded


def _has_variables(expr: TypedExpr) -> bool:
    return any(isinstance(part, Var) for part in walk(expr))


def _source(expr: TypedExpr) -> str:
    text = " ".join(expr.span.text.split())
    # `has(a.b)` is found by the place of its argument.
    is_presence = isinstance(expr, HasField) or (isinstance(expr, KeyOf) and expr.test)
    return f"has({text})" if is_presence else text
