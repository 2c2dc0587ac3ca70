"""The output file of a record."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kdsl.base.errors import KdslError, reason_of
from kdsl.base.whole_file import whole_file


@contextmanager
def open_whole_record(path: Path) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes a line as `open_record` does; the file is there wholly or not at all.

    It is written beside its place and renamed at the end; after an error a former file stays as it was.
    Raises KdslError if the file cannot be written.
    """
    try:
        with whole_file(path) as beside, open_record(beside, shown=path) as write:
            assert write is not None
            yield write
    except OSError as error:
        raise _refused(path, error) from error


@contextmanager
def open_record(path: Path | None, shown: Path | None = None) -> Iterator[Callable[[str], object] | None]:
    """Yield a function that writes a line to the file, gzipped if its name ends in .gz; None for no file.

    Equal lines make equal files. Raises KdslError, which names `shown` or else the file, if the file cannot
    be written.
    """
    if path is None:
        yield None
        return
    try:
        with path.open("wb") as plain:
            if path.suffix != ".gz":
                yield lambda line: plain.write(f"{line}\n".encode())
                return
            with gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0) as packed:
                yield lambda line: packed.write(f"{line}\n".encode())
    except OSError as error:
        raise _refused(shown or path, error) from error


def _refused(path: Path, error: OSError) -> KdslError:
    return KdslError(f"cannot write `{path}`: {reason_of(error)}")
