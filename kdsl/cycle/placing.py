"""Takes a chosen node to a bound pod: assume, reserve, permit, bind; or takes everything back.

Every change goes through a `Statement`. Whatever fails, the pod loses its nomination, as in kube-scheduler.
Binding may be done beside the cycle: the pod stays assumed until it is known what came of it.
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

    def place(self, attempt: Attempt, decision: Decision) -> Decision:
        """Set the decision's node aside, ask for permission, and bind unless a plugin asks to wait."""
        node, statement = decision.node, Statement(self.cluster)
        reserved = Reserved(attempt, decision, statement)
        statement.assume(attempt, node)
        self.nominator.delete(attempt.pod, placed_on=node)
        try:
            rejection = statement.reserve(attempt, node)
            if rejection is not None:
                return self.turn_away(reserved, rejection)
            permission = run_permits(attempt, node)
        except PluginError as error:
            return self._fail(reserved, str(error), error.fault)
        if permission.rejection is not None:
            return self.turn_away(reserved, permission.rejection)
        if permission.waits:
            self.waiting.hold(attempt.pod.key, permission.waits, self.clock.now(), reserved)
            return decision.with_fields(outcome=Outcome.WAITING, message=WAITING)
        return self.bind(reserved)

    def bind(self, reserved: Reserved) -> Decision:
        """Bind a pod that nothing holds any more, or begin to."""
        try:
            result = self.bindings.begin(reserved)
        except PluginError as error:
            return self._fail(reserved, str(error), error.fault)
        if result is not None:
            return self.close(result)
        self.under_way[reserved.attempt.pod.key] = reserved
        return reserved.decision.with_fields(outcome=Outcome.BINDING)

    def finish(self, result: BindingResult) -> Decision | None:
        """End a binding that was under way; None where the pod was given up meanwhile."""
        reserved = result.reserved
        key = reserved.attempt.pod.key
        if self.under_way.get(key) is not reserved:
            reserved.statement.discard()
            return None
        del self.under_way[key]
        return self.close(result)

    def close(self, result: BindingResult) -> Decision:
        """Keep what was reserved, or give it back, as a binding came out."""
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
        """Give back at once the room of a pod that is gone; False where none is set aside for it.

        The rest is given back at once as well where nothing is under way, else when that is over.
        """
        held = self.waiting.take(key)
        reserved = held or self.under_way.pop(key, None)
        if reserved is None:
            return False
        self.nominator.delete(reserved.attempt.pod)
        if held is not None:
            reserved.statement.discard()
        else:
            reserved.statement.release(key)
        return True

    def turn_away(self, reserved: Reserved, rejection: Status) -> Decision:
        """Give everything back because a plugin refused the pod on this node."""
        message = single_node_message(rejection)
        decision = self._give_back(reserved, Outcome.UNSCHEDULABLE, message, rejection.faults)
        return decision.with_fields(turned_away=rejection)

    def _fail(self, reserved: Reserved, message: str, fault: Fault) -> Decision:
        """Give everything back because a plugin went wrong."""
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
    """Return the decision with what went wrong since it was written, plugins' own notes included."""
    decision, state = reserved.decision, reserved.attempt.state
    new = (*state.take_faults(), *faults) if state.has_faults else tuple(faults)
    return decision.with_fields(faults=merged((*decision.faults, *new))) if new else decision
