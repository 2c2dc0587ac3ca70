"""Reads rule files: those of given paths, and the libraries that they may import from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.installed import installed_rules
from kdsl.base.span import Source
from kdsl.lang.discovery import NO_DRAFTS, Drafts, read_library, read_sources

Plugins = Mapping[str, Mapping[str, Any]]
"""Plugins with their arguments."""

PLACED_PLUGINS: Plugins = {"VolumeBinding": {}, "DynamicResources": {}}
"""Plugins that shipped profiles place: always active in those profiles."""

DEFAULT_PLUGINS: Plugins = {"default-binder": {}, **PLACED_PLUGINS}
"""The plugins that are active unless the settings say otherwise."""


def shipped_rules() -> Path:
    """Return the folder of the shipped rules: inside an installed package, or beside it in a checkout.

    Below the current folder it is a relative path, as verdicts show it.
    """
    package = Path(__file__).parent.parent
    installed = package / "shipped_rules"
    folder = installed if installed.is_dir() else package.parent / "rules"
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def libraries() -> tuple[Path, ...]:
    """Return the folders whose packages rules may import: the shipped rules and installed rule packages."""
    installed = (each.folder for each in installed_rules() if each.folder is not None)
    return tuple(dict.fromkeys((shipped_rules(), *installed)))


@dataclass(frozen=True, slots=True)
class RuleTexts:
    """The contents of rule files, and the errors of unreadable ones.

    `libraries` reads the files of each library on first use; see `read_library`.
    """

    own: Sequence[Source]
    problems: tuple[Diagnostic, ...]
    libraries: Callable[[], Sequence[Sequence[Source | Diagnostic]]]


def read_texts(paths: Sequence[Path | str], drafts: Drafts = NO_DRAFTS) -> RuleTexts:
    """Read the rule files of the paths."""
    own, problems = read_sources(paths, drafts)
    return RuleTexts(
        own, tuple(problems), cache(lambda: [read_library(path, drafts) for path in libraries()])
    )
