"""`team` blocks: the pods that a team owns, its rights, and the profile that its pods get."""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedTeam
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import TypedExpr
from kdsl.check.names.declarations import Declarations, Located
from kdsl.check.profiles.teams import Teams, statements_of
from kdsl.check.rules.block import BlockCheck, incomplete, once
from kdsl.lang.profile_tree import Contact, Files, Grant, May, Owns, Priority
from kdsl.lang.tree import Profile, Team

OWNED_BY = frozenset({"pod.namespace", "pod.labels", "pod.serviceAccount"})
"""The reads that `owns` may have.

They are equal for all pods of a workload, so the owner is looked up per workload, not computed per pod.
"""


def check_team(
    located: Located[Team], block: BlockCheck, teams: Teams, declarations: Declarations
) -> CheckedTeam | None:
    """Check one team; None without an `owns`. The result is valid only where nothing was reported."""
    team = located.declaration
    for kind, what in (
        (Owns, "owns"),
        (Files, "files"),
        (Contact, "contact"),
        (Priority, "priority"),
        (May, "may"),
    ):
        once(block.diagnostics, [each for each in team.body if isinstance(each, kind)], what)
    for may in statements_of(located, May):
        block.diagnostics.extend(_grants(may))
        if not statements_of(located, Files) and not teams.name_of(located):
            title = f"team `{located.name}` has rights, but no `files`"
            help_ = f'write `files "teams/{located.name}/**.kdsl"`: without it its files are the platform\'s'
            block.diagnostics.append(
                Diagnostic(CheckCode.TEAM_GRANT, title, may.span, "for no file", help=(help_,))
            )
    owns = statements_of(located, Owns)
    if not owns:
        why = "no pod would be the team's"
        incomplete(block.diagnostics, "team", located.name, team.name.span, "owns", why)
        return None
    condition = block.condition(owns[0].condition, "the condition of `owns`")
    block.diagnostics.extend(_reads_too_much(condition))
    priority = statements_of(located, Priority)
    return CheckedTeam(
        name=located.name,
        qualified=located.qualified,
        owns=condition,
        priority=priority[0].value if priority else 0,
        profile=_profile(located, block, teams, declarations),
        scope=block.scope,
        slots=block.frame.size,
        doc=team.doc,
        span=team.span,
    )


def _profile(located: Located[Team], block: BlockCheck, teams: Teams, declarations: Declarations) -> str:
    """Return the profile of the team's pods: its only one, or among several the one with the team's name."""
    own = [each for each in declarations.all(Profile) if teams.name_of(each) == located.name]
    named = [each for each in own if each.name == located.name]
    if len(own) > 1 and len(named) != 1:
        first, second = own[0].declaration.name, own[1].declaration.name
        block.diagnostics.append(
            Diagnostic(
                CheckCode.TEAM_PROFILE,
                f"team `{located.name}` has {len(own)} profiles, and which its pods get is not said",
                second.span,
                "this one",
                secondary=(Label(first.span, "or this one"),),
                help=(f"call one of them `{located.name}`",),
            )
        )
        return ""
    chosen = named or own
    return chosen[0].qualified if chosen else ""


def _grants(may: May) -> Iterator[Diagnostic]:
    first: dict[str, Grant] = {}
    for grant in may.grants:
        earlier = first.setdefault(grant.right, grant)
        if earlier is not grant:
            secondary = (Label(earlier.span, "granted here"),)
            title = f"`{grant.right}` is granted twice"
            yield Diagnostic(CheckCode.WRITTEN_TWICE, title, grant.span, "again", secondary=secondary)
        if grant.low is not None and grant.high is not None and grant.low > grant.high:
            title = f"`reweight {grant.low} to {grant.high}` grants no weight"
            help_ = (f"write `reweight {grant.high} to {grant.low}`",)
            yield Diagnostic(CheckCode.TEAM_GRANT, title, grant.span, "an empty range", help=help_)


def _reads_too_much(condition: TypedExpr) -> Iterator[Diagnostic]:
    for part in _culprits(condition):
        yield Diagnostic(
            CheckCode.OWNS_READS,
            "`owns` can read the pod's namespace, labels and service account only",
            part.span,
            f"this reads {', '.join(f'`{each}`' for each in sorted(part.reads - OWNED_BY))}",
            help=("the owner is looked up for all pods that have these in common",),
        )


def _culprits(expr: TypedExpr) -> Iterator[TypedExpr]:
    """Yield the smallest parts that read more than `owns` may."""
    if expr.reads <= OWNED_BY:
        return
    inner = [culprit for child in children(expr) for culprit in _culprits(child)]
    yield from inner or [expr]
