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
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.lint import Lint, Subject, conditions, values
from kdsl.check.model.rule_set import WrittenRule
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Comprehension, FieldOf, Var

_HELP = ("count pods by `topology(…)`", "or compute a list or map in a `let` that does not read `node`")


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each loop over the cluster that depends on the node."""
    for predicate in subject.predicates():
        yield from _in_rule(predicate)
    for score in subject.scores():
        yield from _in_rule(score)


def _in_rule(rule: WrittenRule) -> Iterator[Diagnostic]:
    expressions = (*values(rule), *(condition for _, condition in conditions(rule)))
    for part in (part for expr in expressions for part in walk(expr)):
        match part:
            case Comprehension(iterable=FieldOf(view="Cluster", field="nodes" | "pods" as field)):
                items: str = field
            case Comprehension(iterable=Var(name="feasible")):
                items = "feasible nodes"
            case _:
                continue
        if not part.time.is_lasting:
            title = f"a loop over all {items} runs for each node"
            yield Diagnostic(LINT.code, title, part.span, "it reads `node`", Severity.WARNING, help=_HELP)


LINT = Lint("K0709", "quadratic-loop", find, __doc__)
