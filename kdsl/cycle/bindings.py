"""How reserved pods are bound: in the midst of the cycle, or beside it.

Simulations and tests bind at once. A live scheduler binds beside the cycle, which goes on meanwhile: what
came of a binding is handed to `Engine.finish` then.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from kdsl.cycle.attempt import Attempt
from kdsl.cycle.binding import pre_binds_with_work, run_binds, run_post_binds, run_pre_binds
from kdsl.cycle.decision import Decision
from kdsl.cycle.statement import Statement
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault


class Reserved(Struct, frozen=True, eq=False):
    """A pod with a node set aside for it, and the decision that stands unless something fails on the way."""

    attempt: Attempt
    decision: Decision
    statement: Statement


class BindingEnd(StrEnum):
    """What a binding came to. `dropped`: there is nothing left to do for the pod, and nothing to report."""

    BOUND = "bound"
    FAILED = "failed"
    DROPPED = "dropped"


class BindingResult(Struct, frozen=True, eq=False):
    """What came of binding a reserved pod. `message` says why it is not bound.

    `faults` are what went wrong: of a failed binding the error that ended it, of a bound pod those of
    PostBind hooks.
    """

    reserved: Reserved
    end: BindingEnd
    message: str = ""
    faults: tuple[Fault, ...] = ()

    @classmethod
    def failed(cls, reserved: Reserved, error: PluginError) -> BindingResult:
        """Return the result of a binding that an error ended."""
        return cls(reserved, BindingEnd.FAILED, str(error), (error.fault,))


class Bindings(Protocol):
    """Binds reserved pods. Called by the engine, on its thread."""

    def begin(self, reserved: Reserved) -> BindingResult | None:
        """Bind a pod and return what came of it; None where the binding is under way."""
        ...

    def stop(self, reserved: Reserved) -> bool:
        """Stop a binding that is under way before the pod is bound; False where it is too late for that."""
        ...


class BindAtOnce:
    """Runs PreBind, Bind and PostBind in the midst of the cycle."""

    def begin(self, reserved: Reserved) -> BindingResult:
        """Bind the pod."""
        attempt, node = reserved.attempt, reserved.decision.node
        try:
            run_pre_binds(attempt, node, pre_binds_with_work(attempt, node))
            failure = run_binds(attempt, node)
        except PluginError as error:
            return BindingResult.failed(reserved, error)
        if failure is not None:
            message = failure.message
            return BindingResult(reserved, BindingEnd.FAILED, message, (Fault("", message),))
        late = run_post_binds(attempt, node) if attempt.table.post_binds else []
        return BindingResult(reserved, BindingEnd.BOUND, faults=tuple([error.fault for error in late]))

    def stop(self, reserved: Reserved) -> bool:
        """Return False: nothing is ever under way."""
        return False
