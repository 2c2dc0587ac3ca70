"""Describes operators that the language does not have, with those that were meant. `slips.py` asks first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from lark import Token

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.base.span import Span
from kdsl.lang.codes import LangCode
from kdsl.lang.problem import Problem
from kdsl.lang.scan import scan
from kdsl.lang.words import STARTERS

_OPERATOR_SLIPS = {
    "=": ("==", "`=` gives a name its value, `==` compares"),
    "&": ("&&", "CEL has no bitwise operators"),
    "|": ("||", "CEL has no bitwise operators"),
    "and": ("&&", ""),
    "or": ("||", ""),
    "AND": ("&&", ""),
    "OR": ("||", ""),
    "is": ("==", ""),
}
_BITWISE = frozenset("&|")
_ENDS = frozenset(["(", ")", "[", "]", "{", "}", ",", "?", ":", "else"])
"""The words at which an operand ends, whatever it is."""
_COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">=", "in", "&&", "||", "&", "|", "="])
_BEGINNINGS = STARTERS | {"_ASSIGN"}
"""The tokens behind which an expression begins."""
_LONG_SLIPS = {
    "=~": ("", "write `text.matches(pattern)`"),
    "=<": ("<=", ""),
    "=>": (">=", ""),
}
_ITEM = "the name of an item ends with a comma: `list.exists(x, C)`"
DEFAULT = "for a default write `m[?key].orValue(default)`"
FOREIGN_MACROS = frozenset({"any", "some", "anyMatch", "every", "allMatch"})
"""Quantifiers of other languages: their first argument names an item."""
_NAMING = FOREIGN_MACROS | {"all", "exists", "existsOne", "exists_one", "filter", "find", "map", "sortBy"}
"""Methods whose first argument names an item."""
_DOUBLED_SLIPS = {
    ("==", "="): ("==", "there is one equality, `==`"),
    ("!=", "="): ("!=", "there is one inequality, `!=`"),
    ("<", ">"): ("!=", ""),
    ("=", "=="): ("==", "there is one equality, `==`"),
    ("*", "*"): ("", "there is no power operator"),
    ("?", "?"): ("", DEFAULT),
    ("?", ":"): ("", DEFAULT),
    ("+", "+"): ("", "a name keeps its value; write `+ 1`"),
}


def wrong_operator(problem: Problem) -> Diagnostic | None:
    """Describe an operator of another language, or one that is written twice."""
    found, previous = problem.found, problem.previous
    if diagnostic := _chain(problem):
        return diagnostic
    if found is None or previous is None:
        return None
    if diagnostic := _colon(problem) or _arrow(problem):
        return diagnostic
    if "_ASSIGN" in problem.accepts and problem.text.startswith(":=", problem.at):
        span = problem.locate(problem.at, problem.at + len(":="))
        return _replace_operator(problem, span, ":=", "=", "")
    adjacent = previous.end_pos == found.start
    if adjacent and (slip := _DOUBLED_SLIPS.get((str(previous), found.text))):
        right, help_line = slip
        return _replace_operator(
            problem, problem.span_of(previous).to(problem.span), f"{previous}{found.text}", right, help_line
        )
    if previous == "not" and previous.type == "IDENT" and not problem.is_at_line_start:
        return _replace_operator(
            problem,
            problem.span_of(previous),
            "not",
            "!",
            "it stands before its operand: `!a`, `!(a in b)`",
        )
    if "AND" not in problem.accepts or (problem.word and problem.is_at_line_start):
        return None
    if problem.word == "not":
        help_line = "write `!(a in b)`"
        return Diagnostic(
            LangCode.WRONG_OPERATOR, "`not` is not an operator", problem.span, help=(help_line,)
        )
    long = problem.text[problem.at : problem.at + 2]
    if slip := _LONG_SLIPS.get(long):
        return _replace_operator(problem, problem.locate(problem.at, problem.at + 2), long, *slip)
    if slip := _OPERATOR_SLIPS.get(found.text):
        right, help_line = slip
        if found.text in _BITWISE and _is_beside_a_number(problem):
            right = ""
        return _replace_operator(problem, problem.span, found.text, right, help_line)
    return None


def _is_beside_a_number(problem: Problem) -> bool:
    """Return whether an operand is a number: one that nothing compares is no condition."""
    own = takewhile(lambda token: token.type not in _BEGINNINGS, reversed(problem.tokens))
    before = [str(token) for token in own]
    after = [piece.text for piece in scan(problem.text[problem.at + 1 :].partition("\n")[0])]
    return _is_a_number(before) or _is_a_number(after)


def _is_a_number(words: Sequence[str]) -> bool:
    """Return whether the words on one side of an operator, the nearest first, begin with such a number."""
    if not words or not words[0][:1].isdigit():
        return False
    end = next((word for word in words if word in _ENDS or word in _COMPARISONS), "")
    return end not in _COMPARISONS


def _colon(problem: Problem) -> Diagnostic | None:
    """A `=` between a key and its value."""
    match problem.tokens[-2:]:
        case [Token(type="_LBRACE" | "_COMMA" | "_ANNOTATE"), Token()]:
            if problem.described == "`=`" and "_COLON" in problem.accepts:
                wrong = "=>" if problem.text.startswith("=>", problem.at) else "="
                span = problem.locate(problem.at, problem.at + len(wrong))
                return _replace_operator(problem, span, wrong, ":", "a key ends with `:`")
    return None


def _arrow(problem: Problem) -> Diagnostic | None:
    """A `=>`, `->` or `:` behind the name of an item, as in lambdas of other languages.

    In other parentheses such a sign is a comparison, or an argument with a name.
    """
    tokens, start, sign = problem.tokens, problem.at, "=>"
    if tokens and tokens[-1].type == "MINUS":
        start, sign, tokens = tokens[-1].start_pos or 0, "->", tokens[:-1]
    elif problem.described == "`:`" and "_COLON" not in problem.accepts:
        sign = ":"
    match tokens:
        case [*_, method, Token(type="_LPAR"), Token(type="IDENT") as item] if method in _NAMING:
            pass
        case _:
            return None
    if not problem.text.startswith(sign, start):
        return None
    end = start + len(sign)
    edit = Edit(problem.locate(item.end_pos or 0, end), ",")
    fix = Fix(f"write `{item},`", (edit,), Applicability.CERTAIN)
    title = f"`{sign}` does not follow the name of an item"
    return Diagnostic(LangCode.WRONG_OPERATOR, title, problem.locate(start, end), help=(_ITEM,), fixes=(fix,))


def _chain(problem: Problem) -> Diagnostic | None:
    """A `?.` that was read as the `?` of a choice, which then has no `:`, or is in the way of its `:`."""
    statement = problem.statement
    if "_COLON" not in problem.accepts or (statement is None and problem.whole == "file"):
        return None
    start = 0 if statement is None else statement.end_pos or 0
    before = None
    for piece in scan(problem.text, start, problem.at + len("?.")):
        if before is not None and (before.text, piece.text, before.end) == ("?", ".", piece.start):
            span = problem.locate(before.start, piece.end)
            return Diagnostic(LangCode.WRONG_OPERATOR, "`?.` is not an operator", span, help=(DEFAULT,))
        before = piece
    return None


def _replace_operator(problem: Problem, span: Span, wrong: str, right: str, help_line: str) -> Diagnostic:
    fixes = (Fix(f"write `{right}`", (Edit(span, right),), Applicability.CERTAIN),) if right else ()
    title = f"`{wrong}` is not an operator"
    help_lines = (help_line,) if help_line else ()
    return Diagnostic(LangCode.WRONG_OPERATOR, title, span, help=help_lines, fixes=fixes)
