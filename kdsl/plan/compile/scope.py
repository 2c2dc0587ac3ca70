"""The frame of one rule while it is compiled: which slot holds what, and for how long.

Parameters are constants; hoisted parts and `let`s that do not depend on the node last for the attempt, over
the snapshot it began with; other `let`s as long as the node or the loop item they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Final, Protocol

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedFn, CheckedLet, CheckedParam, ExternalFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, Comprehension, Const, TypedExpr, Var
from kdsl.eval.ir import free_slots, map_children, shape
from kdsl.eval.scalar import UNSET, Closure, Compiler, Frame
from kdsl.eval.scalar.frame import Compile, item_reader, lazy_reader, renewing
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Meter, Steps, lasting
from kdsl.eval.scalar.over_nodes import AtOnce, Needs
from kdsl.eval.scalar.probe import Probe, ProbedCompiler
from kdsl.eval.values import EvalError, Value
from kdsl.plan.compile.budget import Budget
from kdsl.plan.compile.passes import PASSES, Pass
from kdsl.plan.compile.passes.hoist import hoist_lasting, is_cheap
from kdsl.plan.compile.steady import is_count, is_steady

REWRITE_AFTER: Final = 32
"""So many attempts of a kind of pod are made by the rule as written: rewriting takes as long as they save."""

Note = Callable[[EvalError, Span], None]
"""Is told of an error that was passed over, and of its expression."""


class LowerMacro(Protocol):
    """Makes what evaluates a macro for many nodes at once: `kdsl.plan.columns.nodes.lower_macro`."""

    def __call__(
        self, functions: Functions, expr: Comprehension | Aggregate, compile: Compile, needs: Needs, /
    ) -> AtOnce: ...


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of one rule set and their compiled bodies, shared by all of its rules.

    `asked` are the questions that they ask of the cluster: rules that ask the same share the count. A `probe`
    watches the expressions of those rules; `steps` are what they may spend, shared out by `budget`; `lower`
    makes macros that look at many nodes at once. After so many attempts `rewrite_after` rules are rewritten
    for a kind of pod.
    `erred` are the rules that ever passed over an error, by qualified name: they are asked again what went
    wrong, so that a kept answer tells of its errors as a fresh one does.
    """

    fns: Mapping[str, CheckedFn | ExternalFn]
    bodies: dict[str, Closure]
    asked: dict[Hashable, object]
    probe: Probe | None = None
    steps: Steps = DEFAULT_STEPS
    lower: LowerMacro | None = None
    rewrite_after: int = REWRITE_AFTER
    budget: Budget = field(default_factory=partial(Budget, DEFAULT_STEPS))
    erred: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        fns: Mapping[str, CheckedFn | ExternalFn],
        probe: Probe | None = None,
        steps: Steps = DEFAULT_STEPS,
        lower: LowerMacro | None = None,
        rewrite_after: int = REWRITE_AFTER,
    ) -> Functions:
        return cls(fns, {}, {}, probe, steps, lower, rewrite_after, Budget(steps))

    def compiler(self) -> Compiler:
        """Return a compiler for one rule."""
        if self.probe is not None:
            return ProbedCompiler(self.fns, self.bodies, self.probe)
        lower = None if self.lower is None else partial(self.lower, self)
        return Compiler(self.fns, self.bodies, lower, self.asked)


@dataclass(frozen=True, slots=True)
class _Source:
    """The list that a loop variable ranges over, or what a variable is made of that follows from some."""

    expr: TypedExpr
    is_ranged: bool


