"""Describes syntax errors: the likely slip, in the user's words, and a fix.

`SLIPS` lists the known slips, most certain first; for any other error the description names the token and the
allowed ones. The parser calls `diagnose` once for each root cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix, Label, suggest
from kdsl.lang.characters import CHARACTER_SLIPS, bad_character
from kdsl.lang.codes import LangCode
from kdsl.lang.operators import wrong_operator
from kdsl.lang.problem import OPENERS, Problem
from kdsl.lang.rights import is_among_rights, is_complete, missing_comma
from kdsl.lang.scan import CLOSER, PieceKind, scan
from kdsl.lang.templates import Hole, cut_template, unclosed_hole
from kdsl.lang.unexpected import (
    CHOICE,
    FOREIGN_DECLARATIONS,
    FOREIGN_WORDS,
    INSTEAD_IN_PROFILE,
    INSTEAD_OF_REQUIRE,
    percent,
    string_before,
    string_prefix,
    unexpected,
)
from kdsl.lang.words import (
    DECLARATIONS,
    END,
    HEADER,
    KINDS,
    STARTERS,
    STATEMENTS,
    SYMBOLS,
    TERMINAL_OF_STARTER,
    word_of,
)

RESERVED_WORDS = """
    as break const continue else for function if import let loop package namespace return var void while
    in true false null
