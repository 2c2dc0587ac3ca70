"""Parses rule files and expressions: drives lark token by token and continues after every error.

Used by the loader, the formatter and every reader of a single expression. `slips.py` describes errors; the
builders turn lark's tree into the syntax tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import islice

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser
from lark.parsers.lalr_parser_state import ParserState

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source, Span
from kdsl.lang.codes import LangCode
from kdsl.lang.comments import Comments
from kdsl.lang.expression_builder import ExpressionBuilder, Locate
from kdsl.lang.expression_tree import Expr
from kdsl.lang.file_builder import FileBuilder
from kdsl.lang.grammar import grammar
from kdsl.lang.hidden import hidden_characters
from kdsl.lang.problem import Problem
from kdsl.lang.scan import PieceKind, indentation, is_first_on_line, scan
from kdsl.lang.slips import diagnose, is_named_otherwise
from kdsl.lang.tree import File
from kdsl.lang.words import (
    BLOCK_DECLARATIONS,
    DECLARATIONS,
    END,
    STARTERS,
    STATEMENT_STARTERS,
    TERMINAL_OF_STARTER,
)

LANGUAGE_VERSION = 1
MAX_DEPTH = 250
"""The largest depth of a syntax tree, so that later passes may recurse. `a && b && c` is two levels."""
MAX_ERRORS = 25
"""The largest number of syntax errors of one file that are reported."""
_MAX_STACK = 8 * MAX_DEPTH
_HEADER_SIZE = 2


@dataclass(frozen=True, slots=True)
class ParseResult:
    """A file and its diagnostics. With errors, `file` holds the parts that could be parsed, or is None."""

    file: File | None
    diagnostics: tuple[Diagnostic, ...]


def parse_file(source: Source) -> ParseResult:
    """Parse a rule file. Never raises: each mistake in the text is a diagnostic, in the order of the text."""
    run = _Run(source.text, "file", lambda start, end: Span(source, start, end))
    parsed = run.parse()
    if version := _other_version(run.tokens, source):
        return ParseResult(None, (version,))
    if is_named_otherwise(source.path) and any(each.code == LangCode.HEADER for each in run.diagnostics):
        # It is no rule file: what is read on as one, and mended, would be a test or a manifest.
        return ParseResult(None, tuple(each for each in run.diagnostics if each.code == LangCode.HEADER))
    if parsed is None:
        return ParseResult(None, tuple(run.diagnostics))
    builder = FileBuilder(source, Comments(source, run.comments), parse_embedded)
    file, found = builder.build(parsed)
    assert isinstance(file, File)
    # A string that ends early inside a hole is found twice: by the text after it and by its content.
    found = (*run.diagnostics, *found, *islice(hidden_characters(source), MAX_ERRORS))
    distinct = {(diagnostic.code, diagnostic.span): diagnostic for diagnostic in found}
    return ParseResult(file, tuple(sorted(distinct.values(), key=_offset)))


def parse_expression(source: Source) -> tuple[Expr | None, tuple[Diagnostic, ...]]:
    """Parse a text that is one expression; the expression is None where there is an error."""
    return parse_embedded(source.text, lambda start, end: Span(source, start, end))


def parse_embedded(text: str, locate: Locate) -> tuple[Expr | None, tuple[Diagnostic, ...]]:
    """Parse an expression inside another text; `locate` finds its characters in the file."""
    run = _Run(text, "expression", locate)
    parsed = run.parse()
    if parsed is None or run.diagnostics:
        return None, tuple(run.diagnostics)
    expr, diagnostics = ExpressionBuilder(locate).build(parsed)
    assert not isinstance(expr, File)
    return (None if diagnostics else expr), diagnostics


def _other_version(tokens: list[Token], source: Source) -> Diagnostic | None:
    """Report a file of another language version, which cannot be checked further."""
    match tokens[:2]:
        case [Token(type="_KDSL"), Token(type="INT") as version] if version != str(LANGUAGE_VERSION):
            return Diagnostic(
                LangCode.HEADER,
                f"this file is written in version {version} of the language",
                Span(source, version.start_pos or 0, version.end_pos or 0),
                label=f"this kdsl reads version {LANGUAGE_VERSION}",
                help=(f"write `kdsl {LANGUAGE_VERSION}`, or use a newer kdsl",),
            )
    return None


def _offset(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start if diagnostic.span else 0


class _Run:
    """One parse of one text: its tokens, comments and diagnostics."""

    def __init__(self, text: str, start: str, locate: Locate) -> None:
        self.tokens: list[Token] = []
        self.comments: list[tuple[int, int]] = []
        self.diagnostics: list[Diagnostic] = []
        self._text = text
        self._start = start
        self._locate = locate
        self._parser: InteractiveParser = grammar().parse_interactive(text, start=start)
        self._resumed_at = -1
        self._scanned = 0
        self._is_too_deep = False

    def parse(self) -> Tree[Token] | None:
        """Return lark's tree, without the parts that could not be parsed; None where it cannot be used."""
        reported = -1
        while True:
            at = self._advance()
            if at is None:
                break
            problem = self._problem(at)
            # A second error at the place where the parser continued has the same cause.
            if at != reported:
                self._report(problem)
            reported = at
            if self._start == "expression" or len(self.diagnostics) >= MAX_ERRORS:
                return None
            swallowed, block = problem.swallowed, _block_behind(problem)
            if block > self._resumed_at and self._rewind("_LBRACE", block):
                self._go_to(block)
            elif not self._resume(at if swallowed is None else swallowed.start_pos or 0, _margin(problem)):
                break
        if self._is_too_deep or not self._fits(self._parser.parser_state, END):
            return None
        parsed = self._parser.feed_token(Token(END, ""))
        assert isinstance(parsed, Tree)
        return self._check_depth(parsed)

    def _advance(self) -> int | None:
        """Take tokens until one does not fit, and return its offset; None at a valid or too deep end."""
        state = self._parser.parser_state
        try:
            # Lark does not annotate this method; it yields tokens.
            for token in self._parser.lexer_thread.lex(state):  # type: ignore[no-untyped-call]
                self._parser.feed_token(token)
                self._note(token)
                if len(state.state_stack) > _MAX_STACK:
                    self._report_depth(token.start_pos or 0, token.end_pos or 0)
                    return None
        except UnexpectedToken as error:
            return error.token.start_pos or 0
        except UnexpectedCharacters as error:
            return error.pos_in_stream
        self._note_comments(len(self._text))
        return None if self._fits(state, END) else len(self._text)

    # ---- tokens and comments -------------------------------------------------------------------------------

    def _note(self, token: Token) -> None:
        """Record a token that fitted, and the comments before it."""
        self._note_comments(token.start_pos or 0)
        self._scanned = token.end_pos or 0
        self.tokens.append(token)

    def _note_comments(self, end: int) -> None:
        """Keep the comments before `end`. Between two tokens there are only blanks and comments."""
        if self._text.find("//", self._scanned, end) < 0:
            return
        for piece in scan(self._text, self._scanned, end):
            if piece.kind is PieceKind.COMMENT:
                self.comments.append((piece.start, piece.end))

    # ---- errors --------------------------------------------------------------------------------------------

    def _problem(self, at: int) -> Problem:
        return Problem(
            text=self._text,
            locate=self._locate,
            at=at,
            found=next(scan(self._text, at), None),
            tokens=tuple(self.tokens),
            accepts=self._accepted(),
            stack=self._half_read(),
            whole=self._start,
        )

    def _report(self, problem: Problem) -> None:
        self.diagnostics.append(diagnose(problem))
        if len(self.diagnostics) == MAX_ERRORS:
            title = f"more than {MAX_ERRORS - 1} syntax errors; the rest of the file was not read"
            self.diagnostics[-1] = Diagnostic(LangCode.TOO_MANY, title, self.diagnostics[-1].span)

    def _resume(self, at: int, margin: int | None) -> bool:
        """Continue after an error, where an open construct can go on. Return False at the end of the text."""
        if len(self.tokens) < _HEADER_SIZE:
            # The header is missing or broken. Read on as if it were there.
            for terminal, word in (("_KDSL", "kdsl"), ("INT", str(LANGUAGE_VERSION))):
                if self._fits(self._parser.parser_state, terminal):
                    self._parser.feed_token(Token(terminal, word, start_pos=at, end_pos=at))
            if not self.tokens and at > self._resumed_at:
                return self._go_to(at)
        for place, terminal in _places_to_resume(self._text, at, margin):
            if place > self._resumed_at and self._rewind(terminal, place):
                return self._go_to(place)
        self._scanned = len(self._text)
        self._rewind(END, len(self._text))
        return False

    def _go_to(self, place: int) -> bool:
        self._resumed_at = place
        # Lark's own `on_error` protocol lets the caller move this position.
        lexer_state = self._parser.lexer_thread.state
        assert lexer_state is not None
        lexer_state.line_ctr.char_pos = place
        return True

    def _rewind(self, terminal: str, place: int) -> bool:
        """Drop unfinished constructs until `terminal` fits; return False where it never fits.

        The outermost open block stays open if the terminal is deeper in its line at `place`: `param` starts a
        declaration as well.
        """
        state = self._parser.parser_state
        least = 1
        for at, value in enumerate(state.value_stack):
            if isinstance(value, Token) and value.type == "_LBRACE":
                depth = indentation(self._text, value.start_pos or 0)
                is_inside = terminal in STARTERS and indentation(self._text, place) > depth
                least = at + 2 if is_inside else 1
                break
        for size in range(len(state.state_stack), least - 1, -1):
            if self._fits(state, terminal, size):
                del state.state_stack[size:], state.value_stack[size - 1 :]
                return True
        return False

    def _half_read(self) -> tuple[Token, ...]:
        """Return the tokens on the stack of unfinished constructs, outermost first.

        Lark reduces a finished statement only when the next one starts, hence the trial.
        """
        state = self._parser.parser_state
        starters = sorted(self._accepted() & STARTERS)
        if starters:
            state = self._trial(state)
            state.feed_token(Token(starters[0], ""))
            del state.value_stack[-1]
        return tuple(value for value in state.value_stack if isinstance(value, Token))

    def _accepted(self) -> frozenset[str]:
        """Return the terminals that fit here."""
        state = self._parser.parser_state
        listed = state.parse_conf.parse_table.states[state.position]
        return frozenset(name for name in listed if name.isupper() and self._fits(state, name))

    @staticmethod
    def _fits(state: ParserState[int], terminal: str, size: int | None = None) -> bool:
        """Return whether a terminal fits a copy of the stack that keeps the first `size` states.

        The table alone is not enough: LALR merges look-aheads, so an entry may lead to reductions and then to
        an error.
        """
        trial = _Run._trial(state)
        if size is not None:
            del trial.state_stack[size:], trial.value_stack[size - 1 :]
        try:
            trial.feed_token(Token(terminal, ""), terminal == END)
        except UnexpectedToken:
            return False
        return True

    @staticmethod
    def _trial(state: ParserState[int]) -> ParserState[int]:
        """Copy the parser's stack; the copy builds no trees."""
        trial = state.copy(deepcopy_values=False)
        trial.parse_conf = copy(trial.parse_conf)
        trial.parse_conf.callbacks = {}
        return trial

    # ---- depth ---------------------------------------------------------------------------------------------

    def _check_depth(self, parsed: Tree[Token]) -> Tree[Token] | None:
        """Reject a tree that is too deep for recursion, at the first such place."""
        stack: list[tuple[Tree[Token], int]] = [(parsed, 0)]
        while stack:
            node, depth = stack.pop()
            if depth > MAX_DEPTH:
                self._report_depth(node.meta.start_pos, node.meta.end_pos)
                return None
            # Operators before an operand are one node in lark's tree, but several levels in ours.
            below = depth + (len(node.children) - 1 if node.data == "unary" else 1)
            stack.extend((child, below) for child in reversed(node.children) if isinstance(child, Tree))
        return parsed

    def _report_depth(self, start: int, end: int) -> None:
        self._is_too_deep = True
        self.diagnostics.append(
            Diagnostic(
                LangCode.TOO_DEEP,
                f"nested deeper than {MAX_DEPTH} levels",
                self._locate(start, end),
                help=("name parts of it with `let` or `fn`; a long chain of operators counts each of them",),
            )
        )


