"""A profile while it is folded: its rules in order, and the errors for names that it does not have.

Entries hold declarations, not checked rules, so that a broken rule causes no errors in its profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kdsl.base.diagnostic import Diagnostic, Fix, Label, suggest
from kdsl.base.span import Span
from kdsl.check.expressions.mismatch import listing
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedParam, CheckedPredicate, CheckedSample
from kdsl.check.model.sharing import DEVICES
from kdsl.check.names.declarations import Declarations, Home, Located, is_external
from kdsl.check.names.externals import unknown_external
from kdsl.check.profiles.sharing import DevicesDraft
from kdsl.lang.choices import RuleKind
from kdsl.lang.profile_tree import CheckPredicates, Disable, SchedulerName, SetParam, Tighten, UseQueue
from kdsl.lang.tree import Device, Name, Param, Predicate, Preemption, Profile, Queue, Score, Statement

_KINDS = {RuleKind.PREDICATE: Predicate, RuleKind.SCORE: Score, RuleKind.PREEMPTION: Preemption}


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule of a profile: its declaration, the name that added it, its weight, and its set parameters.

    `weighed` is the place of the last weight, `setters` are the statements that set parameters. `tightened`
    are the predicates that `tighten` added, `tighteners` its statements. `slots` is the number of slots for
    the rule and the values of set parameters.
    """

    rule: Located[Predicate] | Located[Score] | Located[Preemption]
    used: Name
    weighed: Span
    weight: int = 0
    sets: Mapping[str, CheckedParam] = field(default_factory=dict)
    setters: Mapping[str, SetParam] = field(default_factory=dict)
    tightened: tuple[CheckedPredicate, ...] = ()
    tighteners: tuple[Tighten, ...] = ()
    slots: int = 0

    @property
    def name(self) -> str:
        return self.rule.name

    def param(self, name: str) -> Param | None:
        """Return the rule's parameter of that name."""
        return next((each for each in self.params() if each.name.text == name), None)

    def params(self) -> list[Param]:
        """Return the parameters that the rule declares."""
        return [each for each in self.rule.declaration.body if isinstance(each, Param)]


