"""A reason contains a value that differs for every node or pod.

Reasons are counted: "3 node(s) had untolerated taint(s)". With the name of the node or its usage in it, every
node has a different reason. Then the message of a pending pod grows with the cluster, and events and metrics
by reason never add up.

```
require node.podCount < 10
  else "${node.name} has ${node.podCount} pods"
```

State the problem, not the node: `else "Too many pods"`. `kdsl explain --all` shows the numbers of each node.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.lint import Lint, Subject, lets, requirements
from kdsl.check.model.rule_set import CheckedTemplate
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import FieldOf, TypedExpr, Var

_PER_OBJECT = frozenset({"name", "uid", "annotations", "createdAt", "queuedAt"})
_VIEWS = frozenset({"Pod", "QueuedPod", "Node"})
_USAGE = "node.usage"


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each hole of a reason whose value differs for each pod or node."""
    for predicate in subject.predicates():
        named = {let.variable.slot: let.value for let in lets(predicate)}
        reasons = [each.statement.reason for each in requirements(predicate.body)]
        reasons += [predicate.narrow.reason] if predicate.narrow else []
        if predicate.on_error and predicate.on_error.reason:
            reasons.append(predicate.on_error.reason)
        yield from _in_reasons(reasons, named)
    for queue in subject.queues():
        named = {let.variable.slot: let.value for let in queue.lets}
        yield from _in_reasons([each.reason for each in queue.admit], named)


def _in_reasons(reasons: list[CheckedTemplate], named: dict[int, TypedExpr]) -> Iterator[Diagnostic]:
    for reason in reasons:
        for hole in reason.parts:
            what = None if isinstance(hole, str) else _unbounded(hole, named)
            if what is not None and not isinstance(hole, str):
                yield Diagnostic(
                    LINT.code,
                    "this reason has no bound on how many texts it makes",
                    hole.span,
                    what,
                    Severity.WARNING,
                    help=("state the problem; `kdsl explain` shows the nodes",),
                )


def _unbounded(hole: TypedExpr, named: dict[int, TypedExpr]) -> str | None:
    """Return the expression in the hole, or in its `let`s, that differs for each pod or node."""
    if _USAGE in hole.reads:
        return "the use of each node is different"
    pending, seen = [hole], set[int]()
    while pending:
        for part in walk(pending.pop()):
            match part:
                case FieldOf(view=view, field=field) if view in _VIEWS and field in _PER_OBJECT:
                    return f"each {'node' if view == 'Node' else 'pod'} has another"
                case Var(slot=slot) if slot in named and slot not in seen:
                    seen.add(slot)
                    pending.append(named[slot])
                case _:
                    pass
    return None


LINT = Lint("K0702", "unbounded-reason", find, __doc__)
