"""Paths to bytes: files, folders, standard input, compressed or not.

Readers of inputs use it and never open files themselves; `kdsl.base.file_policy` decides which files may be
opened.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import Refusal, RefusedError, files_below, is_folder, read_named, read_written
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems

MAX_BYTES: Final = 2**30
"""The maximum size of one input, unpacked."""

STDIN: Final = "-"
SUFFIXES: Final = tuple(
    suffix + packed for suffix in (".yaml", ".yml", ".json", ".jsonl") for packed in ("", ".gz")
)

_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class InputFile:
    """The unpacked content of an input, and the name for messages."""

    name: str
    data: bytes


def read_files(
    paths: Sequence[str | Path], stdin: BinaryIO | None, found: list[Diagnostic]
) -> Iterator[InputFile]:
    """Yield the files that `paths` name, folders recursively and in sorted order.

    Errors of reading are added to `found`. `-` is standard input. In folders only files ending in `SUFFIXES`
    count, and hidden files and folders do not.
    """
    for path in paths:
        if str(path) == STDIN:
            if stdin is not None:
                yield from _unpacked("<stdin>", stdin.read(MAX_BYTES + 1), found)
            else:
                Problems(found, STDIN).add(InputCode.UNREADABLE, (), "there is no standard input here")
            continue
        if not is_folder(path):
            yield from _read_path(Path(path), partial(read_named, Path(path)), found)
            continue
        refused: list[OSError] = []
        inside = files_below(Path(path), lambda name: name.endswith(SUFFIXES), refused)
        for error in refused:
            _report(str(error.filename), error, found)
        for file in inside:
            yield from _read_path(file.path, file.read, found)
        if not inside and not refused:
            title = "this folder holds no YAML or JSON files"
            Problems(found, str(path)).add(InputCode.UNREADABLE, (), title)


def read_file(path: str | Path, found: list[Diagnostic]) -> InputFile | None:
    """Read one file that the user names; return None where it cannot be read, with the error in `found`."""
    return next(_read_path(Path(path), partial(read_named, Path(path)), found), None)


def read_written_file(folder: Path, name: str, found: list[Diagnostic]) -> InputFile | None:
    """Read one file in `folder` whose name another file gives."""
    return next(_read_path(folder / name, partial(read_written, folder, name), found), None)


def _read_path(path: Path, read: Callable[[int], bytes], found: list[Diagnostic]) -> Iterator[InputFile]:
    try:
        data = read(MAX_BYTES)
    except (OSError, ValueError) as error:
        _report(str(path), error, found)
    else:
        yield from _unpacked(str(path), data, found)


def _report(where: str, error: OSError | ValueError, found: list[Diagnostic]) -> None:
    if isinstance(error, RefusedError) and error.refusal is Refusal.TOO_LARGE:
        _too_large(Problems(found, where))
        return
    kind = "folder" if isinstance(error, RefusedError) and error.refusal is Refusal.TOO_MANY else "file"
    title = f"cannot read this {kind}: {reason_of(error)}"
    Problems(found, where).add(InputCode.UNREADABLE, (), title)


def _too_large(problems: Problems) -> None:
    problems.add(InputCode.TOO_LARGE, (), f"this input is larger than {MAX_BYTES} bytes")


def _unpacked(name: str, data: bytes, found: list[Diagnostic]) -> Iterator[InputFile]:
    problems = Problems(found, name)
    if data.startswith(_GZIP_MAGIC):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            problems.add(InputCode.UNREADABLE, (), f"cannot unpack this file: {str(error).lower()}")
            return
    if len(data) > MAX_BYTES:
        _too_large(problems)
        return
    yield InputFile(name, data)
