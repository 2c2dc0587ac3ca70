"""The last step of folding a profile: from its draft to its checked rules in order, with their origins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import (
    CheckedParam,
    CheckedPredicate,
    CheckedPreemption,
    CheckedProfile,
    CheckedQueue,
    CheckedSample,
    CheckedScore,
    Origins,
    WeightedRule,
    WrittenRule,
)
from kdsl.check.model.sharing import CheckedSharing
from kdsl.check.names.declarations import Located
from kdsl.check.profiles.draft import Draft, Entry
from kdsl.check.profiles.sharing import finish_devices, managed
from kdsl.lang.tree import Predicate, Preemption, Profile, Score


@dataclass(frozen=True, slots=True)
class RuleTables:
    """The checked rules by qualified name; a missing rule has a reported error.

    `tightenings` are those of each profile, by the name that each tightens, as it is written there. `samples`
    are those that profiles write themselves.
    """

    predicates: Mapping[str, CheckedPredicate]
    scores: Mapping[str, CheckedScore]
    queues: Mapping[str, CheckedQueue]
    preemptions: Mapping[str, CheckedPreemption]
    tightenings: Mapping[str, Mapping[str, CheckedPredicate]]
    samples: Mapping[str, CheckedSample]

    def rule(self, entry: Entry) -> CheckedPredicate | CheckedScore | CheckedPreemption | None:
        """Return the checked rule of an entry."""
        match entry.rule.declaration:
            case Predicate():
                return self.predicates.get(entry.rule.qualified)
            case Score():
                return self.scores.get(entry.rule.qualified)
            case Preemption():
                return self.preemptions.get(entry.rule.qualified)

    def written(self) -> tuple[WrittenRule, ...]:
        """Return the rules as files hold them, tightenings last, without regard to profiles."""
        predicates = (each for each in self.predicates.values() if not each.plugin)
        scores = (each for each in self.scores.values() if not each.plugin)
        tightenings = (each for of_profile in self.tightenings.values() for each in of_profile.values())
        return (*predicates, *scores, *self.queues.values(), *self.preemptions.values(), *tightenings)


def finish(
    located: Located[Profile],
    draft: Draft,
    rules: RuleTables,
    devices: Mapping[str, CheckedDevice],
    extends: str,
    team: str,
) -> CheckedProfile | None:
    """Return the effective profile; None where a part of it is missing, with a reported error."""
    queue = None if draft.queue is None else rules.queues.get(draft.queue.qualified)
    if queue is None or draft.queue_use is None or draft.scheduler is None:
        return None
    sharing = finish_devices(draft.devices, devices)
    predicates: list[CheckedPredicate] = []
    scores: list[WeightedRule] = []
    for entry in (*draft.predicates, *draft.scores):
        match rules.rule(entry):
            case CheckedPredicate() as predicate:
                predicates.append(_predicate(predicate, entry, sharing))
            case CheckedScore() as score:
                scores.append(_score(score, entry, sharing))
            case _:
                return None
    preemption = None
    if draft.preemption is not None:
        preemption = rules.preemptions.get(draft.preemption.rule.qualified)
        if preemption is None:
            return None
        preemption = _preemption(preemption, draft.preemption)
    profile = located.declaration
    return CheckedProfile(
        name=located.name,
        qualified=located.qualified,
        scheduler=str(draft.scheduler.name.value),
        check_all=draft.check is not None and draft.check.all,
        sample=draft.sample,
        queue=queue,
        preemption=preemption,
        predicates=tuple(predicates),
        scores=tuple(scores),
        sharing=sharing,
        extends=extends,
        team=team,
        doc=profile.doc,
        span=profile.span,
        origins=Origins(
            scheduler=draft.scheduler.span,
            check=None if draft.check is None else draft.check.span,
            queue=draft.queue_use.span,
            preemption=None if draft.preemption is None else draft.preemption.used.span,
            predicates=tuple(entry.used.span for entry in draft.predicates),
            tightenings=tuple(entry.tighteners for entry in draft.predicates),
            scores=tuple(entry.used.span for entry in draft.scores),
            weights=tuple(entry.weighed for entry in draft.scores),
        ),
    )


def _predicate(predicate: CheckedPredicate, entry: Entry, sharing: CheckedSharing | None) -> CheckedPredicate:
    params, slots = managed(_params(predicate.params, entry), sharing), max(predicate.slots, entry.slots)
    return replace(predicate, params=params, slots=slots, tightenings=entry.tightened)


def _score(score: CheckedScore, entry: Entry, sharing: CheckedSharing | None) -> WeightedRule:
    params, slots = managed(_params(score.params, entry), sharing), max(score.slots, entry.slots)
    return WeightedRule(replace(score, params=params, slots=slots), entry.weight)


def _preemption(preemption: CheckedPreemption, entry: Entry) -> CheckedPreemption:
    params, slots = _params(preemption.params, entry), max(preemption.slots, entry.slots)
    return replace(preemption, params=params, slots=slots)


def _params(params: tuple[CheckedParam, ...], entry: Entry) -> tuple[CheckedParam, ...]:
    return tuple(entry.sets.get(param.variable.name, param) for param in params)
