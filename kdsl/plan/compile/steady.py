"""What stays as it is from one attempt to the next, and what has only to be brought up to date.

A value that depends on nothing but the kind of the pod and the catalog is the same for the next pod of that
kind. A count that depends on nothing else beside the pods and nodes that it counts knows what changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kdsl.check.model.typed import Aggregate, Bind, CallOf, Comprehension, FieldOf, Macro, TypedExpr, Var
from kdsl.cluster.snapshot.catalog import CatalogWord

_CATALOG: Final = frozenset(CatalogWord)
_COUNTS: Final = ("TopologyCount", "PodTermCount")


def is_steady(*exprs: TypedExpr | None) -> bool:
    """Tell whether expressions read nothing but the pod and the catalog."""
    return all(expr is None or _are_steady(expr.reads) for expr in exprs)


@lru_cache(maxsize=4096)
def _are_steady(reads: frozenset[str]) -> bool:
    return all(word.startswith("pod.") or word in _CATALOG for word in reads)


def is_count(expr: TypedExpr) -> bool:
    """Tell whether an expression, as `capture` left it, is a count, or a list of counts, of which only what
    is counted changes.
    """
    match expr:
        case Bind(value=value, body=body):
            return is_steady(value) and is_count(body)
        case Comprehension(macro=Macro.MAP, iterable=iterable, where=None, body=body):
            return is_steady(iterable) and is_count(body)
        case Aggregate(target=target) if expr.type.name in _COUNTS:
            return _is_counted(target)
    return False


def _is_counted(expr: TypedExpr) -> bool:
    match expr:
        case Bind(value=value, body=body):
            return is_steady(value) and _is_counted(body)
        case Aggregate(target=target):
            return _is_counted(target)
        case CallOf(function="Cluster.topology", args=(Var(), key)):
            return is_steady(key)
        case FieldOf(operand=Var()):
            return expr.type.name == "PodTerms"
    return False
