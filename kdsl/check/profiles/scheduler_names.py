"""The profile of each scheduler name: a profile that extends another and repeats its name replaces it."""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.model.codes import CheckCode
from kdsl.check.names.declarations import Declarations, Located
from kdsl.check.profiles.draft import scheduler_taken
from kdsl.check.profiles.teams import Teams
from kdsl.lang.profile_tree import SchedulerName
from kdsl.lang.tree import Profile


class SchedulerNames:
    """Records the scheduler names of profiles, and reports a name that two profiles have."""

    def __init__(self, declarations: Declarations, teams: Teams, diagnostics: list[Diagnostic]) -> None:
        self._declarations = declarations
        self._teams = teams
        self._diagnostics = diagnostics
        self._holders: dict[tuple[str, str], tuple[Located[Profile], SchedulerName]] = {}

    def claim(self, located: Located[Profile], scheduler: SchedulerName) -> None:
        """Record the profile of a scheduler name, and report a second one.

        A profile that repeats the name of its base replaces the base. A team's profile may use a name that it
        inherits: only the team's own pods get it.
        """
        team = self._teams.name_of(located)
        is_own = any(each is scheduler for each in located.declaration.body)
        if is_own and not is_name(str(scheduler.name.value)):
            self._diagnostics.append(no_scheduler_name(located, scheduler))
        key = (str(scheduler.name.value), "" if is_own else team)
        holder, first = self._holders.setdefault(key, (located, scheduler))
        if holder is located or (self._extends(holder, located) and first is not scheduler):
            return
        if is_own and self._extends(located, holder) and self._teams.name_of(holder) == team:
            self._holders[key] = (located, scheduler)
            return
        if not is_own and self._teams.may_be_lost(located):
            return  # the name is free once the profile is the team's
        self._diagnostics.append(scheduler_taken(located, scheduler, holder, first, team))

    def replacing(
        self, base: Located[Profile], scheduler: SchedulerName
    ) -> tuple[Located[Profile], SchedulerName] | None:
        """Return the profile that replaces `base`, a profile of the platform, and its `scheduler` line."""
        holder, line = self._holders[str(scheduler.name.value), ""]
        return (holder, line) if self._extends(holder, base) else None

    def _extends(self, located: Located[Profile], other: Located[Profile]) -> bool:
        """Return whether a profile extends another, directly or through others."""
        return any(base.qualified == other.qualified for base in self._bases(located))

    def _bases(self, located: Located[Profile]) -> Iterator[Located[Profile]]:
        """Yield the bases of a profile, the nearest first; those of a cycle once."""
        seen: set[str] = set()
        base = base_of(self._declarations, located)
        while base is not None and base.qualified not in seen:
            yield base
            seen.add(base.qualified)
            base = base_of(self._declarations, base)


def is_name(text: str) -> bool:
    """Return whether pods can ask for a scheduler of this name: the API server takes no empty one, and texts
    with control characters are nobody's intention.
    """
    return bool(text) and text.isprintable()


def no_scheduler_name(located: Located[Profile], scheduler: SchedulerName) -> Diagnostic:
    """Return the error for a name that no pod can have."""
    title = f"{scheduler.name.raw} is no scheduler name, so no pod can select profile `{located.qualified}`"
    help_ = ('write the `schedulerName` of the pods, such as `scheduler "gpu"`',)
    return Diagnostic(CheckCode.INCOMPLETE, title, scheduler.name.span, "not a name", help=help_)


def base_of(declarations: Declarations, located: Located[Profile]) -> Located[Profile] | None:
    """Return the base of a profile; None where it has none, or one that does not exist."""
    name = located.declaration.extends
    return None if name is None else declarations.find(Profile, name.text, located.home)
