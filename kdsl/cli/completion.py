"""Shell completion of option values: names of profiles and codes.

Completion runs while the user types: it reads rule files as text, checks nothing, imports no plugin, and
completes nothing after an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

_Complete = Callable[[click.Context, click.Parameter, str], list[str]]

_DECLARED = re.compile(
    r"^(?:(package|profile)[ \t]+([A-Za-z_][\w.]*)|kind: (Package|Profile)\nmetadata:\n  name: (\S+))",
    re.MULTILINE,
)
"""A package or profile in a rule file, or in its YAML form."""


def _completing(find: Callable[[Mapping[str, Any]], Iterable[str]]) -> _Complete:
    """Return a completer for the words that `find` returns for the options given so far."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            return sorted({word for word in find(context.params) if word.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - a message would garble the command line being typed
            return []

    return complete


def _profiles(params: Mapping[str, Any]) -> Iterator[str]:
    """List the profiles of the command's rules, by both of their names."""
    from kdsl.lang.discovery import read_sources

    for source in read_sources(_rules(params))[0]:
        package = ""
        for found in _DECLARED.finditer(source.text):
            kind, name = (found[1], found[2]) if found[1] else (found[3].lower(), found[4])
            if kind == "package":
                package = name
            else:
                yield from (name, f"{package}.{name}")


def _rules(params: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the rules that a command reads: named ones, else those of `--config`, else the shipped ones."""
    from kdsl.config.configuration import load_configuration
    from kdsl.rulebook.texts import shipped_rules

    named = tuple(map(Path, params.get("rules") or params.get("paths") or ()))
    if named:
        return named
    config = params.get("config")
    loaded = None if config is None else load_configuration(Path(config)).configuration
    if loaded is not None and loaded.rules:
        return tuple(loaded.rules)
    # Only `check` defaults to the folder `rules`.
    return (Path("rules"),) if "paths" in params and config is None else (shipped_rules(),)


def _codes(_: Mapping[str, Any]) -> Iterable[str]:
    from kdsl.report.code_pages import code_pages

    return code_pages()


def _lints(_: Mapping[str, Any]) -> Iterable[str]:
    from kdsl.check.lints import pages

    return pages()


complete_profiles = _completing(_profiles)
complete_codes = _completing(_codes)
complete_lints = _completing(_lints)
