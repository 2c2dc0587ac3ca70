"""A text that is no reason contains `${…}`.

Only reasons have holes. In any other text the characters stand for themselves, so a comparison with it fails
for every pod and node.

```
score Home {
  value node.labels[?"team"].orValue("") == "${pod.namespace}" ? 100 : 0
}
```

Write the expression itself, `== pod.namespace`, or join texts with `+`: `"team-" + pod.namespace`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.lint import Lint, Subject, conditions, values
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Const, TypedExpr

_HOLE = re.compile(r"\$\{([^{}]*)\}")


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each text with a hole in conditions, values, parameters and functions."""
    for rule in subject.rules.written:
        for expr in (*(each for _, each in conditions(rule)), *values(rule), *(p.value for p in rule.params)):
            yield from _in_expression(expr)
    for fn in subject.rules.fns.values():
        if isinstance(fn, CheckedFn):
            yield from _in_expression(fn.body)


def _in_expression(expr: TypedExpr) -> Iterator[Diagnostic]:
    for part in walk(expr):
        if isinstance(part, Const) and isinstance(part.value, str) and (hole := _HOLE.search(part.value)):
            inner = hole[1].strip()
            help_ = f"write `{inner}`" if hole[0] == part.value else f"join texts with `+`: `… + {inner}`"
            yield Diagnostic(
                LINT.code,
                f"`{hole[0]}` stands for itself here",
                part.span,
                "only reasons have holes",
                Severity.WARNING,
                help=(help_,),
            )


LINT = Lint("K0706", "plain-hole", find, __doc__)
