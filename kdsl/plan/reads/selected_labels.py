"""Rules that read the labels of pods through selectors only: labels that no selector names are not part of
the signature.

Pods of Jobs have labels of their own, such as `job-name`, that no selector names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kdsl.check.model.rule_set import CheckedFn, Fns
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallFn, CallOf, FieldOf, HasField, TypedExpr, Var

LABELS: Final = "pod.labels"
SELECTED_LABELS: Final = "pod.selectedLabels"
"""The word that stands for `LABELS` in the reads of such a rule."""

BY_SELECTORS: Final = frozenset(
    {
        *("Cluster.spreadConstraints", "Cluster.services", "Cluster.workloads"),
        *("PodAffinityTerm.matches", "PodGroup.includes", "SpreadConstraint.selects"),
    }
)
"""The methods that read the labels of a pod by selectors."""


def signature_reads(reads: frozenset[str], exprs: Iterable[TypedExpr], fns: Fns) -> frozenset[str]:
    """Return the reads of expressions for signatures: with the selected labels instead of all, if only
    selectors read labels.
    """
    if LABELS not in reads or not all(_are_selected(expr, fns, set()) for expr in exprs):
        return reads
    return reads - {LABELS} | {SELECTED_LABELS}


def _are_selected(expr: TypedExpr, fns: Fns, known: set[str]) -> bool:
    """Return whether an expression reads labels of pods by selectors only. `known` are visited functions."""
    # A variable repeats the reads of its value, which is checked where it stands.
    if LABELS not in expr.reads or isinstance(expr, Var):
        return True
    parts = list(children(expr))
    match expr:
        case FieldOf(field="labels") | HasField(field="labels"):
            return False
        case CallFn(fn=name):
            fn = fns[name]
            if not isinstance(fn, CheckedFn):
                return False
            if name not in known:
                known.add(name)
                parts.append(fn.body)
        case CallOf(function=function) if function in BY_SELECTORS:
            pass
        case _ if not any(LABELS in part.reads for part in parts):
            return False
    return all(_are_selected(part, fns, known) for part in parts)
