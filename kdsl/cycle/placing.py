"""Takes a chosen node to a bound pod: assume, reserve, permit, bind; or undoes everything.

Every change goes through a `Statement`. After any failure the pod loses its nomination, as in kube-scheduler.
Binding may be asynchronous: the pod stays assumed until its result is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kdsl.base.clock import Clock
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.binding import WAITING, run_permits
from kdsl.cycle.bindings import BindAtOnce, BindingEnd, BindingResult, Bindings, Reserved
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.fit_error import single_node_message
from kdsl.cycle.nominator import Nominator
from kdsl.cycle.ports import ClusterSource
from kdsl.cycle.statement import Statement
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault, merged
from kdsl.hooks.status import Status


@dataclass(frozen=True, slots=True)
class Placer:
    """The phases that change the cluster, for one engine."""

    cluster: ClusterSource
    clock: Clock
    nominator: Nominator
    waiting: WaitingPods[Reserved]
    bindings: Bindings = field(default_factory=BindAtOnce)
    under_way: dict[str, Reserved] = field(default_factory=dict)
    """The pods that are being bound, by key."""

    def reserve(self, attempt: Attempt, decision: Decision) -> tuple[Reserved, Decision | None]:
        """Reserve the decision's node, and run Permit. The decision is None if the pod can be bound now."""
        node, statement = decision.node, Statement(self.cluster)
        reserved = Reserved(attempt, decision, statement)
        statement.assume(attempt, node)
        self.nominator.delete(attempt.pod, placed_on=node)
        try:
            rejection = statement.reserve(attempt, node)
            if rejection is not None:
                return reserved, self.turn_away(reserved, rejection)
            permission = run_permits(attempt, node)
        except PluginError as error:
            return reserved, self._fail(reserved, str(error), error.fault)
        if permission.rejection is not None:
            return reserved, self.turn_away(reserved, permission.rejection)
        if permission.waits:
            self.waiting.hold(attempt.pod.key, permission.waits, self.clock.now(), reserved)
            return reserved, decision.with_fields(outcome=Outcome.WAITING, message=WAITING)
        return reserved, None

    def bind(self, reserved: Reserved) -> Decision:
        """Bind a pod that no Permit hook holds any more, or begin to."""
        try:
            result = self.bindings.begin(reserved)
        except PluginError as error:
            return self._fail(reserved, str(error), error.fault)
        if result is not None:
            return self.close(result)
        self.under_way[reserved.attempt.pod.key] = reserved
        return reserved.decision.with_fields(outcome=Outcome.BINDING)

    def finish(self, result: BindingResult) -> Decision | None:
        """End an asynchronous binding; return None where the pod was given up meanwhile."""
        reserved = result.reserved
        key = reserved.attempt.pod.key
        if self.under_way.get(key) is not reserved:
            reserved.statement.discard()
            return None
        del self.under_way[key]
        return self.close(result)

    def close(self, result: BindingResult) -> Decision:
        """Commit or undo the reservation, depending on the binding's result."""
        reserved = result.reserved
        match result.end:
            case BindingEnd.BOUND:
                reserved.statement.commit()
                return _with_faults(reserved, result.faults)
            case BindingEnd.FAILED:
                return self._give_back(reserved, Outcome.ERROR, result.message, result.faults)
            case BindingEnd.DROPPED:
                decision = self._give_back(reserved, Outcome.SKIPPED, result.message, result.faults)
                self.nominator.delete(reserved.attempt.pod)
                return decision

    def give_up(self, key: str) -> bool:
        """Free the room of a deleted pod at once; return False where none is reserved for it.

        The rest is undone at once as well unless a binding is under way, which is stopped: then when it ends.
        """
        held = self.waiting.take(key, self.clock.now())
        reserved = held or self.under_way.pop(key, None)
        if reserved is None:
            return False
        self.nominator.delete(reserved.attempt.pod)
        if held is not None:
            reserved.statement.discard()
        else:
            reserved.statement.release(key)
            self.bindings.stop(reserved)
        return True

    def turn_away(self, reserved: Reserved, rejection: Status) -> Decision:
        """Undo everything because a plugin rejected the pod on this node."""
        message = single_node_message(rejection)
        decision = self._give_back(reserved, Outcome.UNSCHEDULABLE, message, rejection.faults)
        return decision.with_fields(turned_away=rejection)

    def _fail(self, reserved: Reserved, message: str, fault: Fault) -> Decision:
        """Undo everything because a plugin failed."""
        return self._give_back(reserved, Outcome.ERROR, message, (fault,))

    def _give_back(
        self, reserved: Reserved, outcome: Outcome, message: str, faults: Iterable[Fault] = ()
    ) -> Decision:
        reserved.statement.discard()
        self.nominator.clear(reserved.attempt.pod)
        undoing = (error.fault for error in reserved.statement.faults)
        decision = _with_faults(reserved, (*faults, *undoing))
        return decision.with_fields(outcome=outcome, node="", message=message)


def _with_faults(reserved: Reserved, faults: Iterable[Fault]) -> Decision:
    """Return the decision with the faults since it was written, including those that plugins recorded."""
    decision, state = reserved.decision, reserved.attempt.state
    new = (*state.take_faults(), *faults) if state.has_faults else tuple(faults)
    return decision.with_fields(faults=merged((*decision.faults, *new))) if new else decision
