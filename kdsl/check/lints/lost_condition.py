"""A queue or a preemption lacks a condition of Kubernetes that the one it replaces has.

A profile has one queue and one preemption. Its own takes the place of the inherited one as a whole:
conditions are not inherited. Without `admit when` on the scheduling gates kdsl schedules pods with gates, and
the API server refuses each binding. Without `eligible when` on the preemption policy pods evict others
although their policy is `Never`. Without a `victim when` on priorities pods of one kind may evict each other
in turn.

```
queue Gated {
  admit when pod.schedulingGates.size() == 0
    else "waiting for scheduling gates"
  order by pod.priority desc
}
queue OldestFirst {
  order by pod.createdAt
}
profile usual {
  scheduler "usual"
  queue Gated
}
profile oldest extends usual {
  scheduler "oldest"
  queue OldestFirst
}
```

Repeat the condition. A preemption has `eligible when pod.preemptionPolicy != "Never" else "policy is Never"`
and `victim when victim.priority < pod.priority`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.check.lints.lint import Lint, Subject
from kdsl.check.model.rule_set import CheckedAdmit, CheckedPreemption, CheckedProfile
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import FieldOf

_GATES = frozenset({"pod.schedulingGates", "pod.gates"})
_POLICY = frozenset({"pod.preemptionPolicy"})


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each queue or preemption of a profile that lost an inherited condition."""
    profiles = subject.rules.profiles
    for profile in profiles.values():
        base = profiles.get(profile.extends)
        if base is not None:
            yield from _lost(profile, base)


def _lost(profile: CheckedProfile, base: CheckedProfile) -> Iterator[Diagnostic]:
    """Yield a warning for the queue, and one for the preemption, at their places in the profile."""
    lost = _condition(base.queue.admit, _GATES)
    if lost is not None and not profile.queue.reads & _GATES:
        yield _warning(
            f"queue `{profile.queue.name}` takes pods with scheduling gates",
            profile.origins.queue,
            Label(lost.span, f"`{base.queue.name}`, which it replaces, keeps them out"),
            'add `admit when pod.schedulingGates.size() == 0 else "waiting for scheduling gates"` to it',
        )
    new, old, place = profile.preemption, base.preemption, profile.origins.preemption
    if new is None or old is None or place is None:
        return
    if _asks_priority(old) and not _asks_priority(new):
        yield _warning(
            f"preemption `{new.name}` evicts pods of any priority",
            place,
            Label(old.victim.span, f"`{old.name}`, which it replaces, compares priorities"),
            "add `victim.priority < pod.priority` to its `victim when`",
        )
    lost = _condition(old.eligible, _POLICY)
    if lost is not None and not new.reads & _POLICY:
        yield _warning(
            f"preemption `{new.name}` ignores the preemption policy of pods",
            place,
            Label(lost.span, f"`{old.name}`, which it replaces, respects it"),
            'add `eligible when pod.preemptionPolicy != "Never" else "preemptionPolicy is Never"` to it',
        )


def _asks_priority(preemption: CheckedPreemption) -> bool:
    """Return whether the conditions read a priority: that of the pod, or that of the victim."""
    conditions = (each.condition for each in preemption.eligible)
    lets = (each.value for each in preemption.lets)
    parts = (part for expr in (preemption.victim, *conditions, *lets) for part in walk(expr))
    return any(isinstance(part, FieldOf) and part.field == "priority" for part in parts)


def _condition(conditions: tuple[CheckedAdmit, ...], reads: frozenset[str]) -> CheckedAdmit | None:
    """Return the first condition that reads one of the facts."""
    return next((each for each in conditions if each.condition.reads & reads), None)


def _warning(title: str, place: Span, lost: Label, fix: str) -> Diagnostic:
    why = "conditions are not inherited"
    return Diagnostic(LINT.code, title, place, why, Severity.WARNING, secondary=(lost,), help=(fix,))


LINT = Lint("K0708", "lost-condition", find, __doc__)
