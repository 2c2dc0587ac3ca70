"""Describes characters of rule files that have no place, such as those that word processors write."""

from __future__ import annotations

import re
import unicodedata

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.lang.codes import LangCode
from kdsl.lang.problem import Problem
from kdsl.lang.scan import PieceKind
from kdsl.lang.words import SYMBOLS

_CHARACTER_FIXES = {
    ";": "",
    "#": "//",
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("\u2010\u2011\u2012–—\u2212", "-"),
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    **dict.fromkeys("\ufeff\u200b\u200c\u200d\u2060\u00ad", ""),
    **dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " "),
}
CHARACTER_SLIPS = {
    **{wrong: f"write `{right}`" for wrong, right in _CHARACTER_FIXES.items() if right.strip()},
    **{wrong: "remove it: it is invisible" for wrong, right in _CHARACTER_FIXES.items() if not right},
    **{wrong: "replace it by a plain space" for wrong, right in _CHARACTER_FIXES.items() if right == " "},
    ";": "statements need no separator: remove the `;`",
    "#": "a comment starts with `//`",
    **dict.fromkeys("“”„‟«»", 'write straight quotes: `"`'),
    **dict.fromkeys("‘’‚‛", "write straight quotes: `'`"),
    "`": "backticks go around a field name after a dot: `` m.`a-b` ``",
    "$": "holes `${…}` belong inside a reason in quotes",
    "\ufeff": "remove the byte order mark",
}
"""The help for characters that are known."""
_CLOSING_QUOTE = re.compile(r"[^\n“”»’]*[“”»’]")


def bad_character(problem: Problem) -> Diagnostic | None:
    """Describe a character that has no place; None for other errors."""
    found = problem.found
    if found is None or found.kind is not PieceKind.OTHER or found.text in SYMBOLS.values():
        return None
    if found.text in "&|=" or problem.is_bare_string:
        return None
    help_line = CHARACTER_SLIPS.get(found.text)
    shown = found.text if found.text.isprintable() else f"U+{ord(found.text[0]):04X}"
    title = f"the character `{shown}` has no place here"
    label = "" if found.text.isascii() else unicodedata.name(found.text[0], "").lower()
    if help_line is None or found.text not in _CHARACTER_FIXES:
        if found.text.isalnum():
            help_line = "names and numbers are written with the letters and digits of ASCII"
        elif not found.text.isprintable():
            help_line = "remove it: it is invisible"
        help_lines = (help_line or "remove it, or put it into a string or comment",)
        return Diagnostic(LangCode.BAD_CHARACTER, title, problem.span, label, help=help_lines)
    edits = [Edit(problem.span, _CHARACTER_FIXES[found.text])]
    if found.text in "“„‟«‘‚‛" and (closer := _CLOSING_QUOTE.match(problem.text, found.end)):
        edits.append(Edit(problem.locate(closer.end() - 1, closer.end()), _CHARACTER_FIXES[found.text]))
    fix = Fix(help_line, tuple(edits), Applicability.CERTAIN)
    return Diagnostic(LangCode.BAD_CHARACTER, title, problem.span, label, fixes=(fix,))
