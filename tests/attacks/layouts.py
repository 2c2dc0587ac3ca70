"""Folders of rules that attacks start from, and commands that must come to an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.cli.command_line import Ended, kdsl

T = TypeVar("T")

TEAMS = """kdsl 1
package teams
team ml { owns pod.namespace == "ml" files "ml/**.kdsl" may add predicates }
"""
PLATFORM = """kdsl 1
package platform
queue Arrival { order by pod.queuedAt }
predicate Fits { require node.podCount < 3 else "full" }
score Empty { value 100 - node.podCount }
profile default { scheduler "default-scheduler" queue Arrival predicates { Fits } scores { Empty weight 1 } }
"""
TEAM = """kdsl 1
package ml
import platform
profile ml extends platform.default { DO }
"""
GOOD = "kdsl 1\npackage a\n"
UNTIDY = "kdsl 1\npackage   a\n"

LONGEST_WAIT = 60.0
"""Seconds after which a command counts as one that hangs. No command that is well takes a tenth of it."""


def company(folder: Path, does: str = "") -> Path:
    """Write the rules of a platform and of its team `ml`, whose profile does something."""
    write(folder / "teams.kdsl", TEAMS)
    write(folder / "platform" / "p.kdsl", PLATFORM)
    write(folder / "ml" / "m.kdsl", TEAM.replace("DO", does))
    return folder


def mounted(folder: Path, **files: str) -> Path:
    """Write files as Kubernetes mounts those of a ConfigMap: links into a hidden folder beside them."""
    for name, text in files.items():
        write(folder / "..2026_11_23_07_00_00.1" / f"{name}.kdsl", text)
    if not (folder / "..data").is_symlink():
        (folder / "..data").symlink_to("..2026_11_23_07_00_00.1")
    for name in files:
        (folder / f"{name}.kdsl").symlink_to(f"..data/{name}.kdsl")
    return folder


def write(path: Path, text: str) -> Path:
    """Write a file and the folders on the way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def ended(*args: str | Path, stdin: str | None = None) -> Ended:
    """Run a command, which has to end: one that waits for what never comes fails the test."""
    return soon(lambda: kdsl(*map(str, args), stdin=stdin), f"`kdsl {' '.join(map(str, args))}`")


def soon(run: Callable[[], T], what: str = "it") -> T:
    """Return what comes of something that has to end."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(run()), daemon=True)
    thread.start()
    thread.join(LONGEST_WAIT)
    assert results, f"{what} hangs"
    return results[0]
