"""A score is the same for every node.

It changes no decision: the same number added to all nodes changes no order. It only costs time, and readers
look for its effect.

```
score Important {
  value pod.priority > 1000 ? 100 : 0
}
```

Read a fact of the node, or remove the score.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each score whose value does not depend on the node, or is one number."""
    for score in subject.scores():
        bounds = Certain.of(score).bounds(score.value)
        if bounds is not None and bounds[0] == bounds[1]:
            why = f"always {bounds[0]}"
        elif score.value.time.is_lasting:
            why = "nothing here depends on the node"
        else:
            continue
        title = f"score `{score.name}` is the same for every node"
        yield Diagnostic(LINT.code, title, score.value.span, why, Severity.WARNING)


LINT = Lint("K0604", "constant-score", find, __doc__)
