"""The failure of a plugin, for the cycle: one exception type that names the plugin and the extension
point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from kdsl.base.containment import contain, describe, origin_of
from kdsl.base.errors import KdslError
from kdsl.hooks.faults import Fault, lines_of
from kdsl.hooks.status import Code, Status

A = TypeVarTuple("A")
R = TypeVar("R")

# kube-scheduler's wording for each extension point (`{plugin}` is quoted as Go quotes it).
_TEXTS = {
    "pre_filter": 'running PreFilter plugin "{plugin}": {reason}',
    "add_pod": 'running AddPod on PreFilter plugin "{plugin}": {reason}',
    "remove_pod": 'running RemovePod on PreFilter plugin "{plugin}": {reason}',
    "filter": 'running "{plugin}" filter plugin: {reason}',
    "decided_by": 'running DecidedBy plugin "{plugin}": {reason}',
    # The reason stands alone for hooks that judge all feasible nodes, such as extenders.
    "filter_feasible": "{reason}",
    "post_filter": 'running PostFilter plugin "{plugin}": {reason}',
    "may_preempt": 'running preemption "{plugin}": {reason}',
    "find_victims": 'running preemption "{plugin}": {reason}',
    "enough_candidates": 'running preemption "{plugin}": {reason}',
    "trim_candidates": 'running preemption "{plugin}": {reason}',
    "may_have_victims": 'running preemption "{plugin}": {reason}',
    "choose_candidate": 'running preemption "{plugin}": {reason}',
    "pre_score": 'running PreScore plugin "{plugin}": {reason}',
    "score": 'running Score plugins: plugin "{plugin}" failed with: {reason}',
    "normalize_score": 'running Normalize on Score plugins: plugin "{plugin}" failed with: {reason}',
    "add_scores": 'running AddScores plugin "{plugin}": {reason}',
    "score_range": (
        'plugin "{plugin}" returns an invalid score {reason}, '
        "it should in the range of [0, 100] after normalizing"
    ),
    "reserve": 'running Reserve plugin "{plugin}": {reason}',
    "unreserve": 'running Unreserve plugin "{plugin}": {reason}',
    "permit": 'running Permit plugin "{plugin}": {reason}',
    "pre_bind_pre_flight": 'running PreBindPreFlight "{plugin}": {reason}',
    "pre_bind": 'running PreBind plugin "{plugin}": {reason}',
    "bind": 'running Bind plugin "{plugin}": {reason}',
    "post_bind": 'running PostBind plugin "{plugin}": {reason}',
    "pre_enqueue": 'running PreEnqueue plugin "{plugin}": {reason}',
    "clone": 'cloning "{plugin}" of the state of an attempt: {reason}',
    "queue_sort": 'running QueueSort plugin "{plugin}": {reason}',
    "queueing_hint": 'running QueueingHint of plugin "{plugin}": {reason}',
    "queueing_hints": 'running QueueingHints of plugin "{plugin}": {reason}',
    "hint_signature": 'running HintSignature of plugin "{plugin}": {reason}',
}

_ALONE = frozenset({("Extender", "bind")})
"""A plugin and a point whose reason is the whole text: messages of extenders are shown unchanged."""


class PluginError(KdslError):
    """A plugin failed: it raised, answered with an error, or gave an answer of the wrong shape.

    `point` is the name of a hook, or `score_range` for a normalized score outside 0..100. The text is
    kube-scheduler's. For the point `clone` the plugin is the key under which it keeps a value. `fault` is the
    error as decisions record it.
    """

    def __init__(self, plugin: str, point: str, reason: str, fault: Fault | None = None) -> None:
        self.plugin = plugin
        self.point = point
        self.reason = reason
        text = _TEXTS[point].format(plugin=plugin, reason=reason)
        super().__init__(reason if (plugin, point) in _ALONE else text)
        self.fault = Fault(plugin, str(self)) if fault is None else fault

    @classmethod
    def raised(cls, plugin: str, point: str, cause: Exception) -> PluginError:
        """Wrap an exception of a plugin; chain it with `raise … from cause`."""
        error = cls(plugin, point, describe(cause))
        origin = origin_of(cause)
        known = contain(getattr, origin, "fault", None)
        # The outermost frame is the caller's, not the plugin's.
        trace = origin.__traceback__.tb_next if origin.__traceback__ is not None else None
        error.fault = known if type(known) is Fault else Fault(plugin, str(error), code=lines_of(trace))
        return error

    @classmethod
    def answered(cls, plugin: str, point: str, status: Status) -> PluginError:
        """Wrap a status that is neither success nor an answer allowed at this point."""
        default = f"unexpected status {status.code.label}"
        known = status.faults[0] if status.faults else None
        return cls(plugin, point, status.message or default, known)

    @property
    def status(self) -> Status:
        """Return the error as a status with the plugin's name."""
        return Status(Code.ERROR, (str(self),), self.plugin, faults=(self.fault,))


def ask(plugin: str, point: str, hook: Callable[[*A], R], *given: *A) -> R:
    """Call a hook; raises PluginError where it raises."""
    try:
        return hook(*given)
    except Exception as cause:
        raise PluginError.raised(plugin, point, cause) from cause
