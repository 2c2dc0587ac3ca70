"""What a plugin that fails looks like to the cycle: one exception type that names the plugin and the
extension point.
"""

from __future__ import annotations

from kdsl.base.errors import KdslError
from kdsl.hooks.status import Code, Status

# kube-scheduler's wording for each extension point (`{plugin}` is quoted as Go quotes it).
_TEXTS = {
    "pre_filter": 'running PreFilter plugin "{plugin}": {reason}',
    "add_pod": 'running AddPod on PreFilter plugin "{plugin}": {reason}',
    "remove_pod": 'running RemovePod on PreFilter plugin "{plugin}": {reason}',
    "filter": 'running "{plugin}" filter plugin: {reason}',
    # What judges all feasible nodes speaks for itself, as extenders do.
    "filter_feasible": "{reason}",
    "post_filter": 'running PostFilter plugin "{plugin}": {reason}',
    "may_preempt": 'running preemption "{plugin}": {reason}',
    "find_victims": 'running preemption "{plugin}": {reason}',
    "enough_candidates": 'running preemption "{plugin}": {reason}',
    "trim_candidates": 'running preemption "{plugin}": {reason}',
    "rank_candidate": 'running preemption "{plugin}": {reason}',
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
    "pre_bind": 'running PreBind plugin "{plugin}": {reason}',
    "bind": 'running Bind plugin "{plugin}": {reason}',
    "post_bind": 'running PostBind plugin "{plugin}": {reason}',
    "pre_enqueue": 'running PreEnqueue plugin "{plugin}": {reason}',
    "queue_sort": 'running QueueSort plugin "{plugin}": {reason}',
}


class PluginError(KdslError):
    """A plugin went wrong: it raised, answered with an error, or gave an answer of the wrong shape.

    `point` is the name of a hook, or `score_range` for a normalised score outside 0..100. The text is
    kube-scheduler's.
    """

    def __init__(self, plugin: str, point: str, reason: str) -> None:
        self.plugin = plugin
        self.point = point
        self.reason = reason
        super().__init__(_TEXTS[point].format(plugin=plugin, reason=reason))

    @classmethod
    def raised(cls, plugin: str, point: str, cause: Exception) -> PluginError:
        """Wrap what a plugin raised; chain it with `raise … from cause`."""
        return cls(plugin, point, f"{type(cause).__name__}: {cause}")

    @classmethod
    def answered(cls, plugin: str, point: str, status: Status) -> PluginError:
        """Wrap a status that is neither success nor an answer allowed at this point."""
        default = f"unexpected status {status.code.label}"
        return cls(plugin, point, status.message or default)

    @property
    def status(self) -> Status:
        """The error as a status, stamped with the plugin."""
        return Status(Code.ERROR, (str(self),), self.plugin)
