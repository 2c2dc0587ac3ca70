"""Inheritance of profiles: folds inherited and changed rules, from the root down, into lists of rules."""

from __future__ import annotations

from dataclasses import replace

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.expressions.scope import SlotFrame
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedParam, CheckedProfile
from kdsl.check.model.sharing import DEVICES
from kdsl.check.model.types import ERROR
from kdsl.check.names.declarations import Declarations, Located
from kdsl.check.names.externals import PLUGINS
from kdsl.check.names.functions import Functions
from kdsl.check.profiles.draft import (
    Draft,
    Entry,
    entry_at,
    final,
    mandatory,
    no_such_param,
    no_such_rule,
    not_in_profile,
    of_a_file,
    of_a_plugin,
    set_before,
    unknown_rule,
    used_twice,
)
from kdsl.check.profiles.effective import RuleTables, finish
from kdsl.check.profiles.profile_devices import ProfileDevices
from kdsl.check.profiles.repeats import check_repeats
from kdsl.check.profiles.rights import DISABLE_SCORES, TeamRights
from kdsl.check.profiles.scheduler_names import SchedulerNames, base_of
from kdsl.check.profiles.teams import Teams
from kdsl.lang.choices import RuleKind
from kdsl.lang.profile_tree import (
    AddPredicate,
    AddScore,
    CheckPredicates,
    Disable,
    Placing,
    PredicateList,
    ProfileStatement,
    Reweight,
    SampleSize,
    SchedulerName,
    ScoreList,
    SetParam,
    Tighten,
    UseDevices,
    UsePreemption,
    UseQueue,
)
from kdsl.lang.tree import Name, Number, Param, Predicate, Preemption, Profile, Queue, Score

MAX_WEIGHT = 2**31 - 1
"""The largest weight of a score, as in kube-scheduler's configuration."""