def _block_behind(problem: Problem) -> int:
    """Return the offset of the `{` on the line of a broken head, such as `profile p: q {`; -1 without one."""
    if problem.statement not in BLOCK_DECLARATIONS or problem.block or problem.is_at_line_start:
        return -1
    end = problem.text.find("\n", problem.at)
    braces = (each.start for each in scan(problem.text, problem.at, max(end, 0) or None) if each.text == "{")
    return next(braces, -1)


def _margin(problem: Problem) -> int | None:
    """Return the indentation of the lines of a profile, each of which is a statement; None elsewhere."""
    if problem.block != "profile" or not problem.opener_is_block:
        return None
    begun = problem.statement
    return indentation(problem.text, problem.at if begun is None else begun.start_pos or 0)


def _places_to_resume(text: str, at: int, margin: int | None) -> Iterator[tuple[int, str]]:
    """Yield the places from `at` on where a statement, a declaration or the end of a block may be, with the
    kind. With a margin any word is one at which a line with this indentation begins.

    Brackets that open on the way are skipped with their content; a declaration at the very start of a line
    ends that.
    """
    depth = 0
    for piece in scan(text, at):
        if piece.kind is PieceKind.OPEN:
            depth += 1
        elif piece.kind is PieceKind.CLOSE and depth:
            depth -= 1
        elif piece.kind is PieceKind.CLOSE and piece.text == "}":
            yield piece.start, "_RBRACE"
        elif piece.kind is PieceKind.WORD and piece.text in TERMINAL_OF_STARTER:
            terminal = TERMINAL_OF_STARTER[piece.text]
            at_start = piece.start == 0 or text[piece.start - 1] == "\n"
            if at_start and terminal in DECLARATIONS:
                depth = 0
            if not depth and (
                at_start or (terminal in STATEMENT_STARTERS and is_first_on_line(text, piece.start))
            ):
                yield piece.start, terminal
        elif piece.kind is PieceKind.WORD and margin is not None and piece.start > at and not depth:
            before = text[max(piece.start - margin - 1, 0) : piece.start]
            if before[:1] == "\n" and not before.strip():
                yield piece.start, "_SCHEDULER"
