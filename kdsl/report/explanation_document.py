"""Explanations as JSON documents, described by `schemas/v1alpha1.schema.json`."""

from __future__ import annotations

from kdsl.base.reasons import shortened
from kdsl.check.views.view import load_views
from kdsl.explain.atoms import Atom, Shown
from kdsl.explain.changes import WhatIfChange
from kdsl.explain.cures import Cure
from kdsl.explain.explanation import Explanation
from kdsl.explain.failed_requires import FailedRequire
from kdsl.explain.findings import Findings, JudgedNode, NodeFit, Rejected, RejectionGroup
from kdsl.explain.placement import Placement
from kdsl.explain.worlds import WorldChange
from kdsl.report.atoms import AtomPrinter, step_text
from kdsl.report.decisions import API_VERSION, Json, decision_document
from kdsl.report.explained_cards import cards_document, refused_document
from kdsl.report.values import ValuePrinter


def explanation_envelope(explanation: Explanation, traceback: bool = False) -> dict[str, Json]:
    """Return an explanation as a versioned document; with `traceback` it includes those of plugins."""
    printer = AtomPrinter(ValuePrinter(load_views()))
    findings, placement, before = explanation.findings, explanation.placement, explanation.before
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "decision": decision_document(explanation.decision, traceback),
        "home": explanation.home,
        "whatIf": list(explanation.changes),
        "before": None
        if before is None
        else {"outcome": before.outcome.value, "node": before.node, "message": before.message},
        "findings": None if findings is None else _findings(findings, printer),
        "placement": None if placement is None else _placement(placement),
        "cards": cards_document(explanation.cards, printer),
        "wakesOn": list(explanation.wakes),
    }


def _findings(findings: Findings, printer: AtomPrinter) -> dict[str, Json]:
    return {
        "nodes": findings.total,
        "passing": findings.passing,
        "never": findings.never,
        "errors": findings.errors,
        "unfinished": findings.unfinished,
        "rules": list(findings.rules),
        "reasons": [_group(group, printer) for group in findings.groups],
        "nearest": [_node(node, printer) for node in findings.nodes],
        "node": None if findings.asked is None else _node(findings.asked, printer),
        "home": None if findings.home is None else _node(findings.home, printer),
        "cures": [_cure(cure) for cure in findings.cures],
        "fits": [_fit(fit) for fit in findings.fits],
        "refusedCards": refused_document(findings.cards),
    }


def _group(group: RejectionGroup, printer: AtomPrinter) -> dict[str, Json]:
    return {
        "rule": group.rule,
        "code": group.code.label,
        "reason": group.reason,
        "site": group.site,
        "nodes": group.nodes,
        "alone": group.alone,
        "nearest": group.nearest,
        "failed": [_failed(each, printer) for each in group.failed],
        "error": group.is_error,
    }


def _node(node: JudgedNode, printer: AtomPrinter) -> dict[str, Json]:
    return {
        "node": node.node,
        "never": node.is_never,
        "shortage": round(node.shortage, 6),
        "rejected": [_rejected(each, printer) for each in node.rejected],
        "cards": cards_document(node.cards, printer),
    }


def _rejected(rejected: Rejected, printer: AtomPrinter) -> dict[str, Json]:
    return {
        "rule": rejected.rule,
        "code": rejected.code.label,
        "reasons": list(rejected.reasons),
        "sites": list(rejected.sites),
        "promised": rejected.promised,
        "error": rejected.is_error,
        "failed": [_failed(each, printer) for each in rejected.failed],
    }


def _failed(failed: FailedRequire, printer: AtomPrinter) -> dict[str, Json]:
    return {
        "reason": failed.reason,
        "site": failed.site,
        "condition": failed.condition,
        "decidedBy": [_atom(atom, printer) for atom in failed.atoms],
    }


def _atom(atom: Atom, printer: AtomPrinter) -> dict[str, Json]:
    operands = [part for part in atom.parts if isinstance(part, Shown)]
    return {
        "source": atom.source,
        "text": printer.text(atom),
        "holds": atom.holds,
        "operands": [_shown(each, printer) for each in operands],
        "items": [_shown(each, printer) for each in atom.items],
        "error": atom.error,
    }


def _shown(shown: Shown, printer: AtomPrinter) -> dict[str, Json]:
    return {"source": shown.source, "value": shortened(printer.values.text(shown.value, shown.type))}


def _cure(cure: Cure) -> dict[str, Json]:
    return {
        "rule": cure.rule,
        "node": cure.node,
        "kind": cure.kind.value,
        "steps": [_step(step) for step in cure.steps],
    }


def _fit(fit: NodeFit) -> dict[str, Json]:
    return {"node": fit.node, "steps": [_step(step) for step in fit.steps]}


def _step(step: WorldChange) -> dict[str, Json]:
    """Return a step; `whatIf` is the change to try it with, None if only its effect is known."""
    return {"text": step_text(step), "whatIf": step.text if isinstance(step, WhatIfChange) else None}


def _placement(placement: Placement) -> dict[str, Json]:
    return {
        "margin": placement.margin,
        "runnerUp": placement.runner_up,
        "tied": list(placement.tied),
        "without": [
            {"score": each.score, "node": each.node, "margin": each.margin} for each in placement.without
        ],
        "unvisited": placement.unvisited,
    }
