"""The reads of nodes for one pod: nodes with equal values of these reads share an answer.

The labels may depend on the pod, as with the keys of its spread constraints; counts in the domain of a node
are reads too. An expression is compiled to a collector, which adds, for one attempt, all reads that the
expression may make of any node. It evaluates values that all nodes share, runs loops over them, and follows
all branches that remain open. It may collect too much, never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Final, Self

from kdsl.check.model.rule_set import CheckedForEach, CheckedLet, CheckedRequire, CheckedStatement
from kdsl.check.model.traversal import children, expressions_of
from kdsl.check.model.typed import (
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    Macro,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import BOOL
from kdsl.eval.ir import is_test
from kdsl.eval.scalar import UNSET, Closure, Frame
from kdsl.eval.scalar.comprehensions import Each, each_of
from kdsl.eval.scalar.meter import spend
from kdsl.eval.views import attribute_of, method_of
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.fields import NodeFact, is_fact, keyed
from kdsl.plan.columns.node_groups import Collect, NodeGroups, NodeReads
from kdsl.plan.columns.scope import ColumnScope
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.compile.stability import COUNTS, is_stable
from kdsl.plan.counts.topology import PodTermCount

_MAX_DEPTH: Final = 64


class NodeReadsCompiler:
    """Compiles expressions to collectors. `known` are variables in the frame with one value for all nodes."""

    def __init__(self, scope: ColumnScope, known: frozenset[int] = frozenset()) -> None:
        self._scope = scope
        self._node = scope.slots.node
        self._known = known
        self._is_inner = False
        self._depth = 0
        # The evaluated expressions, and those that may change between attempts of a signature.
        self._evaluates: list[TypedExpr] = []
        self._changing: list[TypedExpr] = []
        # The facts that are read, as texts.
        self.facts: dict[str, None] = {}
        # Collectors of `let`s by slot, and of functions by name; both with the variables known there.
        self._lets: dict[tuple[int, frozenset[int]], Collect | None] = {}
        self._bodies: dict[tuple[str, int, frozenset[int]], Collect | None] = {}

    def compile(self, expr: TypedExpr) -> Collect | None:
        """Return the collector of an expression, None if it does not read the node."""
        if isinstance(expr, Const) or self._closure(expr) is not None:
            return None
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise NotColumnar
            return self._compile(expr)
        except NotColumnar:
            return unclear
        finally:
            self._depth -= 1

    def compile_all(self, exprs: Iterable[TypedExpr]) -> Collect | None:
        """Return the collector of several expressions."""
        return together(map(self.compile, exprs))

    def _compile(self, expr: TypedExpr) -> Collect | None:
        match expr:
            case Var():
                return self._variable(expr)
            case FieldOf(operand=Var(slot=slot)) | HasField(operand=Var(slot=slot)) if slot == self._node:
                return self._field(expr)
            case CallOf(function="_?_:_"):
                return self._choice(expr)
            case CallOf() | KeyOf() if fact := keyed(expr, self._node):
                return self._key(fact, is_test(expr))
            case CallOf(args=(receiver, *others, Var(slot=slot))) if slot == self._node:
                return self._method(expr, receiver, others)
            case CallFn():
                return self._function(expr)
            case Comprehension():
                return self._comprehension(expr)
        return self.compile_all(children(expr))

    def _closure(self, expr: TypedExpr) -> Closure | None:
        """Return the closure of an expression that all nodes share; None for other expressions."""
        return self._scope.shared_closure(expr, self._known)

    def _shared(self, expr: TypedExpr) -> Closure:
        closure = self._evaluated(expr)
        if closure is None:
            raise NotColumnar
        return closure

    def _evaluated(self, expr: TypedExpr) -> Closure | None:
        """Return the closure as `_closure`, for a collector that evaluates it."""
        closure = self._closure(expr)
        if closure is not None:
            self._note(expr)
        return closure

    def _note(self, expr: TypedExpr) -> None:
        """Remember an evaluated expression, and that it may change unless it is fixed."""
        self._evaluates.append(expr)
        is_item = isinstance(expr, Var) and expr.slot in self._known
        if not (is_item or self._scope.is_fixed(expr)):
            self._changing.append(expr)

    def _with_known(self, slots: Iterable[int]) -> Self:
        other = copy(self)
        other._known = self._known.union(slots)
        return other

    def _inside(self, scope: ColumnScope, known: frozenset[int]) -> Self:
        """Return the compiler for the body of a function."""
        other = copy(self)
        other._scope, other._node, other._known, other._is_inner = scope, scope.slots.node, known, True
        return other

    def _field(self, expr: FieldOf | HasField) -> Collect:
        if not is_fact(expr):
            raise NotColumnar
        self.facts[str(NodeFact(expr.field, None))] = None
        attribute = attribute_of(expr.field)
        return lambda frame, reads: reads.fields.add(attribute)

    def _key(self, fact: NodeFact, is_test: bool) -> Collect:
        assert fact.key is not None
        self.facts[str(fact)] = None
        attribute, key = attribute_of(fact.field), self._shared(fact.key)

        def collect(frame: Frame, reads: NodeReads) -> None:
            (reads.tests if is_test else reads.keys).add((attribute, key(frame)))

        return collect

    def _variable(self, expr: Var) -> Collect | None:
        slot = expr.slot
        definition, place = self._scope.definitions.get(slot), (slot, self._known)
        if slot == self._node or (definition is None and self._node in self._scope.needs(expr)):
            raise NotColumnar
        if place not in self._lets:
            self._lets[place] = None if definition is None else self.compile(definition)
        collect = self._lets[place]
        if collect is None or collect is unclear:
            return collect
        found = collect

        def once(frame: Frame, reads: NodeReads) -> None:
            if slot not in reads.lets:
                reads.lets.add(slot)
                found(frame, reads)

        return once

    def _choice(self, expr: CallOf) -> Collect | None:
        """Return the collector of the branch that all nodes take, or of all parts."""
        condition = self._closure(expr.args[0])
        if condition is None or expr.args[0].type != BOOL or not is_stable(expr.args[0]):
            return self.compile_all(expr.args)
        yes, no = (self.compile(each) or nothing for each in expr.args[1:])
        if yes is nothing and no is nothing:
            return None
        self._evaluates.append(expr.args[0])
        return lambda frame, reads: (yes if condition(frame) else no)(frame, reads)

    def _method(self, expr: CallOf, receiver: TypedExpr, others: list[TypedExpr]) -> Collect:
        """Return the collector of a method that takes the node; see `NodeMethod`."""
        if method_of(expr.function) is None:
            raise NotColumnar
        self.facts[expr.span.text] = None
        target, inputs = self._shared(receiver), [self._shared(each) for each in others]
        name = attribute_of(expr.function.rpartition(".")[2])

        if inputs:
            keys_of = f"{name}_keys"

            def collect_keys(frame: Frame, reads: NodeReads) -> None:
                find = getattr(target(frame), keys_of, None)
                keys = None if find is None else find(*[each(frame) for each in inputs])
                if keys is None:
                    raise NotColumnar
                reads.add_labels(keys)

            return collect_keys
        column_of, range_of = f"{name}_column", f"{name}_range"
        is_count = receiver.type.name in COUNTS
        is_of_rule = not (self._is_inner or self._scope.needs(receiver) & self._known)
        read = target if is_of_rule and isinstance(receiver, Var) else None

        def collect(frame: Frame, reads: NodeReads) -> None:
            value = target(frame)
            keys = getattr(value, "label_keys", None)
            # A label determines a count by topology, however many values it gets.
            if is_count and (keys is None or value.__class__ is PodTermCount):
                reads.counts.append((value, read))
            if keys is not None:
                reads.add_labels(keys)
            elif getattr(value, column_of, None) is not None:
                # The reference keeps the id unique.
                reads.columns[id(value)] = value, column_of, range_of
            else:
                raise NotColumnar

        return collect

    def _function(self, expr: CallFn) -> Collect | None:
        if not any(map(self._scope.is_node, expr.args)):
            return self.compile_all(expr.args)
        fn, node, given = self._scope.call(expr)
        known = [(slot, closure) for slot, arg in given if (closure := self._closure(arg)) is not None]
        self._evaluates += [arg for _, arg in given]
        # Inside, the reads of an argument are unknown.
        self._changing += [arg for _, arg in given if not is_stable(arg)]
        place = (expr.fn, node, frozenset(slot for slot, _ in known))
        if place not in self._bodies:
            inner = self._inside(self._scope.in_fn(fn, node), place[2])
            self._bodies[place] = inner.compile(fn.body)
        collect = self._bodies[place]
        outer = self.compile_all(arg for _, arg in given)
        if collect is None or collect is unclear:
            return collect or outer
        body, blank = collect, [UNSET] * (fn.slots + 1)

        def call(frame: Frame, reads: NodeReads) -> None:
            spend(frame, 1)
            if outer is not None:
                outer(frame, reads)
            own = blank.copy()
            own[-1] = frame[-1]
            for slot, closure in known:
                own[slot] = closure(frame)
            body(own, reads)

        return call

    def _comprehension(self, expr: Comprehension) -> Collect | None:
        found = self._source(expr)
        if found is None:
            return self.compile_all(children(expr))
        source, items = found
        slots = tuple(variable.slot for variable in expr.variables)
        inner = self._with_known(slots)
        collect = inner.compile_all([*(() if expr.where is None else (expr.where,)), expr.body])
        of_items = None if collect is None else for_each(each_of(source.type, items, slots), collect)
        if source is expr.iterable:
            return of_items
        # Lists are seldom empty.
        return collect if collect is unclear else together([self.compile(expr.iterable), of_items])

    def _source(self, expr: Comprehension) -> tuple[TypedExpr, Closure] | None:
        """Return a list or map that all nodes share and that holds all items of a macro; None if unknown."""
        source = expr.iterable
        while (closure := self._evaluated(source)) is None:
            match source:
                # The position of an item in a filtered list is unknown.
                case Comprehension(macro=Macro.FILTER, iterable=items) if len(expr.variables) == 1:
                    source = items
                case Var(slot=slot) if (definition := self._scope.definitions.get(slot)) is not None:
                    source = definition
                case _:
                    return None
        return source, closure

    def of_rule(
        self,
        exprs: Iterable[TypedExpr],
        statements: Iterable[CheckedStatement],
        scope: RuleScope,
    ) -> NodeGroups | None:
        """Return the groups of nodes for all of a rule's expressions; None if it reads more than a few facts
        in any case.
        """
        collect = self.of_parts(exprs, statements, scope) or nothing
        if collect is unclear:
            return None
        slot = scope.transient_slot() if self._changing else scope.kept_slot()
        return NodeGroups(collect, slot, are_of_any_pod=not self._evaluates)

    def of_parts(
        self, exprs: Iterable[TypedExpr], statements: Iterable[CheckedStatement], scope: RuleScope
    ) -> Collect | None:
        """Return the collector of expressions and statements of a rule."""
        optimised = scope.optimised
        return together((self.compile_all(map(optimised, exprs)), self._statements(statements, optimised)))

    def _statements(
        self, statements: Iterable[CheckedStatement], optimised: Callable[[TypedExpr], TypedExpr]
    ) -> Collect | None:
        found: list[Collect | None] = []
        for statement in statements:
            match statement:
                case CheckedRequire(condition=condition, reason=reason):
                    found.append(self.compile_all(map(optimised, (condition, *reason.holes))))
                case CheckedForEach():
                    found.append(self._loop(statement, optimised))
                case CheckedLet():
                    pass
        return together(found)

    def _loop(self, statement: CheckedForEach, optimised: Callable[[TypedExpr], TypedExpr]) -> Collect | None:
        slots = tuple(variable.slot for variable in statement.variables)
        source = optimised(statement.iterable)
        where = () if statement.where is None else (optimised(statement.where),)
        iterable = self._evaluated(source)
        if iterable is None:
            # The items differ by node.
            return self.compile_all(map(optimised, expressions_of(statement)))
        inner, lets = self._with_known(slots), []
        for each in statement.body:
            if isinstance(each, CheckedLet):
                lets.append(each.variable.slot)
                if inner._closure(each.value) is not None:
                    inner._note(each.variable)
                    inner = inner._with_known(lets[-1:])
        collect = together([inner.compile_all(where), inner._statements(statement.body, optimised)])
        if collect is None:
            return None
        body = collect

        def of_item(frame: Frame, reads: NodeReads) -> None:
            for slot in lets:
                frame[slot] = UNSET
            reads.lets.difference_update(lets)
            body(frame, reads)

        return for_each(each_of(statement.iterable.type, iterable, slots), of_item)


# ---- collectors --------------------------------------------------------------------------------------------


def nothing(frame: Frame, reads: NodeReads) -> None:
    """Collect nothing."""


def unclear(frame: Frame, reads: NodeReads) -> None:
    """Refuse: the expression reads more than a few facts."""
    raise NotColumnar


def for_each(each: Each, collect: Collect) -> Collect:
    """Return the collector of all items of a loop."""

    def evaluate(frame: Frame, reads: NodeReads) -> None:
        for _ in each(frame):
            collect(frame, reads)

    return evaluate


def together(collectors: Iterable[Collect | None]) -> Collect | None:
    """Return the collector of all that some collectors add."""
    found = [collect for collect in collectors if collect is not None]
    if unclear in found:
        return unclear
    if len(found) < 2:
        return found[0] if found else None

    def evaluate(frame: Frame, reads: NodeReads) -> None:
        for collect in found:
            collect(frame, reads)

    return evaluate
