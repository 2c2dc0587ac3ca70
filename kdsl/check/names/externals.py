"""What plugins bring, as the checker sees it: predicates and scores that profiles place among rules,
functions that rules call, and fields of views.

Nothing here knows plugins: the composition root says which there are, and the back end leaves the places of
their rules open for what is registered under their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic, did_you_mean, suggest
from kdsl.base.span import Source, Span
from kdsl.check.expressions.environment import FnSignature
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedNormalize, CheckedPredicate, CheckedScore, ExternalFn
from kdsl.check.model.typed import Const
from kdsl.check.model.types import INT, BindingTime
from kdsl.check.views.view import Field, time_of
from kdsl.lang.tree import Name, Normalization, Predicate, RuleKind, Score

PLUGINS = "plugins"
"""The package of all plugins: a profile calls the rule of plugin `pair-score` `plugins.PairScore`."""

SERVABLE = frozenset({RuleKind.PREDICATE, RuleKind.SCORE})
"""What a plugin can be placed as."""


@dataclass(frozen=True, slots=True)
class ExternalRule:
    """An installed plugin. `kinds` are what a profile may place it as; only one that is active is asked."""

    plugin: str
    is_active: bool = True
    kinds: frozenset[RuleKind] = SERVABLE

    @property
    def name(self) -> str:
        return rule_name(self.plugin)

    @property
    def qualified(self) -> str:
        return f"{PLUGINS}.{self.name}"

    @property
    def span(self) -> Span:
        """The name of the plugin: what stands for the place where a rule is declared."""
        return Span(Source(f"plugin {self.plugin}", self.name), 0, len(self.name))


ExternalRules = Mapping[str, ExternalRule]
"""By the name of the rule."""


@dataclass(frozen=True, slots=True)
class ExternalField:
    """A field of a view that a plugin brings: `fn` on the view is its value."""

    field: Field
    fn: ExternalFn


@dataclass(frozen=True, slots=True)
class Externals:
    """What installed plugins bring. Only those that are active bring functions and fields.

    `fns` are functions by the name that rules call them by, `plugins.PairScore.bandwidth`; `versions` are the
    active plugins as the digest of the rules covers them. `absent` are the rule names of active plugins that
    are not installed: what rules use of them cannot be judged.
    """

    rules: ExternalRules = field(default_factory=dict)
    fns: Mapping[str, ExternalFn] = field(default_factory=dict)
    brought: tuple[ExternalField, ...] = ()
    versions: tuple[str, ...] = ()
    absent: frozenset[str] = frozenset()

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(each.field for each in self.brought)

    @property
    def compiled(self) -> Mapping[str, ExternalFn]:
        """The functions of calls and of fields, by qualified name."""
        return {**self.fns, **{each.fn.qualified: each.fn for each in self.brought}}


NO_EXTERNALS = Externals()

_UNKNOWN = (CheckCode.UNKNOWN_RULE, CheckCode.UNKNOWN_FUNCTION)


def without_absent(found: Iterable[Diagnostic], externals: Externals) -> tuple[Diagnostic, ...]:
    """Leave out that rules or functions of absent plugins are unknown: their absence is what is wrong."""

    def follows(finding: Diagnostic) -> bool:
        if finding.code not in _UNKNOWN or finding.span is None:
            return False
        package, _, rest = finding.span.text.partition(".")
        return package == PLUGINS and rest.partition(".")[0] in externals.absent

    return tuple(finding for finding in found if not follows(finding))


def rule_name(plugin: str) -> str:
    """Return what rule files call a plugin: `pair-score` is `PairScore`."""
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", plugin) if word)


def declaration(rule: ExternalRule, kind: type[Predicate] | type[Score]) -> Predicate | Score:
    """Return a declaration without a body, so that profiles hold the rule like any other."""
    span = rule.span
    return kind((), name=Name(rule.name, span=span), span=span)


def checked_predicate(rule: ExternalRule) -> CheckedPredicate:
    """Return the rule as a profile's predicate: it demands nothing itself."""
    return CheckedPredicate(
        name=rule.plugin,
        qualified=rule.qualified,
        params=(),
        applies=(),
        narrow=None,
        body=(),
        report_all=False,
        on_error=None,
        reads=frozenset(),
        scope={},
        slots=0,
        doc=(),
        span=rule.span,
        plugin=rule.plugin,
    )


