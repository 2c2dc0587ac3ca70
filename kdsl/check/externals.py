"""Predicates and scores that plugins bring, as the checker sees them: names that profiles place among rules.

Nothing here knows plugins: the composition root says which there are, and the back end leaves their places
open for what is registered under their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.span import Source, Span
from kdsl.check.codes import CheckCode
from kdsl.check.model import CheckedNormalize, CheckedPredicate, CheckedScore
from kdsl.check.typed import Const
from kdsl.check.types import INT, BindingTime
from kdsl.lang.tree import Name, Normalization, Predicate, RuleKind, Score

PLUGINS = "plugins"
"""The package of all plugins: a profile calls the rule of plugin `pair-score` `plugins.PairScore`."""


@dataclass(frozen=True, slots=True)
class ExternalRule:
    """An installed plugin. `kinds` are what a profile may place it as; only one that is active is asked."""

    plugin: str
    is_active: bool = True
    kinds: frozenset[RuleKind] = frozenset(RuleKind)

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

NO_EXTERNALS: ExternalRules = MappingProxyType({})


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
        help_ = (f"add `- name: {rule.plugin}` under `plugins` in the file of `--config`",)
    else:
        title, why = f"plugin `{rule.plugin}` is no {kind}", f"it has no hooks of a {kind}"
        help_ = tuple(f"it can serve as a {each}" for each in RuleKind if each in rule.kinds)
    return Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, why, help=help_)


def _names(rules: Iterable[ExternalRule]) -> list[str]:
    return [rule.qualified for rule in rules]
