"""The profile of a pod: by its scheduler name, by the team that owns it, or the default.

`kdsl.app` makes a router for a rule set and gives it to the engine. `docs/teams.md` defines the order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from kdsl.base.bounded_dict import BoundedDict
from kdsl.check.model.rule_set import CheckedProfile, CheckedTeam, RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.values import EvalError
from kdsl.hooks.faults import Fault
from kdsl.plan.compile.failures import FaultLog
from kdsl.plan.compile.scope import CompiledFunctions, ReportError, RuleScope
from kdsl.plan.reads.dependencies import Dependencies, reads_of
from kdsl.plan.reads.signature_reads import signature_reads

DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler name that the API server gives to pods without one."""

CACHED_OWNERS = 65_536
"""The most signatures of pods that are kept with their owner."""

Owns = Callable[[PodInfo, ReportError], bool]
"""Returns whether a team owns a pod, and reports errors."""


def compile_owns(team: CheckedTeam, functions: CompiledFunctions) -> Owns:
    """Compile the `owns` of a team. A pod on which it fails is not the team's."""
    scope = RuleScope(team.scope, (), team.slots, functions)
    condition = scope.compile(team.owns)
    frame = scope.frames()

    def owns(pod: PodInfo, report: ReportError) -> bool:
        try:
            return bool(condition(frame(pod=pod)))
        except EvalError as error:
            report(error, team.owns.span)
            return False

    return owns


def by_rank(teams: Iterable[CheckedTeam]) -> list[CheckedTeam]:
    """Sort teams by precedence: higher priority, then the lower name. The first that owns a pod counts."""
    return sorted(teams, key=lambda team: (-team.priority, team.name))


class ProfileRouter:
    """Routes pods to those profiles of a rule set that run, by qualified name.

    Not thread-safe: the engine decides one pod at a time.
    """

    def __init__(self, rules: RuleSet, profiles: Iterable[str]) -> None:
        functions = CompiledFunctions(rules.fns)
        self._teams = [(team.name, compile_owns(team, functions)) for team in by_rank(rules.teams)]
        conditions = [team.owns for team in rules.teams]
        dependencies = Dependencies.of(signature_reads(reads_of(conditions), conditions, rules.fns))
        # INVARIANT: the checker lets `owns` read only fields that pods may share.
        assert dependencies is not None
        self._signature = dependencies.signature
        self._owners = BoundedDict[Hashable, tuple[str, tuple[Fault, ...]]](CACHED_OWNERS)
        self._has_erred = False
        self._choices = _choices(rules, frozenset(profiles))

    def profile_of(self, pod: PodInfo) -> str | None:
        """Return the qualified name of the pod's profile; None if the pod is for another scheduler."""
        choices = self._choices.get(pod.scheduler_name)
        if choices is None:
            return None
        return choices.get(self.owner_of(pod)) if len(choices) > 1 else choices[""]

    def owner_of(self, pod: PodInfo) -> str:
        """Return the name of the team that owns the pod, "" if none does."""
        return self._owner(pod)[0] if self._teams else ""

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return the errors in `owns` for a pod."""
        return self._owner(pod)[1] if self._has_erred else ()

    def _owner(self, pod: PodInfo) -> tuple[str, tuple[Fault, ...]]:
        signature = self._signature(pod)
        owner = self._owners.get(signature)
        if owner is None:
            owner = self._owners.keep(signature, self._find_owner(pod))
            self._has_erred = self._has_erred or bool(owner[1])
        return owner

    def _find_owner(self, pod: PodInfo) -> tuple[str, tuple[Fault, ...]]:
        faults: list[Fault] = []
        for name, owns in self._teams:
            log = FaultLog(name)
            is_owner = owns(pod, log.add)
            faults += log.take()
            if is_owner:
                return name, tuple(faults)
        return "", tuple(faults)


class ForcedProfile:
    """Sends every pod to one profile."""

    def __init__(self, profile: str) -> None:
        self._profile = profile

    def profile_of(self, pod: PodInfo) -> str | None:
        """Return the profile."""
        return self._profile

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return no faults."""
        return ()


def _choices(rules: RuleSet, running: frozenset[str]) -> dict[str, dict[str, str | None]]:
    """Return the profile by scheduler name and owner ("" is nobody), for the names of running profiles."""
    holders: dict[tuple[str, str], CheckedProfile] = {}
    for profile in (rules.profiles[name] for name in rules.profiles if name in running):
        key = (profile.scheduler, profile.team)
        holder = holders.get(key)
        # If one profile extends others of the same name, it replaces them.
        if holder is None or holder.qualified in _ancestors(rules, profile):
            holders[key] = profile
    owners = {"": "", **{team.name: team.profile for team in rules.teams if team.profile in running}}
    owners.update({team.name: "" for team in rules.teams if team.name not in owners})
    return {
        scheduler: {owner: _choose(holders, scheduler, owner, first) for owner, first in owners.items()}
        for scheduler in {scheduler for scheduler, _ in holders}
    }


def _choose(
    holders: dict[tuple[str, str], CheckedProfile], scheduler: str, owner: str, first: str
) -> str | None:
    """Return the profile for pods of one owner and scheduler name.

    `first` is the owner's profile for pods without a scheduler name.
    """
    own = holders.get((scheduler, owner)) if owner else None
    platform, default = holders.get((scheduler, "")), holders.get((DEFAULT_SCHEDULER, ""))
    if own is not None:
        return own.qualified
    if platform is not None and scheduler != DEFAULT_SCHEDULER:
        return platform.qualified
    return first or (None if default is None else default.qualified)


def _ancestors(rules: RuleSet, profile: CheckedProfile) -> set[str]:
    """Return the qualified names of all profiles that a profile extends, directly or indirectly."""
    found: set[str] = set()
    while profile.extends:
        found.add(profile.extends)
        profile = rules.profiles[profile.extends]
    return found
