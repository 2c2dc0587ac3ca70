"""Files that are written wholly or not at all: a full disk leaves no half of one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kdsl.base.real_path import real_path


@contextmanager
def whole_file(path: Path, follows_link: bool = True) -> Iterator[Path]:
    """Yield a path beside the file to write to, which is renamed at the end; a device is written itself.

    After an error a former file stays as it was. A new one has its mode. If `path` is a link, its target is
    written, as by `open`; without `follows_link` the link is replaced. Raises OSError that names the file.
    """
    target = real_path(path) if follows_link else path
    if path.exists() and not path.is_file():
        target = beside = path
    else:
        # The end of a name may say whether the file is packed.
        beside = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        yield beside
        if beside != target:
            if target.is_file() and not target.is_symlink():
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
            beside.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if beside != target:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist. Raises FileExistsError if it does, or another OSError."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            path.unlink(missing_ok=True)
            raise