class Profiles:
    """Folds the profiles of a program, each once; reports an error at the statement that causes it."""

    def __init__(
        self,
        declarations: Declarations,
        functions: Functions,
        rules: RuleTables,
        teams: Teams,
        devices: ProfileDevices,
        diagnostics: list[Diagnostic],
    ) -> None:
        self._declarations = declarations
        self._devices = devices
        self._teams = teams
        self._rights = TeamRights(declarations, teams, rules.queues, diagnostics)
        self._functions = functions
        self._rules = rules
        self._diagnostics = diagnostics
        self._drafts: dict[str, Draft] = {}
        self._running: list[str] = []

    def check_all(self) -> dict[str, CheckedProfile]:
        """Return the effective profiles by qualified name; they are valid only where nothing was reported."""
        found: dict[str, CheckedProfile] = {}
        schedulers = SchedulerNames(self._declarations, self._teams, self._diagnostics)
        for located in self._declarations.all(Profile):
            draft = self._fold(located)
            self._complete(located, draft)
            # A profile of an unknown base may have been meant to take the place of that base.
            if draft.scheduler is not None and draft.is_known:
                schedulers.claim(located, draft.scheduler)
            team = self._teams.name_of(located)
            base = base_of(self._declarations, located)
            profile = finish(
                located, draft, self._rules, self._devices.checked, base.qualified if base else "", team
            )
            if profile is not None:
                found[profile.qualified] = profile
        self._check_bases(schedulers)
        return found

    def _check_bases(self, schedulers: SchedulerNames) -> None:
        """Report profiles of teams whose base is a profile that the platform has replaced."""
        for located in self._declarations.all(Profile):
            base = base_of(self._declarations, located)
            if base is None or self._teams.name_of(base):
                continue
            draft = self._drafts[base.qualified]
            scheduler = draft.scheduler
            if scheduler is None or not draft.is_known:
                continue
            replacing = schedulers.replacing(base, scheduler)
            if replacing is not None:
                holder, line = replacing
                self._rights.refuse_replaced(located, base, holder, line.span)

    # ---- folding -----------------------------------------------------------------------------------------

    def _fold(self, located: Located[Profile]) -> Draft:
        key = located.qualified
        if key not in self._drafts:
            self._running.append(key)
            profile = located.declaration
            draft = self._base(located)
            check_repeats(profile, self._diagnostics)
            self._rights.check_base(located)
            for statement in profile.body:
                draft = self._apply(draft, statement, located)
            self._running.pop()
            self._drafts[key] = draft
        return self._drafts[key]

    def _base(self, located: Located[Profile]) -> Draft:
        name = located.declaration.extends
        if name is None:
            return Draft()
        base = self._declarations.find(Profile, name.text, located.home)
        if base is None:
            self._diagnostics.append(self._declarations.undeclared(Profile, name, located.home))
            return Draft(is_known=False)
        if base.qualified in self._running:
            cycle = [*self._running[self._running.index(base.qualified) :], base.qualified]
            path = " → ".join(f"`{each}`" for each in cycle)
            title = f"profile `{base.name}` extends itself: {path}"
            self._diagnostics.append(
                Diagnostic(CheckCode.PROFILE_CYCLE, title, name.span, "closes the cycle")
            )
            return Draft(is_known=False)
        return self._fold(base)

    def _apply(self, draft: Draft, statement: ProfileStatement, located: Located[Profile]) -> Draft:
        self._rights.check(draft, statement, located)
        match statement:
            case SchedulerName():
                return replace(draft, scheduler=statement)
            case CheckPredicates():
                return replace(draft, check=statement)
            case SampleSize():
                return replace(draft, sample=self._rules.samples[located.qualified])
            case UseQueue(name=name):
                queue = self._queue(name, located)
                return draft if queue is None else replace(draft, queue=queue, queue_use=statement)
            case UsePreemption(name=name):
                preemption = self._preemption(name, located)
                return draft.without(name) if preemption is None else replace(draft, preemption=preemption)
            case PredicateList(names=names):
                for name in (
                    names if self._is_root(located, statement.span, "predicates", "add predicate X") else ()
                ):
                    draft = self._add(draft, RuleKind.PREDICATE, name, 0, located, None, None)
                return draft
            case ScoreList(scores=scores):
                for score in (
                    scores if self._is_root(located, statement.span, "scores", "add score X weight 1") else ()
                ):
                    weight = self._weight(score.weight, located)
                    draft = self._add(draft, RuleKind.SCORE, score.name, weight, located, None, None)
                return draft
            case AddPredicate(name=name, placing=placing, anchor=anchor):
                return self._add(draft, RuleKind.PREDICATE, name, 0, located, placing, anchor)
            case AddScore(name=name):
                weight = self._weight(statement.weight, located)
                return self._add(draft, RuleKind.SCORE, name, weight, located, None, None)
            case Reweight():
                return self._reweight(draft, statement, located)
            case Disable():
                return self._disable(draft, statement, located)
            case SetParam():
                return self._set(draft, statement, located)
            case UseDevices():
                devices = self._devices.use(draft.devices, statement, located.home)
                return replace(draft, devices=devices)
            case Tighten():
                return self._tighten(draft, statement, located)

    def _is_root(self, located: Located[Profile], span: Span, what: str, instead: str) -> bool:
        """Return whether the profile has no base; report a profile with a base that has its own lists."""
        if located.declaration.extends is None:
            return True
        title = f"`{what}` is for profiles that extend none"
        help_ = (f"write `{instead}` for each that is new",)
        why = "this profile inherits them"
        self._diagnostics.append(Diagnostic(CheckCode.MISPLACED, title, span, why, help=help_))
        return False

    # ---- statements --------------------------------------------------------------------------------------

    def _queue(self, name: Name, located: Located[Profile]) -> Located[Queue] | None:
        queue = self._declarations.find(Queue, name.text, located.home)
        if queue is None:
            self._diagnostics.append(self._declarations.undeclared(Queue, name, located.home))
        return queue

    def _preemption(self, name: Name, located: Located[Profile]) -> Entry | None:
        preemption = self._declarations.find(Preemption, name.text, located.home)
        if preemption is None:
            self._diagnostics.append(self._declarations.undeclared(Preemption, name, located.home))
            return None
        return Entry(preemption, name, name.span)

    def _add(
        self,
        draft: Draft,
        kind: RuleKind,
        name: Name,
        weight: int,
        located: Located[Profile],
        placing: Placing | None,
        anchor: Name | None,
    ) -> Draft:
        rule: Located[Predicate] | Located[Score] | None
        if kind is RuleKind.PREDICATE:
            rule = self._declarations.find(Predicate, name.text, located.home)
        else:
            rule = self._declarations.find(Score, name.text, located.home)
        if rule is None:
            self._diagnostics.append(unknown_rule(self._declarations, kind, name, located.home))
            return draft.without(name)
        entries = draft.of(kind)
        same = next((entry for entry in entries if entry.name == rule.name), None)
        if same is not None:
            ways = self._rights.ways_to_change(same, kind, located)
            self._diagnostics.append(used_twice(same, rule, name, kind, located, ways))
            return draft
        at = len(entries)
        if anchor is not None:
            found = entry_at(entries, anchor, self._declarations, located.home)
            if found is None:
                verb = f"put `{rule.name}` {placing}"
                self._diagnostics.extend(not_in_profile(draft, kind, anchor, verb))
            else:
                at = found if placing is Placing.BEFORE else found + 1
        return draft.put(kind, (*entries[:at], Entry(rule, name, name.span, weight), *entries[at:]))

    def _weight(self, weight: Number, located: Located[Profile]) -> int:
        if 1 <= weight.value <= MAX_WEIGHT:
            return weight.value
        title = f"a weight is 1 to {MAX_WEIGHT}, not {weight.value}"
        why, help_ = "out of range", ""
        if weight.value == 0:
            help_ = "a score that shall not count is left out"
            if self._rights.may(located, DISABLE_SCORES):
                help_ += ", or taken out by `disable score`"
        self._diagnostics.append(
            Diagnostic(CheckCode.WEIGHT_RANGE, title, weight.span, why, help=(help_,) if help_ else ())
        )
        return 1

    def _reweight(self, draft: Draft, statement: Reweight, located: Located[Profile]) -> Draft:
        at = entry_at(draft.scores, statement.name, self._declarations, located.home)
        weight = self._weight(statement.weight, located)
        if at is None:
            self._diagnostics.extend(not_in_profile(draft, RuleKind.SCORE, statement.name, "reweight"))
            return draft
        entry = replace(draft.scores[at], weight=weight, weighed=statement.span)
        return replace(draft, scores=_with(draft.scores, at, entry))

    def _tighten(self, draft: Draft, statement: Tighten, located: Located[Profile]) -> Draft:
        at = entry_at(draft.predicates, statement.name, self._declarations, located.home)
        if at is None:
            self._diagnostics.extend(not_in_profile(draft, RuleKind.PREDICATE, statement.name, "tighten"))
            return draft
        entry = draft.predicates[at]
        if entry.rule.home.package == PLUGINS:
            self._diagnostics.append(of_a_plugin(entry, statement))
            return draft
        tightening = replace(self._rules.tightenings[located.qualified][statement.name.text], name=entry.name)
        entry = replace(
            entry,
            tightened=(*entry.tightened, tightening),
            tighteners=(*entry.tighteners, statement),
        )
        return replace(draft, predicates=_with(draft.predicates, at, entry))

    def _disable(self, draft: Draft, statement: Disable, located: Located[Profile]) -> Draft:
        entries = draft.of(statement.kind)
        at = entry_at(entries, statement.name, self._declarations, located.home)
        if at is None:
            self._diagnostics.extend(not_in_profile(draft, statement.kind, statement.name, "disable"))
            return draft
        rule = entries[at].rule.declaration
        if isinstance(rule, Predicate) and rule.mandatory:
            self._diagnostics.append(mandatory(rule, statement))
            return draft
        return draft.put(statement.kind, (*entries[:at], *entries[at + 1 :]))

    def _set(self, draft: Draft, statement: SetParam, located: Located[Profile]) -> Draft:
        """Set a parameter of all rules of that name that have it.

        A predicate and a score with one name are two halves of one rule.
        """
        home = located.home
        if statement.rule.text == DEVICES and draft.devices is not None:
            return replace(draft, devices=self._devices.set(draft.devices, statement, home))
        entries = [
            each
            for each in draft.entries
            if entry_at((each,), statement.rule, self._declarations, home) is not None
        ]
        if not entries:
            param = self._declarations.find(Param, f"{statement.rule.text}.{statement.param.text}", home)
            if param is not None:
                self._diagnostics.append(of_a_file(param.declaration, statement))
            else:
                self._diagnostics.extend(no_such_rule(draft, statement))
            return draft
        owners = [each for each in entries if each.param(statement.param.text)]
        if not owners:
            self._diagnostics.append(no_such_param(entries, statement))
        for entry in owners:
            draft = self._set_one(draft, entry, statement, located)
        return draft

    def _set_one(self, draft: Draft, entry: Entry, statement: SetParam, located: Located[Profile]) -> Draft:
        declared = entry.param(statement.param.text)
        assert declared is not None
        if declared.final:
            self._diagnostics.append(final(declared, entry, statement))
            return draft
        earlier = entry.setters.get(statement.param.text)
        if earlier is not None and not any(each is earlier for each in located.declaration.body):
            self._diagnostics.append(set_before(entry, statement, earlier))
            return draft
        return draft.replaced(entry, self._set_in(entry, statement, located))

    def _set_in(self, entry: Entry, statement: SetParam, located: Located[Profile]) -> Entry:
        rule = self._rules.rule(entry)
        name = statement.param.text
        declared = None
        if rule is not None:
            declared = next(param.variable for param in rule.params if param.variable.name == name)
        # The value may bind variables of its own: their slots follow those of the rule that gets the value.
        frame = SlotFrame(max(entry.slots, 0 if rule is None else rule.slots))
        wanted = None if declared is None else declared.type
        what = f"{entry.name}.{name}"
        value = self._functions.constant_value(statement.value, wanted, what, located.home, frame)
        if declared is None or value.type == ERROR:
            return entry
        sets = {**entry.sets, name: CheckedParam(declared, value)}
        return replace(entry, sets=sets, setters={**entry.setters, name: statement}, slots=frame.size)

    # ---- the result --------------------------------------------------------------------------------------

    def _complete(self, located: Located[Profile], draft: Draft) -> None:
        """Report a profile without queue or scheduler name, unless a reported error causes that."""
        missing = []
        if draft.scheduler is None:
            missing.append(("scheduler", 'write `scheduler "name"`: pods ask for it in spec.schedulerName'))
        if draft.queue is None and not any(isinstance(each, UseQueue) for each in located.declaration.body):
            missing.append(("queue", "write `queue Name`, or extend a profile that has one"))
        for what, help_ in missing if draft.is_known else ():
            title = f"profile `{located.name}` has no {what}"
            why = "neither here nor in a profile it extends"
            span = located.declaration.name.span
            self._diagnostics.append(Diagnostic(CheckCode.INCOMPLETE, title, span, why, help=(help_,)))


def _with(entries: tuple[Entry, ...], at: int, entry: Entry) -> tuple[Entry, ...]:
    return (*entries[:at], entry, *entries[at + 1 :])
