"""The binding of reserved pods: during the cycle, or asynchronously.

Simulations and tests bind at once. A live scheduler binds on other threads while the cycle continues; the
result of the binding is then passed to `Engine.finish`.
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
    """A pod with a reserved node, and its decision, which stands unless a later phase fails."""

    attempt: Attempt
    decision: Decision
    statement: Statement


class BindingEnd(StrEnum):
    """The outcome of a binding. `dropped`: no work is left for the pod, and nothing to report."""

    BOUND = "bound"
    FAILED = "failed"
    DROPPED = "dropped"


class BindingResult(Struct, frozen=True, eq=False):
    """The result of binding a reserved pod. `message` says why it is not bound.

    `faults` are the errors: of a failed binding the error that ended it, of a bound pod those of PostBind
    hooks.
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
    """Binds reserved pods. The engine calls it on its own thread."""

    def begin(self, reserved: Reserved) -> BindingResult | None:
        """Bind a pod and return the result; None where the binding continues asynchronously."""
        ...

    def stop(self, reserved: Reserved) -> bool:
        """Stop an asynchronous binding before the pod is bound; return False where it is too late for
        that.
        """
        ...


class BindAtOnce:
    """Runs PreBind, Bind and PostBind during the cycle."""

    def begin(self, reserved: Reserved) -> BindingResult:
        """Bind the pod."""
        attempt, node = reserved.attempt, reserved.decision.node
        try:
            if attempt.table.pre_binds:
                run_pre_binds(attempt, node, pre_binds_with_work(attempt, node))
            failure = run_binds(attempt, node)
        except PluginError as error:
            return BindingResult.failed(reserved, error)
        if failure is not None:
            message = failure.message
            return BindingResult(reserved, BindingEnd.FAILED, message, (Fault("", message),))
        if not attempt.table.post_binds:
            return BindingResult(reserved, BindingEnd.BOUND)
        late = run_post_binds(attempt, node)
        return BindingResult(reserved, BindingEnd.BOUND, faults=tuple([error.fault for error in late]))

    def stop(self, reserved: Reserved) -> bool:
        """Return False: no binding is asynchronous."""
        return False
