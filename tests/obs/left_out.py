"""Families of kube-scheduler that kdsl does not have."""

from __future__ import annotations

from typing import Final

_NO_EXEC: Final = "the library that reads credentials reports nothing about exec plugins"
_NO_TRANSPORT: Final = "a process has one connection pool, and no cache of transports"
_NO_BATCH: Final = "rules share answers among pods of one signature: there is no batch of node hints"
_NO_WORKQUEUE: Final = "kdsl has no controllers: certificates and client CAs are reread without a work queue"

LEFT_OUT: Final = {
    "rest_client_exec_plugin_certificate_rotation_age": _NO_EXEC,
    "rest_client_exec_plugin_ttl_seconds": _NO_EXEC,
    "rest_client_transport_cache_entries": _NO_TRANSPORT,
    "rest_client_transport_cert_rotation_gc_calls_total": _NO_TRANSPORT,
    "rest_client_transport_create_calls_total": _NO_TRANSPORT,
    "scheduler_batch_attempts_total": _NO_BATCH,
    "scheduler_batch_cache_flushed_total": _NO_BATCH,
    "scheduler_get_node_hint_duration_seconds": _NO_BATCH,
    "scheduler_store_schedule_results_duration_seconds": _NO_BATCH,
    "scheduler_event_handling_duration_seconds":
        "one thread applies changes between decisions: `kdsl_inbox_depth` shows those that wait",
    "scheduler_plugin_execution_duration_seconds":
        "the rules of a profile run as one: a clock around each would cost more than most rules",
    "scheduler_queueing_hint_execution_duration_seconds":
        "the reads of rules decide which events wake pods, for all pods of a kind at once: no hint runs",
    **dict.fromkeys(
        (
            "workqueue_adds_total", "workqueue_depth", "workqueue_longest_running_processor_seconds",
            "workqueue_queue_duration_seconds", "workqueue_retries_total",
            "workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds",
        ),
        _NO_WORKQUEUE,
    ),
}  # fmt: skip
"""Families of kube-scheduler that are missing because there is nothing to count, with the reason."""
