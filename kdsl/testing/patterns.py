"""The files that a pattern of a test file matches: `from: ["pods/*.yaml"]`.

Links are followed by the policy of `kdsl.base.file_policy`, and each folder is searched once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Final

from kdsl.base.file_policy import FoundFile, RefusedError, distinct, follow
from kdsl.base.real_path import real_path

_WILD: Final = re.compile(r"[*?\[]")
_ANY_DEPTH: Final = "**"


def files_matching(folder: Path, pattern: str, problems: list[OSError]) -> list[FoundFile]:
    """Return the files that a pattern relative to a folder matches, sorted and each once.

    `*`, `?` and `[…]` stay within a name that does not start with a dot, `**` goes through folders. Links
    that leave their folder are added to `problems`. Raises ValueError for an invalid pattern.
    """
    steps = PurePath(pattern).parts
    if not steps or PurePath(pattern).is_absolute():
        raise ValueError("write a path that begins in the folder of the test")
    entries = [FoundFile(folder, real_path(folder), ())]
    for number, step in enumerate(steps, start=1):
        is_last = number == len(steps)
        reached = (each for entry in entries for each in _reached(entry, step, is_last, problems))
        entries = distinct(sorted(reached, key=lambda each: each.path.parts))
    return entries


def _reached(standing: FoundFile, step: str, is_last: bool, problems: list[OSError]) -> Iterator[FoundFile]:
    """Yield the matches of a step of a pattern in a folder: files where it is the last step, else folders."""
    if step == _ANY_DEPTH:
        yield from () if is_last else _folders_below(standing, problems)
        return
    for name in _names(standing, step, problems) if _WILD.search(step) else (step,):
        path = standing.path / name
        try:
            real = follow(standing.real, name)
        except RefusedError as error:
            target = error.target
            if target is not None and (target.is_dir() is not is_last):
                problems.append(RefusedError(error.refusal, path, target=target))
            continue
        except OSError:
            # A broken link matches nothing.
            continue
        if real.exists() and real.is_dir() is not is_last:
            yield FoundFile(path, real, ())


def _names(standing: FoundFile, step: str, problems: list[OSError]) -> list[str]:
    try:
        names = os.listdir(standing.real)  # noqa: PTH208
    except OSError as error:
        problems.append(OSError(error.errno, error.strerror, str(standing.path)))
        return []
    is_hidden = step.startswith(".")
    return [name for name in names if fnmatchcase(name, step) and name.startswith(".") is is_hidden]


def _folders_below(standing: FoundFile, problems: list[OSError]) -> Iterator[FoundFile]:
    """Yield a folder and all below it; links are not followed, since their targets are found without them."""
    waiting = [standing]
    while waiting:
        folder = waiting.pop()
        yield folder
        for name in _names(folder, "*", problems):
            real = folder.real / name
            if real.is_dir() and not real.is_symlink():
                waiting.append(FoundFile(folder.path / name, real, ()))
