"""Expressions that stay the same from one attempt of a signature to the next, or only need an update.

A value that depends only on the pod's signature and the catalog stays the same. A count that depends only on
those, and on the pods and nodes that it counts, is updated by the changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from kdsl.check.model.typed import Aggregate, Bind, CallOf, Comprehension, FieldOf, Macro, TypedExpr, Var
from kdsl.cluster.snapshot.catalog import CatalogWord

_CATALOG: Final = frozenset(CatalogWord)
_FACTS: Final = frozenset({"cluster.static"})
COUNTS: Final = ("TopologyCount", "PodTermCount")


def is_stable(*exprs: TypedExpr | None) -> bool:
    """Return whether expressions read nothing but the pod and the catalog."""
    return all(expr is None or _are_stable(expr.reads) for expr in exprs)


@lru_cache(maxsize=4096)
def _are_stable(reads: frozenset[str]) -> bool:
    return all(word.startswith("pod.") or word in _CATALOG for word in reads)


def is_static(condition: TypedExpr, node: Var, others: Iterable[Var]) -> bool:
    """Return whether a condition on `node`, one of a list, reads nothing but the pod, the catalog and facts
    of nodes; `others` are its other variables.
    """
    return is_stable(*others) and _are_stable(condition.reads - node.reads - _FACTS)


def is_count(expr: TypedExpr) -> bool:
    """Return whether an expression, after `capture`, is a count or a list of counts with stable questions."""
    match expr:
        case Bind(value=value, body=body):
            return is_stable(value) and is_count(body)
        case Comprehension(macro=Macro.MAP, iterable=iterable, where=None, body=body):
            return is_stable(iterable) and is_count(body)
        case Aggregate(target=target) if expr.type.name in COUNTS:
            return _is_counted(target)
    return False


def _is_counted(expr: TypedExpr) -> bool:
    match expr:
        case Bind(value=value, body=body):
            return is_stable(value) and _is_counted(body)
        case Aggregate(target=target):
            return _is_counted(target)
        case CallOf(function="Cluster.topology", args=(Var(), key)):
            return is_stable(key)
        case FieldOf(operand=Var()):
            return expr.type.name == "PodTerms"
    return False
