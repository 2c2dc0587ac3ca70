"""A text that is no reason contains `${…}`, or a reason contains the name of a value in braces without the
`$`.

Only reasons have holes. In any other text the characters stand for themselves, so a comparison with it fails
for every pod and node. In a reason `{limit}` stands for itself: the hole is `${limit}`.

```
score Home {
  value node.labels[?"team"].orValue("") == "${pod.namespace}" ? 100 : 0
}
```

Write the expression itself, `== pod.namespace`, or join texts with `+`: `"team-" + pod.namespace`. In a
reason write `${limit}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.span import Span
from kdsl.check.lints.lint import Lint, Subject, conditions, lets, reasons, values
from kdsl.check.model.rule_set import CheckedFn, WrittenRule
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Const, TypedExpr

_HOLE = re.compile(r"\$\{([^{}]*)\}")
_BRACES = re.compile(r"\{\s*([A-Za-z_]\w*)((?:\.\w+)*)\s*\}")
_VALUES = frozenset({"pod", "node", "victim"})


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each text with a hole in conditions, values, parameters and functions, and for
    each name in braces in a reason.
    """
    for rule in subject.rules.written:
        yield from _in_reasons(rule)
        for expr in (*(each for _, each in conditions(rule)), *values(rule), *(p.value for p in rule.params)):
            yield from _in_expression(expr)
    for fn in subject.rules.fns.values():
        if isinstance(fn, CheckedFn):
            yield from _in_expression(fn.body)


def _in_reasons(rule: WrittenRule) -> Iterator[Diagnostic]:
    params = (each.variable.name for each in rule.params)
    known = {*_VALUES, *params, *(each.variable.name for each in lets(rule))}
    for reason, span in reasons(rule):
        texts = [part for part in reason.parts if isinstance(part, str)]
        for braces in (each for text in texts for each in _BRACES.finditer(text)):
            at = span.text.find(braces[0])
            if braces[1] in known and at >= 0:
                start = span.start + at
                place = Span(span.source, start, start + len(braces[0]))
                why, help_ = "a hole begins with `$`", (f"write `${{{braces[1]}{braces[2]}}}`",)
                title = f"`{braces[0]}` stands for itself here"
                yield Diagnostic(LINT.code, title, place, why, Severity.WARNING, help=help_)


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
