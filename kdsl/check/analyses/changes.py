"""The changes between two versions of rules, in terms of the language: for `kdsl diff` and reviews.

Profiles are compared in their effective form, declarations in their written form. Layout, comments and the
spelling of a constant do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kdsl.check.analyses.change import ChangeKind, PropertyChange, compared
from kdsl.check.analyses.declaration_changes import declaration_changes, joined
from kdsl.check.model.rule_set import (
    CheckedParam,
    CheckedPredicate,
    CheckedPreemption,
    CheckedProfile,
    CheckedScore,
    RuleSet,
)
from kdsl.check.profiles.sharing import differences
from kdsl.lang.profile_tree import Tighten
from kdsl.lang.program import Program
from kdsl.lang.tree import (
    Declaration,
    Declared,
    Device,
    Fn,
    Param,
    Predicate,
    Preemption,
    Profile,
    Queue,
    Score,
    Team,
)

K = TypeVar("K")

_KINDS: Mapping[type[Declared] | type[Param], str] = {
    Predicate: "predicate",
    Score: "score",
    Queue: "queue",
    Preemption: "preemption",
    Device: "device",
    Fn: "fn",
    Param: "param",
    Team: "team",
}


@dataclass(frozen=True, slots=True)
class Version:
    """One side of a comparison. Only declarations in `files` count; all others belong to a library."""

    rules: RuleSet
    program: Program
    files: frozenset[str]


def compare_versions(old: Version, new: Version) -> tuple[PropertyChange, ...]:
    """Return the changes: profiles first, then declarations by name."""
    changes: list[PropertyChange] = []
    profiles = [
        {name: each for name, each in side.rules.profiles.items() if each.span.source.path in side.files}
        for side in (old, new)
    ]
    for name in _names(*profiles):
        before, after = (side.get(name) for side in profiles)
        changes += dict.fromkeys(compared(f"profile {name}", before, after, _profile))
    declared = [_declarations(side) for side in (old, new)]
    for kind, name in sorted(_names(*declared)):
        one, other = (side.get((kind, name)) for side in declared)
        changes += compared(f"{kind} {name}", one, other, declaration_changes)
    return tuple(changes)


def compare_profiles(old: CheckedProfile, new: CheckedProfile) -> tuple[PropertyChange, ...]:
    """Return the changes from one effective profile to another."""
    return tuple(dict.fromkeys(_profile(f"profile {new.qualified}", old, new)))


def _declarations(side: Version) -> dict[tuple[str, str], Declaration]:
    """Return the declarations that count, by kind and qualified name, without profiles."""
    return {
        (_KINDS[type(each)], f"{package.name}.{each.name.text}"): each
        for package in side.program.packages.values()
        for each in package.declarations
        if not isinstance(each, Profile) and each.span.source.path in side.files
    }


def _names(old: Mapping[K, object], new: Mapping[K, object]) -> list[K]:
    return list(dict.fromkeys((*old, *new)))


# ---- profiles ----------------------------------------------------------------------------------------------


def _profile(subject: str, old: CheckedProfile, new: CheckedProfile) -> Iterator[PropertyChange]:
    origins = new.origins
    for what, before, after, span in (
        ("extends", old.extends, new.extends, new.span),
        ("team", old.team, new.team, new.span),
        ("scheduler", old.scheduler, new.scheduler, origins.scheduler),
        ("check", _check(old), _check(new), origins.check or new.span),
        ("sample", _sample(old), _sample(new), new.span if new.sample is None else new.sample.span),
        ("queue", old.queue.qualified, new.queue.qualified, origins.queue),
        ("preemption", _preemption(old), _preemption(new), origins.preemption or new.span),
        *differences(old.sharing, new.sharing, new.span),
    ):
        if before != after:
            yield PropertyChange(subject, ChangeKind.CHANGED, what, before, after, span.site)
    predicates = [{rule.qualified: rule for rule in side.predicates} for side in (old, new)]
    sites = [
        dict(zip(rules, (span.site for span in side.origins.predicates), strict=True))
        for rules, side in zip(predicates, (old, new), strict=True)
    ]
    tightenings = [
        dict(zip(rules, side.origins.tightenings, strict=True))
        for rules, side in zip(predicates, (old, new), strict=True)
    ]
    yield from _members(subject, "predicate", predicates, sites, partial(_place, predicates))
    yield from _order(subject, [list(side) for side in predicates], new.span.site)
    for name, rule in predicates[1].items():
        if name in predicates[0]:
            yield from _params(subject, predicates[0][name], rule)
            yield from _tightenings(subject, rule.name, *(side[name] for side in tightenings))
    yield from _scores(subject, old, new)
    if old.preemption and new.preemption and old.preemption.qualified == new.preemption.qualified:
        yield from _params(subject, old.preemption, new.preemption)


def _check(profile: CheckedProfile) -> str:
    return "all" if profile.check_all else "first"


def _sample(profile: CheckedProfile) -> str:
    return "" if profile.sample is None else _one_line(profile.sample.count.span.text)


def _preemption(profile: CheckedProfile) -> str:
    return "" if profile.preemption is None else profile.preemption.qualified


def _members(
    subject: str,
    kind: str,
    sides: Sequence[Mapping[str, object]],
    sites: Sequence[Mapping[str, str]],
    describe: Callable[[int, str], str],
) -> Iterator[PropertyChange]:
    """Yield the rules that only one side has; `describe` takes the side (0 is the old one) and the name."""
    old, new = sides
    for name in old:
        if name not in new:
            was = describe(0, name)
            yield PropertyChange(subject, ChangeKind.REMOVED, f"{kind} {name}", was, site=sites[0][name])
    for name in new:
        if name not in old:
            is_ = describe(1, name)
            yield PropertyChange(subject, ChangeKind.ADDED, f"{kind} {name}", after=is_, site=sites[1][name])


def _place(sides: Sequence[Mapping[str, object]], side: int, name: str) -> str:
    """Return the position of a predicate in its profile, as text."""
    names = list(sides[side])
    at = names.index(name)
    return f"after {names[at - 1].rpartition('.')[2]}" if at else "first"


def _order(subject: str, sides: Sequence[list[str]], site: str) -> Iterator[PropertyChange]:
    """Yield a change of the order of the predicates that both sides have."""
    old, new = ([name for name in side if name in other] for side, other in (sides, sides[::-1]))
    if old != new:
        before, after = (", ".join(name.rpartition(".")[2] for name in side) for side in (old, new))
        yield PropertyChange(subject, ChangeKind.CHANGED, "order of predicates", before, after, site)


def _tightenings(
    subject: str, name: str, old: Sequence[Tighten], new: Sequence[Tighten]
) -> Iterator[PropertyChange]:
    """Yield the tightenings of a predicate that only one side has."""
    bodies = [{each.body: each for each in side} for side in (old, new)]
    what = f"tightening of {name}"
    for body, gone in bodies[0].items():
        if body not in bodies[1]:
            yield PropertyChange(subject, ChangeKind.REMOVED, what, joined(body), site=gone.span.site)
    for body, come in bodies[1].items():
        if body not in bodies[0]:
            yield PropertyChange(subject, ChangeKind.ADDED, what, after=joined(body), site=come.span.site)


def _scores(subject: str, old: CheckedProfile, new: CheckedProfile) -> Iterator[PropertyChange]:
    scores = [{entry.score.qualified: entry for entry in side.scores} for side in (old, new)]
    sites, weights = (
        [
            dict(zip(rules, (span.site for span in spans), strict=True))
            for rules, spans in zip(scores, pair, strict=True)
        ]
        for pair in (
            (old.origins.scores, new.origins.scores),
            (old.origins.weights, new.origins.weights),
        )
    )
    yield from _members(
        subject, "score", scores, sites, lambda side, name: f"weight {scores[side][name].weight}"
    )
    for name, entry in scores[1].items():
        earlier = scores[0].get(name)
        if earlier is None:
            continue
        if earlier.weight != entry.weight:
            before, after = str(earlier.weight), str(entry.weight)
            what = f"weight of {entry.score.name}"
            yield PropertyChange(subject, ChangeKind.CHANGED, what, before, after, weights[1][name])
        yield from _params(subject, earlier.score, entry.score)


def _params(
    subject: str,
    old: CheckedPredicate | CheckedScore | CheckedPreemption,
    new: CheckedPredicate | CheckedScore | CheckedPreemption,
) -> Iterator[PropertyChange]:
    """Yield the parameters with other values. Added and removed parameters belong to the rule's declaration.

    A `set` sets a predicate and a score of one name together, so both may yield the same change.
    """
    before: dict[str, CheckedParam] = {param.variable.name: param for param in old.params}
    for param in new.params:
        name = param.variable.name
        if name in before and before[name].value != param.value:
            one, other = (_one_line(side.value.span.text) for side in (before[name], param))
            what = f"parameter {new.name}.{name}"
            yield PropertyChange(subject, ChangeKind.CHANGED, what, one, other, param.value.span.site)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", lambda space: " " if "\n" in space[0] else space[0], text)