def checked_score(rule: ExternalRule) -> CheckedScore:
    """Return the rule as a profile's score: it is worth nothing itself."""
    return CheckedScore(
        name=rule.plugin,
        qualified=rule.qualified,
        params=(),
        applies=(),
        lets=(),
        value=Const(0, type=INT, time=BindingTime.STATIC, reads=frozenset(), span=rule.span),
        normalize=CheckedNormalize(Normalization.NONE, None),
        on_error=None,
        reads=frozenset(),
        scope={},
        slots=0,
        doc=(),
        span=rule.span,
        plugin=rule.plugin,
    )


def unknown_external(rules: ExternalRules, kind: RuleKind, name: Name) -> Diagnostic:
    """Say why `plugins.X` is no rule of that kind: no such plugin, one that is not active, another kind."""
    rule = rules.get(name.text.removeprefix(f"{PLUGINS}."))
    if rule is None:
        title, why = f"unknown {kind} `{name.text}`", "no installed plugin has this name"
        help_ = did_you_mean(name.text, _names(rules.values())) or (
            "`kdsl plugins list` shows what is installed; plugin `pair-score` is `plugins.PairScore`",
        )
    elif not rule.is_active:
        title, why = f"plugin `{rule.plugin}` is not active", "installed, but not configured"
        help_ = (_activate(rule),)
    else:
        title, why = f"plugin `{rule.plugin}` is no {kind}", f"it has no hooks of a {kind}"
        help_ = tuple(f"it can serve as a {each}" for each in RuleKind if each in rule.kinds)
    return Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, why, help=help_)


def signature_of(externals: Externals, name: str) -> FnSignature | None:
    """Return the signature of a function that an active plugin brings."""
    fn = externals.fns.get(name)
    return None if fn is None else FnSignature(name, fn.args, fn.result, fn.reads, time_of(fn.reads))


def signatures_of(externals: Externals) -> dict[str, FnSignature]:
    """Return the signatures of all functions that active plugins bring, by the names that call them."""
    found = ((name, signature_of(externals, name)) for name in externals.fns)
    return {name: signature for name, signature in found if signature is not None}


def unknown_function(externals: Externals, name: str, span: Span) -> Diagnostic:
    """Say why `plugins.X.f` is no function: no such plugin, one that is not active, or without this one."""
    qualifier, _, own = name.rpartition(".")
    rule = externals.rules.get(qualifier.removeprefix(f"{PLUGINS}."))
    title, why = f"unknown function `{name}`", "no active plugin brings a function of this name"
    # All functions of a plugin are near to each other: of a misspelled plugin the one of this name is meant.
    of_name = [each for each in externals.fns if each.endswith(f".{own}")]
    help_, fixes = suggest(span, name, of_name or externals.fns)
    if rule is None:
        why = f"no installed plugin is `{qualifier}`"
        if not (help_ or fixes):
            help_ = ("functions of plugins are called as `plugins.PairScore.bandwidth(…)`",)
    elif not rule.is_active:
        title, why = f"plugin `{rule.plugin}` is not active", "installed, but not configured"
        help_, fixes = (_activate(rule),), ()
    elif not (help_ or fixes):
        help_ = (f"`kdsl plugins describe {rule.plugin}` lists what it brings",)
    return Diagnostic(CheckCode.UNKNOWN_FUNCTION, title, span, why, help=help_, fixes=fixes)


def _activate(rule: ExternalRule) -> str:
    return f"add `- name: {rule.plugin}` under `plugins` in the file of `--config`"


def _names(rules: Iterable[ExternalRule]) -> list[str]:
    return [rule.qualified for rule in rules]
