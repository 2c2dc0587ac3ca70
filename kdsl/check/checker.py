"""The whole check: converts a loaded program to a `RuleSet`, or reports all its errors at once.

It checks names and functions first, then the rules, used or not, then the profiles made of them. `kdsl
check`, every start of the scheduler and the tests of rules use it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.span import Span
from kdsl.check.analyses.sound import sound_part
from kdsl.check.devices.device import check_device
from kdsl.check.devices.folding import fold
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import (
    CheckedPredicate,
    CheckedProfile,
    CheckedSample,
    CheckedTeam,
    RuleSet,
    WrittenRule,
)
from kdsl.check.names.declarations import Declarations, Home, Located
from kdsl.check.names.externals import NO_EXTERNALS, PLUGINS, Externals, checked_predicate, checked_score
from kdsl.check.names.file_names import Construct
from kdsl.check.names.functions import Functions
from kdsl.check.profiles.effective import RuleTables
from kdsl.check.profiles.inheritance import Profiles
from kdsl.check.profiles.profile_devices import ProfileDevices
from kdsl.check.profiles.team_blocks import check_team
from kdsl.check.profiles.teams import Teams
from kdsl.check.rules.block import BlockCheck
from kdsl.check.rules.predicates import check_predicate
from kdsl.check.rules.preemptions import check_preemption
from kdsl.check.rules.queues import check_queue
from kdsl.check.rules.samples import check_sample
from kdsl.check.rules.scores import check_score
from kdsl.check.rules.tightenings import check_tightenings
from kdsl.check.views.view import Views, load_views
from kdsl.lang.program import Program
from kdsl.lang.tree import Declaration, Device, Predicate, Preemption, Profile, Queue, Score

D = TypeVar("D", bound=Declaration)
R = TypeVar("R")

MAX_DERIVED_DEVICES: Final = 128
"""The most devices that extend others. A derived device takes 70 ms and 1 MB, the text of one 40 bytes."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The rules where there is no error, else None; the diagnostics in the order of the text.

    `sound` are the rules without errors where others have some.
    """

    rules: RuleSet | None
    diagnostics: tuple[Diagnostic, ...]
    sound: RuleSet


def check_program(program: Program, externals: Externals = NO_EXTERNALS) -> CheckResult:
    """Check a program against the views of the newest Kubernetes minor.

    The program's rules may use `externals`: the rules, functions and fields of installed plugins.
    """
    run = _Check(program, load_views(), externals)
    profiles = run.check()
    diagnostics = tuple(sorted(run.diagnostics, key=_in_order(program)))
    identity = (program.digest, "views", run.views.minor, *externals.versions)
    digest = hashlib.sha256(" ".join(identity).encode()).hexdigest()
    rules = RuleSet(
        MappingProxyType(profiles),
        MappingProxyType({**run.functions.fns, **externals.compiled}),
        digest,
        tuple(run.checked_teams),
        run.written,
        MappingProxyType(run.devices),
    )
    if has_errors(diagnostics):
        return CheckResult(None, diagnostics, sound_part(rules, diagnostics))
    return CheckResult(rules, diagnostics, rules)


class _Check:
    """One check: the tables that it builds, and its diagnostics."""

    def __init__(self, program: Program, views: Views, externals: Externals) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.views = views = views.with_fields(externals.fields)
        self.program = program
        self.externals = tuple(rule for rule in externals.rules.values() if rule.is_active)
        self.declarations = Declarations(program, externals)
        self.functions = Functions(self.declarations, views, self.diagnostics)
        self.teams = Teams(program, self.declarations, self.diagnostics)
        self.declarations.teams = self.teams.packages
        self.checked_teams: list[CheckedTeam] = []
        self.devices: dict[str, CheckedDevice] = {}
        self.written: tuple[WrittenRule, ...] = ()

    def check(self) -> dict[str, CheckedProfile]:
        """Check all declarations and return the profiles by qualified name."""
        self._refuse_taken_package()
        self.functions.check_all()
        functions, fns = self.functions, self.functions.fns
        predicates = self._rules(Predicate, Construct.PREDICATE, check_predicate)
        scores = self._rules(Score, Construct.SCORE, partial(check_score, functions=functions))
        rules = RuleTables(
            predicates | {rule.qualified: checked_predicate(rule) for rule in self.externals},
            scores | {rule.qualified: checked_score(rule) for rule in self.externals},
            self._rules(Queue, Construct.QUEUE, partial(check_queue, fns=fns)),
            self._rules(Preemption, Construct.PREEMPTION, partial(check_preemption, fns=fns)),
            self._tightenings(),
            self._samples(),
        )
        self.written = rules.written()
        self._check_devices()
        devices = ProfileDevices(self.devices, self.declarations, self.functions, self.diagnostics)
        profiles = Profiles(self.declarations, self.functions, rules, self.teams, devices, self.diagnostics)
        self._check_teams()
        return profiles.check_all()

    def _rules(
        self, kind: type[D], construct: Construct, check: Callable[[Located[D], BlockCheck], R | None]
    ) -> dict[str, R]:
        """Check all rules of a kind; return those that are complete, by qualified name."""
        found = {
            located.qualified: check(located, self._block(located.home, construct, located.declaration.span))
            for located in self.declarations.all(kind)
        }
        return {name: rule for name, rule in found.items() if rule is not None}

    def _tightenings(self) -> dict[str, dict[str, CheckedPredicate]]:
        return {
            located.qualified: check_tightenings(
                located, partial(self._block, located.home, Construct.PREDICATE), self.diagnostics
            )
            for located in self.declarations.all(Profile)
        }

    def _samples(self) -> dict[str, CheckedSample]:
        found = {}
        for located in self.declarations.all(Profile):
            sample = check_sample(located, partial(self._block, located.home, Construct.SAMPLE))
            if sample is not None:
                found[located.qualified] = sample
        return found

    def _check_devices(self) -> None:
        derived = 0
        for located in self.declarations.all(Device):
            derived += located.declaration.extends is not None
            if derived > MAX_DERIVED_DEVICES:
                self.diagnostics.append(_too_many_devices(located))
                return
            folded = fold(located, self.declarations, self.diagnostics)
            if folded is None:
                continue
            known = len(self.diagnostics)
            block = self._block(folded.root.home, Construct.DEVICE, located.declaration.span)
            device = check_device(located, folded, block, self.functions, self.views)
            # An error in a device shows in all devices that extend it, and is reported once.
            found = self.diagnostics[known:]
            del self.diagnostics[known:]
            self.diagnostics += [each for each in found if each not in self.diagnostics]
            if device is not None:
                self.devices[device.qualified] = device

    def _check_teams(self) -> None:
        for located in self.teams.all:
            block = self._block(located.home, Construct.TEAM, located.declaration.span)
            team = check_team(located, block, self.teams, self.declarations)
            if team is not None:
                self.checked_teams.append(team)

    def _block(self, home: Home, construct: Construct, span: Span) -> BlockCheck:
        return BlockCheck(self.functions, self.views, self.diagnostics, home, construct, span)

    def _refuse_taken_package(self) -> None:
        package = self.program.packages.get(PLUGINS)
        for file in () if package is None else package.files:
            if file.package is not None:
                title = f"the package name `{PLUGINS}` is taken"
                why = "`plugins.X` is the name of a plugin's rule"
                self.diagnostics.append(Diagnostic(CheckCode.AMBIGUOUS, title, file.package.span, why))


def _too_many_devices(located: Located[Device]) -> Diagnostic:
    title = f"more than {MAX_DERIVED_DEVICES} devices extend others"
    why = "each is checked and compiled with all that it inherits"
    span, help_ = located.declaration.name.span, "remove those that no profile has, or share one"
    return Diagnostic(CheckCode.TOO_MANY_DEVICES, title, span, why, help=(help_,))


def _in_order(program: Program) -> Callable[[Diagnostic], tuple[int, int]]:
    """Return the sort key that orders diagnostics by the program's files, then by position."""
    places = {id(file.span.source): at for at, file in enumerate(program.files)}

    def key(diagnostic: Diagnostic) -> tuple[int, int]:
        span = diagnostic.span
        return (len(places), 0) if span is None else (places.get(id(span.source), len(places)), span.start)

    return key
