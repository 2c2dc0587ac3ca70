"""What a rule reads of nodes for one pod: nodes of which it reads the same have the same answer.

Which labels those are may depend on the pod, as with the keys of its spread constraints, and what a rule
counts in the domain of a node is read as well. So an expression becomes what finds out, for one attempt, what
the expression may read of any node. It evaluates what all nodes share, goes through loops over it, and
follows the branches that it leaves open; what it finds may be too much, never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kdsl.check.model.rule_set import CheckedForEach, CheckedLet, CheckedRequire, CheckedStatement
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import BOOL
from kdsl.eval.ir import EAGER, free_slots, operands
from kdsl.eval.scalar import UNSET, Closure, Frame
from kdsl.eval.scalar.comprehensions import Each, each_of
from kdsl.eval.scalar.meter import spend
from kdsl.eval.values import EvalError, Value
from kdsl.eval.views import attribute_of, method_of
from kdsl.plan.columns.atoms import is_fact, keyed
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.kinds import Kinds, Look, Sight
from kdsl.plan.columns.rule import ColumnScope

_MAX_DEPTH: Final = 64


class Watcher:
    """Compiles expressions to looks. `known` are variables that hold the same for all nodes once the frame
    has them; `node` is the slot of the node, None where there is none.
    """

    def __init__(self, rule: ColumnScope, node: int | None, known: frozenset[int] = frozenset()) -> None:
        self._rule = rule
        self._node = node
        self._known = known
        self._depth = 0
        # What was compiled for `let`s by slot, and for functions by name; both with what is known there.
        self._lets: dict[tuple[int, frozenset[int]], Look | None] = {}
        self._bodies: dict[tuple[str, int, frozenset[int]], Look | None] = {}

    def look(self, expr: TypedExpr) -> Look | None:
        """Return what looks at an expression, None where it reads nothing of the node."""
        if isinstance(expr, Const) or self._closure(expr) is not None:
            return None
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise NotColumnar
            return self._look(expr)
        except NotColumnar:
            return _unclear
        finally:
            self._depth -= 1

    def looks(self, exprs: Iterable[TypedExpr]) -> Look | None:
        """Return what looks at several expressions."""
        return _together(map(self.look, exprs))

    def _look(self, expr: TypedExpr) -> Look | None:
        match expr:
            case Var(slot=slot):
                return self._variable(slot)
            case FieldOf(operand=Var(slot=slot)) | HasField(operand=Var(slot=slot)) if slot == self._node:
                return _field(expr)
            case CallOf(function="_&&_" | "_||_"):
                return self._connective(expr)
            case CallOf(function="_?_:_"):
                return self._choice(expr)
            case CallOf() | KeyOf() if self._node is not None and (fact := keyed(expr, self._node)):
                assert fact.key is not None
                is_test = expr.test if isinstance(expr, KeyOf) else expr.overload == "in_map"
                return _key(attribute_of(fact.field), self._shared(fact.key), is_test)
            case CallOf(args=(receiver, *others, Var(slot=slot))) if slot == self._node:
                return self._method(expr, receiver, others)
            case CallFn():
                return self._function(expr)
            case Comprehension():
                return self._comprehension(expr)
            case Bind(macro=macro) if macro in ("bind", EAGER):
                return self._bind(expr)
        return self.looks(children(expr))

    def _closure(self, expr: TypedExpr) -> Closure | None:
        """Return what computes an expression that all nodes share; None where it is not known to be one."""
        return self._rule.shared_closure(expr, self._known)

    def _shared(self, expr: TypedExpr) -> Closure:
        closure = self._closure(expr)
        if closure is None:
            raise NotColumnar
        return closure

    def _knowing(self, slots: Iterable[int]) -> Watcher:
        """Return what looks at expressions in which these variables are known as well."""
        return self._inside(Watcher(self._rule, self._node, self._known.union(slots)))

    def _inside(self, inner: Watcher) -> Watcher:
        inner._depth, inner._lets, inner._bodies = self._depth, self._lets, self._bodies
        return inner

    def _variable(self, slot: int) -> Look | None:
        if slot == self._node:
            raise NotColumnar
        definition, place = self._rule.definition(slot), (slot, self._known)
        if place not in self._lets:
            self._lets[place] = None if definition is None else self.look(definition)
        look = self._lets[place]
        if look is None or look is _unclear:
            return look
        found = look

        def once(frame: Frame, sight: Sight) -> None:
            if slot not in sight.lets:
                sight.lets.add(slot)
                found(frame, sight)

        return once

    def _connective(self, expr: CallOf) -> Look | None:
        """Look at operands up to the first that decides for all nodes."""
        decider = expr.function == "_||_"
        steps = [(self._closure(each), self.look(each)) for each in operands(expr)]
        if all(look is None for _, look in steps):
            return None

        def evaluate(frame: Frame, sight: Sight) -> None:
            for closure, look in steps:
                if look is not None:
                    look(frame, sight)
                elif closure is not None and _is(closure, frame, decider):
                    return

        return evaluate

    def _choice(self, expr: CallOf) -> Look | None:
        """Look at the branch that all nodes take, or at all parts."""
        condition = self._closure(expr.args[0])
        if condition is None or expr.args[0].type != BOOL:
            return self.looks(expr.args)
        yes, no = (self.look(each) or _nothing for each in expr.args[1:])
        if yes is _nothing and no is _nothing:
            return None
        return lambda frame, sight: (yes if condition(frame) else no)(frame, sight)

    def _method(self, expr: CallOf, receiver: TypedExpr, others: list[TypedExpr]) -> Look:
        """Look at what decides a method that is given the node; see `OfNodes`."""
        if method_of(expr.function) is None:
            raise NotColumnar
        target, given = self._shared(receiver), [self._shared(each) for each in others]
        name = attribute_of(expr.function.rpartition(".")[2])

        if given:
            keys_of = f"{name}_keys"

            def look_at_keys(frame: Frame, sight: Sight) -> None:
                find = getattr(target(frame), keys_of, None)
                keys = None if find is None else find(*[each(frame) for each in given])
                if keys is None:
                    raise NotColumnar
                _add_labels(sight, keys)

            return look_at_keys
        column_of, range_of = f"{name}_column", f"{name}_range"

        def look(frame: Frame, sight: Sight) -> None:
            value = target(frame)
            keys = getattr(value, "label_keys", None)
            if keys is not None:
                _add_labels(sight, keys)
                return
            column = getattr(value, column_of, None)
            if column is None:
                raise NotColumnar
            # The value is held, so that no other one gets its id.
            sight.columns[id(value)] = value, column, getattr(value, range_of)

        return look

    def _function(self, expr: CallFn) -> Look | None:
        given = [isinstance(arg, Var) and arg.slot == self._node for arg in expr.args]
        if True not in given:
            return self.looks(expr.args)
        fn = self._rule.fn(expr.fn)
        if given.count(True) > 1:
            raise NotColumnar
        pairs = list(zip(fn.params, expr.args, strict=True))
        node = fn.params[given.index(True)].slot
        known = [(param.slot, closure) for param, arg in pairs if (closure := self._closure(arg)) is not None]
        place = (expr.fn, node, frozenset(slot for slot, _ in known))
        if place not in self._bodies:
            inner = self._inside(_FnWatcher(self._rule, *place[1:]))
            self._bodies[place] = inner.look(fn.body)
        look = self._bodies[place]
        outer = self.looks(arg for param, arg in pairs if param.slot != node)
        if look is None or look is _unclear:
            return look or outer
        body, blank = look, [UNSET] * (fn.slots + 1)

        def call(frame: Frame, sight: Sight) -> None:
            spend(frame, 1)
            if outer is not None:
                outer(frame, sight)
            own = blank.copy()
            own[-1] = frame[-1]
            for slot, closure in known:
                own[slot] = closure(frame)
            body(own, sight)

        return call

    def _comprehension(self, expr: Comprehension) -> Look | None:
        iterable = self._closure(expr.iterable)
        if iterable is None:
            return self.looks(children(expr))
        slots = tuple(variable.slot for variable in expr.variables)
        inner = self._knowing(slots)
        look = _together([None if expr.where is None else inner.look(expr.where), inner.look(expr.body)])
        return None if look is None else _each(each_of(expr.iterable.type, iterable, slots), look)

    def _bind(self, expr: Bind) -> Look | None:
        slot, value = expr.variable.slot, self._closure(expr.value)
        if value is None:
            return self.looks((expr.value, expr.body))
        look = self._knowing([slot]).look(expr.body)
        if look is None:
            return None
        body, bound = look, value

        def bind(frame: Frame, sight: Sight) -> None:
            frame[slot] = bound(frame)
            body(frame, sight)

        return bind

    def of_rule(
        self,
        exprs: Iterable[TypedExpr],
        statements: Iterable[CheckedStatement],
        optimised: Callable[[TypedExpr], TypedExpr],
        slot: Callable[[], int],
    ) -> Kinds | None:
        """Return what looks at all that a rule asks of nodes; None where a few facts are never all of it.

        `optimised` makes its expressions ready, `slot` gives a slot that is `UNSET` in each attempt.
        """
        looks = self.looks(map(optimised, exprs)), self._statements(statements, optimised)
        look = _together(looks) or _nothing
        return None if look is _unclear else Kinds(look, slot())

    def _statements(
        self, statements: Iterable[CheckedStatement], optimised: Callable[[TypedExpr], TypedExpr]
    ) -> Look | None:
        found: list[Look | None] = []
        for statement in statements:
            match statement:
                case CheckedRequire(condition=condition, reason=reason):
                    holes = [part for part in reason.parts if not isinstance(part, str)]
                    found.append(self.looks(map(optimised, (condition, *holes))))
                case CheckedForEach():
                    found.append(self._loop(statement, optimised))
                case CheckedLet():
                    pass
        return _together(found)

    def _loop(self, statement: CheckedForEach, optimised: Callable[[TypedExpr], TypedExpr]) -> Look | None:
        slots = tuple(variable.slot for variable in statement.variables)
        iterable = self._closure(optimised(statement.iterable))
        if iterable is None:
            return _unclear
        inner, lets = self._knowing(slots), []
        for each in statement.body:
            if isinstance(each, CheckedLet):
                lets.append(each.variable.slot)
                if inner._closure(each.value) is not None:
                    inner = inner._knowing(lets[-1:])
        where = None if statement.where is None else inner.look(optimised(statement.where))
        look = _together([where, inner._statements(statement.body, optimised)])
        if look is None:
            return None
        body = look

        def of_item(frame: Frame, sight: Sight) -> None:
            for slot in lets:
                frame[slot] = UNSET
            sight.lets.difference_update(lets)
            body(frame, sight)

        return _each(each_of(statement.iterable.type, iterable, slots), of_item)


class _FnWatcher(Watcher):
    """Compiles parts of the body of a function, whose variables are `known` where its arguments are."""

    def __init__(self, rule: ColumnScope, node: int | None, known: frozenset[int]) -> None:
        super().__init__(rule, node, known)
        self._compiler = rule.fn_compiler()

    def _closure(self, expr: TypedExpr) -> Closure | None:
        return self._compiler.compile(expr) if free_slots(expr) <= self._known else None

    def _knowing(self, slots: Iterable[int]) -> Watcher:
        return self._inside(_FnWatcher(self._rule, self._node, self._known.union(slots)))

    def _variable(self, slot: int) -> Look | None:
        if slot == self._node:
            raise NotColumnar
        return None


def _field(expr: FieldOf | HasField) -> Look:
    if not is_fact(expr):
        raise NotColumnar
    attribute = attribute_of(expr.field)
    return lambda frame, sight: sight.fields.add(attribute)


def _key(attribute: str, key: Closure, is_test: bool) -> Look:
    def look(frame: Frame, sight: Sight) -> None:
        (sight.tests if is_test else sight.keys).add((attribute, key(frame)))

    return look


def _add_labels(sight: Sight, keys: Iterable[str]) -> None:
    for key in keys:
        sight.keys.add(("labels", key))


def _nothing(frame: Frame, sight: Sight) -> None:
    """Look at nothing."""


def _unclear(frame: Frame, sight: Sight) -> None:
    """Look at more than a few facts."""
    raise NotColumnar


def _is(closure: Closure, frame: Frame, wanted: bool) -> bool:
    try:
        value: Value = closure(frame)
    except EvalError:
        return False
    return value is wanted


def _each(each: Each, look: Look) -> Look:
    def evaluate(frame: Frame, sight: Sight) -> None:
        for _ in each(frame):
            look(frame, sight)

    return evaluate


def _together(looks: Iterable[Look | None]) -> Look | None:
    found = [look for look in looks if look is not None]
    if _unclear in found:
        return _unclear
    if len(found) < 2:
        return found[0] if found else None

    def evaluate(frame: Frame, sight: Sight) -> None:
        for look in found:
            look(frame, sight)

    return evaluate
