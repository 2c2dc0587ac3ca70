"""The metrics of our own: rules, reloads, watches, writes, shadow and canary."""

from __future__ import annotations

from typing import Final

from kdsl.obs.family import Family, Kind, Stability, exponential, named

_COUNTER, _GAUGE, _HISTOGRAM, _ALPHA = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Stability.ALPHA

KDSL: Final = named(
    [
        Family("kdsl_build_info", _GAUGE, _ALPHA, "1, with the version that runs.", ("version",)),
        Family("kdsl_decisions_total", _COUNTER, _ALPHA, "Decisions by outcome.", ("outcome", "profile")),
        Family("kdsl_rule_evaluations_total", _COUNTER, _ALPHA,
               "Nodes that a predicate was asked about.", ("profile", "rule")),
        Family("kdsl_rule_rejections_total", _COUNTER, _ALPHA,
               "Nodes that a predicate rejected.", ("profile", "rule")),
        Family("kdsl_rule_errors_total", _COUNTER, _ALPHA,
               "Decisions in which a rule or plugin went wrong.", ("profile", "rule")),
        Family("kdsl_rule_sampled_seconds_total", _COUNTER, _ALPHA,
               "Time of rules, asked alone about all nodes for one pod now and then.",
               ("extension_point", "profile", "rule")),
        Family("kdsl_rule_samples_total", _COUNTER, _ALPHA,
               "How often that was done.", ("extension_point", "profile", "rule")),
        Family("kdsl_rules_info", _GAUGE, _ALPHA, "1, with the digest of the active rules.", ("digest",)),
        Family("kdsl_reloads_total", _COUNTER, _ALPHA,
               "Attempts to take over changed rules or configuration: applied or refused.", ("result",)),
        Family("kdsl_reload_last_success_timestamp_seconds", _GAUGE, _ALPHA,
               "When rules or configuration were taken over last (Unix time)."),
        Family("kdsl_reload_is_refused", _GAUGE, _ALPHA,
               "1 while the files differ from what runs because they cannot be used, else 0."),
        Family("kdsl_watch_lag_seconds", _GAUGE, _ALPHA,
               "Time since the API server said anything on the watch of a resource.", ("resource",)),
        Family("kdsl_watch_synced", _GAUGE, _ALPHA,
               "1 where a resource was listed and is watched, else 0.", ("resource",)),
        Family("kdsl_watch_events_total", _COUNTER, _ALPHA, "Events of watches.", ("resource", "type")),
        Family("kdsl_watch_failures_total", _COUNTER, _ALPHA,
               "Lists and watches that failed, by the reason.", ("reason", "resource")),
        Family("kdsl_inbox_depth", _GAUGE, _ALPHA, "Changes that the scheduling thread has not taken in."),
        Family("kdsl_outbox_depth", _GAUGE, _ALPHA, "Writes that wait to be sent, by kind.", ("kind",)),
        Family("kdsl_bindings_inflight", _GAUGE, _ALPHA, "Pods decided whose binding is not answered yet."),
        Family("kdsl_events_dropped_total", _COUNTER, _ALPHA,
               "Events (of events.k8s.io) that were not written, by the reason.", ("reason",)),
        Family("kdsl_foreign_binds_total", _COUNTER, _ALPHA,
               "Pods of ours that somebody else bound: another scheduler has our name."),
        Family("kdsl_decision_to_bound_seconds", _HISTOGRAM, _ALPHA,
               "Time from a decision to the API server's answer to its binding.", (),
               exponential(0.001, 2, 15)),
        Family("kdsl_shadow_decisions_total", _COUNTER, _ALPHA,
               "Pods that another scheduler bound, by what told our decision from it (equal: nothing).",
               ("cause",)),
        Family("kdsl_canary_decisions_total", _COUNTER, _ALPHA,
               "Decisions of each of two rule sets.", ("outcome", "side")),
        Family("kdsl_extender_calls_total", _COUNTER, _ALPHA,
               "Calls of another scheduler or of the API server, by the status that they were answered with.",
               ("code", "verb")),
        Family("kdsl_extender_call_seconds", _HISTOGRAM, _ALPHA,
               "Time from such a call to its answer.", ("verb",), exponential(0.0005, 2, 15)),
        Family("kdsl_state_is_stale", _GAUGE, _ALPHA,
               "1 where the scheduling thread did not answer this scrape: sizes are older."),
    ]
)  # fmt: skip