@dataclass(frozen=True, slots=True)
class Draft:
    """The state of a profile after some of its statements.

    `is_known` is false where its base has errors; `unknown` are the names of added rules that do not exist.
    """

    predicates: tuple[Entry, ...] = ()
    scores: tuple[Entry, ...] = ()
    scheduler: SchedulerName | None = None
    check: CheckPredicates | None = None
    sample: CheckedSample | None = None
    queue: Located[Queue] | None = None
    queue_use: UseQueue | None = None
    preemption: Entry | None = None
    devices: DevicesDraft | None = None
    is_known: bool = True
    unknown: frozenset[str] = frozenset()

    def without(self, unknown: Name) -> Draft:
        """Return the draft with a further name that no rule has."""
        return replace(self, unknown=self.unknown | {_last_word(unknown)})

    def surely_lacks(self, name: Name) -> bool:
        """Return whether the profile lacks this rule whatever the reported errors hide."""
        return self.is_known and _last_word(name) not in self.unknown

    def of(self, kind: RuleKind) -> tuple[Entry, ...]:
        """Return the predicates, the scores, or the preemption if there is one."""
        match kind:
            case RuleKind.PREDICATE:
                return self.predicates
            case RuleKind.SCORE:
                return self.scores
            case RuleKind.PREEMPTION:
                return () if self.preemption is None else (self.preemption,)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, whose parameters `set` may set."""
        return tuple(entry for kind in RuleKind for entry in self.of(kind))

    def replaced(self, old: Entry, new: Entry) -> Draft:
        """Return the draft with `new` in the place of `old`."""
        predicates, scores = (
            tuple(new if each is old else each for each in entries)
            for entries in (self.predicates, self.scores)
        )
        preemption = new if self.preemption is old else self.preemption
        return replace(self, predicates=predicates, scores=scores, preemption=preemption)

    def put(self, kind: RuleKind, entries: tuple[Entry, ...]) -> Draft:
        """Return the draft with other predicates or scores, or with another preemption or none."""
        match kind:
            case RuleKind.PREDICATE:
                return replace(self, predicates=entries)
            case RuleKind.SCORE:
                return replace(self, scores=entries)
            case RuleKind.PREEMPTION:
                return replace(self, preemption=entries[0] if entries else None)


def entry_at(entries: tuple[Entry, ...], name: Name, declarations: Declarations, home: Home) -> int | None:
    """Return the index of the rule that `name` names: an entry by its bare name, or the declaration `p.X`."""
    if "." not in name.text:
        return next((at for at, entry in enumerate(entries) if entry.name == name.text), None)
    for at, entry in enumerate(entries):
        found = declarations.find(type(entry.rule.declaration), name.text, home)
        if found is not None and found.qualified == entry.rule.qualified:
            return at
    return None


def not_in_profile(draft: Draft, kind: RuleKind, name: Name, verb: str) -> Iterator[Diagnostic]:
    """Yield the error for a rule that a profile does not have, unless a reported error explains that.

    `verb` is the intended change.
    """
    if not draft.surely_lacks(name):
        return
    names = [entry.name for entry in draft.of(kind)]
    fixes: tuple[Fix, ...] = ()
    help_ = tuple(
        f"`{name.text}` is a {other} of it"
        for other in RuleKind
        if any(entry.name == name.text for entry in draft.of(other))
    )
    if not help_:
        help_, fixes = suggest(name.span, name.text, names)
        if not fixes:
            help_ = help_ or listing("it has", names)
    title = f"the profile has no {kind} `{name.text}` to {verb}"
    why = "not a rule of this profile"
    yield Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, why, help=help_, fixes=fixes)


def unknown_rule(declarations: Declarations, kind: RuleKind, name: Name, home: Home) -> Diagnostic:
    """Return the error for a rule to add that does not exist."""
    if is_external(name.text, home):
        return unknown_external(declarations.externals.rules, kind, name)
    return declarations.undeclared(_KINDS[kind], name, home)


def used_twice(
    entry: Entry,
    rule: Located[Predicate] | Located[Score],
    name: Name,
    kind: RuleKind,
    located: Located[Profile],
    ways: tuple[str, ...],
) -> Diagnostic:
    """Return the error for a second rule, or a second rule of this name, in a profile.

    `located` is the profile, `ways` are the ways to change the first that its author has.
    """
    is_other = rule.qualified != entry.rule.qualified and rule.home.package == located.home.package
    rest = "give this one another name" if is_other else "remove this one"
    return Diagnostic(
        CheckCode.USED_TWICE,
        f"the profile has a {kind} `{entry.name}` already",
        name.span,
        "would run twice, or be mistaken for the other",
        secondary=(Label(entry.used.span, "it comes from here"),),
        help=("; ".join((*ways, rest)),),
    )


def of_a_plugin(entry: Entry, statement: Tighten) -> Diagnostic:
    """Return the error for tightening the predicate of a plugin."""
    return Diagnostic(
        CheckCode.MISPLACED,
        f"`{statement.name.text}` is a plugin, which cannot be tightened",
        statement.name.span,
        "its code is all of it",
        secondary=(Label(entry.used.span, "it comes from here"),),
        help=("write a predicate and `add` it: a node must pass both",),
    )


def final(param: Param, entry: Entry, statement: Statement) -> Diagnostic:
    """Return the error for setting a final parameter."""
    return Diagnostic(
        CheckCode.FINAL,
        f"`{entry.name}.{param.name.text}` is final",
        statement.span,
        "cannot be set",
        secondary=(Label(param.name.span, "declared here"),),
    )


def mandatory(rule: Predicate, statement: Disable) -> Diagnostic:
    """Return the error for disabling a mandatory predicate."""
    title = f"predicate `{rule.name.text}` is mandatory"
    secondary = (Label(rule.name.span, "declared here"),)
    return Diagnostic(CheckCode.MANDATORY, title, statement.span, "cannot be disabled", secondary=secondary)


def no_such_rule(draft: Draft, statement: SetParam) -> Iterator[Diagnostic]:
    """Yield the error for a `set` of a rule that a profile does not have, unless a reported error explains
    that.
    """
    name = statement.rule
    if draft.surely_lacks(name):
        names = sorted({entry.name for entry in draft.entries} | ({DEVICES} if draft.devices else set()))
        help_, fixes = suggest(name.span, name.text, names)
        device = _device(draft, name)
        if device is not None:
            base = f"{device.home.package.rpartition('.')[2]}.{device.name}"
            own = f"`device Own extends {base} {{ set {statement.param.text} = … }}`"
            help_, fixes = (f"parameters of a device are set in a device of your own: {own}",), ()
        if not fixes:
            help_ = help_ or listing("it has", names, most=len(names))
        title = f"the profile has no rule `{name.text}`"
        why = "not a rule of this profile"
        yield Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, why, help=help_, fixes=fixes)


def _device(draft: Draft, name: Name) -> Located[Device] | None:
    devices = draft.devices.kinds if draft.devices else ()
    return next((device for device, _ in devices if device.name == _last_word(name)), None)


def _last_word(name: Name) -> str:
    return name.text.rpartition(".")[2]


def no_such_param(entries: list[Entry], statement: SetParam) -> Diagnostic:
    """Return the error for a parameter that a rule does not have; `entries` are the rules of its name."""
    known = sorted({param.name.text for entry in entries for param in entry.params()})
    help_ = listing("it has", known) or ("it has no parameters",)
    title = f"`{statement.rule.text}` has no parameter `{statement.param.text}`"
    return Diagnostic(CheckCode.UNKNOWN_RULE, title, statement.param.span, "not a parameter", help=help_)


def set_before(entry: Entry, statement: SetParam, first: SetParam) -> Diagnostic:
    """Return the error for a parameter that the profile's base has set already."""
    return Diagnostic(
        CheckCode.WRITTEN_TWICE,
        f"`{entry.name}.{statement.param.text}` is set twice on the way to this profile",
        statement.span,
        "sets it again",
        secondary=(Label(first.span, "the extended profile sets it here"),),
        help=("set it in one of the two only",),
    )


