"""Finds the rule tests in paths. The command and pytest use it."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import FoundFile, distinct, files_below, named_file
from kdsl.testing.codes import TestCode

SUFFIXES: Final = (".test.yaml", "_test.yaml", ".test.yml", "_test.yml")


def is_test_file(path: Path) -> bool:
    """Return whether a file is a rule test by its name."""
    return _is_test_name(path.name)


def find_test_files(paths: Iterable[Path], found: list[Diagnostic]) -> list[FoundFile]:
    """Return test files, each once: a named file counts whatever its name, of a folder all tests below it.

    Hidden files and folders do not count, and `kdsl.base.file_policy` defines which links do. A path that
    does not exist, a refused link, and paths without a test are added to `found`.
    """
    paths = list(paths)
    files: list[FoundFile] = []
    for path in paths:
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except (FileNotFoundError, ValueError):
            title = f"there is no file or folder `{path}`"
            found.append(Diagnostic(TestCode.UNREADABLE, title, where=str(path)))
            continue
        except OSError as error:
            found.append(_unreadable(error))
            continue
        if is_folder:
            problems: list[OSError] = []
            files += files_below(path, _is_test_name, problems)
            found += [_unreadable(error) for error in problems]
        else:
            files.append(named_file(path))
    if not files and not found:
        where = ", ".join(map(str, paths))
        help_ = (f"the name of a test ends in {' or '.join(f'`{suffix}`' for suffix in SUFFIXES[:2])}",)
        found.append(Diagnostic(TestCode.NO_TESTS, "there are no rule tests here", where=where, help=help_))
    return distinct(files)


def _is_test_name(name: str) -> bool:
    return name.endswith(SUFFIXES)


def _unreadable(error: OSError) -> Diagnostic:
    path = str(error.filename)
    title = f"cannot read `{path}`: {reason_of(error)}"
    return Diagnostic(TestCode.UNREADABLE, title, where=path)
