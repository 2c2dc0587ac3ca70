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
    """Describe a right behind another one without a comma, or with `and`; None for other errors."""
    if not is_among_rights(problem):
        return None
    end = problem.end_of_previous
    comma = Edit(problem.locate(end, end), ",")
    if not is_complete(problem):
        if problem.word != "and" or problem.tokens[-1].type != "_COMMA":
            return None
        fix = Fix("leave `and` out", (_without_word(problem),), Applicability.CERTAIN)
    elif problem.word == "and":
        # A comment may stand before it.
        fix = Fix("write `,`", (comma, _without_word(problem)), Applicability.CERTAIN)
    elif problem.word in _STARTERS or _joined(problem.word):
        fix = Fix("write `,` before it", (comma,), Applicability.CERTAIN)
    else:
        return None
    return Diagnostic(LangCode.UNEXPECTED, "rights have commas between them", problem.span, fixes=(fix,))


def _without_word(problem: Problem) -> Edit:
    """Leave out the word and the blanks behind it."""
    start, end = problem.span.start, problem.span.end
    rest = problem.text[end:]
    return Edit(problem.locate(start, end + len(rest) - len(rest.lstrip(" \t"))), "")


def is_among_rights(problem: Problem) -> bool:
    """Return whether the last words are rights behind `may`."""
    before = (each.type for each in reversed(problem.tokens) if each.type not in _TOKENS)
    return next(before, "") == "_MAY"


def is_complete(problem: Problem) -> bool:
    """Return whether the last right is complete: another one may follow after a comma."""
    return "_COMMA" in problem.accepts


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
