"""Rights: the changes that the profiles of a team may make to the platform's, statement by statement.

With every statement inside the rights, a team's profile rejects at least the nodes that the profile it
extends rejects. The proof is by form: predicates of the platform stay, in full, unless the platform granted
`disable predicates`. The predicates that a team adds run as well, and a node must pass all. `docs/teams.md`
has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedAdmit, CheckedQueue
from kdsl.check.model.sharing import DEVICES
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Var
from kdsl.check.names.declarations import Declarations, Located
from kdsl.check.names.externals import PLUGINS
from kdsl.check.profiles.draft import Draft, Entry, entry_at
from kdsl.check.profiles.teams import Teams, statements_of
from kdsl.lang.choices import RuleKind
from kdsl.lang.profile_tree import (
    AddPredicate,
    AddScore,
    CheckPredicates,
    Disable,
    Files,
    May,
    ProfileStatement,
    Reweight,
    SampleSize,
    SetParam,
    Tighten,
    UseDevices,
    UsePreemption,
    UseQueue,
)
from kdsl.lang.tree import Device, Name, Predicate, Profile, Queue, Team

TIGHTEN = "tighten"
ADD_PREDICATES = "add predicates"
ADD_SCORES = "add scores"
REWEIGHT = "reweight"
ORDER_DEVICES = "order devices"
DISABLE_PREDICATES = "disable predicates"
DISABLE_SCORES = "disable scores"

_MOST_NAMED = 3

_VICTIMS: Final = "preemption evicts pods of every team: only the platform may change it"
_SEARCH: Final = "pods of every team wait during a search for nodes: only the platform may change it"


class TeamRights:
    """Compares the statements of team profiles with the rights granted to their teams."""

    def __init__(
        self,
        declarations: Declarations,
        teams: Teams,
        queues: Mapping[str, CheckedQueue],
        diagnostics: list[Diagnostic],
    ) -> None:
        self._declarations = declarations
        self._teams = teams
        self._queues = queues
        self._diagnostics = diagnostics

    def check_base(self, located: Located[Profile]) -> None:
        """Report a profile of a team that extends neither a profile of the platform nor one of the team."""
        team = self._teams.of(located.declaration.span)
        if team is None:
            return
        name = located.declaration.extends
        if name is None:
            title = f"profile `{located.name}` of team `{team.name}` extends no profile of the platform"
            span, why = located.declaration.name.span, "it would not have the platform's predicates"
        else:
            base = self._declarations.find(Profile, name.text, located.home)
            other = "" if base is None else self._teams.name_of(base)
            if other in ("", team.name):
                return
            title = f"profile `{located.name}` of team `{team.name}` extends one of team `{other}`"
            span, why = name.span, f"team `{other}` may have other rights"
        help_ = (f"write `profile {located.name} extends` and a profile of the platform",)
        self._diagnostics.append(
            Diagnostic(CheckCode.TEAM_BASE, title, span, why, secondary=_claim_label(team), help=help_)
        )

    def refuse_replaced(
        self, located: Located[Profile], base: Located[Profile], holder: Located[Profile], line: Span
    ) -> None:
        """Report a profile of a team that extends the platform's profile `base`, where the platform's
        `holder` replaces `base` by its `scheduler` line.

        The team's profile would lack the rules of `holder`.
        """
        team = self._teams.of(located.declaration.span)
        name = located.declaration.extends
        if team is None or name is None:
            return
        self._diagnostics.append(
            Diagnostic(
                CheckCode.TEAM_BASE,
                f"profile `{located.name}` of team `{team.name}` extends one that the platform has replaced",
                name.span,
                f"it lacks the changes of `{holder.qualified}`",
                secondary=(Label(line, f"`{holder.qualified}` takes the place of `{base.qualified}`"),),
                help=(f"extend `{holder.qualified}`",),
            )
        )

    def may(self, located: Located[Profile], right: str) -> bool:
        """Return whether the author of a profile has a right: the platform has all."""
        team = self._teams.of(located.declaration.span)
        return team is None or self._teams.grant(team, right) is not None

    def ways_to_change(self, entry: Entry, kind: RuleKind, located: Located[Profile]) -> tuple[str, ...]:
        """Return the statements that the author of a profile may write to change a rule of its base."""
        profile, used = located.declaration.span, entry.used.span
        if used.source is profile.source and profile.start <= used.start < profile.end:
            return ()
        rule, name, ways = entry.rule.declaration, entry.name, []
        team = self._teams.of(profile)
        is_own = team is not None and self._is_of(entry, team)
        if kind is RuleKind.SCORE and (is_own or self.may(located, REWEIGHT)):
            ways.append(f"`reweight {name} N` changes its weight")
        is_plugin = entry.rule.home.package == PLUGINS
        if kind is RuleKind.PREDICATE and not is_plugin and self.may(located, TIGHTEN):
            ways.append(f"`tighten {name} {{ … }}` adds conditions")
        right = DISABLE_PREDICATES if kind is RuleKind.PREDICATE else DISABLE_SCORES
        is_mandatory = isinstance(rule, Predicate) and rule.mandatory
        if not is_mandatory and (is_own or self.may(located, right)):
            ways.append(f"`disable {kind} {name}` takes it out first")
        return tuple(ways)

    def check(self, draft: Draft, statement: ProfileStatement, located: Located[Profile]) -> None:
        """Report a statement that the profile's team has no right to. `draft` is the profile before it."""
        team = self._teams.of(located.declaration.span)
        if team is None:
            return
        match statement:
            case Tighten(name=name):
                self._has_right(team, TIGHTEN, statement.span, f"tighten `{name.text}`")
            case AddPredicate(name=name):
                self._has_right(team, ADD_PREDICATES, statement.span, f"add predicate `{name.text}`")
            case AddScore(name=name):
                self._has_right(team, ADD_SCORES, statement.span, f"add score `{name.text}`")
                self._check_range(team, statement)
            case Reweight(name=name):
                if not self._is_own(draft.scores, name, team, located):
                    self._has_right(team, REWEIGHT, statement.span, f"reweight `{name.text}`")
                self._check_range(team, statement)
            case Disable(kind=kind, name=name):
                if kind is RuleKind.PREEMPTION:
                    self._refuse(team, statement.span, f"disable preemption `{name.text}`")
                elif self._is_mandatory(draft.of(kind), name, located):
                    return  # `Profiles` reports it: no right allows this
                elif not self._is_own(draft.of(kind), name, team, located):
                    right = DISABLE_PREDICATES if kind is RuleKind.PREDICATE else DISABLE_SCORES
                    self._has_right(team, right, statement.span, f"disable {kind} `{name.text}`")
            case SetParam():
                self._set(draft, statement, team, located)
            case UseDevices():
                if self._has_right(team, ORDER_DEVICES, statement.span, "choose devices"):
                    self._check_devices(draft, statement, team, located)
            case UseQueue(name=name):
                self._queue(draft, name, located)
            case CheckPredicates(all=everything):
                # Preemption skips nodes that some predicate, among those that ran, rejects as unresolvable.
                what = "all" if everything else "first"
                self._refuse(team, statement.span, f"say `check {what}`")
            case SampleSize():
                self._refuse(team, statement.span, "say `sample`", _SEARCH)
            case UsePreemption(name=name):
                self._refuse(team, statement.span, f"choose preemption `{name.text}`")
            case _:
                pass

    def _set(self, draft: Draft, statement: SetParam, team: Located[Team], located: Located[Profile]) -> None:
        """Check a `set`: a score's may act like another weight, a predicate's may let more nodes pass."""
        what = f"set `{statement.rule.text}.{statement.param.text}`"
        if statement.rule.text == DEVICES and draft.devices is not None:
            self._has_right(team, ORDER_DEVICES, statement.span, what)
            return
        preemption = () if draft.preemption is None else (draft.preemption,)
        at = entry_at(preemption, statement.rule, self._declarations, located.home)
        if at is not None and preemption[at].param(statement.param.text) is not None:
            self._refuse(team, statement.span, what)
        for kind, right in ((RuleKind.PREDICATE, DISABLE_PREDICATES), (RuleKind.SCORE, REWEIGHT)):
            entries = draft.of(kind)
            at = entry_at(entries, statement.rule, self._declarations, located.home)
            if at is None or entries[at].param(statement.param.text) is None:
                continue
            rule = entries[at].rule.declaration
            if self._is_of(entries[at], team):
                continue
            if isinstance(rule, Predicate) and rule.mandatory:
                self._diagnostics.append(
                    _mandatory(rule, what, team, statement.span, self._tighten_instead(team))
                )
            else:
                of_what = f"{what} of a {kind} that is the platform's"
                help_: tuple[str, ...] = ()
                if kind is RuleKind.PREDICATE:
                    help_ = self._tighten_instead(team)
                self._has_right(team, right, statement.span, of_what, help_)

    def _tighten_instead(self, team: Located[Team]) -> tuple[str, ...]:
        """Return the hint to write `tighten`, for a team that may."""
        if self._teams.grant(team, TIGHTEN) is None:
            return ()
        return ("to demand more, write `tighten`: it cannot let a node pass that was rejected",)

    def _check_devices(
        self, draft: Draft, statement: UseDevices, team: Located[Team], located: Located[Profile]
    ) -> None:
        """Report devices that a team leaves out, and devices that it has written itself.

        Other rules leave resources with a device to that device, so that both would let nodes pass that the
        platform rejects.
        """
        chosen = set()
        for name in statement.names:
            device = self._declarations.find(Device, name.text, located.home)
            if device is None:
                return  # the unknown device is reported elsewhere
            chosen.add(device.qualified)
            if self._teams.name_of(device):
                title = f"team `{team.name}` may not use device `{device.name}`, which it has written itself"
                why = "the platform's predicates leave the resources of a device to it"
                self._diagnostics.append(
                    Diagnostic(CheckCode.NOT_GRANTED, title, name.span, why, secondary=_grants_label(team))
                )
        kinds = () if draft.devices is None else draft.devices.kinds
        lost = [each for each in kinds if each[0].qualified not in chosen]
        if lost:
            names = [f"`{device.name}`" for device, _ in lost[:_MOST_NAMED]]
            more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
            title = f"team `{team.name}` may not leave out {', '.join(names)}{more}"
            why = "a team may order devices and add some"
            label = Label(lost[0][1].span, f"`{lost[0][0].name}` is inherited from here")
            self._diagnostics.append(
                Diagnostic(CheckCode.NOT_GRANTED, title, statement.span, why, secondary=(label,))
            )

    def _is_own(
        self, entries: tuple[Entry, ...], name: Name, team: Located[Team], located: Located[Profile]
    ) -> bool:
        """Return whether the team itself added the rule to the profile, or the profile has no such rule."""
        at = entry_at(entries, name, self._declarations, located.home)
        return at is None or self._is_of(entries[at], team)

    def _is_mandatory(self, entries: tuple[Entry, ...], name: Name, located: Located[Profile]) -> bool:
        at = entry_at(entries, name, self._declarations, located.home)
        rule = None if at is None else entries[at].rule.declaration
        return isinstance(rule, Predicate) and rule.mandatory

    def _is_of(self, entry: Entry, team: Located[Team]) -> bool:
        owner = self._teams.of(entry.used.span)
        return owner is not None and owner.name == team.name

    def _has_right(
        self, team: Located[Team], right: str, span: Span, what: str, help_: tuple[str, ...] = ()
    ) -> bool:
        """Return whether a team has a right; report a statement that needs a missing right."""
        if self._teams.grant(team, right) is not None:
            return True
        self._diagnostics.append(
            Diagnostic(
                CheckCode.NOT_GRANTED,
                f"team `{team.name}` may not {what}",
                span,
                f"needs the right `{right}`",
                secondary=_grants_label(team),
                help=help_,
            )
        )
        return False

    def _refuse(self, team: Located[Team], span: Span, what: str, why: str = _VICTIMS) -> None:
        """Report a change that no right covers."""
        title = f"team `{team.name}` may not {what}"
        self._diagnostics.append(
            Diagnostic(CheckCode.NOT_GRANTED, title, span, why, secondary=_grants_label(team))
        )

    def _check_range(self, team: Located[Team], statement: Reweight | AddScore) -> None:
        """Report a weight outside the range of the team.

        Weights of added scores count, too: else disabling a score and adding it again would evade the range.
        """
        grant = self._teams.grant(team, REWEIGHT)
        if grant is None or grant.low is None or grant.high is None:
            return
        if not grant.low <= statement.weight.value <= grant.high:
            self._diagnostics.append(
                Diagnostic(
                    CheckCode.OUT_OF_RANGE,
                    f"team `{team.name}` may give weights of {grant.low} to {grant.high}, "
                    f"not {statement.weight.value}",
                    statement.weight.span,
                    "out of range",
                    secondary=(Label(grant.span, "the range is granted here"),),
                )
            )

    def _queue(self, draft: Draft, name: Name, located: Located[Profile]) -> None:
        """Report a queue that drops an `admit when` of the queue it replaces."""
        new = self._declarations.find(Queue, name.text, located.home)
        if draft.queue is None or new is None:
            return
        old_queue = self._queues.get(draft.queue.qualified)
        new_queue = self._queues.get(new.qualified)
        if old_queue is None or new_queue is None:
            return
        for admit in old_queue.admit:
            if not _keeps(new_queue, old_queue, admit):
                condition = " ".join(admit.condition.span.text.split())
                self._diagnostics.append(
                    Diagnostic(
                        CheckCode.LOST_ADMIT,
                        f"queue `{new.name}` lets in pods that the platform keeps out",
                        name.span,
                        f"replaces `{old_queue.name}` without its `admit when`",
                        secondary=(Label(admit.condition.span, "it has no line with this condition"),),
                        help=(f"add `admit when {condition}` to `{new.name}`",),
                    )
                )


