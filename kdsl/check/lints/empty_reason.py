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
from kdsl.check.lints.lint import Lint, Subject, reasons


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each reason without any text."""
    for reason, span in (each for rule in subject.rules.written for each in reasons(rule)):
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


LINT = Lint("K0707", "empty-reason", find, __doc__)
