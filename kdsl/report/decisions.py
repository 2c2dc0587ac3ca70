"""Decisions as JSON documents: versioned, in camelCase, described by `schemas/v1alpha1.schema.json`."""

from __future__ import annotations

from kdsl.cycle.decision import Decision, NodeVerdict, PreFilter, ScoreCell, Victim
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Status

API_VERSION = "kdsl.dev/v1alpha1"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""A value of a JSON document."""


def decision_document(decision: Decision, traceback: bool = False) -> dict[str, Json]:
    """Return one decision as a document. It contains no times: equal runs give equal documents.

    With `traceback` it includes Python tracebacks of plugins.
    """
    document: dict[str, Json] = {
        "pod": decision.pod,
        "profile": decision.profile,
        "outcome": decision.outcome.value,
        "node": decision.node,
        "message": decision.message,
        "nodes": decision.nodes,
        "evaluated": decision.evaluated,
        "feasible": decision.feasible,
        "startIndex": decision.start,
        "sampled": decision.sampled,
        "preFilter": _prefilter(decision.prefilter),
        "rejections": [
            {
                "plugin": rejection.plugin,
                "code": rejection.code,
                "reason": rejection.reason,
                "site": rejection.site,
                "nodes": rejection.nodes,
                "error": rejection.is_error,
            }
            for rejection in decision.rejections
        ],
        "total": decision.total,
        "tied": decision.tied,
        "tieBreak": decision.tie_break.value,
        "postFilter": None if decision.postfilter is None else _status(decision.postfilter),
        "nominatedNode": decision.nominated,
        "victims": [_victim(victim) for victim in decision.victims],
        "rules": decision.rules,
        "snapshot": decision.snapshot,
    }
    if decision.faults:
        document["faults"] = [fault_document(fault, traceback) for fault in decision.faults]
    if decision.verdicts:
        document["verdicts"] = [_verdict(verdict) for verdict in decision.verdicts]
    return document


def _prefilter(prefilter: PreFilter) -> dict[str, Json]:
    return {
        "status": None if prefilter.status is None else _status(prefilter.status),
        "skipped": list(prefilter.skipped),
        "narrowedBy": list(prefilter.narrowed_by),
        "candidates": None if prefilter.candidates is None else list(prefilter.candidates),
    }


def _status(status: Status) -> dict[str, Json]:
    return {
        "code": status.code.label,
        "plugin": status.plugin,
        "reasons": list(status.reasons),
        "sites": list(status.sites),
        "error": status.is_error,
    }


def _victim(victim: Victim) -> dict[str, Json]:
    condition = victim.condition
    return {
        "pod": victim.pod,
        "condition": {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        },
    }


def _verdict(verdict: NodeVerdict) -> dict[str, Json]:
    return {
        "node": verdict.node,
        "feasible": verdict.feasible,
        "status": None if verdict.status is None else _status(verdict.status),
        "scores": [_cell(cell) for cell in verdict.scores],
        "total": verdict.total,
    }


def _cell(cell: ScoreCell) -> dict[str, Json]:
    return {
        "plugin": cell.plugin,
        "raw": cell.raw,
        "normalized": cell.normalized,
        "weight": cell.weight,
        "weighted": cell.weighted,
    }


def fault_document(fault: Fault, traceback: bool = False) -> dict[str, Json]:
    """Return a fault as JSON."""
    document: dict[str, Json] = {
        "source": fault.source,
        "message": fault.message,
        "site": fault.site,
        "nodes": fault.nodes,
        "firstNodes": list(fault.first),
    }
    if traceback and fault.code:
        document["traceback"] = [
            {"file": file, "line": line, "function": function} for file, line, function in fault.code
        ]
    return document
