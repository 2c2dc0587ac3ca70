"""The code of a rejection does not fit the facts that its condition reads.

`unschedulable` means that evicting pods may help, `unresolvable` that it cannot. Preemption relies on that. A
condition on the pod and on fixed facts of the node (labels, taints, allocatable) stays false after any
eviction: with `unschedulable`, preemption tries such nodes in vain. A condition on the pods of the node or of
the whole cluster may become true: with `unresolvable`, preemption skips nodes that it could free.

```
require node.labels[?"disk"].orValue("") == "ssd"
  else "node(s) had no SSD"
```

Write `else unresolvable "node(s) had no SSD"`. A condition that eviction makes worse, such as "only nodes
with pods", is rightly `unresolvable`: ignore the lint there and give the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix, Severity
from kdsl.base.span import Span
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Requirement, Subject, requirements
from kdsl.lang.choices import RejectionCode

_FIXED = frozenset(
    {
        *("node.static", "cluster.nodes", "cluster.images", "cluster.static", "-"),
        *("cluster.namespaces", "cluster.services", "cluster.storage", "cluster.budgets"),
    }
)
_EVICTABLE = frozenset({"node.usage", "cluster.pods"})
_ELSE = re.compile(r"[\s)]*else\s+(?P<code>((unschedulable|unresolvable)\s+)?)(?=\")")


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each `require` and `narrow to` whose code does not fit its reads, loops
    included.
    """
    for predicate in subject.predicates():
        narrow = predicate.narrow
        if narrow is not None and narrow.code is RejectionCode.UNSCHEDULABLE:
            yield _incurable("narrow to", narrow.names.span)
        certain = Certain.of(predicate)
        for requirement in requirements(predicate.body):
            if certain.truth(requirement.statement.condition) is not None:
                continue  # it reads facts, but does not depend on them: that is K0601
            code, span = requirement.statement.code, requirement.statement.condition.span
            reads = _reads(requirement)
            if code is RejectionCode.UNSCHEDULABLE and reads and all(map(_is_fixed, reads)):
                yield _incurable("require", span)
            elif code is RejectionCode.UNRESOLVABLE and reads & _EVICTABLE:
                fixes = _fixes(span, RejectionCode.UNSCHEDULABLE)
                yield Diagnostic(
                    LINT.code,
                    "this `require` is `unresolvable`, but eviction may cure it",
                    span,
                    "this reads the pods on the node",
                    Severity.WARNING,
                    help=() if fixes else ('write `else "…"`, without `unresolvable`',),
                    fixes=fixes,
                )


def _incurable(what: str, span: Span) -> Diagnostic:
    fixes = _fixes(span, RejectionCode.UNRESOLVABLE)
    return Diagnostic(
        LINT.code,
        f"this `{what}` is `unschedulable`, but no eviction can cure it",
        span,
        "this reads nothing that evicting pods changes",
        Severity.WARNING,
        help=() if fixes else ('write `else unresolvable "…"`',),
        fixes=fixes,
    )


def _fixes(condition: Span, code: RejectionCode) -> tuple[Fix, ...]:
    """Return the fix that gives the statement of a condition another code.

    That no eviction helps follows from the reads; that one may help, only the author of the rule can decide.
    """
    source = condition.source
    found = _ELSE.match(source.text, condition.end)
    if found is None:
        return ()
    edit = Edit(Span(source, *found.span("code")), "" if code is RejectionCode.UNSCHEDULABLE else f"{code} ")
    is_certain = code is RejectionCode.UNRESOLVABLE
    applicability = Applicability.CERTAIN if is_certain else Applicability.MAYBE
    title = 'write `else unresolvable "…"`' if is_certain else 'write `else "…"`, without `unresolvable`'
    return (Fix(title, (edit,), applicability),)


def _reads(requirement: Requirement) -> frozenset[str]:
    """Return the reads that decide whether the node is rejected here."""
    reads = requirement.statement.condition.reads
    for loop in requirement.loops:
        reads |= loop.iterable.reads | (frozenset() if loop.where is None else loop.where.reads)
    return reads


def _is_fixed(word: str) -> bool:
    return word in _FIXED or word.startswith("pod.")


LINT = Lint("K0701", "wrong-code", find, __doc__)
