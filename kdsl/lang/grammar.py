"""The LALR parser of `grammar.lark`, built once and kept on disk between runs. `parser.py` uses it.

Building the tables takes about 0.4 s, reading them about 0.02 s, which matters to a command line.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from kdsl.base.disk_cache import DiskCache, digest_of, disk_cache
from kdsl.base.record_codec import MISREAD, RecordCodec

START_SYMBOLS = ("file", "expression")
# Lark reads the grammar's literals with `ast`, whose depth count CPython 3.11 shares between threads
# (gh-106905): two concurrent builds may raise SystemError.
_BUILDING = Lock()
# The tables are plain values: dicts, lists and scalars.
_TABLES = RecordCodec(())


def grammar_text() -> str:
    """Return the text of `grammar.lark`."""
    return files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")


def build_grammar(text: str, *, strict: bool = False) -> Lark:
    """Build the parser from grammar text; `strict` raises on any conflict or terminal collision."""
    with _BUILDING:
        return Lark(
            text,
            parser="lalr",
            lexer="contextual",
            start=list(START_SYMBOLS),
            propagate_positions=True,
            maybe_placeholders=True,
            strict=strict,
        )


@cache
def grammar() -> Lark:
    """Return the parser, from the user's cache if it is there."""
    return load_grammar(disk_cache(os.environ))


def load_grammar(disk: DiskCache | None) -> Lark:
    """Read the parser from the cache, or build and store it. Errors of the cache are ignored."""
    text = grammar_text()
    if disk is None:
        return build_grammar(text)
    name = f"grammar-{digest_of(lark.__version__, sys.version, *START_SYMBOLS, text)}"
    kept = disk.read(name)
    loaded = None if kept is None else _read_tables(kept)
    if loaded is not None:
        return loaded
    built = build_grammar(text)
    data, memo = built.memo_serialize([TerminalDef, Rule])
    disk.write(name, _TABLES.encode({"data": data, "memo": memo}))
    return built


def _read_tables(content: bytes) -> Lark | None:
    """Return the parser with these tables, None where they are invalid."""
    try:
        tables: Any = _TABLES.decode(content)
        # Lark's own `load` takes its tables as a dict, too; from a file it would unpickle them.
        return Lark.__new__(Lark)._load(tables)
    except (lark.exceptions.LarkError, *MISREAD):
        return None