"""
RESERVED = frozenset(RESERVED_WORDS.split())
_RESERVED_SLIPS = {
    "if": CHOICE,
    "function": "a function is declared with `fn`",
    "namespace": "the namespace of a pod is `pod.namespace`",
    "var": "`let name = E` names a value",
    "const": "`let name = E` names a value",
}
_REASON = ('write `else "…"`: the reason that `kubectl describe pod` shows',)
_HEADER = re.compile(r"^kdsl\s+\d", re.MULTILINE)
_NO_RULE_FILE = (
    "names of rule files end in `.kdsl`, or in `.kdsl.yaml` for the YAML form",
    "a configuration follows `--config`, rule tests `kdsl test`, those of other schedulers `kdsl convert`",
)
_BEFORE_WEIGHT = re.compile(r"\b(?:weight|reweight(?:\s+[\w.]+)?(?:\s+\d+\s+to)?)\s+(?P<digits>\d*)$")
_NUMBER = re.compile(r"-\s*[\d.]*|\d*\.\d*")


def is_named_otherwise(path: str) -> bool:
    """Return whether a file has the name of another kind of file: a manifest, a test, a program."""
    return PurePath(path).suffix not in ("", ".kdsl")


def diagnose(problem: Problem) -> Diagnostic:
    """Return the diagnostic of a syntax error, from the first slip that matches."""
    for recognise in SLIPS:
        if diagnostic := recognise(problem):
            return diagnostic
    return unexpected(problem)


def _unterminated_string(problem: Problem) -> Diagnostic | None:
    found = problem.found
    if found is None or found.kind is not PieceKind.UNTERMINATED:
        return None
    match = re.match(r"[bBrR]*(\"\"\"|'''|.)", found.text)
    quote = match[1] if match else '"'
    opening = problem.locate(found.start, found.start + len(match[0] if match else ""))
    long = len(quote) == 3
    where = "before the end of the text" if long else "on its line"
    help_lines = () if long else (f"a string over several lines is written {quote * 3}…{quote * 3}",)
    return Diagnostic(
        LangCode.UNTERMINATED_STRING,
        f"this string is not closed {where}",
        opening if long else problem.span,
        label=f"expected a closing `{quote}`",
        help=help_lines,
    )


_YAML_FORM = "the YAML form of rules stands in files that end in `.kdsl.yaml`"


def _header(problem: Problem) -> Diagnostic | None:
    if problem.found is not None and problem.found.text in CHARACTER_SLIPS and _HEADER.search(problem.text):
        # The header is there, behind something else.
        return None
    if problem.accepts == {"_KDSL"}:
        place = problem.locate(problem.at, problem.at)
        fix = Fix("add the header", (Edit(place, "kdsl 1\n"),), Applicability.CERTAIN)
        title = "the file does not start with `kdsl 1`"
        if is_named_otherwise(problem.span.source.path):
            return Diagnostic(LangCode.HEADER, title, problem.span, help=_NO_RULE_FILE)
        return Diagnostic(
            LangCode.HEADER, title, problem.span, label="expected `kdsl 1` before this", fixes=(fix,)
        )
    if problem.previous and problem.previous.type == "_KDSL":
        title = f"expected the version of the language after `kdsl`, found {problem.described}"
        is_yaml = problem.found is not None and problem.found.text == ":"
        help_ = ("write `kdsl 1`", *((_YAML_FORM,) if is_yaml else ()))
        return Diagnostic(LangCode.HEADER, title, problem.span, help=help_)
    return None


def _colon(problem: Problem) -> Diagnostic | None:
    """A `:` between the first word of a statement and its value, as in YAML."""
    found, previous = problem.found, problem.previous
    if found is None or found.text != ":" or previous is None or previous.type not in STARTERS:
        return None
    fix = Fix("remove it", (Edit(problem.span, ""),), Applicability.CERTAIN)
    return Diagnostic(LangCode.UNEXPECTED, f"no `:` follows `{previous}`", problem.span, fixes=(fix,))


def _stray_closer(problem: Problem) -> Diagnostic | None:
    found = problem.found
    if found is None or found.kind is not PieceKind.CLOSE:
        return None
    opener = problem.opener
    if opener is None:
        title = f"`{found.text}` closes nothing"
        return Diagnostic(LangCode.UNBALANCED, title, problem.span)
    symbol = OPENERS[opener.type]
    if CLOSER[symbol] == found.text:
        return None
    if problem.opener_is_block:
        return Diagnostic(LangCode.UNBALANCED, f"`{found.text}` closes nothing", problem.span)
    opened = Label(problem.span_of(opener), f"`{symbol}` is opened here")
    title = f"expected `{CLOSER[symbol]}`, found `{found.text}`"
    return Diagnostic(LangCode.UNBALANCED, title, problem.span, secondary=(opened,))


def _unclosed(problem: Problem) -> Diagnostic | None:
    """The text ends, or a construct starts that cannot stand inside the innermost open bracket."""
    opener = problem.opener
    if opener is None:
        return None
    symbol = OPENERS[opener.type]
    terminal = TERMINAL_OF_STARTER.get(problem.word)
    if problem.found is None:
        where = "the text ends here"
    elif terminal in DECLARATIONS and problem.is_at_margin and problem.block:
        where = "a declaration cannot stand inside a block"
    elif not problem.opener_is_block and (problem.word == "else" or (problem.is_at_line_start and terminal)):
        where = f"expected `{CLOSER[symbol]}` before this"
    else:
        return None
    noticed = Label(problem.span, where)
    title = f"this `{symbol}` is not closed"
    help_line = f"write `{CLOSER[symbol]}` where it ends"
    return Diagnostic(
        LangCode.UNBALANCED, title, problem.span_of(opener), secondary=(noticed,), help=(help_line,)
    )


def _message_construction(problem: Problem) -> Diagnostic | None:
    previous = problem.previous
    if problem.found is None or problem.found.text != "{" or previous is None:
        return None
    if previous.type not in ("IDENT", "FIELD") or previous.end_pos != problem.at:
        return None
    if not re.match(r"\{\s*(?:\}|[A-Za-z_]\w*\s*:)", problem.text[problem.at : problem.at + 200]):
        return None
    return Diagnostic(
        LangCode.MESSAGE_CONSTRUCTION,
        f"`{previous}{{…}}` constructs a message, which this language leaves out of CEL",
        problem.span_of(previous).to(problem.span),
        help=('write a map with quoted keys, such as {"name": value}, or call a function',),
    )


def _quote_in_hole(problem: Problem) -> Diagnostic | None:
    """A string that ends inside a `${` hole, because of a quote that belongs to the hole."""
    previous = problem.previous
    if previous is None or previous.type != "STRING" or previous.end_pos != problem.at:
        return None
    for part in cut_template(str(previous)).parts:
        if isinstance(part, Hole) and not part.closed:
            start = (previous.start_pos or 0) + part.offsets[0]
            return unclosed_hole(problem.locate(start - 2, start))
    return None


def _missing_else(problem: Problem) -> Diagnostic | None:
    statement = problem.statement
    if "_ELSE" not in problem.accepts or statement is None or problem.previous is None:
        return None
    if string_prefix(problem) is not None or any(string_before(problem)):
        return None  # the string is part of the condition, or ends behind a quote that is missing before
    found = problem.found
    reason_follows = found is not None and (
        found.kind is PieceKind.STRING or found.text in ("unschedulable", "unresolvable", "pending")
    )
    if found is not None and found.kind is PieceKind.STRING and _has_else(problem, found.end):
        return None
    ends_block = found is not None and found.text == "}"
    if not (reason_follows or ends_block or (problem.is_at_line_start and problem.starts_something)):
        return None
    title = f"`{statement}` has no `else`"
    if not reason_follows:
        end = problem.locate(problem.end_of_previous, problem.end_of_previous)
        return Diagnostic(LangCode.MISSING_ELSE, title, end, 'expected `else "reason"` here', help=_REASON)
    edit = Edit(problem.locate(problem.at, problem.at), "else ")
    fix = Fix("write `else` before it", (edit,), Applicability.CERTAIN)
    return Diagnostic(
        LangCode.MISSING_ELSE, title, problem.span, label="expected `else` before this", fixes=(fix,)
    )


def _has_else(problem: Problem, start: int) -> bool:
    """Return whether an `else` follows on the line: the text before it is no reason."""
    end = problem.text.find("\n", start)
    rest = scan(problem.text, start, end if end >= 0 else None)
    return any(piece.text == "else" for piece in rest)


def _swallowed_keyword(problem: Problem) -> Diagnostic | None:
    """A keyword that was read as a name, because a name is missing at the end of the line above."""
    swallowed = problem.swallowed
    if swallowed is None:
        return None
    *_, before, _ = problem.tokens
    title = f"expected a name or an expression after `{before}`, found `{swallowed}`"
    help_lines = tuple(percent(problem.tokens[:-1]))
    return Diagnostic(LangCode.UNEXPECTED, title, problem.span_of(swallowed), help=help_lines)


def _set_without_rule(problem: Problem) -> Diagnostic | None:
    statement, previous = problem.statement, problem.previous
    if problem.found is None or problem.found.text != "=" or statement != "set" or previous is None:
        return None
    title = f"`set` does not name the rule of the parameter `{previous}`"
    help_line = f"write `set Rule.{previous} = …`"
    return Diagnostic(LangCode.BAD_CLAUSE, title, problem.span_of(previous), help=(help_line,))


def _weight(problem: Problem) -> Diagnostic | None:
    """A weight that is negative or has a fraction."""
    before = _BEFORE_WEIGHT.search(problem.text, max(problem.at - 200, 0), problem.at)
    number = _NUMBER.match(problem.text, before.start("digits")) if before else None
    if before is None or number is None or number.end() <= problem.at:
        return None
    span = problem.locate(number.start(), number.end())
    if number[0].startswith("-"):
        title, help_ = (
            "a weight cannot be negative",
            "to prefer low values, write `normalize reverse` in the score",
        )
    else:
        title, help_ = (
            "a weight is a whole number",
            "multiply all weights of the profile: 1.5 and 1 become 3 and 2",
        )
    return Diagnostic(LangCode.BAD_CLAUSE, title, span, help=(help_,))


def _out_of_order(problem: Problem) -> Diagnostic | None:
    if problem.word not in ("package", "import") or not problem.is_at_line_start or problem.statement:
        return None
    if problem.block or not (problem.accepts & DECLARATIONS):
        return None
    title = f"`{problem.word}` stands too late"
    help_line = "the order is `kdsl 1`, `package`, imports, declarations; there is one `package`"
    return Diagnostic(LangCode.ORDER, title, problem.span, help=(help_line,))


def _reserved_word(problem: Problem) -> Diagnostic | None:
    if problem.word not in RESERVED or not problem.accepts & {"IDENT", "FIELD"}:
        return None
    if problem.is_at_line_start or problem.word == "else":
        return None
    help_lines = (
        ('after a dot it may be written in brackets: `m["in"]`',)
        if "FIELD" in problem.accepts
        else filter(None, (_RESERVED_SLIPS.get(problem.word),))
    )
    title = f"`{problem.word}` is a reserved word and cannot be a name"
    return Diagnostic(LangCode.RESERVED_WORD, title, problem.span, help=tuple(help_lines))


def _unknown_keyword(problem: Problem) -> Diagnostic | None:
    """An unknown word where a statement or declaration may start."""
    starters = problem.accepts & (STARTERS | HEADER)
    if not problem.word or len(starters) < 2 or not (problem.is_at_line_start or _is_fresh(problem)):
        return None
    if any(string_before(problem)):
        return None  # it was to be in the string
    if is_among_rights(problem) and not (problem.is_at_line_start and is_complete(problem)):
        return None  # the words of rights start statements of profiles
    words = sorted(map(word_of, starters))
    clauses = sorted(map(word_of, problem.accepts - {*starters, *KINDS, *SYMBOLS, END}))
    is_near, is_clause = (any(suggest(problem.span, problem.word, near)) for near in (words, clauses))
    if is_clause and not is_near:
        return None  # it goes on with the statement before it: `add predicate P befor Q`
    where = f"in a `{problem.block}` block" if problem.block else "outside of a block"
    fixes: tuple[Fix, ...] = ()
    if terminal := TERMINAL_OF_STARTER.get(problem.word):
        homes = sorted(block for block, allowed in STATEMENTS.items() if terminal in allowed)
        if terminal in DECLARATIONS:
            homes.append("the file itself")
        title = f"`{problem.word}` cannot stand {where}"
        help_lines: tuple[str, ...] = (f"it belongs in: {', '.join(homes)}",) if homes else ()
        if problem.word == "require" and problem.block in INSTEAD_OF_REQUIRE:
            help_lines = (INSTEAD_OF_REQUIRE[problem.block],)
    else:
        kind = "statement" if problem.block else "declaration"
        title = f"`{problem.word}` starts no {kind}"
        help_lines, fixes = suggest(problem.span, problem.word, words)
        foreign = FOREIGN_WORDS if problem.block else FOREIGN_DECLARATIONS
        if problem.word in foreign:
            help_lines, fixes = (foreign[problem.word],), ()
        elif not fixes:
            help_lines = help_lines or (f"known here: {', '.join(words)}",)
    if problem.block == "profile" and problem.word in INSTEAD_IN_PROFILE:
        help_lines, fixes = (INSTEAD_IN_PROFILE[problem.word],), ()
    return Diagnostic(LangCode.UNKNOWN_KEYWORD, title, problem.span, help=help_lines, fixes=fixes)


def _is_fresh(problem: Problem) -> bool:
    """Return whether only a statement or declaration may start here: no expression could continue."""
    return "PLUS" not in problem.accepts and problem.statement is None


SLIPS: tuple[Callable[[Problem], Diagnostic | None], ...] = (
    _unterminated_string,
    _header,
    _colon,
    _swallowed_keyword,
    _quote_in_hole,
    wrong_operator,
    _message_construction,
    _stray_closer,
    _missing_else,
    _set_without_rule,
    _weight,
    _unclosed,
    _out_of_order,
    _reserved_word,
    missing_comma,
    _unknown_keyword,
    bad_character,
)
