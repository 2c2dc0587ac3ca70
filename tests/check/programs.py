"""Rule files as texts, checked: what the tests of this folder start from."""

from __future__ import annotations

from pathlib import Path

from kdsl.app import PLACED_PLUGINS
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.check.checker import CheckResult, check_program
from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, CheckedQueue, CheckedScore, RuleSet
from kdsl.check.names.externals import Externals
from kdsl.check.views.view import load_views
from kdsl.hooks.extensions import bring
from kdsl.lang.loader import load_sources

ROOT = Path(__file__).parent.parent.parent
SHIPPED = "rules/kubernetes/v1_36.kdsl"
_HEADER = "kdsl 1\npackage test\n"
_PROFILE = 'profile p {\n  scheduler "test"\n  queue Q\n'
_QUEUE = "queue Q { order by pod.priority }\n"


def shipped() -> Source:
    """Return the shipped default rules."""
    return Source(SHIPPED, (ROOT / SHIPPED).read_text(encoding="utf-8"))


def placed_plugins() -> Externals:
    """Return what the plugins bring that the shipped profiles place."""
    externals, problems = bring(PLACED_PLUGINS, load_views())
    assert not problems
    return externals


def check_sources(*sources: Source) -> CheckResult:
    """Load and check texts that have no syntax errors."""
    loaded = load_sources(sources)
    assert not loaded.diagnostics, [diagnostic.title for diagnostic in loaded.diagnostics]
    return check_program(loaded.program, externals=placed_plugins())


def check(text: str) -> CheckResult:
    """Check declarations of one package, `test`."""
    return check_sources(Source("test.kdsl", _HEADER + text))


def check_predicate(body: str, declarations: str = "") -> CheckedPredicate:
    """Return the one predicate with this body, which has no errors."""
    text = f"{declarations}\npredicate P {{\n{body}\n}}\n{_QUEUE}{_PROFILE}  predicates {{ P }}\n}}\n"
    return profile_of(check(text)).predicates[0]


def check_score(body: str, declarations: str = "") -> CheckedScore:
    """Return the one score with this body, which has no errors."""
    text = f"{declarations}\nscore S {{\n{body}\n}}\n{_QUEUE}{_PROFILE}  scores {{ S weight 1 }}\n}}\n"
    return profile_of(check(text)).scores[0].score


def check_queue(body: str, declarations: str = "") -> CheckedQueue:
    """Return the queue with this body, which has no errors."""
    return profile_of(check(f"{declarations}\nqueue Q {{\n{body}\n}}\n{_PROFILE}}}\n")).queue


def findings(text: str) -> list[tuple[str, str]]:
    """Return the code and the marked text of everything that is found in the declarations."""
    return [found(diagnostic) for diagnostic in check(text).diagnostics]


def found(diagnostic: Diagnostic) -> tuple[str, str]:
    assert diagnostic.span is not None
    return diagnostic.code, diagnostic.span.text


def rules_of(result: CheckResult) -> RuleSet:
    """Return the rules of a check without errors."""
    assert result.rules is not None, [diagnostic.title for diagnostic in result.diagnostics]
    return result.rules


def profile_of(result: CheckResult, name: str = "test.p") -> CheckedProfile:
    """Return a profile of a check without errors."""
    return rules_of(result).profiles[name]
