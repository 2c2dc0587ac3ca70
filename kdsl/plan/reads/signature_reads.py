"""The reads of a rule for signatures, with the parts of a pod's labels and annotations that it reads.

Pods of Jobs have labels of their own, such as `job-name`. They are not part of the signature of a rule that
reads labels by selectors, or at constant keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kdsl.check.model.rule_set import CheckedFn, Fns
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallFn, CallOf, Const, FieldOf, HasField, TypedExpr, Var
from kdsl.eval.ir import looked_up
from kdsl.eval.views import READ_OF_PODS

LABELS: Final = "pod.labels"
SELECTED_LABELS: Final = "pod.selectedLabels"
"""The word for the labels that any selector names."""

BY_SELECTORS: Final = frozenset(
    {
        *("Cluster.spreadConstraints", "Cluster.services", "Cluster.workloads"),
        *(method for method, read in READ_OF_PODS.items() if "labels" in read),
    }
)
"""The methods that read the labels of a pod by selectors."""

_FIELDS: Final = {LABELS: "labels", "pod.annotations": "annotations"}
"""The maps that no other method reads, by their words."""


def word_at(word: str, key: str) -> str:
    """Return the word for the value of a map at a key."""
    return f"{word}[{key}]"


def split_word(word: str) -> tuple[str, str | None]:
    """Return the word of a map and the key; None for the word of something else."""
    name, bracket, key = word.partition("[")
    return name, key[:-1] if bracket else None


def signature_reads(reads: frozenset[str], exprs: Iterable[TypedExpr], fns: Fns) -> frozenset[str]:
    """Return the reads of expressions for signatures: instead of a map as a whole its values at some keys,
    and the selected labels, if expressions read nothing else of it.
    """
    exprs = tuple(exprs)
    for word, field in _FIELDS.items():
        if word in reads:
            parts = _MapParts(word, field, fns)
            if all(map(parts.add, exprs)):
                reads = reads - {word} | parts.words
    return reads


class _MapParts:
    """The words for the parts of a map of the pod that expressions read."""

    def __init__(self, word: str, field: str, fns: Fns) -> None:
        self.words: set[str] = set()
        self._word = word
        self._field = field
        self._fns = fns
        self._known: set[str] = set()

    def add(self, expr: TypedExpr) -> bool:
        """Add the parts that an expression reads; return whether these are all."""
        word = self._word
        # A variable repeats the reads of its value, which is checked where it stands.
        if word not in expr.reads or isinstance(expr, Var):
            return True
        match looked_up(expr):
            case FieldOf(field=field, operand=pod), Const(value=str(key)) if field == self._field:
                self.words.add(word_at(word, key))
                return self.add(pod)
        parts = list(children(expr))
        match expr:
            case FieldOf(field=field) | HasField(field=field) if field == self._field:
                return False
            case CallFn(fn=name):
                fn = self._fns[name]
                if not isinstance(fn, CheckedFn):
                    return False
                if name not in self._known:
                    self._known.add(name)
                    parts.append(fn.body)
            case CallOf(function=function) if word == LABELS and function in BY_SELECTORS:
                self.words.add(SELECTED_LABELS)
            case _ if not any(word in part.reads for part in parts):
                return False
        return all(map(self.add, parts))
