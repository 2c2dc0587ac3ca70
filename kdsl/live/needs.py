"""Which resources a scheduler has to watch: those that its rules and plugins read, and why.

`watches` follows them; `kdsl rbac` grants them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.events import Resource
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.snapshot.catalog import CatalogWord, kinds_behind
from kdsl.hooks.table import HookTable
from kdsl.live.resources import NODES, PODS, RESOURCES, ApiResource, resource_of

MAX_REASONS: Final = 8
"""Of one resource, so many reasons are kept: one is enough to watch it."""

_NAMESPACE_LABELS: Final = "pod.namespaceLabels"
_KINDS: Final = {resource.kind.KIND: resource.name for resource in RESOURCES.values()}
_ANYTHING: Final = tuple(name for name in RESOURCES if name != "resourcequotas")
"""What a plugin may read without saying so: what kube-scheduler has the right to watch."""
_EVERYTHING: Final = "plugin `{}`, which does not declare its reads"


@dataclass(frozen=True, slots=True)
class Need:
    """A resource, and who needs it: `rule InterPodAffinity`, `plugin VolumeBinding`."""

    resource: ApiResource
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """What is to be watched, in the order of the API. With `keeps_raw`, objects come with their text."""

    needs: tuple[Need, ...]
    keeps_raw: bool = False

    @property
    def resources(self) -> tuple[ApiResource, ...]:
        """The resources alone."""
        return tuple(need.resource for need in self.needs)

    def __iter__(self) -> Iterator[Need]:
        return iter(self.needs)


def needs(rules: RuleSet, tables: Sequence[HookTable], *, keeps_raw: bool = False) -> Needs:
    """Derive from profiles that run what they need: from what rules read and plugins wait for.

    A plugin that judges or scores pods, and does not say which events concern it, may read anything but
    quotas: kube-scheduler has no right to them, and one resource that may not be read keeps all waiting.
    """
    found: dict[str, list[str]] = {PODS.name: ["every scheduler"], NODES.name: ["every scheduler"]}

    def add(names: Iterable[str], reason: str) -> None:
        for name in names:
            reasons = found.setdefault(name, [])
            if reason not in reasons and len(reasons) < MAX_REASONS:
                reasons.append(reason)

    for table in tables:
        profile = rules.profiles[table.profile]
        own = set()
        for name, words in _read_by(profile):
            own.add(name)
            add(_resources_behind(words), f"rule `{name}`")
        for name, wakes in table.wakes.items():
            patterns = [pattern for wake in wakes for pattern in wake.patterns]
            if all(pattern.resource is not Resource.ANY for pattern in patterns):
                names = (_KINDS[each.resource] for each in patterns if each.resource in _KINDS)
                add(names, f"{'rule' if name in own else 'plugin'} `{name}`")
            elif name in _judges(table):
                add(_ANYTHING, _EVERYTHING.format(name))
        for score in table.scores:
            if score.plugin not in own and score.plugin not in table.wakes:
                add(_ANYTHING, _EVERYTHING.format(score.plugin))
    for team in rules.teams:
        add(_resources_behind(team.owns.reads), f"team `{team.name}`")
    return Needs(
        tuple(Need(RESOURCES[name], tuple(found[name])) for name in RESOURCES if name in found), keeps_raw
    )


def merged(*all_needs: Needs) -> Needs:
    """Return what several schedulers need together, each resource with the reasons of all."""
    reasons: dict[str, list[str]] = {}
    for need in (need for each in all_needs for need in each):
        known = reasons.setdefault(need.resource.name, [])
        known += [reason for reason in need.reasons if reason not in known]
    return Needs(
        tuple(
            Need(RESOURCES[name], tuple(reasons[name][:MAX_REASONS])) for name in RESOURCES if name in reasons
        ),
        any(each.keeps_raw for each in all_needs),
    )


def _read_by(profile: CheckedProfile) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the rules of a profile with the words of what they read."""
    for predicate in profile.predicates:
        if not predicate.plugin:
            yield predicate.name, predicate.reads.union(*(each.reads for each in predicate.tightenings))
    for entry in profile.scores:
        if not entry.score.plugin:
            yield entry.score.name, entry.score.reads
    yield profile.queue.name, profile.queue.reads
    if profile.preemption is not None:
        yield profile.preemption.name, profile.preemption.reads


def _resources_behind(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        known = CatalogWord.NAMESPACES if word == _NAMESPACE_LABELS else word
        yield from (resource_of(kind).name for kind in kinds_behind(known))


def _judges(table: HookTable) -> set[str]:
    """Return the plugins that have a say before a pod is bound."""
    points = (
        *(table.pre_enqueues, table.pre_filters, table.filters, table.feasible_filters, table.post_filters),
        *(table.pre_scores, table.reserves, table.permits, table.pre_binds),
    )
    return {name for calls in points for name, _ in calls} | {score.plugin for score in table.scores}
