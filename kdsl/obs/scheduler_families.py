"""The metrics with kube-scheduler's names, types, labels and buckets, for which dashboards exist.

Names and figures are those of kube-scheduler 1.36; the help texts are our own.
"""

from __future__ import annotations

from typing import Final

from kdsl.obs.family import Family, MetricType, Stability, exponential, named

_ATTEMPT: Final = exponential(0.001, 2, 15)
_POINT: Final = exponential(0.0001, 2, 12)
_LONG: Final = exponential(0.01, 2, 20)
_REQUEST: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
_BYTES: Final = (64, 256, 512, *exponential(1024, 4, 8))

_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM
_STABLE, _BETA, _ALPHA = Stability.STABLE, Stability.BETA, Stability.ALPHA

SCHEDULER: Final = named(
    [
        Family("scheduler_schedule_attempts_total", _COUNTER, _STABLE,
               "Attempts to schedule pods, by result; error is a fault of scheduler or API.",
               ("profile", "result")),
        Family("scheduler_queue_incoming_pods_total", _COUNTER, _STABLE,
               "Pods that entered a part of the scheduling queue, by part and by event.",
               ("event", "queue")),
        Family("scheduler_preemption_attempts_total", _COUNTER, _STABLE,
               "Searches for victims of preemption."),
        Family("scheduler_pending_pods", _GAUGE, _STABLE,
               "Pending pods, by part of the queue.", ("queue",)),
        Family("scheduler_scheduling_attempt_duration_seconds", _HISTOGRAM, _STABLE,
               "Time of an attempt, the binding included.", ("profile", "result"), _ATTEMPT),
        Family("scheduler_framework_extension_point_duration_seconds", _HISTOGRAM, _STABLE,
               "Time of one extension point for one pod.", ("extension_point", "profile", "status"), _POINT),
        Family("scheduler_pod_scheduling_attempts", _HISTOGRAM, _STABLE,
               "Attempts of bound pods.", (), exponential(1, 2, 5)),
        Family("scheduler_preemption_victims", _HISTOGRAM, _STABLE,
               "Victims of one preemption.", (), exponential(1, 2, 7)),
        Family("scheduler_pod_scheduling_sli_duration_seconds", _HISTOGRAM, _BETA,
               "Time from the queue to the binding, all attempts and waits included.", ("attempts",), _LONG),
        Family("scheduler_permit_wait_duration_seconds", _HISTOGRAM, _BETA,
               "Time that pods waited on Permit, by result.", ("result",), _ATTEMPT),
        Family("scheduler_unschedulable_pods", _GAUGE, _BETA,
               "Pending pods, counted once for each plugin that rejected them.", ("plugin", "profile")),
        Family("scheduler_goroutines", _GAUGE, _BETA,
               "Concurrent tasks beside the scheduling thread, by kind.", ("operation",)),
        Family("scheduler_plugin_evaluation_total", _COUNTER, _BETA,
               "Evaluations of rules and plugins: one per node in Filter and Score, else one per pod.",
               ("extension_point", "plugin", "profile")),
        Family("scheduler_scheduling_algorithm_duration_seconds", _HISTOGRAM, _ALPHA,
               "Time of a decision, without the binding.", (), _ATTEMPT),
        Family("scheduler_inflight_events", _GAUGE, _ALPHA,
               "Events that the queue keeps while a pod is being tried.", ("event",)),
        Family("scheduler_cache_size", _GAUGE, _ALPHA,
               "Nodes, pods on nodes, and assumed pods.", ("type",)),
        Family("scheduler_pod_scheduled_after_flush_total", _COUNTER, _ALPHA,
               "Pods bound after a flush (five minutes without an event): each shows a missing event."),
        Family("scheduler_preemption_goroutines_execution_total", _COUNTER, _ALPHA,
               "Preemptions carried out, by result.", ("result",)),
        Family("scheduler_preemption_goroutines_duration_seconds", _HISTOGRAM, _ALPHA,
               "Time to delete the victims of one preemption.", ("result",), _LONG),
    ]
)  # fmt: skip

CLIENT: Final = named(
    [
        Family("rest_client_requests_total", _COUNTER, _ALPHA,
               "Answers of the API server by status code, method and host.", ("code", "host", "method")),
        Family("rest_client_request_duration_seconds", _HISTOGRAM, _ALPHA,
               "Time from a request to its answer.", ("host", "verb"), _REQUEST),
        Family("rest_client_rate_limiter_duration_seconds", _HISTOGRAM, _ALPHA,
               "Time that requests waited for the client's own limit.", ("host", "verb"), _REQUEST),
        Family("rest_client_request_size_bytes", _HISTOGRAM, _ALPHA,
               "Bytes of request bodies.", ("host", "verb"), _BYTES),
        Family("rest_client_response_size_bytes", _HISTOGRAM, _ALPHA,
               "Bytes of answers.", ("host", "verb"), _BYTES),
        Family("rest_client_request_retries_total", _COUNTER, _ALPHA,
               "Repeated requests, by the status that caused it.", ("code", "host", "verb")),
        Family("leader_election_master_status", _GAUGE, _ALPHA,
               "1 if this instance holds the lease, else 0.", ("name",)),
        Family("leader_election_slowpath_total", _COUNTER, _ALPHA,
               "Renewals of the lease that read it first.", ("name",)),
    ]
)  # fmt: skip

SLIS: Final = named(
    [
        Family("kubernetes_healthcheck", _GAUGE, _STABLE, "1 if the last run of a check passed, else 0.",
               ("name", "type")),
        Family("kubernetes_healthchecks_total", _COUNTER, _STABLE, "Answers of checks.",
               ("name", "status", "type")),
    ]
)  # fmt: skip