def _keeps(new: CheckedQueue, old: CheckedQueue, admit: CheckedAdmit) -> bool:
    """Return whether a queue has a condition of another; a condition with `let`s needs the same `let`s."""
    engine = {variable.slot for variable in old.scope.values()}
    parts = [part for part in walk(admit.condition) if isinstance(part, Var)]
    local = {
        variable.slot
        for variable in (*(let.variable for let in old.lets), *(param.variable for param in old.params))
    }
    if any(part.slot in local - engine for part in parts) and (new.lets, new.params) != (
        old.lets,
        old.params,
    ):
        return False
    return any(each.condition == admit.condition for each in new.admit)


def _mandatory(
    rule: Predicate, what: str, team: Located[Team], span: Span, help_: tuple[str, ...]
) -> Diagnostic:
    """Return the error for a team's change of a mandatory predicate, which no right allows."""
    title = f"predicate `{rule.name.text}` is mandatory"
    why = f"team `{team.name}` may not {what}: that may let nodes pass"
    label = Label(rule.name.span, "declared here")
    return Diagnostic(CheckCode.MANDATORY, title, span, why, secondary=(label,), help=help_)


def _grants_label(team: Located[Team]) -> tuple[Label, ...]:
    """Return the label of the team's grants, or else of the team."""
    may = statements_of(team, May)
    if may:
        return (Label(may[0].span, "the team was granted this"),)
    return (Label(team.declaration.name.span, "the team was granted nothing"),)


def _claim_label(team: Located[Team]) -> tuple[Label, ...]:
    """Return the label of the claim that makes a file the team's."""
    return tuple(Label(each.span, "the team's files are these") for each in statements_of(team, Files)[:1])
