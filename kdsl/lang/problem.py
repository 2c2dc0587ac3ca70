"""The parser's state at a token that does not fit; `slips.py` finds the words for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token

from kdsl.base.span import Span
from kdsl.lang.expression_builder import Locate
from kdsl.lang.scan import CLOSER, Piece, PieceKind, is_first_on_line
from kdsl.lang.words import STARTERS, STATEMENTS, SYMBOLS, TERMINAL_OF_STARTER, describe_expected

_UNQUOTED = re.compile(r"""[^\s"'{}]*""")
_CHANNEL = re.compile(r"#\w")
_REST = re.compile(r"""(?:(?!//)[^\n"'{}])*(?<!\s)""")
OPENERS = {terminal: symbol for terminal, symbol in SYMBOLS.items() if symbol in CLOSER}


@dataclass(frozen=True, slots=True)
class Problem:
    """A token that does not fit.

    `tokens` are all before it that fitted, also those of constructs that an earlier error ended; `stack` are
    the tokens of the unfinished constructs, outermost first.
    """

    text: str
    locate: Locate
    at: int
    found: Piece | None
    tokens: tuple[Token, ...]
    accepts: frozenset[str]
    stack: tuple[Token, ...]
    whole: str

    @property
    def span(self) -> Span:
        """Return the place of the token; at the end of the text an empty place after the last token."""
        if self.found:
            return self.locate(self.found.start, self.found.end)
        return self.locate(self.end_of_previous, self.end_of_previous)

    @property
    def end_of_previous(self) -> int:
        return self.tokens[-1].end_pos or 0 if self.tokens else 0

    @property
    def previous(self) -> Token | None:
        return self.tokens[-1] if self.tokens else None

    @property
    def swallowed(self) -> Token | None:
        """Return the keyword before the token if it was read as a name, for want of one on the line above."""
        if len(self.tokens) < 2:
            return None
        before, last = self.tokens[-2:]
        if last.type != "IDENT" or last not in TERMINAL_OF_STARTER or before.type in ("_COMMA", "_LPAR"):
            return None
        return last if is_first_on_line(self.text, last.start_pos or 0) else None

    @property
    def word(self) -> str:
        """Return the token's word, if it is one."""
        return self.found.text if self.found and self.found.kind is PieceKind.WORD else ""

    @property
    def starts_something(self) -> bool:
        """Return whether the token can only start the next construct, or ends the block."""
        return self.found is None or self.found.text == "}" or self.word in TERMINAL_OF_STARTER

    @property
    def unquoted(self) -> Span:
        """Return the place of the token and of its rest up to a space, quote or brace, such as `a-b.c`."""
        start = self.found.start if self.found else self.at
        rest = _UNQUOTED.match(self.text, start)
        return self.locate(start, rest.end() if rest else start)

    @property
    def is_bare_string(self) -> bool:
        """Return whether a word or a channel such as `#team` stands where only a string may stand."""
        return self.accepts == {"STRING"} and bool(self.word or _CHANNEL.match(self.unquoted.text))

    @property
    def rest_of_line(self) -> Span:
        """Return the place of the token and of what follows on its line, up to a quote, brace or comment."""
        start = self.found.start if self.found else self.at
        rest = _REST.match(self.text, start)
        return self.locate(start, rest.end() if rest else start)

    @property
    def is_at_line_start(self) -> bool:
        return self.found is None or is_first_on_line(self.text, self.found.start)

    @property
    def is_at_margin(self) -> bool:
        """Return whether the token stands where declarations usually start: at the very left."""
        return self.found is not None and (self.at == 0 or self.text[self.at - 1] == "\n")

    @property
    def described(self) -> str:
        """Return the token in words."""
        if self.found is None:
            return f"the end of the {self.whole}"
        text = self.found.text if len(self.found.text) <= 40 else f"{self.found.text[:37]}…"
        return f"`{text}`"

    @property
    def expected(self) -> str:
        return describe_expected(self.accepts, self.whole)

    @property
    def opener(self) -> Token | None:
        """Return the innermost bracket that is still open."""
        return next((token for token in reversed(self.stack) if token.type in OPENERS), None)

    @property
    def statement(self) -> Token | None:
        """Return the keyword of the unfinished statement or declaration in the innermost block."""
        for token in reversed(self.stack):
            if token.type in STARTERS:
                return token
            if token.type == "_LBRACE":
                return None
        return None

    @property
    def block(self) -> str:
        """Return the keyword that opened the innermost block of statements; empty at the level of the
        file.
        """
        return next((keyword for _, keyword in reversed(self._openers()) if keyword in STATEMENTS), "")

    @property
    def opener_is_block(self) -> bool:
        """Return whether the innermost open bracket holds statements, not a map or arguments."""
        return any(keyword in STATEMENTS for _, keyword in self._openers()[-1:])

    def _openers(self) -> list[tuple[Token, str]]:
        """Return the open brackets, each with the keyword before it."""
        openers: list[tuple[Token, str]] = []
        keyword = ""
        for token in self.stack:
            if token.type in STARTERS:
                keyword = str(token)
            elif token.type in OPENERS:
                openers.append((token, keyword if token.type == "_LBRACE" else ""))
                keyword = ""
        return openers

    def span_of(self, token: Token) -> Span:
        return self.locate(token.start_pos or 0, token.end_pos or 0)
