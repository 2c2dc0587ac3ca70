"""What is kept on disk between runs: tables of the parser, and the trees of rule files.

A kept copy is named by a digest of everything it depends on, is written to a temporary file and renamed into
place, and carries a checksum: a missing, torn, foreign or unwritable copy only costs the time to make it
again. Copies are unpickled, so only files of the user's own are read.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from kdsl.base.span import Source
from kdsl.lang.tree import File

MAX_TREES: Final = 512
"""The most trees that are kept; a new one takes the place of those that were written longest ago."""

_CHECKSUM_SIZE = hashlib.sha256().digest_size
_TREES = "tree-"


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for kept copies, `$XDG_CACHE_HOME/kdsl` or `~/.cache/kdsl`, if there is a home."""
    base = environ.get("XDG_CACHE_HOME") or (f"{environ['HOME']}/.cache" if environ.get("HOME") else "")
    return Path(base, "kdsl") if base and Path(base).is_absolute() else None


def digest_of(*parts: str) -> str:
    """Return a name for what depends on these texts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def read_kept(path: Path) -> bytes | None:
    """Return a kept copy if the file is whole and our own."""
    try:
        with path.open("rb") as stream:
            if os.name == "posix" and os.fstat(stream.fileno()).st_uid != os.getuid():
                return None
            content = stream.read()
    except OSError:
        return None
    checksum, payload = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def write_kept(path: Path, payload: bytes) -> None:
    """Keep a copy. The rename is atomic: no reader sees a half file. Errors cost only time."""
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


def read_tree(folder: Path | None, source: Source) -> File | None:
    """Return the tree of a rule file that was kept in `folder`, None where there is none."""
    kept = None if folder is None else read_kept(_tree_path(folder, source))
    if kept is None:
        return None
    file = pickle.loads(kept)
    return file if isinstance(file, File) else None


def write_tree(folder: Path | None, source: Source, file: File) -> None:
    """Keep the tree of a rule file in which nothing is wrong."""
    if folder is None:
        return
    write_kept(_tree_path(folder, source), pickle.dumps(file, protocol=pickle.HIGHEST_PROTOCOL))
    _prune(folder)


def _tree_path(folder: Path, source: Source) -> Path:
    return folder / f"{_TREES}{digest_of(_code(), source.path, source.text)}"


@cache
def _code() -> str:
    """Return what identifies the code that makes trees: a tree of other code is no tree of this one."""
    package = files(__package__)
    texts = sorted(
        (each.name, each.read_text(encoding="utf-8"))
        for each in package.iterdir()
        if each.name.endswith((".py", ".lark"))
    )
    return digest_of(sys.version, *(text for _, text in texts))


def _prune(folder: Path) -> None:
    try:
        trees = sorted(folder.glob(f"{_TREES}*"), key=lambda path: path.stat().st_mtime_ns)
        for path in trees[:-MAX_TREES]:
            path.unlink(missing_ok=True)
    except OSError:
        return
