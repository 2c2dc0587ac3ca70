"""A predicate of a profile rejects no node, because its conditions follow from those of earlier predicates.

It only costs time, and its reasons are never shown. Often it is a copy that was changed in the wrong place,
or an inherited predicate requires the same already. The same holds for a `tighten` that adds no new
condition.

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

Remove it from the profile, put it first, or correct its condition. Only `require`s without parameters, `let`
and loops are compared. Under `check all` every predicate judges every node, and none is shadowed.
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
    """The conditions that hold for the remaining nodes, for pods that meet all of `applies`."""

    rule: str
    applies: tuple[TypedExpr, ...]
    condition: TypedExpr


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each predicate without effect, at its place in a profile."""
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
            # A predicate that the profile only inherits is needed where it comes from.
            if place.begins_in(profile.span) and _is_simple(rule, own):
                applies = set(rule.applies)
                before = [each for each in asked if applies.issuperset(each.applies)]
                reasons = certain.reasons([each.condition for each in own], before)
                if reasons:
                    what = "predicate" if rule is predicate else "tightening of"
                    yield _warning(f"{what} `{rule.name}`", place, reasons)
            asked += own


def _is_simple(rule: CheckedPredicate, asked: list[_Asked]) -> bool:
    """Return whether a rule has only `require`s that can be compared with those of others."""
    return rule.narrow is None and 0 < len(rule.body) == len(asked)


def _asked(rule: CheckedPredicate) -> Iterator[_Asked]:
    """Yield the conditions that a predicate requires of every node, as far as they are comparable across
    rules.
    """
    for statement in rule.body:
        if isinstance(statement, CheckedRequire):
            conditions = (*rule.applies, statement.condition)
            if all(_is_common(each, rule) for each in conditions):
                yield _Asked(rule.name, rule.applies, statement.condition)


def _is_common(expr: TypedExpr, rule: CheckedPredicate) -> bool:
    """Return whether an expression has no `let`, parameter or loop variable of its rule."""
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
        "its conditions hold for all nodes that passed earlier predicates",
        Severity.WARNING,
        secondary=tuple(
            dict.fromkeys(
                Label(each.condition.span, f"`{each.rule}` requires this before") for each in reasons
            )
        ),
    )


LINT = Lint("K0605", "shadowed-rule", find, __doc__)
