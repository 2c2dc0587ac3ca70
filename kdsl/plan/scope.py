"""The frame of one rule while it is compiled: which slot holds what, and for how long.

Parameters are constants, hoisted parts and pod-time `let`s last as long as the pod, other `let`s as long as
the node or the loop item they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kdsl.check.model import CheckedFn, CheckedLet, CheckedParam
from kdsl.check.typed import TypedExpr, Var
from kdsl.check.types import BindingTime
from kdsl.plan.ir import Known, free_slots
from kdsl.plan.passes import PASSES
from kdsl.plan.scalar import UNSET, Closure, Compiler, Frame
from kdsl.plan.scalar.frame import lazy_reader
from kdsl.plan.scalar.meter import NODE_STEPS, POD_STEPS, Meter, lasting
from kdsl.plan.scalar.probe import Probe, ProbedCompiler
from kdsl.plan.values import EvalError, Value


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of one rule set and their compiled bodies, shared by all of its rules.

    A `probe` watches the expressions of those rules.
    """

    fns: Mapping[str, CheckedFn]
    bodies: dict[str, Closure]
    probe: Probe | None = None

    @classmethod
    def of(cls, fns: Mapping[str, CheckedFn], probe: Probe | None = None) -> Functions:
        return cls(fns, {}, probe)

    def compiler(self) -> Compiler:
        """Return a compiler for one rule."""
        return (
            Compiler(self.fns, self.bodies)
            if self.probe is None
            else ProbedCompiler(self.fns, self.bodies, self.probe)
        )


class RuleScope:
    """Compiles the expressions of one rule, one after the other, in the order in which their variables are
    declared.

    `known` maps slots to constants; `lasting` are the slots that keep their value for all nodes of a pod.
    """

    def __init__(
        self,
        variables: Mapping[str, Var],
        params: Iterable[CheckedParam],
        slots: int,
        functions: Functions,
    ) -> None:
        self._compiler = functions.compiler()
        self._slots = slots
        self._named = {name: variable.slot for name, variable in variables.items()}
        self.known: dict[int, Value] = {}
        self.lasting = {variable.slot for variable in variables.values() if variable.time <= BindingTime.POD}
        for param in params:
            self.let(CheckedLet(param.variable, param.value, param.value.span))

    def compile(self, expr: TypedExpr) -> Closure:
        """Run the passes over an expression and compile what they leave."""
        return self._compiler.compile(self._optimise(expr))

    def _optimise(self, expr: TypedExpr) -> TypedExpr:
        for apply in PASSES:
            expr = apply(expr, self)
        return expr

    def evaluate(self, expr: TypedExpr) -> Value:
        """Compute an expression that depends on nothing."""
        return self._compiler.compile(expr)([*[UNSET] * self._slots, Meter(NODE_STEPS)])

    def hoist(self, expr: TypedExpr) -> Var:
        """Return a new lazy variable for an expression that is known from the pod alone."""
        slot, self._slots = self._slots, self._slots + 1
        self._compiler.lazy[slot] = lasting(self._compiler.compile(expr))
        self.lasting.add(slot)
        return Var(type=expr.type, time=expr.time, reads=expr.reads, span=expr.span, name="", slot=slot)

    def once(self, compute: Closure) -> Closure:
        """Return a closure that computes at its first use for a pod only."""
        slot, self._slots = self._slots, self._slots + 1
        return lazy_reader(slot, lasting(compute))

    def is_lasting(self, *exprs: TypedExpr | None, bound: Iterable[int] = ()) -> bool:
        """Tell whether expressions, inside a loop over the slots `bound`, are the same for all nodes of a
        pod.
        """
        return all(expr is None or expr.time <= BindingTime.POD for expr in exprs) and free_slots(
            *exprs
        ) <= self.lasting.union(bound)

    def let(self, let: CheckedLet) -> int | None:
        """Declare a `let`. Return its slot if it must be set to `UNSET` for every node or loop item, else
        None.
        """
        slot = let.variable.slot
        is_lasting = self.is_lasting(let.value)
        value = self._optimise(let.value)
        if isinstance(value, Known):
            self.known[slot] = value.value
        else:
            compute = self._compiler.compile(value)
            self._compiler.lazy[slot] = lasting(compute) if is_lasting else compute
        if is_lasting:
            self.lasting.add(slot)
            return None
        return slot

    def slot_of(self, name: str) -> int:
        """Return the slot of a name that the engine fills; one that is never read if the rule has no such
        name.
        """
        if name not in self._named:
            self._named[name] = self._slots
            self._slots += 1
        return self._named[name]

    def new_frame(self) -> Frame:
        """Return a frame with nothing in it. Call it when everything is compiled."""
        return [*[UNSET] * self._slots, Meter(POD_STEPS)]


def holds(condition: Closure, frame: Frame) -> bool:
    """Tell whether an `applies when` condition holds; one that fails counts as holding, so that the rule is
    not lost.
    """
    try:
        return bool(condition(frame))
    except EvalError:
        return True
