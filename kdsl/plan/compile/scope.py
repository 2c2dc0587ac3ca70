"""The frame of one rule during compilation: the variable in each slot, and its lifetime.

Parameters are constants. Hoisted parts and `let`s that do not depend on the node last for the attempt, over
its first snapshot; other `let`s as long as the node or the loop item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Final

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedLet, CheckedParam, Fns
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, Bind, CallOf, Comprehension, Const, Macro, TypedExpr, Var
from kdsl.eval.ir import free_slots, free_variables, map_children
from kdsl.eval.scalar import UNSET, Closure, Compiler, Frame
from kdsl.eval.scalar.compiler import Probe, ProbedCompiler
from kdsl.eval.scalar.frame import lazy_reader
from kdsl.eval.scalar.lasting import MOST_PARTS, Parts, item_reader, lasting, renewing
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Meter, Steps
from kdsl.eval.scalar.over_nodes import AtOnce
from kdsl.eval.values import EvalError, Value
from kdsl.plan.card_table import CardsOf, no_cards
from kdsl.plan.compile.budget import RuleShares
from kdsl.plan.compile.passes import PASSES, Pass
from kdsl.plan.compile.passes.hoist import hoist_lasting, is_cheap
from kdsl.plan.compile.stability import is_count, is_stable, is_static

_UNHOISTED: Final = tuple([each for each in PASSES if each is not hoist_lasting])

ReportError = Callable[[EvalError, Span], None]
"""Receives an ignored error, and the place of its expression."""

LowerMacro = Callable[["CompiledFunctions", Comprehension | Aggregate, Compiler, int | None], AtOnce]
"""Makes a closure that evaluates a macro for many nodes at once; see `kdsl.plan.columns.over_nodes`."""


class CompiledFunctions:
    """The functions of one rule set and their compiled bodies, shared by all of its rules.

    `questions` holds the questions to the cluster: rules with equal questions share a count. A `probe`
    observes the expressions of rules; `steps` bound them, divided by `budget`; `lower` compiles macros over
    many nodes. `erred` are the rules that ever ignored an error, by qualified name: they run again to report
    it, so that kept answers have the same faults. `cards_of` reads the cards of a node by the devices of the
    profile.
    """

    def __init__(
        self,
        fns: Fns,
        probe: Probe | None = None,
        steps: Steps = DEFAULT_STEPS,
        lower: LowerMacro | None = None,
        cards_of: CardsOf = no_cards,
    ) -> None:
        self.fns = fns
        self.bodies: dict[str, Closure] = {}
        self.questions: dict[Hashable, object] = {}
        self.probe = probe
        self.steps = steps
        self.budget = RuleShares(steps)
        self.cards_of = cards_of
        self.erred: set[str] = set()
        self._lower = lower

    def compiler(self) -> Compiler:
        """Return a compiler for one rule."""
        if self.probe is not None:
            return ProbedCompiler(self.fns, self.bodies, self.probe, self.cards_of)
        lower = None if self._lower is None else partial(self._lower, self)
        return Compiler(self.fns, self.bodies, lower, self.questions, self.cards_of)


@dataclass(frozen=True, slots=True)
class _Source:
    """The list of a loop variable, or the value of a variable that depends on one."""

    expr: TypedExpr
    is_ranged: bool


class RuleScope:
    """The compiler of the expressions of one rule, in the order in which their variables are declared.

    `known` maps slots to constants. `lasting` are slots with one value for all nodes of a pod. `items` are
    slots of variables that range over the same items for each node, and of values that depend on those.
    `definitions` are the optimised values of the other `let`s. `transient` are lasting slots that are cleared
    for the next attempt of the signature, `counts` those of kept counts and other kept facts of the cluster.
    `rule` is the key of the share of the budget.
    """

    def __init__(
        self,
        variables: Mapping[str, Var],
        params: Iterable[CheckedParam],
        slots: int,
        functions: CompiledFunctions,
        rule: Hashable = None,
    ) -> None:
        self.share = functions.budget.share(rule)
        self._compiler = functions.compiler()
        self._compiler.answer_slot = self.answer_slot
        self._steps = functions.steps
        self._slots = slots
        self._named = {name: variable.slot for name, variable in variables.items()}
        self.known: dict[int, Value] = {}
        self.definitions: dict[int, TypedExpr] = {}
        self.lasting = {variable.slot for variable in variables.values() if variable.time.is_lasting}
        self.items: set[int] = set()
        self._sources: dict[int, _Source] = {}
        self._lists: dict[int, TypedExpr] = {}
        self.transient: list[int] = []
        self.counts: list[int] = []
        self._fixed: set[int] = set()
        # By identity: equal expressions in different places may differ in known values.
        self._optimised: dict[int, tuple[TypedExpr, TypedExpr]] = {}
        for param in params:
            self.let(CheckedLet(param.variable, param.value, param.value.span))

    def compile(self, expr: TypedExpr) -> Closure:
        """Run the passes over an expression and compile the result."""
        return self.closure(self.optimised(expr))

    def closure(self, expr: TypedExpr) -> Closure:
        """Compile an expression, or a part of one, as the passes left it."""
        return self._compiler.compile(expr)

    def block(self, lines: Callable[[Compiler], list[str]]) -> Callable[..., bool]:
        """Compile lines of Python to a function of a frame `f` and a list `r`."""
        return self._compiler.block(lines)

    def optimised(self, expr: TypedExpr) -> TypedExpr:
        """Run the passes over an expression, once: both back ends share the hoisted parts."""
        known = self._optimised.get(id(expr))
        if known is None:
            known = self._optimised[id(expr)] = expr, self._through(PASSES, expr)
        return known[1]

    def _through(self, passes: Iterable[Pass], expr: TypedExpr) -> TypedExpr:
        for apply in passes:
            expr = apply(expr, self)
        return expr

    def evaluate(self, expr: TypedExpr) -> Value:
        """Compute an expression without variables."""
        return self._compiler.compile(expr)([*[UNSET] * self._slots, Meter.of(self._steps.node)])

    def hoist(self, expr: TypedExpr) -> Var:
        """Return a new lazy variable for an expression that does not depend on the node."""
        variable = self.variable(expr)
        self._compiler.lazy[variable.slot] = self._lasting(expr)
        self.lasting.add(variable.slot)
        self._mark(variable.slot, expr)
        return variable

    def hoist_by_item(self, expr: TypedExpr) -> Var:
        """Return a new variable for an expression that depends on loop items, but not on the node."""
        if is_count(expr):
            return self._kept_count(expr)
        variable = self.variable(expr)
        slot = variable.slot
        self._compiler.follows[slot] = self.needs(expr) & self.items
        parts = Parts(self._combinations(expr), MOST_PARTS, self.share.value_meter)
        value = self._lasting(expr, has_parts=True)
        self._compiler.by_item[slot] = item_reader(slot, sorted(self._loops(expr)), value, parts)
        self._mark(slot, expr)
        return variable

    def _loops(self, expr: TypedExpr) -> dict[int, TypedExpr]:
        """Return the list of each loop variable that an expression depends on: directly, by a `let`, or by
        the list of another loop.
        """
        found: dict[int, TypedExpr] = {}
        pending, seen = [expr], set[int]()
        while pending:
            for slot in free_slots(pending.pop()) & self.items - seen:
                seen.add(slot)
                source = self._sources[slot]
                pending.append(source.expr)
                if source.is_ranged:
                    found[slot] = source.expr
        return found

    def _lasting(self, expr: TypedExpr, has_parts: bool = False) -> Closure:
        """Compile a value that is computed once per pod; `Parts` measure one that `has_parts`."""
        expr = expr if is_stable(expr) else self._with_kept(expr)
        compute = self._compiler.compile(expr)
        # Reading a variable takes no steps, and a lasting variable has its own meter.
        if isinstance(expr, Var):
            return compute
        own = self.share.add_value()
        return compute if has_parts else lasting(compute, own)

    def _combinations(self, expr: TypedExpr) -> Closure | None:
        """Return the number of combinations of loop items as a closure; None without items."""
        # Both variables of a loop have its list.
        lists = {id(each): each for each in self._loops(expr).values()}
        found = [self._compiler.compile(self._list_once(each)) for each in lists.values()]
        if not found:
            return None
        slot = self._new_slot() if is_stable(*lists.values()) else self.transient_slot()
        return lazy_reader(slot, lambda frame: prod([len(each(frame)) for each in found]))

    def _list_once(self, iterable: TypedExpr) -> TypedExpr:
        """Return the list of a loop as a hoisted variable, if it lasts: it is counted for each part."""
        known = self._lists.get(id(iterable))
        if known is None:
            is_same = is_cheap(iterable) or not self.is_lasting(iterable)
            known = self._lists[id(iterable)] = iterable if is_same else self.hoist(iterable)
        return known

    def _with_kept(self, expr: TypedExpr) -> TypedExpr:
        """Replace counts by variables that later attempts update, and stable parts by kept variables."""
        if is_count(expr):
            return self._kept_count(expr)
        if is_stable(expr) and not is_cheap(expr) and free_slots(expr) <= self.lasting:
            return self.hoist(expr)
        if isinstance(expr, Bind):
            # The body reads the variable, which cannot be compiled before its value is.
            return replace(expr, value=self._with_kept(expr.value))
        return map_children(expr, self._with_kept)

    def _kept_count(self, expr: TypedExpr) -> Var:
        """Return a variable for a count, or a list of counts, which later attempts update."""
        variable = self.variable(expr)
        slot, kept = variable.slot, self.kept_slot()
        self._compiler.follows[slot] = self.needs(expr) - self.lasting
        free = free_variables(expr).keys() - self.lasting - self.items
        items = sorted(free.union(self._loops(expr)))
        compute, own = self._compiler.compile(expr), self.share.add_value()
        if not items:
            self._compiler.by_item[slot] = renewing(kept, compute, own)
            return variable
        parts = Parts(self._combinations(expr), MOST_PARTS, own)
        self._compiler.by_item[slot] = item_reader(slot, items, compute, parts, kept)
        self._mark(slot, expr)
        return variable

    def _mark(self, slot: int, expr: TypedExpr) -> None:
        """Note what happens to the value of an expression from one attempt of a signature to the next."""
        if not is_stable(expr):
            self.transient.append(slot)
        if self.is_fixed(expr):
            self._fixed.add(slot)

    def variable(self, expr: TypedExpr) -> Var:
        """Return a new variable that stands for an expression."""
        slot = self._new_slot()
        return Var(type=expr.type, time=expr.time, reads=expr.reads, span=expr.span, name="", slot=slot)

    def transient_slot(self) -> int:
        """Return a new slot, which is `UNSET` in each attempt."""
        slot = self._new_slot()
        self.transient.append(slot)
        return slot

    def kept_slot(self) -> int:
        """Return a new slot, which is kept from one attempt of a signature to the next, as counts are."""
        slot = self._new_slot()
        self.counts.append(slot)
        return slot

    def answer_slot(self, expr: Comprehension) -> int | None:
        """Return a kept slot for the answer that all nodes give to a filter; None if it may change."""
        node, condition = expr.variables[0], expr.body
        others = [part for part in walk(condition) if isinstance(part, Var) and part.slot != node.slot]
        is_kept = is_static(condition, node, others) and free_slots(*others) <= self.lasting
        return self.kept_slot() if expr.macro is not Macro.MAP and is_kept else None

    def is_fixed(self, expr: TypedExpr) -> bool:
        """Return whether an expression stays the same from one attempt of a signature to the next, or is one
        count or a list of counts, of which only the numbers change.
        """
        match expr:
            case Var(slot=slot) if slot in self.definitions:
                return self.is_fixed(self.definitions[slot])
            case Var(slot=slot) if slot in self._fixed:
                return True
            case CallOf(overload="index_list", args=(items, place)):
                return self.is_fixed(items) and is_stable(place)
        return is_stable(expr) or is_count(expr)

    def _new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def once(self, compute: Closure, *exprs: TypedExpr | None) -> Closure:
        """Return a closure that computes once per attempt, at first use; `exprs` are its expressions."""
        slot = self._new_slot() if is_stable(*exprs) else self.transient_slot()
        return lazy_reader(slot, lasting(compute, self.share.add_value()))

    def is_lasting(self, *exprs: TypedExpr | None, bound: Iterable[int] = ()) -> bool:
        """Return whether expressions, inside a loop over the slots `bound`, are the same for all nodes."""
        return all(expr is None or expr.time.is_lasting for expr in exprs) and free_slots(
            *exprs
        ) <= self.lasting.union(bound)

    def is_of_items(self, expr: TypedExpr) -> bool:
        """Return whether an expression depends on loop items, and on nothing else that differs by node."""
        return expr.time.is_lasting and free_slots(expr) <= self.lasting | self.items

    def needs(self, expr: TypedExpr) -> frozenset[int]:
        """Return the variables that an expression reads; in place of a hoisted part, those it depends on."""
        return self._compiler.needs(expr)

    def ranges(self, iterable: TypedExpr, variables: Iterable[Var]) -> None:
        """Declare variables that range over `iterable`."""
        if self.is_of_items(iterable):
            for variable in variables:
                self.items.add(variable.slot)
                self._sources[variable.slot] = _Source(iterable, is_ranged=True)

    def let(self, let: CheckedLet) -> int | None:
        """Declare a `let`. Return its slot if it must be reset for every node or loop item, else None."""
        slot = let.variable.slot
        if isinstance(let.value, Const):
            # Most parameters: a rule may have many, and a device has them in each section.
            self.known[slot] = let.value.value
            self.lasting.add(slot)
            self._fixed.add(slot)
            return None
        is_lasting = self.is_lasting(let.value)
        if not is_lasting and self.is_of_items(let.value):
            self.items.add(slot)
            self._sources[slot] = _Source(let.value, is_ranged=False)
        # A lasting `let` is already a variable, so it is not hoisted.
        value = self._through(_UNHOISTED, let.value) if is_lasting else self.optimised(let.value)
        if not is_lasting:
            self.definitions[slot] = value
        if isinstance(value, Const):
            self.known[slot] = value.value
        else:
            self._compiler.lazy[slot] = self._lasting(value) if is_lasting else self._compiler.compile(value)
            self._compiler.places[slot] = let.value.span
        if is_lasting:
            self.lasting.add(slot)
            self._mark(slot, value)
            return None
        return slot

    def slot_of(self, name: str) -> int:
        """Return the slot of a name that the engine fills; an unused slot if the rule has no such name."""
        if name not in self._named:
            self._named[name] = self._new_slot()
        return self._named[name]

    def new_frame(self) -> Frame:
        """Return an empty frame. Call it after compiling everything."""
        # Macros over nodes, which compile at their first use, get no more slots.
        self._compiler.answer_slot = None
        return [*[UNSET] * self._slots, Meter.of(self._steps.pod)]

    def frames(self) -> Callable[..., Frame]:
        """Return a maker of frames with a full meter, which takes values by name. Call it after compiling
        everything.
        """
        blank, named, limit = self.new_frame(), self._named, self._steps.pod

        def frame(**values: Value) -> Frame:
            new = blank.copy()
            new[-1] = Meter.of(limit)
            for name, value in values.items():
                new[named[name]] = value
            return new

        return frame


class Conditions:
    """The compiled conditions `applies when` of one rule. One that fails counts as true, so that the rule
    still runs; the rule's name is added to `erred`.
    """

    def __init__(self, exprs: Iterable[TypedExpr], scope: RuleScope, rule: str, erred: set[str]) -> None:
        self._conditions = [(scope.compile(each), each.span) for each in exprs]
        self._rule = rule
        self._erred = erred

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def hold(self, frame: Frame, report: ReportError | None = None) -> bool:
        """Return whether all hold; `report` receives errors."""
        for condition, span in self._conditions:
            try:
                if not condition(frame):
                    return False
            except EvalError as error:
                self._erred.add(self._rule)
                if report is not None:
                    report(error, span)
        return True