def of_a_file(param: Param, statement: SetParam) -> Diagnostic:
    """Return the error for a `set` of a file's parameter, which no profile can change."""
    name = f"`{statement.rule.text}.{statement.param.text}`"
    secondary = (Label(param.name.span, "declared here"),)
    if param.final:
        title, why = f"{name} is final", "cannot be set"
        return Diagnostic(CheckCode.FINAL, title, statement.span, why, secondary=secondary)
    return Diagnostic(
        CheckCode.MISPLACED,
        f"{name} is a parameter of a file, not of a rule",
        statement.span,
        "it has one value for all profiles",
        secondary=secondary,
        help=("declare it inside the rule that uses it, and set that",),
    )


def scheduler_taken(
    located: Located[Profile],
    scheduler: SchedulerName,
    other: Located[Profile],
    first: SchedulerName,
    team: str,
) -> Diagnostic:
    """Return the error for two profiles with one scheduler name; `first` gave it first."""
    name = located.declaration.name
    names = f"`{other.qualified}` and `{located.qualified}`"
    title = f"profiles {names} have one scheduler name, {scheduler.name.raw}"
    inherited = scheduler is first
    help_: tuple[str, ...]
    if inherited:
        help_ = ('it is inherited: write a `scheduler "name"` of its own',)
        if not team:
            repeated = f"or repeat `scheduler {scheduler.name.raw}` to take the place of `{other.qualified}`"
            help_ = (*help_, repeated)
    elif team:
        help_ = (f"leave `scheduler` out: pods of team `{team}` get a profile of the team without it",)
    else:
        help_ = (f"a profile that extends `{other.qualified}` may take its place; others need another name",)
    span = name.span if inherited else scheduler.span
    return Diagnostic(
        CheckCode.SCHEDULER_TAKEN,
        title,
        span,
        "a pod with this name would have two profiles",
        secondary=(Label(first.span, "the first is here"),),
        help=help_,
    )
