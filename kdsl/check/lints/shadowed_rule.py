"""
A predicate of a profile that rejects no node: what it requires follows from what the predicates before it do.

It is asked in vain, and its reasons are never seen. Often it was copied and then changed in the wrong place,
or what a profile inherits demands as much. The same goes for a `tighten` that demands nothing new.

```
predicate Quiet {
  require node.podCount < 10
    else "Too many pods"
}
predicate Calm {
  require node.podCount < 20
    else "Far too many pods"
}
```

Remove it from the profile, put it first, or ask for what was meant. Only `require`s without parameters, `let`
and loops are compared. Under `check all` every predicate is asked, and none is shadowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject
from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, CheckedRequire
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, Bind, Comprehension, TypedExpr, Var


@dataclass(frozen=True, slots=True)
class _Asked:
    """What holds of the nodes that are left, for the pods that all of `applies` is true of."""

    rule: str
    applies: tuple[TypedExpr, ...]
    condition: TypedExpr


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Report what profiles ask in vain, each where it was put into a profile."""
    for profile in subject.rules.profiles.values():
        if not profile.check_all:
            yield from _in_profile(profile)


def _in_profile(profile: CheckedProfile) -> Iterator[Diagnostic]:
    asked: list[_Asked] = []
    certain = Certain({})
    origins = profile.origins
    for predicate, used, tightened in zip(
        profile.predicates, origins.predicates, origins.tightenings, strict=True
    ):
        places = [
            (predicate, used),
            *zip(predicate.tightenings, (each.span for each in tightened), strict=True),
        ]
        for rule, place in places:
            own = list(_asked(rule))
            # What the profile only inherits is right where it comes from.
            if _is_within(place, profile.span) and _is_simple(rule, own):
                applies = set(rule.applies)
                before = [each for each in asked if applies.issuperset(each.applies)]
                reasons = certain.reasons([each.condition for each in own], before)
                if reasons:
                    what = "predicate" if rule is predicate else "tightening of"
                    yield _warning(f"{what} `{rule.name}`", place, reasons)
            asked += own


def _is_within(inner: Span, outer: Span) -> bool:
    return inner.source is outer.source and outer.start <= inner.start < outer.end


def _is_simple(rule: CheckedPredicate, asked: list[_Asked]) -> bool:
    """Tell whether a rule is nothing but `require`s that can be compared with those of others."""
    return rule.narrow is None and 0 < len(rule.body) == len(asked)


def _asked(rule: CheckedPredicate) -> Iterator[_Asked]:
    """List what a predicate requires of every node, as far as it is made of what all rules see alike."""
    for statement in rule.body:
        if isinstance(statement, CheckedRequire):
            conditions = (*rule.applies, statement.condition)
            if all(_is_common(each, rule) for each in conditions):
                yield _Asked(rule.name, rule.applies, statement.condition)


def _is_common(expr: TypedExpr, rule: CheckedPredicate) -> bool:
    """Tell whether an expression has no `let`, parameter or loop variable of its rule."""
    parts = list(walk(expr))
    own = {variable.slot for part in parts for variable in _bound(part)}
    own |= {variable.slot for variable in rule.scope.values()}
    return all(part.slot in own for part in parts if isinstance(part, Var))


def _bound(part: TypedExpr) -> tuple[Var, ...]:
    match part:
        case Comprehension(variables=variables):
            return variables
        case Bind(variable=variable) | Aggregate(variable=variable):
            return (variable,)
    return ()


def _warning(what: str, place: Span, reasons: list[_Asked]) -> Diagnostic:
    return Diagnostic(
        LINT.code,
        f"{what} rejects no node",
        place,
        "what it requires holds of all nodes that come to it",
        Severity.WARNING,
        secondary=tuple(
            dict.fromkeys(
                Label(each.condition.span, f"`{each.rule}` requires this before") for each in reasons
            )
        ),
    )


LINT = Lint("K0605", "shadowed-rule", find, __doc__)
