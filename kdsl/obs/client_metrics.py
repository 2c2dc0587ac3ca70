"""Metrics of requests to the API server, and of reloads, leading, shadow and canary.

One thread writes to each class; the methods take plain values, so their callers need only a protocol of their
own.
"""

from __future__ import annotations

from collections.abc import Callable

from kdsl.obs.registry import Registry


class ClientMetrics:
    """Counts requests, watches, preemptions, and dropped events."""

    def __init__(self, registry: Registry, host: str, clock: Callable[[], float]) -> None:
        """`clock` returns monotonic seconds."""
        numbers, histogram = registry.numbers, registry.histogram
        self._host, self._clock = host, clock
        self._requests = numbers("rest_client_requests_total")
        self._durations = histogram("rest_client_request_duration_seconds")
        self._limits = histogram("rest_client_rate_limiter_duration_seconds")
        self._sent = histogram("rest_client_request_size_bytes")
        self._received = histogram("rest_client_response_size_bytes")
        self._retries = numbers("rest_client_request_retries_total")
        self._lag = numbers("kdsl_watch_lag_seconds")
        self._synced = numbers("kdsl_watch_synced")
        self._events = numbers("kdsl_watch_events_total")
        self._failures = numbers("kdsl_watch_failures_total")
        self._dropped = numbers("kdsl_events_dropped_total")
        for reason in ("dropped", "failed"):
            self._dropped.add((reason,), 0)
        self._preemptions = numbers("scheduler_preemption_goroutines_execution_total")
        self._preempting = histogram("scheduler_preemption_goroutines_duration_seconds")
        for result in ("success", "error"):
            self._preemptions.add((result,), 0)
        self._heard: dict[str, float] = {}
        registry.before_scrape.append(self._measure_lag)

    def answered(self, method: str, code: int, seconds: float, sent: int, received: int) -> None:
        """Count the answer to a request (`code` 0: there was none) and the bytes of both bodies."""
        self._requests.add((str(code) if code else "<error>", self._host, method))
        where = (self._host, method)
        self._durations.observe(seconds, where)
        self._sent.observe(sent, where)
        if code:
            self._received.observe(received, where)

    def limited(self, method: str, seconds: float) -> None:
        """Add the time that a request waited for the client's own limit."""
        self._limits.observe(seconds, (self._host, method))

    def retried(self, method: str, code: int) -> None:
        """Count a repeated request."""
        self._retries.add((str(code) if code else "<error>", self._host, method))

    def received(self, resource: str, kind: str) -> None:
        """Count an event of a watch (`ADDED`, `BOOKMARK`); any event ends the lag."""
        self._heard[resource] = self._clock()
        self._events.add((resource, kind))

    def synced(self, resource: str, is_synced: bool) -> None:
        """Set whether a resource was listed and is watched."""
        self._heard.setdefault(resource, self._clock())
        self._synced.set(int(is_synced), (resource,))

    def not_watched(self, resource: str) -> None:
        """Forget a resource: its silence is no fault."""
        self._heard.pop(resource, None)
        self._synced.remove((resource,))

    def watch_failed(self, resource: str, reason: str) -> None:
        """Count a failure; `reason` is one of a closed set: `expired`, `forbidden`, `no answer`."""
        self._failures.add((reason, resource))

    def event_dropped(self, reason: str) -> None:
        """Count a dropped event."""
        self._dropped.add((reason,))

    def preempted(self, is_done: bool, seconds: float) -> None:
        """Count a preemption carried out, and add its time."""
        result = ("success" if is_done else "error",)
        self._preemptions.add(result)
        self._preempting.observe(seconds, result)

    def _measure_lag(self) -> None:
        now = self._clock()
        heard = self._heard.copy()
        self._lag.replace({(resource,): max(0.0, now - when) for resource, when in heard.items()})


class LeaderMetrics:
    """Shows whether this instance leads."""

    def __init__(self, registry: Registry, lease: str) -> None:
        self._lease = (lease,)
        self._status = registry.numbers("leader_election_master_status")
        self._slow = registry.numbers("leader_election_slowpath_total")
        self.leads(False)

    def leads(self, is_leader: bool) -> None:
        """Set whether this instance holds the lease."""
        self._status.set(int(is_leader), self._lease)

    def read_first(self) -> None:
        """Count a renewal that had to read the lease first."""
        self._slow.add(self._lease)


class ReloadMetrics:
    """Counts reloads, reported by `kdsl.live.rules.reloading`."""

    def __init__(self, registry: Registry) -> None:
        self._reloads = registry.numbers("kdsl_reloads_total")
        self._last = registry.numbers("kdsl_reload_last_success_timestamp_seconds")
        self._refused = registry.numbers("kdsl_reload_is_refused")
        for result in ("applied", "refused"):
            self._reloads.add((result,), 0)
        self._refused.set(0)

    def applied(self, unix_seconds: float) -> None:
        """Count a reload that took effect."""
        self._reloads.add(("applied",))
        self._last.set(unix_seconds)
        self._refused.set(0)

    def refused(self) -> None:
        """Count an unusable change."""
        self._reloads.add(("refused",))
        self._refused.set(1)


class ComparisonMetrics:
    """Counts the results of shadow and canary."""

    def __init__(self, registry: Registry) -> None:
        self._shadow = registry.numbers("kdsl_shadow_decisions_total")
        self._canary = registry.numbers("kdsl_canary_decisions_total")

    def compared(self, cause: str) -> None:
        """Count a pod that another scheduler bound, by the cause of the difference."""
        self._shadow.add((cause,))

    def decided(self, side: str, outcome: str) -> None:
        """Count a decision of one side of a canary."""
        self._canary.add((outcome, side))


class ExtenderMetrics:
    """Counts the calls that are answered for another scheduler."""

    def __init__(self, registry: Registry) -> None:
        self._calls = registry.numbers("kdsl_extender_calls_total")
        self._seconds = registry.histogram("kdsl_extender_call_seconds")

    def called(self, verb: str, status: int, seconds: float) -> None:
        """Count a call, by the status that it was answered with."""
        self._calls.add((str(status), verb))
        self._seconds.observe(seconds, (verb,))
