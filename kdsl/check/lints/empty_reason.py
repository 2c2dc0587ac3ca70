"""A reason is empty.

`kubectl describe pod` shows it: "0/3 nodes are available: 3 .". Nobody sees what the pod waits for.

```
require node.podCount < 10
  else ""
```

State the problem: `else "Too many pods"`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.span import Span
from kdsl.check.lints.lint import Lint, Subject, requirements
from kdsl.check.model.rule_set import CheckedTemplate


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each reason without any text."""
    for reason, span in _reasons(subject):
        if all(isinstance(part, str) and not part.strip() for part in reason.parts):
            help_ = ('state the problem, such as `else "Too many pods"`',)
            yield Diagnostic(
                LINT.code,
                "this reason is empty",
                span,
                "nobody learns the reason",
                Severity.WARNING,
                help=help_,
            )


def _reasons(subject: Subject) -> Iterator[tuple[CheckedTemplate, Span]]:
    """Yield the reasons of predicates and queues, each with its statement."""
    for predicate in subject.predicates():
        for each in requirements(predicate.body):
            yield each.statement.reason, each.statement.span
        if predicate.narrow is not None:
            yield predicate.narrow.reason, predicate.narrow.span
    for queue in subject.queues():
        for admit in queue.admit:
            yield admit.reason, admit.condition.span


LINT = Lint("K0707", "empty-reason", find, __doc__)
