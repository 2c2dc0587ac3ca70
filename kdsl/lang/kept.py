"""Trees of rule files, kept on disk between runs. They are unpickled: only the user's own files are read."""

from __future__ import annotations

import pickle
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from kdsl.base.kept import digest_of, prune, read_kept, write_kept
from kdsl.base.span import Source
from kdsl.lang.tree import File

MAX_TREES: Final = 512
"""The most trees that are kept; a new one takes the place of those that were written longest ago."""

_TREES = "tree-"


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
    prune(folder, _TREES, MAX_TREES)


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
