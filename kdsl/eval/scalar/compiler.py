"""Checked expressions to functions: the one place that handles every kind of expression node.

It compiles any checked expression, usually after the passes. The parser admits 250 levels of nesting, which
are written in parts: so neither this recursion nor Python's parser meets its limit.

A probe observes compiled expressions, for coverage. Rules compiled without one pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Protocol

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedFn, ExternalFn, Fns
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
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar.access import (
    CARDS,
    NODES,
    CardsOf,
    field_text,
    key_text,
    list_text,
    map_text,
    presence_text,
)
from kdsl.eval.scalar.aggregate import compile_aggregate
from kdsl.eval.scalar.comprehensions import comprehension_text, paid_if_made, sum_text
from kdsl.eval.scalar.external import compile_external
from kdsl.eval.scalar.fast import fast_call
from kdsl.eval.scalar.frame import PENDING, Closure, Frame, failing, lazy_reader
from kdsl.eval.scalar.logic import LAZY, checked_optional
from kdsl.eval.scalar.meter import has_weight, metered, paying, spending
from kdsl.eval.scalar.over_nodes import (
    Lower,
    compile_at_once,
    is_over_nodes,
    is_over_pods,
)
from kdsl.eval.scalar.program import MOST_NESTED, Lines, NamedObjects
from kdsl.eval.scalar.searches import SEARCHES, compile_search
from kdsl.eval.values import NONE, Optional, UInt, Value
from kdsl.eval.views import VIEW_FUNCTIONS, method_name, method_of


class _Deferred:
    """The function of an expression that is nested too deep to be written at once."""

    __slots__ = ("closure",)
    closure: Closure

    def __call__(self, frame: Frame) -> Value:
        return self.closure(frame)


class Compiler:
    """The compiler of the expressions of one rule or function, which share a frame.

    `lazy` fills the slots of lazy variables: `let`, `cel.bind` and hoisted parts. `by_item` reads variables
    that depend on the loop items in `follows`. `answer_slot` returns the slot for the answer of a macro over
    nodes, if any. `fns` are the functions of the rule files by qualified name; `bodies` caches their compiled
    bodies for all rules. `lower` compiles macros over nodes; without it they visit one node after the other.
    `questions` are the questions of macros of views; sharing it shares the counts. `cards_of` reads the cards
    of a node; without it nodes have none.
    """

    joins_calls = True
    """Whether a call may be written together with its argument."""

    def __init__(
        self,
        fns: Fns,
        bodies: dict[str, Closure],
        lower: Lower | None = None,
        questions: dict[Hashable, object] | None = None,
        cards_of: CardsOf | None = None,
    ) -> None:
        self.lazy: dict[int, Closure] = {}
        # The places of `let`s.
        self.places: dict[int, Span] = {}
        self.by_item: dict[int, Closure] = {}
        self.follows: dict[int, frozenset[int]] = {}
        self.answer_slot: Callable[[Comprehension], int | None] | None = None
        self.fns = fns
        self._bodies = bodies
        self.lower = lower
        self.questions = {} if questions is None else questions
        self._cards_of = cards_of
        self._names = NamedObjects()
        self._depth = 0
        self._deferred: list[tuple[Compiler, _Deferred, TypedExpr]] = []
        # Macros over nodes are compiled at their first use, perhaps by several threads.
        self._lock = RLock()

    def compile(self, expr: TypedExpr) -> Closure:
        """Compile an expression to a function over a frame of values. Thread-safe."""
        with self._lock:
            closure = self._program(lambda: [f"return {self.text(expr)}"])
            self._compile_deferred()
            return closure

    def block(self, lines: Callable[[Compiler], list[str]]) -> Callable[..., Value]:
        """Compile lines to a function of a frame `f` and a value `r`. Thread-safe."""
        with self._lock:
            block = self._program(lambda: lines(self), "f, r")
            self._compile_deferred()
            return block

    def _compile_deferred(self) -> None:
        while self._deferred and not self._depth:
            compiler, deferred, part = self._deferred.pop()
            deferred.closure = compiler.compile(part)

    def _program(self, lines: Lines, parameters: str = "f") -> Callable[..., Value]:
        """Make a function with names of its own."""
        outer, self._names = self._names, NamedObjects()
        try:
            return self._names.function(lines(), parameters)
        finally:
            self._names = outer

    def name(self, value: object) -> str:
        """Return a name for an object, usable within the function that is being written."""
        return self._names.name(value)

    def call(self, closure: Closure) -> str:
        """Write the call of a closure on the frame."""
        return f"{self._names.name(closure)}(f)"

    def function(self, lines: Lines) -> str:
        """Write the call of a function of its own; `lines` is run to write that."""
        return self.call(self._program(lines))

    def text(self, expr: TypedExpr) -> str:
        """Write an expression as Python, with brackets where it needs them."""
        if self._depth == MOST_NESTED:
            deferred = _Deferred()
            self._deferred.append((self, deferred, expr))
            return self.call(deferred)
        self._depth += 1
        text = self._text(expr)
        self._depth -= 1
        return text

    def _text(self, expr: TypedExpr) -> str:
        match expr:
            case CallOf():
                return self._call(expr)
            case Const(value=value):
                return self.name(UInt(value) if isinstance(value, int) and expr.type == UINT else value)
            case Var():
                return self._variable(expr)
            case FieldOf(field=field) if (
                field == CARDS and self._cards_of and expr.operand.type.name in NODES
            ):
                return f"{self.name(self._cards_of)}({self.text(expr.operand)})"
            case FieldOf():
                return field_text(expr, self)
            case HasField():
                return presence_text(expr, self)
            case KeyOf():
                return key_text(expr, self)
            case CallFn():
                return self._fn_call(expr)
            case ListOf():
                return paying(list_text(expr, self), expr.type, self)
            case MapOf():
                return paying(map_text(expr, self), expr.type, self)
            case Comprehension() if self.lower and (is_over_nodes(expr) or is_over_pods(expr)):
                return paid_if_made(expr, self.call(compile_at_once(expr, self)), self)
            case Comprehension():
                return comprehension_text(expr, self)
            case Aggregate():
                return self.call(compile_aggregate(expr, self))
            case Bind():
                return self.function(lambda: self._bind(expr))

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        """Return the variables that an expression reads, with loop items for those that depend on them."""
        slots = free_slots(expr)
        following = slots & self.follows.keys()
        return slots.difference(following).union(*(self.follows[slot] for slot in following))

    def _variable(self, expr: Var) -> str:
        slot = expr.slot
        if slot == UNDECLARED:
            return self.call(failing(f"undeclared reference to `{expr.name}`"))
        if slot in self.by_item:
            return self.call(self.by_item[slot])
        compute = self.lazy.get(slot)
        if compute is None:
            return f"f[{slot}]"
        read = self.call(lazy_reader(slot, compute, self.places.get(slot)))
        # Most reads find a value, which takes no call.
        return f"(f[{slot}] if type(f[{slot}]) not in {self.name(PENDING)} else {read})"

    def _call(self, expr: CallOf) -> str:
        if expr.function in LAZY:
            return LAZY[expr.function](expr, self)
        if expr.function in SEARCHES:
            return self.call(compile_search(expr, self.compile))
        total = sum_text(expr, self) if self.joins_calls else None
        if total is not None:
            return total
        implementation = IMPLEMENTATIONS.get(expr.overload)
        weighs = has_weight(expr.function, (arg.type for arg in expr.args))
        if implementation is not None:
            fast = fast_call(expr, self)
            if fast is not None:
                return fast
        elif expr.function in VIEW_FUNCTIONS:
            implementation = VIEW_FUNCTIONS[expr.function]
        elif (name := method_name(expr.function)) is not None and not weighs:
            view, *others = map(self.text, expr.args)
            return f"{view}.{name}({', '.join(others)})"
        else:
            implementation = method_of(expr.function) or dispatcher(expr.function, expr.member)
        if weighs:
            return metered(implementation, expr.args, expr.type, self)
        return f"{self.name(implementation)}({', '.join(map(self.text, expr.args))})"

    def _fn_call(self, expr: CallFn) -> str:
        """Write the call of a function of a rule file, on its own frame with all arguments evaluated; or of a
        plugin's.
        """
        fn = self.fns[expr.fn]
        if isinstance(fn, ExternalFn):
            return self.call(compile_external(fn, [self.compile(arg) for arg in expr.args]))
        function = self._bodies.get(fn.qualified)
        if function is None:
            # INVARIANT: functions are not recursive; the checker ensures it.
            compiler = Compiler(self.fns, self._bodies, self.lower, self.questions, self._cards_of)
            compiler._depth, compiler._deferred = self._depth, self._deferred
            function = self._bodies[fn.qualified] = compiler._function_of(fn)
            compiler._depth, compiler._deferred = 0, []
        return f"{self.name(function)}({', '.join(['f', *map(self.text, expr.args)])})"

    def _function_of(self, fn: CheckedFn) -> Callable[..., Value]:
        """Compile a function of a rule file to one of the caller's frame and the arguments."""
        names = [f"a{at}" for at in range(len(fn.params))]
        slots = ["UNSET"] * fn.slots
        for param, name in zip(fn.params, names, strict=True):
            slots[param.slot] = name

        def lines() -> list[str]:
            frame = f"f = [{', '.join([*slots, 'm'])}]"
            return ["m = f[-1]", *spending("1"), frame, f"return {self.text(fn.body)}"]

        return self._program(lines, ", ".join(["f", *names]))

    def _bind(self, expr: Bind) -> list[str]:
        """Write lazy `cel.bind`, `optMap` and `optFlatMap`."""
        slot = expr.variable.slot
        if expr.macro == "bind":
            self.lazy[slot] = self.compile(expr.value)
            return [f"f[{slot}] = UNSET", f"return {self.text(expr.body)}"]
        value, body = self.text(expr.value), self.text(expr.body)
        result = body if expr.macro == "optFlatMap" else f"{self.name(Optional)}({body})"
        return [
            f"o = {self.name(checked_optional)}({value})",
            f"if not o.present: return {self.name(NONE)}",
            f"f[{slot}] = o.value",
            f"return {result}",
        ]


class Probe(Protocol):
    """An observer of every expression of a rule that is compiled, parts included, after the passes.

    A hoisted or folded part keeps its span. A probe must not change values.
    """

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        """Return the closure that runs in place of `closure`."""
        ...


class ProbedCompiler(Compiler):
    """A compiler that reports expressions to a probe, except for bodies of functions."""

    joins_calls = False

    def __init__(
        self, fns: Fns, bodies: dict[str, Closure], probe: Probe, cards_of: CardsOf | None = None
    ) -> None:
        super().__init__(fns, bodies, cards_of=cards_of)
        self._probe = probe

    def _text(self, expr: TypedExpr) -> str:
        inner = super()._text
        return self.call(self._probe.watch(expr, self._program(lambda: [f"return {inner(expr)}"])))
