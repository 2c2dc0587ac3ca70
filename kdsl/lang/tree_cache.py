"""Trees of rule files, kept on disk between runs. Files that are not there are parsed."""

from __future__ import annotations

import sys
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from kdsl.base.disk_cache import DiskCache, digest_of
from kdsl.base.record_codec import RecordCodec
from kdsl.base.span import Source

if TYPE_CHECKING:
    from kdsl.lang.parser import ParseResult
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


def parse_and_keep(disk: DiskCache | None, source: Source) -> ParseResult:
    """Parse a rule file, and store its tree if it has no errors."""
    from kdsl.lang.twin import parse_rules

    parsed = parse_rules(source)
    if parsed.file is not None and not parsed.diagnostics:
        write_tree(disk, source, parsed.file)
    return parsed


def tree_of(disk: DiskCache | None, source: Source) -> File | None:
    """Return the cached tree of a rule file, else a new one, with this very source; None for other texts."""
    kept = read_tree(disk, source)
    return parse_and_keep(disk, source).file if kept is None else kept


def _name(source: Source) -> str:
    return f"{_PREFIX}{digest_of(_code(), source.path, source.text, repr(source.places))}"


@cache
def _code() -> str:
    """Return a digest of the code that makes, writes and reads trees: a tree of other code is not used."""
    texts = sorted(
        (each.name, each.read_text(encoding="utf-8"))
        for package in (__package__, RecordCodec.__module__.rpartition(".")[0])
        for each in files(package).iterdir()
        if each.name.endswith((".py", ".lark"))
    )
    return digest_of(sys.version, *(text for _, text in texts))
