"""Paths to bytes: files, folders, standard input, compressed or not.

Readers of inputs use this and never open files themselves.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.problems import InputCode, Problems

MAX_BYTES: Final = 2**30
"""The most that one input may hold, unpacked."""

STDIN: Final = "-"
SUFFIXES: Final = tuple(
    suffix + packed for suffix in (".yaml", ".yml", ".json", ".jsonl") for packed in ("", ".gz")
)

_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class InputFile:
    """The unpacked content of an input and the name it is shown under."""

    name: str
    data: bytes


def read_files(
    paths: Sequence[str | Path], stdin: BinaryIO | None, found: list[Diagnostic]
) -> Iterator[InputFile]:
    """Yield the files that `paths` name, folders in sorted order with all below them.

    What cannot be read is added to `found`. `-` is standard input. In folders only files ending in `SUFFIXES`
    count, and hidden files and folders do not.
    """
    for path in paths:
        if str(path) == STDIN:
            if stdin is not None:
                yield from _read("<stdin>", stdin, found)
            else:
                Problems(found, STDIN).add(InputCode.UNREADABLE, (), "there is no standard input here")
            continue
        if not Path(path).is_dir():
            yield from _read_path(Path(path), found)
            continue
        inside = list(_files_below(Path(path)))
        for file in inside:
            yield from _read_path(file, found)
        if not inside:
            title = "this folder holds no YAML or JSON files"
            Problems(found, str(path)).add(InputCode.UNREADABLE, (), title)


def read_file(path: str | Path, found: list[Diagnostic]) -> InputFile | None:
    """Read one file; None where it cannot be read, which `found` then says."""
    return next(_read_path(Path(path), found), None)


def _files_below(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield Path(where, name)


def _read_path(path: Path, found: list[Diagnostic]) -> Iterator[InputFile]:
    try:
        with path.open("rb") as file:
            yield from _read(str(path), file, found)
    except (OSError, ValueError) as error:
        # ValueError: a path that holds a null byte.
        reason = getattr(error, "strerror", None) or str(error)
        title = f"cannot read this file: {reason[:1].lower()}{reason[1:]}"
        Problems(found, str(path)).add(InputCode.UNREADABLE, (), title)


def _read(name: str, file: BinaryIO, found: list[Diagnostic]) -> Iterator[InputFile]:
    problems = Problems(found, name)
    data = file.read(MAX_BYTES + 1)
    if data.startswith(_GZIP_MAGIC):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            problems.add(InputCode.UNREADABLE, (), f"cannot unpack this file: {str(error).lower()}")
            return
    if len(data) > MAX_BYTES:
        problems.add(InputCode.TOO_LARGE, (), f"this input is larger than {MAX_BYTES} bytes")
        return
    yield InputFile(name, data)
