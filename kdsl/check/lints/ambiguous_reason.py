"""Two predicates of a profile give the same reason with different codes.

A user who reads "node(s) didn't match" cannot see whether evicting pods may help, nor which rule rejects.

```
predicate Ssd {
  require node.labels[?"disk"].orValue("") == "ssd"
    else unresolvable "node(s) didn't match"
}
predicate Quiet {
  require node.podCount < 10
    else "node(s) didn't match"
}
```

Give each predicate its own reason. Within one predicate, one reason with two codes may be intended: a request
that exceeds the node and one that exceeds the free part of it are both "Insufficient cpu".
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.check.lints.lint import Lint, Subject, requirements
from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, CheckedTemplate
from kdsl.lang.choices import RejectionCode


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each constant reason that two predicates of one profile give with different
    codes.
    """
    found = (each for profile in subject.rules.profiles.values() for each in _in_profile(profile))
    yield from dict.fromkeys(found)


def _in_profile(profile: CheckedProfile) -> Iterator[Diagnostic]:
    first: dict[str, tuple[str, RejectionCode, Span]] = {}
    for predicate in profile.predicates:
        for text, code, span in _reasons(predicate):
            owner, earlier, where = first.setdefault(text, (predicate.qualified, code, span))
            if owner != predicate.qualified and earlier is not code:
                yield Diagnostic(
                    LINT.code,
                    f"the reason `{text}` has two codes",
                    span,
                    f"`{code}` here",
                    Severity.WARNING,
                    secondary=(Label(where, f"`{earlier}` here"),),
                    help=("give each predicate its own reason",),
                )


def _reasons(predicate: CheckedPredicate) -> Iterator[tuple[str, RejectionCode, Span]]:
    """Yield the constant reasons of a predicate and of its tightenings."""
    for rule in (predicate, *predicate.tightenings):
        if rule.narrow is not None:
            yield from _constant(rule.narrow.reason, rule.narrow.code, rule.narrow.span)
        for requirement in requirements(rule.body):
            statement = requirement.statement
            yield from _constant(statement.reason, statement.code, statement.span)


def _constant(
    reason: CheckedTemplate, code: RejectionCode, span: Span
) -> Iterator[tuple[str, RejectionCode, Span]]:
    texts = [part for part in reason.parts if isinstance(part, str)]
    if len(texts) == len(reason.parts):
        yield "".join(texts), code, span


LINT = Lint("K0703", "ambiguous-reason", find, __doc__)
