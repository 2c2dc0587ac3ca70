"""Checked expressions to closures: the one place that handles every kind of expression node.

It compiles any checked expression, usually after the passes. A level of nesting costs at most three Python
frames, here and in the modules it calls: the parser admits 250 levels.
"""

from __future__ import annotations

from collections.abc import Hashable

from kdsl.check.model.rule_set import ExternalFn, Fns
from kdsl.check.model.typed import (
    UNDECLARED,
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    ListOf,
    MapOf,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import UINT
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.functions.dispatch import dispatcher
from kdsl.eval.ir import EAGER, free_slots
from kdsl.eval.scalar.access import (
    CARDS,
    NODES,
    CardsOf,
    compile_field,
    compile_key,
    compile_list,
    compile_map,
    compile_method,
    compile_presence,
)
from kdsl.eval.scalar.aggregate import compile_aggregate
from kdsl.eval.scalar.comprehensions import compile_comprehension
from kdsl.eval.scalar.external import compile_external
from kdsl.eval.scalar.fast import compile_fast
from kdsl.eval.scalar.frame import UNSET, Closure, Frame, apply, constant, failing, lazy_reader, slot_reader
from kdsl.eval.scalar.logic import LAZY
from kdsl.eval.scalar.meter import has_weight, metered, paying
from kdsl.eval.scalar.over_nodes import Lower, compile_over_nodes, is_over_nodes
from kdsl.eval.scalar.searches import SEARCHES, compile_search
from kdsl.eval.values import NONE, EvalError, Optional, UInt, Value, kind_of
from kdsl.eval.views import VIEW_FUNCTIONS, method_name, method_of


class Compiler:
    """Compiles the expressions of one rule or function, which share a frame.

    `lazy` fills the slots of lazy variables: `let`, `cel.bind` and hoisted parts. `by_item` reads variables
    that depend on the loop items in `follows`. `fns` are the functions of the rule files by qualified name;
    `bodies` caches their compiled bodies for all rules. `lower` compiles macros over nodes; without it they
    visit one node after the other. `questions` are the questions of macros of views; sharing it shares the
    counts. `cards_of` reads the cards of a node; without it nodes have none.
    """

    def __init__(
        self,
        fns: Fns,
        bodies: dict[str, Closure],
        lower: Lower | None = None,
        questions: dict[Hashable, object] | None = None,
        cards_of: CardsOf | None = None,
    ) -> None:
        self.lazy: dict[int, Closure] = {}
        self.by_item: dict[int, Closure] = {}
        self.follows: dict[int, frozenset[int]] = {}
        self._fns = fns
        self._bodies = bodies
        self._lower = lower
        self._questions = {} if questions is None else questions
        self._cards_of = cards_of

    def compile(self, expr: TypedExpr) -> Closure:
        """Compile an expression to a closure over a frame of values."""
        match expr:
            case CallOf():
                return self._call(expr)
            case Const(value=value):
                return constant(UInt(value) if isinstance(value, int) and expr.type == UINT else value)
            case Var():
                return self._variable(expr)
            case FieldOf(field=field) if (
                field == CARDS and self._cards_of and expr.operand.type.name in NODES
            ):
                return apply(self._cards_of, [self.compile(expr.operand)])
            case FieldOf():
                return compile_field(expr, self.compile, self._slot_of)
            case HasField():
                return compile_presence(expr, self.compile)
            case KeyOf():
                return compile_key(expr, self.compile)
            case CallFn():
                return self._fn_call(expr)
            case ListOf():
                return paying(compile_list(expr, self.compile), expr.type)
            case MapOf():
                return paying(compile_map(expr, self.compile), expr.type)
            case Comprehension() if self._lower is not None and is_over_nodes(expr):
                return paying(compile_over_nodes(expr, self.compile, self.needs, self._lower), expr.type)
            case Comprehension():
                return compile_comprehension(expr, self.compile)
            case Aggregate():
                return compile_aggregate(
                    expr, self.compile, self._fns, self._questions, self.needs, self._lower
                )
            case Bind():
                return self._bind(expr)

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        """Return the variables that an expression reads, with loop items for those that depend on them."""
        slots = free_slots(expr)
        following = slots & self.follows.keys()
        return slots.difference(following).union(*(self.follows[slot] for slot in following))

    def _variable(self, expr: Var) -> Closure:
        if expr.slot == UNDECLARED:
            return failing(f"undeclared reference to `{expr.name}`")
        if expr.slot in self.by_item:
            return self.by_item[expr.slot]
        compute = self.lazy.get(expr.slot)
        return slot_reader(expr.slot) if compute is None else lazy_reader(expr.slot, compute)

    def _slot_of(self, expr: TypedExpr) -> int | None:
        """Return the slot of a variable that can be read without a call, such as `node`; else None."""
        if not isinstance(expr, Var) or expr.slot == UNDECLARED:
            return None
        return None if expr.slot in self.by_item or expr.slot in self.lazy else expr.slot

    def _call(self, expr: CallOf) -> Closure:
        if expr.function in LAZY:
            return LAZY[expr.function](expr, self.compile)
        if expr.function in SEARCHES:
            return compile_search(expr, self.compile)
        implementation = IMPLEMENTATIONS.get(expr.overload)
        weighs = has_weight(expr.function, (arg.type for arg in expr.args))
        if implementation is not None:
            fast = compile_fast(expr, self.compile)
            if fast is not None:
                return fast
        elif expr.function in VIEW_FUNCTIONS:
            implementation = VIEW_FUNCTIONS[expr.function]
        elif (name := method_name(expr.function)) is not None and not weighs:
            return compile_method(name, expr.args, self.compile, self._slot_of)
        else:
            implementation = method_of(expr.function) or dispatcher(expr.function, expr.member)
        args = [self.compile(arg) for arg in expr.args]
        if weighs:
            return metered(implementation, args)
        return apply(implementation, args)

    def _fn_call(self, expr: CallFn) -> Closure:
        """Call a function of a rule file, on its own frame with all arguments evaluated; or a plugin's."""
        fn = self._fns[expr.fn]
        if isinstance(fn, ExternalFn):
            return compile_external(fn, [self.compile(arg) for arg in expr.args])
        blank: Frame = [UNSET] * (fn.slots + 1)
        args: list[tuple[int, Closure]] = []
        for param, arg in zip(fn.params, expr.args, strict=True):
            closure = self.compile(arg)
            if isinstance(arg, Const):
                blank[param.slot] = closure(blank)
            else:
                args.append((param.slot, closure))
        body = self._bodies.get(fn.qualified)
        if body is None:
            # INVARIANT: functions are not recursive; the checker ensures it.
            compiler = Compiler(self._fns, self._bodies, self._lower, self._questions, self._cards_of)
            body = self._bodies[fn.qualified] = compiler.compile(fn.body)

        def call(frame: Frame) -> Value:
            inner = blank.copy()
            inner[-1] = frame[-1]
            inner[-1].spend(1)
            for slot, arg in args:
                inner[slot] = arg(frame)
            return body(inner)

        return call

    def _bind(self, expr: Bind) -> Closure:
        """Compile lazy `cel.bind`, `optMap` and `optFlatMap`, and the argument of a call."""
        slot, value = expr.variable.slot, self.compile(expr.value)
        if expr.macro == "bind":
            self.lazy[slot] = value
            body = self.compile(expr.body)

            def bind(frame: Frame) -> Value:
                frame[slot] = UNSET
                return body(frame)

            return bind
        body = self.compile(expr.body)
        if expr.macro == EAGER:

            def call(frame: Frame) -> Value:
                frame[slot] = value(frame)
                return body(frame)

            return call
        is_flat = expr.macro == "optFlatMap"

        def map_optional(frame: Frame) -> Value:
            optional = value(frame)
            if optional.__class__ is not Optional:
                raise EvalError(f"no such overload: {kind_of(optional)} is not an optional")
            if not optional.present:
                return NONE
            frame[slot] = optional.value
            return body(frame) if is_flat else Optional(body(frame))

        return map_optional
