"""Takes a chosen node to a bound pod: assume, reserve, permit, bind; or takes everything back.

Every change goes through a `Statement`. Whatever fails, the pod loses its nomination, as in kube-scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from kdsl.base.clock import Clock
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.binding import WAITING, run_binding, run_permits, run_post_binds
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.fit_error import single_node_message
from kdsl.cycle.nominator import Nominator
from kdsl.cycle.ports import ClusterSource
from kdsl.cycle.statement import Statement
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Status


class Reserved(Struct, frozen=True, eq=False):
    """A pod with a node set aside for it, and the decision that stands unless something fails on the way."""

    attempt: Attempt
    decision: Decision
    statement: Statement


@dataclass(frozen=True, slots=True)
class Placer:
    """The phases that change the cluster, for one engine."""

    cluster: ClusterSource
    clock: Clock
    nominator: Nominator
    waiting: WaitingPods[Reserved]

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
            return self._give_back(reserved, Outcome.ERROR, str(error))
        if permission.rejection is not None:
            return self.turn_away(reserved, permission.rejection)
        if permission.waits:
            self.waiting.hold(attempt.pod.key, permission.waits, self.clock.now(), reserved)
            return decision.with_fields(outcome=Outcome.WAITING, message=WAITING)
        return self.bind(reserved)

    def bind(self, reserved: Reserved) -> Decision:
        """Bind a pod that nothing holds any more."""
        attempt, node = reserved.attempt, reserved.decision.node
        try:
            failure = run_binding(attempt, node)
        except PluginError as error:
            return self._give_back(reserved, Outcome.ERROR, str(error))
        if failure is not None:
            return self._give_back(reserved, Outcome.ERROR, failure.message)
        reserved.statement.commit()
        faults = attempt.state.faults
        if attempt.table.post_binds:
            faults += map(str, run_post_binds(attempt, node))
        return reserved.decision.with_fields(faults=tuple(faults)) if faults else reserved.decision

    def turn_away(self, reserved: Reserved, rejection: Status) -> Decision:
        """Give everything back because a plugin refused the pod on this node."""
        decision = self._give_back(reserved, Outcome.UNSCHEDULABLE, single_node_message(rejection))
        return decision.with_fields(turned_away=rejection)

    def _give_back(self, reserved: Reserved, outcome: Outcome, message: str) -> Decision:
        reserved.statement.discard()
        self.nominator.clear(reserved.attempt.pod)
        faults = reserved.attempt.state.faults
        faults += map(str, reserved.statement.faults)
        return reserved.decision.with_fields(outcome=outcome, node="", message=message, faults=tuple(faults))
