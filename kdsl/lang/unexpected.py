"""Describes an unexpected token and the allowed ones, with help, where `slips.py` matches no slip."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lark import Token

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix, Label, suggest
from kdsl.base.quantity import meant_quantity
from kdsl.lang.codes import LangCode
from kdsl.lang.operators import DEFAULT
from kdsl.lang.problem import Problem
from kdsl.lang.rights import help_with_right, is_among_rights
from kdsl.lang.scan import PieceKind
from kdsl.lang.words import END, KEYWORDS, KINDS, SYMBOLS, word_of

CHOICE = "an expression chooses with `C ? a : b`"
FOREIGN_WORDS = {
    **dict.fromkeys(
        ("if", "when", "switch", "match"),
        "`require C else …` says what must hold, `applies when C` for which pods; `C ? a : b` chooses",
    ),
    **dict.fromkeys(("while", "loop", "foreach"), "`for x in LIST { … }` goes through a list or map"),
    **dict.fromkeys(("var", "const", "def", "val"), "`let name = E` names a value"),
    **dict.fromkeys(
        ("deny", "reject", "allow", "assert", "filter"), '`require C else "reason"` says what must hold'
    ),
    "and": "`&&` joins conditions",
    "return": "a predicate has `require`, a score has `value`",
    "weight": "the profile gives a score its weight: `add score S weight 3`, `reweight S 3`",
    **dict.fromkeys(
        ("remove", "delete", "without"), "`disable predicate P` or `disable score S` takes a rule out"
    ),
    **dict.fromkeys(("sort", "orderby"), "`order by E` says the order"),
}
"""Words of other languages that stand for statements, and their replacements in kdsl."""
INSTEAD_OF_REQUIRE = {
    "preemption": "a preemption says who may be evicted: `victim when C`; `choose by K` prefers nodes",
    "queue": 'a queue keeps pods out by `admit when C else "reason"`',
    "score": "a score leaves nodes out by `ignore when C`; a predicate rejects them",
    "profile": "a profile has rules; one that it inherits gets conditions by `tighten P { require … }`",
}
"""The statements that other blocks have in place of `require`."""
INSTEAD_IN_PROFILE = {
    "predicate": "`add predicate P` adds one to the inherited ones, `predicates { P Q }` lists all",
    "score": "`add score S weight 1` adds one to the inherited ones, `scores { S weight 1 }` lists all",
    "param": "a rule declares its parameters, a profile changes them: `set Rule.param = E`",
    "extends": "it stands before the block: `profile NAME extends OTHER {`",
    **dict.fromkeys(("enable", "include", "use"), "`add predicate P` or `add score S weight 1` adds a rule"),
    **dict.fromkeys(("behind", "above", "below"), "`add predicate P after Q`, or `before Q`, says the place"),
}
"""The statements of a profile in place of words that belong elsewhere, or to other languages."""
_FORMS = {
    "add": "write `add predicate P` or `add score S weight 1`",
    "score": "write `add score S weight 1`",
    "disable": "write `disable predicate P`, `disable score S` or `disable preemption X`",
    "reweight": "write `reweight S 3`: a score and its new weight",
    "set": "write `set Rule.param = E`",
    "tighten": "write `tighten P { require … }`",
    "predicates": "write `predicates { P Q }`; `add predicate P` adds one to the inherited ones",
    "scores": "write `scores { S weight 1 }`; `add score S weight 1` adds one to the inherited ones",
    "queue": "a profile names its queue, `queue Q`; the block stands outside",
    "preemption": "a profile names its preemption, `preemption P`; the block stands outside",
}
"""The forms of statements of a profile."""
FOREIGN_DECLARATIONS = {
    **dict.fromkeys(
        ("filter", "rule", "constraint", "deny", "allow"),
        "a `predicate` says which nodes a pod may use",
    ),
    **dict.fromkeys(("prioritize", "priority"), "a `score` says which of the possible nodes are better"),
    **dict.fromkeys(("def", "func", "function"), "`fn name(x: int): int = E` declares a function"),
    **dict.fromkeys(("let", "const", "var", "val"), "`param name: int = 1` declares a value"),
    **dict.fromkeys(("policy", "scheduler"), "a `profile` lists the rules that decide about a pod"),
}
"""The same for declarations, at the level of the file."""
_DURATIONS = {"s": "s", "sec": "s", "min": "m", "h": "h", "hours": "h", "ms": "ms"}
_EXAMPLES = {
    "param": ("a parameter has a value: `param x: int = 1`",),
    "weight": ("the weight of a score is a whole number, such as `weight 1`",),
}
_DIRECTIONS = {"descending": "desc", "DESC": "desc", "ascending": "asc", "ASC": "asc"}
_PREFIX = re.compile(r"""(?:u|f|rf|fr)(?=["'])""", re.IGNORECASE)
_BLOCKS = frozenset({"predicate", "score", "queue", "preemption"})


def unexpected(problem: Problem) -> Diagnostic:
    """Return the diagnostic of an unexpected token; a token missing at the end of a line is reported
    there.
    """
    previous = problem.previous
    if previous is not None and problem.is_at_line_start and problem.starts_something:
        end = problem.locate(problem.end_of_previous, problem.end_of_previous)
        title = f"expected {problem.expected} after `{_shown(str(previous))}`"
        help_ = tuple(percent(problem.tokens)) or _EXAMPLES.get(_missing(problem), ())
        return Diagnostic(LangCode.UNEXPECTED, title, end, help=help_)
    words = [word_of(name) for name in problem.accepts if name not in {*KINDS, *SYMBOLS, END}]
    hints = tuple(_hints(problem))
    # A keyword is not misspelled, it follows a gap: `a && else "x"`.
    is_misspelled = problem.word and problem.word not in KEYWORDS and not hints
    near, fixes = suggest(problem.span, problem.word, words) if is_misspelled else ((), ())
    if not fixes and is_among_rights(problem):
        about_rights, fixes = help_with_right(problem)
        hints = (*hints, *about_rights)
    if problem.is_bare_string:
        bare = problem.unquoted
        quoted = f'"{bare.text}"'
        fixes = (Fix(f"write `{quoted}`", (Edit(bare, quoted),), Applicability.CERTAIN),)
    if (prefix := string_prefix(problem)) is not None:
        hints, fixes = _without_prefix(problem, *prefix)
    elif previous is not None and previous.type == "_ELSE" and problem.word and not fixes:
        reason = problem.rest_of_line
        fixes = (Fix(f'write `"{reason.text}"`', (Edit(reason, f'"{reason.text}"'),)),)
    return Diagnostic(
        LangCode.UNEXPECTED,
        f"expected {problem.expected}, found {problem.described}",
        problem.span,
        secondary=tuple(string_before(problem)),
        help=(*near, *hints),
        fixes=fixes,
    )


def string_prefix(problem: Problem) -> tuple[int, str] | None:
    """Return the place of letters right before a string, as Python has them, and the letters; None without.

    Where an expression may stand, they are read as a name, and the string is unexpected.
    """
    start, previous = problem.at, problem.previous
    if problem.found is not None and problem.found.kind is PieceKind.STRING and previous is not None:
        start = previous.start_pos or 0
    letters = _PREFIX.match(problem.text, start)
    if letters is None or problem.at not in (start, letters.end()):
        return None
    return start, letters[0]


def _without_prefix(problem: Problem, start: int, letters: str) -> tuple[tuple[str, ...], tuple[Fix, ...]]:
    """Return help and fixes for a string with letters of Python before it."""
    is_in_expression = start < problem.at
    if is_in_expression and "f" in letters.lower() and problem.found and "{" in problem.found.text:
        return ("only reasons have `{…}` in a string; an expression joins texts with `+`",), ()
    kept = "r" if "r" in letters.lower() else ""
    title = f"a string needs no `{letters}`: {f'write `{kept}`' if kept else 'remove it'}"
    edit = Edit(problem.locate(start, start + len(letters)), kept)
    return (), (Fix(title, (edit,), Applicability.CERTAIN),)


def string_before(problem: Problem) -> Iterator[Label]:
    """Yield a label at a string that ends right before a word: it may have ended too late, for want of a
    quote.
    """
    previous, found = problem.previous, problem.found
    if previous is None or found is None or previous.type != "STRING" or previous.end_pos != problem.at:
        return
    if found.kind in (PieceKind.WORD, PieceKind.STRING):
        yield Label(problem.span_of(previous), "this string ends here: is a quote missing in it?")


def percent(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield a hint where the last token is a `%` right behind a number, which was to mean per cent."""
    match tokens[-2:]:
        case [Token(type="INT" | "FLOAT") as number, Token(type="PERCENT") as sign] if (
            number.end_pos == sign.start_pos
        ):
            part = f"whole * {number} / 100"
            yield f"`%` is the remainder of a division; {number} per cent of a whole is `{part}`"


def _missing(problem: Problem) -> str:
    """Return the statement that is not complete, or the one clause that it must have."""
    return "weight" if problem.accepts == {"_WEIGHT"} else str(problem.statement)


def _hints(problem: Problem) -> Iterator[str]:
    previous = problem.previous
    if problem.found is None:
        return
    if problem.block == "score" and "_VALUE" in problem.accepts and not problem.word:
        yield "a score says `value E`"
    yield from percent(problem.tokens)
    if previous is not None and previous.end_pos == problem.at:
        yield from _hints_beside(str(previous), previous.type, problem)
    if problem.word == "if":
        yield CHOICE
    if problem.word in _DIRECTIONS and "DESC" in problem.accepts:
        yield f"write `{_DIRECTIONS[problem.word]}`"
    if problem.word == "else" and previous is not None and previous.type == "_QUESTION":
        yield f"{CHOICE}; {DEFAULT}"
    is_in_braces = problem.opener is not None and problem.opener.type == "_LBRACE"
    if problem.found.text == "," and "_COLON" in problem.accepts and is_in_braces:
        yield "a list is written `[a, b]`, a map `{key: value}`"
    if (
        problem.statement in ("profile", "device")
        and "_EXTENDS" in problem.accepts
        and problem.found.text == ":"
    ):
        yield f"`{problem.statement} NAME extends OTHER` takes over what another one has"
    if [each.type for each in problem.tokens[-2:]] == ["_FILES", "STRING"] and problem.found.text == ",":
        yield "a team has one pattern: `*` stands for a part of a name, `**` for folders as well"
    if problem.block == "team" and previous is not None and previous == "when":
        yield "the condition follows at once: `owns E`"
    is_whole = "IDENT" not in problem.accepts
    if problem.block == "profile" and problem.found.text == "," and is_whole and problem.opener_is_block:
        yield "a line is about one rule: write a line for each"
    if problem.statement == "set" and problem.word == "to":
        yield "a parameter gets its value by `=`"
    elif problem.statement == "disable" and problem.word == "queue":
        yield "a profile always has a queue: `queue Q` replaces it"
    elif problem.block == "profile" and problem.opener_is_block and problem.statement in _FORMS:
        yield _FORMS[problem.statement]
    if problem.word in ("where", "for") and problem.opener is not None and problem.opener.type == "_LPAR":
        yield "`list.exists(x, C)` holds if C holds for an item, `list.filter(x, C)` returns those items"
    if previous is not None and previous.type == "FIELD" and problem.found.kind is PieceKind.STRING:
        yield f"an argument stands in parentheses: `{previous}({_shown(problem.found.text)})`"
    if problem.statement == "fn" and problem.accepts & {"_COLON", "_ASSIGN"}:
        yield "a function names the types of its arguments and of its result: `fn name(x: int): int = E`"
    if problem.word == "weight" and problem.statement == "score":
        yield FOREIGN_WORDS["weight"]
    if problem.word == "extends" and problem.statement in _BLOCKS:
        yield "profiles and devices extend others; copy the lines of the other one into this block"
    if problem.found.text != "(":
        return
    if problem.previous is not None and problem.previous.type == "_FOR":
        yield "write it without parentheses: `for x in LIST { … }`"
    elif problem.statement in _BLOCKS and problem.accepts == {"_LBRACE"}:
        yield "it takes no arguments: a parameter is a line in its block, `param x: int = 1`"


def _hints_beside(before: str, type_: str, problem: Problem) -> Iterator[str]:
    """Yield hints about a token right behind another one: a unit or a hyphen."""
    if type_ in ("INT", "FLOAT") and (unit := problem.word):
        if unit in _DURATIONS:
            yield f'a time is written `duration("{before}{_DURATIONS[unit]}")`'
        elif meant := meant_quantity(f"{before}{unit}"):
            yield f'an amount is written `quantity("{meant}")`'
    if type_ == "IDENT" and problem.found is not None and problem.found.text == "-":
        yield "a name consists of letters, digits and `_`"


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}…"
