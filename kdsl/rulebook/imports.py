"""Suggests the import for an unknown name, from the loaded packages and the libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kdsl.base.diagnostic import Diagnostic, Edit, Fix
from kdsl.base.span import Source, Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.names.declarations import Declarations
from kdsl.check.profiles.teams import Teams
from kdsl.lang.loader import load_sources
from kdsl.lang.program import Package, Program
from kdsl.lang.tree import File

_UNKNOWN = frozenset({CheckCode.UNKNOWN_RULE, CheckCode.UNKNOWN_NAME, CheckCode.UNKNOWN_FUNCTION})
_MOST_SUGGESTED = 3
_DOTTED = re.compile(r"\w+(?:\.\w+)+")


def with_imports(
    diagnostics: Sequence[Diagnostic],
    program: Program,
    libraries: Callable[[], Iterable[Iterable[Source | Diagnostic]]],
) -> tuple[Diagnostic, ...]:
    """Add the missing import to diagnostics of unknown names such as `kubernetes.default`.

    The package of a team is suggested to this team only: files of the platform may not import it.
    `libraries` is only called if there is such a diagnostic.
    """
    files = {file.span.source: file for file in program.files}
    packages: Mapping[str, Package] | None = None
    teams: Mapping[str, str] = {}
    found: list[Diagnostic] = []
    for diagnostic in diagnostics:
        name = _dotted_name(diagnostic)
        file = None if diagnostic.span is None else files.get(diagnostic.span.source)
        if name is None or file is None or diagnostic.span is None or diagnostic.fixes:
            found.append(diagnostic)
            continue
        if packages is None:
            packages = _packages(program, libraries())
            teams = Teams(program, Declarations(program), []).packages
        team = teams.get(file.package.text) if file.package is not None else None
        allowed = {each: package for each, package in packages.items() if teams.get(each, team) == team}
        fixes = _fixes(name, diagnostic.span.start, file, allowed)
        found.append(replace(diagnostic, fixes=fixes, help=()) if fixes else diagnostic)
    return tuple(found)


def _packages(program: Program, libraries: Iterable[Iterable[Source | Diagnostic]]) -> Mapping[str, Package]:
    shelves = ([each for each in shelf if isinstance(each, Source)] for shelf in libraries)
    loaded = (load_sources(sources).program.packages for sources in shelves)
    return {name: package for each in (*loaded, program.packages) for name, package in each.items()}


def _dotted_name(diagnostic: Diagnostic) -> str | None:
    """Return the dotted name at the place of the diagnostic, if it is about an unknown name."""
    if diagnostic.code not in _UNKNOWN or diagnostic.span is None:
        return None
    match = _DOTTED.match(diagnostic.span.source.text, diagnostic.span.start)
    return None if match is None else match[0]


def _fixes(name: str, start: int, file: File, packages: Mapping[str, Package]) -> tuple[Fix, ...]:
    """Return the imports that make the name a declaration's; the newest package comes first."""
    if file.package is None:
        return ()
    imported = {each.package.text for each in file.imports} | {file.package.text}
    last = max((each.span for each in file.imports), default=file.package.span, key=lambda span: span.end)
    found: list[Fix] = []
    for package in sorted(packages.keys() - imported, reverse=True):
        declared = {declaration.name.text for declaration in packages[package].declarations}
        alias = package.rpartition(".")[2]
        for prefix, word in _splits(name):
            if word not in declared or prefix not in (package, *package.split(".")):
                continue
            line = f"import {package}" if prefix in (package, alias) else f"import {package} as {prefix}"
            edits = [Edit(Span(last.source, last.end, last.end), f"\n{line}")]
            title = f"add the line `{line}`"
            if prefix == package != alias:
                edits.append(Edit(Span(last.source, start, start + len(prefix)), alias))
                title += f" and write `{alias}.{word}`"
            found.append(Fix(title, tuple(edits)))
    return tuple(found[:_MOST_SUGGESTED])


def _splits(name: str) -> Iterable[tuple[str, str]]:
    """Return the ways to split a dotted name into package and declaration, or its member."""
    words = name.split(".")
    return [(".".join(words[:at]), words[at]) for at in range(1, len(words))]
