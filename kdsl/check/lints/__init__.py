"""Lints: they find code that is valid but probably a mistake. `kdsl lint` runs them on rules without errors.

One module per lint; its docstring is its page, which `kdsl lint --explain CODE` prints and `docs/lints.md`
holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.lints import (
    ambiguous_reason,
    constant_condition,
    constant_score,
    empty_reason,
    integer_plateau,
    lost_condition,
    plain_hole,
    quadratic_loop,
    repeated_condition,
    score_range,
    shadowed_rule,
    unbounded_reason,
    unused,
    wrong_code,
    zero_divisor,
)
from kdsl.check.lints.ignores import PAGES, sift
from kdsl.check.lints.lint import Lint, Subject
from kdsl.check.model.rule_set import RuleSet
from kdsl.lang.program import Program

LINTS: tuple[Lint, ...] = (
    constant_condition.LINT,
    unused.LINT,
    repeated_condition.LINT,
    constant_score.LINT,
    shadowed_rule.LINT,
    wrong_code.LINT,
    unbounded_reason.LINT,
    ambiguous_reason.LINT,
    score_range.LINT,
    integer_plateau.LINT,
    plain_hole.LINT,
    empty_reason.LINT,
    lost_condition.LINT,
    quadratic_loop.LINT,
    zero_divisor.LINT,
)


def lint(program: Program, rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Return the warnings of all lints that no comment silences; `rules` are those of the program."""
    subject = Subject(program, rules)
    return sift(program, (finding for each in LINTS for finding in each.find(subject)))


def pages() -> Mapping[str, str]:
    """Return the page of each code as Markdown, with its heading."""
    named = {each.code: (each.name, each.page) for each in LINTS} | PAGES
    return {code: f"## {code} {name}\n{page}\n" for code, (name, page) in sorted(named.items())}
