"""Finds the plugins and rule packages that installed distributions offer.

Finding imports nothing: a plugin's code is loaded only when a configuration names it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from kdsl.base.containment import ForeignError, contain

GROUP = "kdsl"
RULES_GROUP = "kdsl.rules"


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry point of the group `kdsl`: `target` is `module:attribute`."""

    name: str
    target: str
    distribution: str
    version: str
    entry_point: metadata.EntryPoint

    @property
    def is_well_formed(self) -> bool:
        """Return whether the target is the name of a module, with or without an attribute."""
        return self.entry_point.pattern.match(self.target) is not None

    @property
    def module(self) -> str:
        """Return the module of the target, empty where the target is invalid."""
        return self.entry_point.module if self.is_well_formed else ""

    @property
    def attribute(self) -> str:
        """Return the attribute of the module that builds the plugin, empty where the module alone is the
        plugin.
        """
        return self.entry_point.attr or "" if self.is_well_formed else ""


def installed_plugins() -> tuple[InstalledPlugin, ...]:
    """Return the plugins of all installed distributions, by name, then distribution."""
    found = [
        InstalledPlugin(entry_point.name, entry_point.value, distribution, version, entry_point)
        for entry_point, distribution, version in _offered(GROUP)
    ]
    # An editable installation may list its entry points twice.
    unique = {(plugin.name, plugin.target, plugin.distribution): plugin for plugin in found}
    return tuple(unique[key] for key in sorted(unique))


def package_folder(module: str) -> Path | None:
    """Return the folder of the package that contains `module`, or is `module`, without running it; None if
    there is no package.
    """
    top, *rest = steps = module.split(".")
    if not all(step.isidentifier() for step in steps):
        return None
    try:
        # Import finders may be third-party code.
        spec = contain(find_spec, top)
    except ForeignError:
        return None
    found = None if spec is None else next(iter(spec.submodule_search_locations or ()), None)
    if found is None:
        return None
    folder = Path(found)
    for at, step in enumerate(rest, start=1):
        inner = folder / step
        if inner.is_dir():
            folder = inner
        elif at < len(rest) or not inner.with_suffix(".py").is_file():
            return None
    return folder


@dataclass(frozen=True, slots=True)
class InstalledRules:
    """An entry point of the group `kdsl.rules`: the package `target` holds rule files, in `folder`.

    `folder` is None where it does not exist.
    """

    name: str
    target: str
    distribution: str
    version: str
    folder: Path | None


def installed_rules() -> tuple[InstalledRules, ...]:
    """Return the rule packages of all installed distributions, by distribution, without importing them."""
    found = {
        InstalledRules(
            entry_point.name, entry_point.value, distribution, version, package_folder(entry_point.value)
        )
        for entry_point, distribution, version in _offered(RULES_GROUP)
    }
    return tuple(sorted(found, key=lambda each: (each.distribution, each.name, each.target)))


def _offered(group: str) -> Iterator[tuple[metadata.EntryPoint, str, str]]:
    """Yield the entry points of a group, each with name and version of its distribution."""
    known: dict[int, tuple[str, str]] = {}
    for entry_point in _entry_points(group, tuple(map(_folder_version, sys.path))):
        # Each access to `metadata` parses the file of the distribution.
        of = known.get(id(entry_point.dist))
        if of is None:
            of = known[id(entry_point.dist)] = _name_and_version(entry_point.dist)
        yield entry_point, *of


def _folder_version(folder: str) -> tuple[str, int]:
    """Return a folder with a number that changes if a distribution is installed there, or removed."""
    try:
        return folder, Path(folder).stat().st_mtime_ns
    except OSError:
        return folder, 0


# Reading those of all distributions takes longer than compiling a rule. A scheduler asks four times at start.
@lru_cache(2)
def _entry_points(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=group))


def _name_and_version(distribution: metadata.Distribution | None) -> tuple[str, str]:
    """Return the lines of a distribution's metadata; a missing line is empty."""
    if distribution is None:
        return "", ""
    lines = distribution.metadata
    name, version = (lines.get_all(key) or [""] for key in ("Name", "Version"))
    return name[0], version[0]
