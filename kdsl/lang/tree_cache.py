"""Trees of rule files, kept on disk between runs. `loader.py` parses files that are not there."""

from __future__ import annotations

import sys
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from kdsl.base.disk_cache import DiskCache, digest_of
from kdsl.base.record_codec import RecordCodec
from kdsl.base.span import Source

if TYPE_CHECKING:
    from kdsl.lang.tree import File

MAX_TREES: Final = 512
"""The largest number of trees; a new one replaces the oldest."""

TREE_RECORDS: Final = (
    "kdsl.base.span",
    "kdsl.lang.choices",
    "kdsl.lang.tree",
    "kdsl.lang.expression_tree",
    "kdsl.lang.profile_tree",
    "kdsl.lang.device_tree",
)
"""The modules whose classes a tree consists of."""

_CODEC: Final = RecordCodec(TREE_RECORDS)
_PREFIX = "tree-"


def read_tree(disk: DiskCache | None, source: Source) -> File | None:
    """Return the cached tree of a rule file, with this very source; None where there is none."""
    # Checked rules that are kept need no trees, whose classes take long to import.
    from kdsl.lang.tree import File

    content = None if disk is None else disk.read(_name(source))
    if content is None:
        return None
    try:
        file = _CODEC.decode(content, (source,))
    except ValueError:
        return None
    return file if isinstance(file, File) else None


def write_tree(disk: DiskCache | None, source: Source, file: File) -> None:
    """Store the tree of a rule file without errors."""
    if disk is None:
        return
    disk.write(_name(source), _CODEC.encode(file, (source,)))
    disk.prune(_PREFIX, MAX_TREES)


def tree_of(disk: DiskCache | None, source: Source) -> File | None:
    """Return the cached tree of a rule file, else a new one, with this very source; None for other texts."""
    file = read_tree(disk, source)
    if file is None:
        from kdsl.lang.twin import parse_rules

        file = parse_rules(source).file
    return file


def _name(source: Source) -> str:
    return f"{_PREFIX}{digest_of(_code(), source.path, source.text, repr(source.places))}"


@cache
def _code() -> str:
    """Return a digest of the code that makes trees: a tree of other code is not used."""
    package = files(__package__)
    texts = sorted(
        (each.name, each.read_text(encoding="utf-8"))
        for each in package.iterdir()
        if each.name.endswith((".py", ".lark"))
    )
    return digest_of(sys.version, *(text for _, text in texts))
