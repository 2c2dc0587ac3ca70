"""A loop over all nodes, pods or feasible nodes reads `node`, so it runs once for each node.

A cluster of 3,000 nodes needs 9,000,000 steps for one pod, and a rule that exceeds its share of steps rejects
nodes or ends the attempt.

```
predicate Reserve {
  let pool = node.labels[?"pool"].orValue("")
  require cluster.nodes.filter(n, n.labels[?"pool"].orValue("") == pool && n.podCount == 0).size() > 1
    else "the last empty node of the pool is kept free"
}
```

Count pods by [`topology`](language.md#counting-pods). Compute other numbers in a `let` that does not read
`node`: it is computed once for a pod. The example becomes:

`let empty = cluster.nodes.filter(n, n.podCount == 0).map(n, n.labels[?"pool"].orValue(""))`, then
`require empty.filter(e, e == node.labels[?"pool"].orValue("")).size() > 1`. This
loops over empty nodes only.

A loop over all nodes inside another one takes as many steps:
`cluster.nodes.filter(n, cluster.nodes.exists(m, …))`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.span import Span
from kdsl.check.lints.lint import Lint, Subject, conditions, requirements, values
from kdsl.check.model.rule_set import CheckedPredicate, WrittenRule
from kdsl.check.model.traversal import children, walk
from kdsl.check.model.typed import Comprehension, FieldOf, TypedExpr, Var

_HELP = ("count pods by `topology(…)`", "or compute a list or map in a `let` that does not read `node`")
_HELP_NESTED = (*_HELP[:1], "or compute a list or map in a `let` of its own, and look into that")


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each loop over the cluster that depends on the node, or on another such loop."""
    for predicate in subject.predicates():
        yield from _of_statements(predicate)
    rules: tuple[WrittenRule, ...] = (*subject.predicates(), *subject.scores())
    for rule in rules:
        for expr in (*values(rule), *(condition for _, condition in conditions(rule))):
            yield from _in_expression(expr, frozenset())


def _of_statements(predicate: CheckedPredicate) -> Iterator[Diagnostic]:
    """Yield the `for` loops around a condition that depends on the node."""
    asked = (each for each in requirements(predicate.body) if not each.statement.condition.time.is_lasting)
    loops = {id(loop): loop.iterable for each in asked for loop in each.loops}
    for iterable in loops.values():
        if items := _items(iterable):
            yield _for_each_node(items, iterable.span)


def _in_expression(expr: TypedExpr, around: frozenset[int]) -> Iterator[Diagnostic]:
    """Yield the loops of an expression; `around` are the slots of the items of the loops around it."""
    if isinstance(expr, Comprehension) and (items := _items(expr.iterable)):
        outer = next((each for each in walk(expr) if isinstance(each, Var) and each.slot in around), None)
        if not expr.time.is_lasting:
            yield _for_each_node(items, expr.span)
        elif outer is not None:
            title = f"a loop over all {items} runs for each item of another one"
            label = f"it reads `{outer.name}`"
            yield Diagnostic(LINT.code, title, expr.span, label, Severity.WARNING, help=_HELP_NESTED)
        around |= {variable.slot for variable in expr.variables}
    for child in children(expr):
        yield from _in_expression(child, around)


def _for_each_node(items: str, span: Span) -> Diagnostic:
    title = f"a loop over all {items} runs for each node"
    return Diagnostic(LINT.code, title, span, "it reads `node`", Severity.WARNING, help=_HELP)


def _items(iterable: TypedExpr) -> str:
    """Return what a loop visits in the whole cluster; empty for other loops."""
    match iterable:
        case FieldOf(view="Cluster", field="nodes" | "pods" as field):
            return field
        case Var(name="feasible"):
            return "feasible nodes"
    return ""


LINT = Lint("K0709", "quadratic-loop", find, __doc__)
