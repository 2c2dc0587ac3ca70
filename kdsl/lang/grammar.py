"""The LALR parser of `grammar.lark`, built once and kept on disk between runs. `parser.py` uses it.

Building the tables takes about 0.4 s, reading them back about 0.02 s, which is what a command line feels.
The kept copy is named by a digest of everything it depends on, is written to a temporary file and renamed
into place, and carries a checksum: a missing, torn, foreign or unwritable copy only costs the time to build
the tables again.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import lark
from lark import Lark

START_SYMBOLS = ("file", "expression")
_CHECKSUM_SIZE = hashlib.sha256().digest_size


def grammar_text() -> str:
    """Return the text of `grammar.lark`."""
    return files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")


def build_grammar(text: str, *, strict: bool = False) -> Lark:
    """Build the parser from grammar text; `strict` raises on any conflict or terminal collision."""
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


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for kept tables, `$XDG_CACHE_HOME/kdsl` or `~/.cache/kdsl`, if there is a home."""
    base = environ.get("XDG_CACHE_HOME") or (f"{environ['HOME']}/.cache" if environ.get("HOME") else "")
    return Path(base, "kdsl") if base and Path(base).is_absolute() else None


def load_grammar(folder: Path | None) -> Lark:
    """Read the parser from `folder`, or build it and keep a copy there. Never fails because of the folder."""
    text = grammar_text()
    if folder is None:
        return build_grammar(text)
    key = "\n".join((lark.__version__, sys.version, *START_SYMBOLS, text))
    path = folder / f"grammar-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    kept = _read(path)
    if kept is not None:
        return Lark.load(io.BytesIO(kept))
    built = build_grammar(text)
    buffer = io.BytesIO()
    built.save(buffer)
    _write(path, buffer.getvalue())
    return built


def _read(path: Path) -> bytes | None:
    """Return the kept tables if the file is whole and our own: it is unpickled."""
    try:
        with path.open("rb") as stream:
            if os.name == "posix" and os.fstat(stream.fileno()).st_uid != os.getuid():
                return None
            content = stream.read()
    except OSError:
        return None
    checksum, payload = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def _write(path: Path, payload: bytes) -> None:
    """Keep the tables. The rename is atomic: no reader sees a half file. Errors cost only time."""
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(hashlib.sha256(payload).digest() + payload)
        Path(temporary).replace(path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
