"""The phases after a node is reserved: Permit, PreBind, Bind and PostBind."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from kdsl.cycle.attempt import Attempt
from kdsl.hooks.errors import PluginError, ask
from kdsl.hooks.specs import Wait
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import Calls, OnNode

MINUTE = 60 * 10**9
MAX_WAIT = 15 * MINUTE
WAITING = "one or more plugins asked to wait and no plugin rejected pod"
NOT_BOUND = "no bind plugin took the pod"


class Permission(Struct, frozen=True):
    """The result of Permit: a rejection, or the plugins that ask to wait with their timeouts (nanoseconds).

    It is empty where all hooks allow the pod.
    """

    rejection: Status | None = None
    waits: dict[str, int] = field(default_factory=dict)


_GRANTED: Final = Permission()


def run_permits(attempt: Attempt, node: str) -> Permission:
    """Run the Permit hooks until one rejects; raises PluginError where one fails.

    A wait is at most 15 minutes.
    """
    waits: dict[str, int] = {}
    for plugin, call in attempt.table.permits:
        answer = ask(plugin, "permit", call, attempt.state, attempt.pod, node)
        if isinstance(answer, Wait):
            waits[plugin] = min(answer.timeout, MAX_WAIT)
        elif answer is None or answer.code is Code.SUCCESS:
            continue
        elif answer.code.is_rejection:
            return Permission(rejection=answer.by(plugin))
        else:
            raise PluginError.answered(plugin, "permit", answer)
    return Permission(waits=waits) if waits else _GRANTED


def pre_binds_with_work(attempt: Attempt, node: str) -> Calls[OnNode]:
    """Return the PreBind hooks that have work for the pod; raises PluginError where a preflight hook fails.

    A plugin without a preflight hook counts as having work.
    """
    table = attempt.table
    if not table.pre_flights:
        return table.pre_binds
    found = []
    for plugin, call in table.pre_binds:
        flight = table.pre_flights.get(plugin)
        if flight is None or _succeeds(attempt, node, plugin, "pre_bind_pre_flight", flight):
            found.append((plugin, call))
    return tuple(found)


def run_pre_binds(attempt: Attempt, node: str, calls: Calls[OnNode]) -> None:
    """Run PreBind hooks; raises PluginError where one does not succeed."""
    for plugin, call in calls:
        _succeeds(attempt, node, plugin, "pre_bind", call)


def run_binds(attempt: Attempt, node: str) -> Status | None:
    """Run Bind hooks; raises PluginError where one does not succeed.

    The first that does not answer SKIP ends the phase. Returns an error status where all answer SKIP.
    """
    for plugin, call in attempt.table.binds:
        if _succeeds(attempt, node, plugin, "bind", call):
            return None
    return Status(Code.ERROR, (NOT_BOUND,))


def run_post_binds(attempt: Attempt, node: str) -> list[PluginError]:
    """Run the PostBind hooks; return their errors, which leave the pod bound."""
    faults: list[PluginError] = []
    for plugin, call in attempt.table.post_binds:
        try:
            ask(plugin, "post_bind", call, attempt.state, attempt.pod, node)
        except PluginError as error:
            faults.append(error)
    return faults


def _succeeds(attempt: Attempt, node: str, plugin: str, point: str, call: OnNode) -> bool:
    """Call a hook; return False where it answers SKIP. Raises PluginError where it fails."""
    try:
        status = call(attempt.state, attempt.pod, node)
    except Exception as cause:
        # As `ask`: the hot path.
        raise PluginError.raised(plugin, point, cause) from cause
    if status is None or status.code is Code.SUCCESS:
        return True
    if status.code is not Code.SKIP:
        raise PluginError.answered(plugin, point, status)
    return False
