"""The names of `grammar.lark`'s terminals in messages to users, and summaries of sets of them.

The syntax diagnostics use it. Keywords need no entry: their terminal is the keyword in capitals.
"""

from __future__ import annotations

from collections.abc import Collection

END = "$END"

SYMBOLS = {
    "_LPAR": "(",
    "_RPAR": ")",
    "_LSQB": "[",
    "_RSQB": "]",
    "_LBRACE": "{",
    "_RBRACE": "}",
    "_COMMA": ",",
    "_COLON": ":",
    "_DOT": ".",
    "_ASSIGN": "=",
    "_QUESTION": "?",
    "QUESTION": "?",
    "OR": "||",
    "AND": "&&",
    "LT": "<",
    "LE": "<=",
    "GE": ">=",
    "GT": ">",
    "EQ": "==",
    "NE": "!=",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "SLASH": "/",
    "PERCENT": "%",
    "NOT": "!",
}
KINDS = {
    "IDENT": "a name",
    "FIELD": "a field name",
    "ESCAPED_FIELD": "a field name in backticks",
    "INT": "a whole number",
    "UINT": "an unsigned number",
    "FLOAT": "a number",
    "STRING": "a string in quotes",
    "BYTES": "bytes",
}


def _terminals(names: str) -> frozenset[str]:
    return frozenset(names.split())


_EXPRESSION = _terminals(
    "IDENT INT UINT FLOAT STRING BYTES TRUE FALSE NULL MINUS NOT _LPAR _LSQB _LBRACE _DOT"
)
_OPERATORS = _terminals(
    "OR AND LT LE GE GT EQ NE IN PLUS MINUS STAR SLASH PERCENT _QUESTION _DOT _LSQB _LPAR"
)
_CODES = frozenset({"UNSCHEDULABLE", "UNRESOLVABLE", "PENDING"})
_RULE_STATEMENTS = "_APPLIES _LET _REQUIRE _NARROW _FOR _REPORT _ON _PARAM FINAL"
FIELD_BLOCKS = ("inventory", "request", "quota", "lock", "handshake", "charge", "choose")
"""The words that open a block of fields."""
STATEMENTS = {
    block: _terminals(starters)
    for block, starters in {
        "predicate": _RULE_STATEMENTS,
        "for": _RULE_STATEMENTS,
        "fit": "_LET _REQUIRE _TOGETHER",
        "admit": "_APPLIES _LET _REQUIRE _SET",
        **dict.fromkeys(FIELD_BLOCKS, "_LET _SET"),
        "tighten": _RULE_STATEMENTS,
        "score": "_APPLIES _IGNORE _LET _PARAM FINAL _VALUE _NORMALIZE _ON",
        "queue": "_ADMIT _ORDER _BACKOFF _LET _PARAM FINAL",
        "preemption": "_ELIGIBLE _VICTIM _ORDER _CANDIDATES _CHOOSE _LET _PARAM FINAL",
        "device": "_KIND _RECORD _RESOURCE _PARAM FINAL _SET _INVENTORY _ADMIT _REQUEST _QUOTA _LOCK"
        " _HANDSHAKE _CHARGE _REQUIRE _FIT _CHOOSE _ORDER _VALUE _ANNOTATE",
        "profile": "_SCHEDULER _CHECK _SAMPLE _PREDICATES _SCORES _QUEUE _PREEMPTION _DEVICES _TIGHTEN"
        " _REWEIGHT _DISABLE _ADD _SET",
        "team": "_OWNS _FILES _CONTACT _PRIORITY _MAY",
    }.items()
}
"""The terminals that may start a statement, by the word that opens the block."""
DECLARATIONS = _terminals(
    "_PREDICATE _SCORE _QUEUE _PREEMPTION _DEVICE _PROFILE _TEAM _FN _PARAM FINAL MANDATORY DYN"
)
BLOCK_DECLARATIONS = frozenset(block for block in STATEMENTS if f"_{block.upper()}" in DECLARATIONS)
"""The words of declarations with a block."""
HEADER = frozenset({"_PACKAGE", "_IMPORT"})
STATEMENT_STARTERS = frozenset().union(*STATEMENTS.values())
STARTERS = DECLARATIONS | HEADER | STATEMENT_STARTERS


def word_of(terminal: str) -> str:
    """Return the text of a keyword or symbol terminal."""
    return SYMBOLS.get(terminal) or terminal.removeprefix("_").lower()


TERMINAL_OF_STARTER = {word_of(terminal): terminal for terminal in sorted(STARTERS)}
KEYWORDS = TERMINAL_OF_STARTER.keys() | {"else", "in", "true", "false", "null"}
"""The words that only the language uses: none of them is another one, misspelled."""


def describe(terminal: str, end: str) -> str:
    """Return a terminal in the user's words; `end` names the construct that ends where the text ends."""
    if terminal == END:
        return f"the end of the {end}"
    return KINDS.get(terminal) or f"`{word_of(terminal)}`"


def describe_expected(accepts: Collection[str], end: str) -> str:
    """Return a summary of the allowed terminals: specific ones first, large families by their name."""
    left = set(accepts)
    families: list[str] = []
    if left >= _EXPRESSION:
        left -= _EXPRESSION | {"QUESTION"}
        families.append("an expression")
    elif left >= {"PLUS", "STAR"}:
        left -= _OPERATORS
        families.append("an operator")
    if left >= _CODES:
        left -= _CODES
        families.append("a code (`unschedulable`, `unresolvable` or `pending`)")
    if left >= DECLARATIONS:
        left -= DECLARATIONS | HEADER
        families.append("a declaration")
    if any(left >= starters for starters in STATEMENTS.values()):
        left -= STARTERS
        families.append("a statement")
    specific = sorted(left, key=lambda terminal: (terminal == END, terminal not in KINDS, word_of(terminal)))
    return _enumerate([*(describe(terminal, end) for terminal in specific), *families])


def _enumerate(items: list[str]) -> str:
    if not items:
        return "nothing"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
