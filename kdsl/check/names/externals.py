"""The contributions of plugins for the checker: predicates and scores that profiles place among rules,
functions that rules call, and fields of views.

This module does not depend on plugins: the composition root passes them in, and the back end leaves the
places of their rules open for the plugins registered under those names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic, did_you_mean, suggest
from kdsl.base.span import Source, Span
from kdsl.check.expressions.environment import FnSignature
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedNormalize, CheckedPredicate, CheckedScore, ExternalFn
from kdsl.check.model.typed import Const
from kdsl.check.model.types import INT, BindingTime
from kdsl.check.views.view import Field, time_of
from kdsl.lang.choices import Normalization, RuleKind

if TYPE_CHECKING:
    from kdsl.lang.tree import Name

PLUGINS = "plugins"
"""The package of all plugins: a profile calls the rule of plugin `pair-score` `plugins.PairScore`."""

HOOKS = {
    RuleKind.PREDICATE: "`filter`, `filter_node` or `pre_filter`",
    RuleKind.SCORE: "`score` or `score_node`",
}
SERVABLE = frozenset(HOOKS)
"""The kinds of rules that a plugin can serve as."""


@dataclass(frozen=True, slots=True)
class ExternalRule:
    """An installed plugin. `kinds` are the kinds a profile may place it as; only active plugins run."""

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
        """A span over the plugin's name, in place of the span of a declaration."""
        return Span(Source(f"plugin {self.plugin}", self.name), 0, len(self.name))


ExternalRules = Mapping[str, ExternalRule]
"""The rules of plugins by name."""


@dataclass(frozen=True, slots=True)
class ExternalField:
    """A field of a view from a plugin: `fn` on the view computes its value."""

    field: Field
    fn: ExternalFn


@dataclass(frozen=True, slots=True)
class Externals:
    """The contributions of installed plugins. Only active plugins contribute functions and fields.

    `fns` are functions by their name in rules, `plugins.PairScore.bandwidth`; `versions` are the active
    plugins in the form that the digest of the rules covers. `absent` are the rule names of active plugins
    that are not installed: uses of them cannot be checked.
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
    """Leave out errors about unknown rules or functions of absent plugins: their cause is the absence."""

    def follows(finding: Diagnostic) -> bool:
        if finding.code not in _UNKNOWN or finding.span is None:
            return False
        package, _, rest = finding.span.text.partition(".")
        return package == PLUGINS and rest.partition(".")[0] in externals.absent

    return tuple(finding for finding in found if not follows(finding))


def rule_name(plugin: str) -> str:
    """Return the name of a plugin in rule files: `pair-score` is `PairScore`."""
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", plugin) if word)


def checked_predicate(rule: ExternalRule) -> CheckedPredicate:
    """Return the rule as a profile's predicate with an empty body."""
    name = rule.plugin
    return CheckedPredicate(name=name, qualified=rule.qualified, span=rule.span, plugin=name)


def checked_score(rule: ExternalRule) -> CheckedScore:
    """Return the rule as a profile's score with the value 0."""
    return CheckedScore(
        name=rule.plugin,
        qualified=rule.qualified,
        value=Const(0, type=INT, time=BindingTime.STATIC, reads=frozenset(), span=rule.span),
        normalize=CheckedNormalize(Normalization.NONE, None),
        span=rule.span,
        plugin=rule.plugin,
    )


def unknown_external(rules: ExternalRules, kind: RuleKind, name: Name) -> Diagnostic:
    """Return the error for `plugins.X`: no such plugin, one that is not active, or one of another kind."""
    rule = rules.get(name.text.removeprefix(f"{PLUGINS}."))
    if rule is None:
        title, why = f"unknown {kind} `{name.text}`", "no installed plugin has this name"
        help_ = did_you_mean(name.text, (rule.qualified for rule in rules.values())) or (
            "install its distribution; `kdsl plugins list` lists the installed plugins,"
            " and rules name plugin `pair-score` as `plugins.PairScore`",
        )
    elif not rule.is_active:
        title, why = f"plugin `{rule.plugin}` is not active", "installed, but not configured"
        help_ = (_activate(rule),)
    else:
        title, why = f"plugin `{rule.plugin}` is no {kind}", f"it has no hook {HOOKS[kind]}"
        help_ = tuple(f"it can serve as a {each}" for each in RuleKind if each in rule.kinds)
    return Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, why, help=help_)


def signature_of(externals: Externals, name: str) -> FnSignature | None:
    """Return the signature of a function of an active plugin."""
    fn = externals.fns.get(name)
    return None if fn is None else FnSignature(name, fn.args, fn.result, fn.reads, time_of(fn.reads))


def signatures_of(externals: Externals) -> dict[str, FnSignature]:
    """Return the signatures of all functions of active plugins, by the names that call them."""
    found = ((name, signature_of(externals, name)) for name in externals.fns)
    return {name: signature for name, signature in found if signature is not None}


def unknown_function(externals: Externals, name: str, span: Span) -> Diagnostic:
    """Return the error for `plugins.X.f`: no such plugin, one that is not active, or no such function."""
    qualifier, _, own = name.rpartition(".")
    rule = externals.rules.get(qualifier.removeprefix(f"{PLUGINS}."))
    title, why = f"unknown function `{name}`", "no active plugin brings a function of this name"
    # All functions of one plugin are close to each other; for a misspelled plugin, suggest the function of
    # this name.
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
        help_ = (f"`kdsl plugins describe {rule.plugin}` lists its functions",)
    return Diagnostic(CheckCode.UNKNOWN_FUNCTION, title, span, why, help=help_, fixes=fixes)


def _activate(rule: ExternalRule) -> str:
    return f"add `- name: {rule.plugin}` under `plugins` in the file of `--config`"
