"""Which files are rule tests: what the command, and anybody who gives it paths, means by them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.testing.codes import TestCode

SUFFIXES: Final = (".test.yaml", "_test.yaml", ".test.yml", "_test.yml")


def is_test_file(path: Path) -> bool:
    """Tell whether a file is a rule test by its name."""
    return path.name.endswith(SUFFIXES)


def find_test_files(paths: Iterable[Path], found: list[Diagnostic]) -> list[Path]:
    """List test files, each once: a file counts whatever its name, of a folder all tests below it.

    Hidden files and folders do not count. A path that is not there, or paths without a test, are added to
    `found`.
    """
    paths = list(paths)
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
                if is_test_file(file) and not hidden and file.is_file():
                    files.setdefault(file.resolve(), file)
        elif path.is_file():
            files.setdefault(path.resolve(), path)
        else:
            title = f"there is no file or folder `{path}`"
            found.append(Diagnostic(TestCode.UNREADABLE, title, where=str(path)))
    if not files and not found:
        where = ", ".join(map(str, paths))
        help_ = (f"the name of a test ends in {' or '.join(f'`{suffix}`' for suffix in SUFFIXES[:2])}",)
        found.append(Diagnostic(TestCode.NO_TESTS, "there are no rule tests here", where=where, help=help_))
    return list(files.values())
