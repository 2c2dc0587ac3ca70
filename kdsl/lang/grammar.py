"""The LALR parser of `grammar.lark`, built once and kept on disk between runs. `parser.py` uses it.

Building the tables takes about 0.4 s, reading them back about 0.02 s, which is what a command line feels.
"""

from __future__ import annotations

import io
import os
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock

import lark
from lark import Lark

from kdsl.base.kept import cache_folder, digest_of, read_kept, write_kept

START_SYMBOLS = ("file", "expression")
# Lark reads the grammar's literals with `ast`, whose depth count CPython 3.11 shares between threads
# (gh-106905): two that build at once may raise SystemError.
_BUILDING = Lock()


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
    """Return the parser, from the per-user cache where it holds a sound copy."""
    return load_grammar(cache_folder(os.environ))


def load_grammar(folder: Path | None) -> Lark:
    """Read the parser from `folder`, or build it and keep a copy there. Never fails because of the folder."""
    text = grammar_text()
    if folder is None:
        return build_grammar(text)
    path = folder / f"grammar-{digest_of(lark.__version__, sys.version, *START_SYMBOLS, text)}"
    kept = read_kept(path)
    if kept is not None:
        return Lark.load(io.BytesIO(kept))
    built = build_grammar(text)
    buffer = io.BytesIO()
    built.save(buffer)
    write_kept(path, buffer.getvalue())
    return built
