"""The output file of a trace."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kdsl.base.errors import KdslError


@contextmanager
def open_trace(path: Path | None) -> Iterator[Callable[[str], object] | None]:
    """Yield a function that writes a line to the file, gzipped if its name ends in .gz; None for no file.

    Equal lines make equal files. Raises KdslError if the file cannot be written.
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
        raise KdslError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
