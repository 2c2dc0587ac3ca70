"""The rights of a team, which follow `may`, and help with syntax errors among them."""

from __future__ import annotations

from typing import Final

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.lang.codes import LangCode
from kdsl.lang.problem import Problem
from kdsl.lang.words import word_of

RIGHTS: Final = (
    "tighten",
    "add predicates",
    "add scores",
    "order devices",
    "disable predicates",
    "disable scores",
)
"""The rights that a team can have, without `reweight`, which has limits."""
_ALL: Final = (*RIGHTS, "reweight 0 to 10")
_STARTERS: Final = frozenset(right.split()[0] for right in _ALL)

_TOKENS: Final = frozenset({"INT", "_COMMA"}).union(
    f"_{word}".upper() for right in _ALL for word in right.split() if word.isalpha()
)
"""The terminals of rights."""


def missing_comma(problem: Problem) -> Diagnostic | None:
    """Describe a right behind another one without a comma between them; None for other errors."""
    if "_COMMA" not in problem.accepts or not is_among_rights(problem):
        return None
    if problem.word not in _STARTERS and not _joined(problem.word):
        return None
    end = problem.locate(problem.end_of_previous, problem.end_of_previous)
    fix = Fix("write `,` before it", (Edit(end, ","),), Applicability.CERTAIN)
    return Diagnostic(LangCode.UNEXPECTED, "rights have commas between them", problem.span, fixes=(fix,))


def is_among_rights(problem: Problem) -> bool:
    """Return whether the last words are rights behind `may`."""
    before = (each.type for each in reversed(problem.tokens) if each.type not in _TOKENS)
    return next(before, "") == "_MAY"


def is_inside_right(problem: Problem) -> bool:
    """Return whether a right that has begun, or that a comma announces, is not complete."""
    return "_COMMA" not in problem.accepts and is_among_rights(problem)


def help_with_right(problem: Problem) -> tuple[tuple[str, ...], tuple[Fix, ...]]:
    """Return a fix for a word that stands for a right or a part of one, or help with the list of rights."""
    plural = f"{problem.word}s"
    meant = plural if plural in map(word_of, problem.accepts) else _joined(problem.word)
    if meant:
        return (), (Fix(f"write `{meant}`", (Edit(problem.span, meant),), Applicability.CERTAIN),)
    return (f"the rights of a team are {', '.join(f'`{right}`' for right in _ALL)}",), ()


def _joined(word: str) -> str:
    """Return the right whose words are written as one: `add predicates` for `add_predicates`."""
    written = word.replace("_", "").lower().removesuffix("s")
    joined = {right.replace(" ", "").removesuffix("s"): right for right in RIGHTS if " " in right}
    return joined.get(written, "")
