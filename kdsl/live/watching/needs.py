"""The resources that a scheduler must watch, since its rules and plugins read them, with reasons.

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
from kdsl.live.watching.resources import NODES, PODS, RESOURCES, ApiResource, resource_of

MAX_REASONS: Final = 8
"""The most reasons kept for a resource: one is enough to watch it."""

_NAMESPACE_LABELS: Final = "pod.namespaceLabels"
_KINDS: Final = {resource.kind.KIND: resource.name for resource in RESOURCES.values()}
_ANYTHING: Final = tuple(name for name in RESOURCES if name != "resourcequotas")
"""The resources that a plugin may read without declaring them: those that kube-scheduler may watch."""
_EVERYTHING: Final = "plugin `{}`, which does not declare its reads"


@dataclass(frozen=True, slots=True)
class Need:
    """A resource, and its readers: `rule InterPodAffinity`, `plugin VolumeBinding`."""

    resource: ApiResource
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources to watch, in the order of the API. With `keeps_raw`, the JSON of objects is kept."""

    needs: tuple[Need, ...]
    keeps_raw: bool = False

    @property
    def resources(self) -> tuple[ApiResource, ...]:
        """Return the resources without reasons."""
        return tuple(need.resource for need in self.needs)

    def __iter__(self) -> Iterator[Need]:
        return iter(self.needs)


def needs(rules: RuleSet, tables: Sequence[HookTable], *, keeps_raw: bool = False) -> Needs:
    """Derive the needs of profiles from the reads of their rules and the events of their plugins.

    A plugin that filters or scores pods and declares no events may read any resource but quotas:
    kube-scheduler has no right to them, and one forbidden resource blocks all decisions.
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
            elif name in _plugins_before_binding(table):
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
    """Return the needs of several schedulers together, with all reasons of each resource."""
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
    """Yield the rules of a profile with their reads."""
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


def _plugins_before_binding(table: HookTable) -> set[str]:
    """Return the plugins that run before a pod is bound."""
    points = (
        *(table.pre_enqueues, table.pre_filters, table.filters, table.feasible_filters, table.post_filters),
        *(table.pre_scores, table.reserves, table.permits, table.pre_binds),
    )
    return {name for calls in points for name, _ in calls} | {score.plugin for score in table.scores}