class RuleScope:
    """Compiles the expressions of one rule, one after the other, in the order in which their variables are
    declared.

    `known` maps slots to constants; `lasting` are the slots that keep their value for all nodes of a pod,
    `items` those of variables that range over the same items for each node and what follows from them;
    `definitions` are the optimised values of the `let`s that do not. `passing` are lasting slots that hold
    something else in the next attempt of a pod of the same kind. `rule` tells rules of a profile apart that
    share a budget.
    """

    def __init__(
        self,
        variables: Mapping[str, Var],
        params: Iterable[CheckedParam],
        slots: int,
        functions: Functions,
        passes: Sequence[Pass] = PASSES,
        rule: Hashable = None,
    ) -> None:
        self.share, self._is_first = functions.budget.share(rule)
        self._compiler = functions.compiler()
        self._passes = passes
        self._unhoisted = tuple([each for each in passes if each is not hoist_lasting])
        self._steps = functions.steps
        self._slots = slots
        self._named = {name: variable.slot for name, variable in variables.items()}
        self.known: dict[int, Value] = {}
        self.definitions: dict[int, TypedExpr] = {}
        self.lasting = {variable.slot for variable in variables.values() if variable.time.is_lasting}
        self.items: set[int] = set()
        self._sources: dict[int, _Source] = {}
        self._lists: dict[int, TypedExpr] = {}
        self.passing: list[int] = []
        # What counts the same is one variable, however often it is written.
        self._counts: dict[Hashable, Var] = {}
        # By identity: of two equal expressions one may stand where more is known.
        self._optimised: dict[int, tuple[TypedExpr, TypedExpr]] = {}
        for param in params:
            self.let(CheckedLet(param.variable, param.value, param.value.span))

    def compile(self, expr: TypedExpr) -> Closure:
        """Run the passes over an expression and compile what they leave."""
        return self.closure(self.optimised(expr))

    def closure(self, expr: TypedExpr) -> Closure:
        """Compile an expression, or a part of one, as the passes left it."""
        return self._compiler.compile(expr)

    def optimised(self, expr: TypedExpr) -> TypedExpr:
        """Run the passes over an expression, once: both back ends share what is hoisted."""
        known = self._optimised.get(id(expr))
        if known is None:
            known = self._optimised[id(expr)] = expr, self._through(self._passes, expr)
        return known[1]

    def _through(self, passes: Iterable[Pass], expr: TypedExpr) -> TypedExpr:
        for apply in passes:
            expr = apply(expr, self)
        return expr

    @property
    def slots(self) -> int:
        """How many slots there are by now."""
        return self._slots

    def evaluate(self, expr: TypedExpr) -> Value:
        """Compute an expression that depends on nothing."""
        return self._compiler.compile(expr)([*[UNSET] * self._slots, Meter(self._steps.node)])

    def evaluate_for(self, expr: TypedExpr, filled: Mapping[int, Value], meter: Meter) -> Value:
        """Compute an expression that depends on the variables of some slots."""
        compute, frame = self._compiler.compile(expr), self.new_frame()
        for slot, value in filled.items():
            frame[slot] = value
        frame[-1] = meter
        return compute(frame)

    def hoist(self, expr: TypedExpr) -> Var:
        """Return a new lazy variable for an expression that does not depend on the node."""
        variable = self.variable(expr)
        self._compiler.lazy[variable.slot] = self._lasting(expr)
        self.lasting.add(variable.slot)
        self._note_passing(variable.slot, expr)
        return variable

    def hoist_by_item(self, expr: TypedExpr) -> Var:
        """Return a new variable for an expression that depends on loop items, but not on the node."""
        variable = self.variable(expr)
        slot = variable.slot
        found = {part.slot: part for part in walk(expr) if isinstance(part, Var)}
        self._compiler.follows[slot] = self.needs(expr) & self.items
        items = [self._compiler.compile(found[each]) for each in sorted(free_slots(expr) & self.items)]
        self._compiler.by_item[slot] = item_reader(slot, items, self._lasting(expr, self._combinations(expr)))
        self._note_passing(slot, expr)
        return variable

    def _lasting(self, expr: TypedExpr, parts: Closure | None = None) -> Closure:
        """Compile what is computed once for a pod, or for a pod and each combination of loop items."""
        expr = expr if is_steady(expr) else self._with_standing(expr)
        compute = self._compiler.compile(expr)
        # Reading a variable takes no steps, and one that lasts is computed with steps of its own.
        return compute if isinstance(expr, Var) else self._measured(compute, parts)

    def _measured(self, compute: Closure, parts: Closure | None = None) -> Closure:
        """Return what computes a value that lasts, with steps of its own; see `lasting`."""
        if self._is_first:
            self.share.add_value()
        return lasting(compute, self.share.value_meter, parts)

    def _combinations(self, expr: TypedExpr) -> Closure | None:
        """Return what tells for how many combinations of loop items an expression is computed, if for any."""
        lists: dict[int, Closure] = {}
        pending, seen = list(free_slots(expr) & self.items), set[int]()
        while pending:
            slot = pending.pop()
            if slot in seen:
                continue
            seen.add(slot)
            source = self._sources.get(slot)
            if source is None:
                continue
            pending += free_slots(source.expr) & self.items
            if source.is_ranged:
                lists.setdefault(id(source.expr), self._compiler.compile(self._listed(source.expr)))
        match list(lists.values()):
            case []:
                return None
            case [only]:
                return lambda frame: len(only(frame))
            case found:
                return lambda frame: prod([len(each(frame)) for each in found])

    def _listed(self, iterable: TypedExpr) -> TypedExpr:
        """Return a list that loops range over as it is computed once for a pod, where it is."""
        known = self._lists.get(id(iterable))
        if known is None:
            is_same = is_cheap(iterable) or not self.is_lasting(iterable)
            known = self._lists[id(iterable)] = iterable if is_same else self.hoist(iterable)
        return known

    def _with_standing(self, expr: TypedExpr) -> TypedExpr:
        """Replace counts in an expression by variables that later attempts bring up to date, and parts that
        are the same for all of them by variables that stay.
        """
        if is_count(expr):
            places: dict[int, int] = {}
            free = free_slots(expr)
            key = shape(expr, places), tuple([slot for slot in places if slot in free])
            if key in self._counts:
                return self._counts[key]
            variable = self._counts[key] = self.variable(expr)
            found = {part.slot: part for part in walk(expr) if isinstance(part, Var)}
            items = [self._compiler.compile(found[each]) for each in sorted(free - self.lasting)]
            self._compiler.follows[variable.slot] = self.needs(expr) - self.lasting
            count = renewing(variable.slot, items, self._compiler.compile(expr))
            self._compiler.by_item[variable.slot] = self._measured(count, self._combinations(expr))
            return variable
        if is_steady(expr) and not is_cheap(expr) and free_slots(expr) <= self.lasting:
            return self.hoist(expr)
        return map_children(expr, self._with_standing)

    def _note_passing(self, slot: int, *exprs: TypedExpr | None) -> None:
        if not is_steady(*exprs):
            self.passing.append(slot)

    def variable(self, expr: TypedExpr) -> Var:
        """Return a new variable that stands for an expression."""
        slot = self._new_slot()
        return Var(type=expr.type, time=expr.time, reads=expr.reads, span=expr.span, name="", slot=slot)

    def passing_slot(self) -> int:
        """Return a new slot, which is `UNSET` in each attempt."""
        slot = self._new_slot()
        self.passing.append(slot)
        return slot

    def _new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def once(self, compute: Closure, *exprs: TypedExpr | None) -> Closure:
        """Return a closure that computes at its first use in an attempt only, from the expressions given."""
        slot = self._new_slot()
        self._note_passing(slot, *exprs)
        return lazy_reader(slot, self._measured(compute))

    def is_lasting(self, *exprs: TypedExpr | None, bound: Iterable[int] = ()) -> bool:
        """Tell whether expressions, inside a loop over the slots `bound`, are the same for all nodes of a
        pod.
        """
        return all(expr is None or expr.time.is_lasting for expr in exprs) and free_slots(
            *exprs
        ) <= self.lasting.union(bound)

    def is_of_items(self, expr: TypedExpr) -> bool:
        """Tell whether an expression depends on loop items, and on nothing else that differs by node."""
        return expr.time.is_lasting and free_slots(expr) <= self.lasting | self.items

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        """Return the variables that an expression reads; in place of a hoisted part, those it depends on."""
        return self._compiler.needs(expr)

    def ranges(self, iterable: TypedExpr, variables: Iterable[Var]) -> None:
        """Note that variables range over `iterable`."""
        if self.is_of_items(iterable):
            for variable in variables:
                self.items.add(variable.slot)
                self._sources[variable.slot] = _Source(iterable, is_ranged=True)

    def let(self, let: CheckedLet) -> int | None:
        """Declare a `let`. Return its slot if it must be set to `UNSET` for every node or loop item, else
        None.
        """
        slot = let.variable.slot
        is_lasting = self.is_lasting(let.value)
        if not is_lasting and self.is_of_items(let.value):
            self.items.add(slot)
            self._sources[slot] = _Source(let.value, is_ranged=False)
        # A `let` that lasts is a variable of its own: hoisting would make another one.
        value = self._through(self._unhoisted, let.value) if is_lasting else self.optimised(let.value)
        if not is_lasting:
            self.definitions[slot] = value
        if isinstance(value, Const):
            self.known[slot] = value.value
        else:
            self._compiler.lazy[slot] = self._lasting(value) if is_lasting else self._compiler.compile(value)
        if is_lasting:
            self.lasting.add(slot)
            self._note_passing(slot, let.value)
            return None
        return slot

    def slot_of(self, name: str) -> int:
        """Return the slot of a name that the engine fills; one that is never read if the rule has no such
        name.
        """
        if name not in self._named:
            self._named[name] = self._new_slot()
        return self._named[name]

    def new_frame(self) -> Frame:
        """Return a frame with nothing in it. Call it when everything is compiled."""
        return [*[UNSET] * self._slots, Meter(self._steps.pod)]


class Conditions:
    """The conditions `applies when` of one rule, compiled; one that fails counts as holding, so that the rule
    is not lost. `erred` gets the rule's name then.
    """

    def __init__(self, exprs: Iterable[TypedExpr], scope: RuleScope, rule: str, erred: set[str]) -> None:
        self._conditions = [(scope.compile(each), each.span) for each in exprs]
        self._rule = rule
        self._erred = erred

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def hold(self, frame: Frame, note: Note | None = None) -> bool:
        """Tell whether all hold; `note` is told of those that fail."""
        for condition, span in self._conditions:
            try:
                if not condition(frame):
                    return False
            except EvalError as error:
                self._erred.add(self._rule)
                if note is not None:
                    note(error, span)
        return True
