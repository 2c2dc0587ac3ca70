"""The metrics specific to kdsl: rules, reloads, watches, writes, shadow and canary."""

from __future__ import annotations

from typing import Final

from kdsl.obs.family import Family, MetricType, Stability, exponential, named

_COUNTER, _GAUGE, _HISTOGRAM, _ALPHA = (
    MetricType.COUNTER,
    MetricType.GAUGE,
    MetricType.HISTOGRAM,
    Stability.ALPHA,
)

KDSL: Final = named(
    [
        Family("kdsl_build_info", _GAUGE, _ALPHA, "1, with the running version.", ("version",)),
        Family("kdsl_decisions_total", _COUNTER, _ALPHA, "Decisions by outcome.", ("outcome", "profile")),
        Family("kdsl_rule_evaluations_total", _COUNTER, _ALPHA,
               "Nodes that a predicate evaluated.", ("profile", "rule")),
        Family("kdsl_rule_rejections_total", _COUNTER, _ALPHA,
               "Nodes that a predicate rejected.", ("profile", "rule")),
        Family("kdsl_rule_errors_total", _COUNTER, _ALPHA,
               "Decisions in which a rule or plugin failed.", ("profile", "rule")),
        Family("kdsl_rules_info", _GAUGE, _ALPHA, "1, with the digest of the active rules.", ("digest",)),
        Family("kdsl_reloads_total", _COUNTER, _ALPHA,
               "Reloads of changed rules or configuration: applied or refused.", ("result",)),
        Family("kdsl_reload_last_success_timestamp_seconds", _GAUGE, _ALPHA,
               "Time of the last applied reload (Unix time)."),
        Family("kdsl_reload_is_refused", _GAUGE, _ALPHA,
               "1 while the files have errors, so that older rules run, else 0."),
        Family("kdsl_watch_lag_seconds", _GAUGE, _ALPHA,
               "Time since the last data of the API server on the watch of a resource.", ("resource",)),
        Family("kdsl_watch_synced", _GAUGE, _ALPHA,
               "1 if a resource was listed and is watched, else 0.", ("resource",)),
        Family("kdsl_watch_events_total", _COUNTER, _ALPHA, "Events of watches.", ("resource", "type")),
        Family("kdsl_watch_failures_total", _COUNTER, _ALPHA,
               "Lists and watches that failed, by reason.", ("reason", "resource")),
        Family("kdsl_inbox_depth", _GAUGE, _ALPHA, "Changes that the scheduling thread has not applied."),
        Family("kdsl_inbox_replaced_total", _COUNTER, _ALPHA,
               "Waiting changes that a later change of the same object replaced."),
        Family("kdsl_loop_errors_total", _COUNTER, _ALPHA,
               "Attempts, changes and messages that ended with an unexpected error."),
        Family("kdsl_outbox_depth", _GAUGE, _ALPHA, "Writes that wait, by kind.", ("kind",)),
        Family("kdsl_bindings_inflight", _GAUGE, _ALPHA, "Decided pods whose binding has no answer yet."),
        Family("kdsl_events_dropped_total", _COUNTER, _ALPHA,
               "Events (of events.k8s.io) that were not written, by reason.", ("reason",)),
        Family("kdsl_foreign_binds_total", _COUNTER, _ALPHA,
               "Our pods that another scheduler of the same name bound."),
        Family("kdsl_decision_to_bound_seconds", _HISTOGRAM, _ALPHA,
               "Time from a decision to the API server's answer to its binding.", (),
               exponential(0.001, 2, 15)),
        Family("kdsl_shadow_decisions_total", _COUNTER, _ALPHA,
               "Pods that another scheduler bound, by the cause of our other decision (equal: none).",
               ("cause",)),
        Family("kdsl_canary_decisions_total", _COUNTER, _ALPHA,
               "Decisions of each of two rule sets.", ("outcome", "side")),
        Family("kdsl_extender_calls_total", _COUNTER, _ALPHA,
               "Calls of kube-scheduler or the API server, by the status of the answer.",
               ("code", "verb")),
        Family("kdsl_extender_call_seconds", _HISTOGRAM, _ALPHA,
               "Time from such a call to its answer.", ("verb",), exponential(0.0005, 2, 15)),
        Family("kdsl_state_is_stale", _GAUGE, _ALPHA,
               "1 if the scheduling thread did not answer this scrape: sizes are older."),
    ]
)  # fmt: skip
