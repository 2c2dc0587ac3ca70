"""Reads a folder of rules into a `Program`: files parsed, grouped by package, imports resolved.

The checker works on the program; `kdsl check` and every start of the scheduler begin here.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from kdsl.base.diagnostic import Diagnostic, Label, suggest
from kdsl.base.disk_cache import disk_cache
from kdsl.base.span import Source
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import read_library, read_sources
from kdsl.lang.parser import ParseResult
from kdsl.lang.program import LoadResult, alias_of, has_teams, imported_by, program_of
from kdsl.lang.tree import Declaration, File, Import
from kdsl.lang.tree_cache import parse_and_keep, read_tree
from kdsl.lang.twin import API_VERSION, is_twin
from kdsl.lang.twin_table import PACKAGE


def load_rules(paths: Sequence[Path | str], library: Sequence[Path | str] = ()) -> LoadResult:
    """Load the rule files of the paths (see `find_rule_files`), in both forms. A file that cannot be read
    becomes a diagnostic.

    Imported packages that are not among them are taken from the libraries; other packages of libraries are
    not loaded. Each path of `library` is one library. A package never combines files of two libraries.
    """
    sources, problems = read_sources(paths)
    loaded = load_sources(sources, lambda: [read_library(path) for path in library])
    return LoadResult(loaded.program, (*problems, *loaded.diagnostics))


def load_sources(
    sources: Iterable[Source], libraries: Callable[[], Iterable[Iterable[Source | Diagnostic]]] = lambda: ()
) -> LoadResult:
    """Load rules from texts that do not come from files.

    `libraries` is only called where an imported package is not among them, or where a team might take a name
    of a library's package.
    """
    diagnostics: list[Diagnostic] = []
    files: list[File] = []
    # An unreadable file may hold any package, so unknown packages are not reported then.
    is_whole = True
    for source in sources:
        result = _parse(source.path, source.text, source.places)
        diagnostics.extend(result.diagnostics)
        if result.file:
            files.append(result.file)
            if result.file.package is None and not result.diagnostics:
                diagnostics.append(_no_package(source))
        is_whole = is_whole and result.file is not None and result.file.package is not None
    borrowed, problems, shelved = _borrow(files, libraries)
    own = frozenset(_by_package(files))
    files += borrowed
    diagnostics += problems
    grouped = _by_package(files)
    for file in files:
        diagnostics.extend(_import_problems(file, grouped if is_whole else None, shelved))
    for members in grouped.values():
        diagnostics.extend(_duplicates(members))
    order, cycles = _dependency_order(grouped)
    diagnostics.extend(cycles)
    program = program_of(files, order, _digest(files), frozenset(order) - own, shelved)
    return LoadResult(program, tuple(diagnostics))


def library_clashes(libraries: Iterable[Path | str]) -> tuple[Diagnostic, ...]:
    """Report the packages that several libraries hold, imported or not."""
    shelves: dict[str, list[list[ParseResult]]] = defaultdict(list)
    for library in libraries:
        for name, results in _shelf(read_library(library), []).items():
            shelves[name].append(results)
    return tuple(_contested(name, found) for name, found in sorted(shelves.items()) if len(found) > 1)


def _by_package(files: Iterable[File]) -> dict[str, list[File]]:
    grouped: dict[str, list[File]] = defaultdict(list)
    for file in files:
        if file.package:
            grouped[file.package.text].append(file)
    return grouped


def _borrow(
    files: Sequence[File], libraries: Callable[[], Iterable[Iterable[Source | Diagnostic]]]
) -> tuple[list[File], list[Diagnostic], Collection[str]]:
    """Return the files of libraries whose packages are imported, directly or indirectly, their diagnostics,
    and the names of all packages in libraries, where any was needed.

    If a package is missing, files whose package is unknown are reported too. A package that several libraries
    hold is an error.
    """
    known = set(_by_package(files))
    missing = imported_by(files) - known
    if not missing and not has_teams(files):
        return [], [], ()
    shelves: dict[str, list[list[ParseResult]]] = defaultdict(list)
    unknown: list[Diagnostic] = []
    for library in libraries():
        for name, results in _shelf(library, unknown).items():
            shelves[name].append(results)
    borrowed: list[File] = []
    problems: list[Diagnostic] = []
    lost = False
    while missing:
        taken = [(name, shelves.get(name, [])) for name in sorted(missing)]
        problems += [_contested(name, found) for name, found in taken if len(found) > 1]
        lost = lost or not all(found for _, found in taken)
        results = [result for _, found in taken for result in (found[0] if found else ())]
        problems += [each for result in results for each in result.diagnostics]
        added = [result.file for result in results if result.file]
        borrowed += added
        known |= missing
        missing = imported_by(added) - known
    return borrowed, [*problems, *(unknown if lost else ())], shelves.keys()


def _shelf(library: Iterable[Source | Diagnostic], unknown: list[Diagnostic]) -> dict[str, list[ParseResult]]:
    """Return the files of one library by package; diagnostics of files without a known package go to
    `unknown`.
    """
    shelf: dict[str, list[ParseResult]] = defaultdict(list)
    for source in library:
        if isinstance(source, Diagnostic):
            unknown.append(source)
            continue
        result = _parse(source.path, source.text, source.places)
        if result.file is not None and result.file.package is not None:
            shelf[result.file.package.text].append(result)
        else:
            unknown += result.diagnostics
    return shelf


@lru_cache(maxsize=256)
def _parse(path: str, text: str, places: tuple[str, ...]) -> ParseResult:
    """Parse a rule file, or return its cached tree: from this process, or from an earlier run."""
    source, disk = Source(path, text, places), disk_cache(os.environ)
    kept = read_tree(disk, source)
    return parse_and_keep(disk, source) if kept is None else ParseResult(kept, ())


def _contested(name: str, libraries: Sequence[Sequence[ParseResult]]) -> Diagnostic:
    first, second, *_ = (results[0].file for results in libraries)
    # INVARIANT: a shelf holds files that state their package.
    assert first is not None and first.package is not None
    assert second is not None and second.package is not None
    return Diagnostic(
        LangCode.CONTESTED_PACKAGE,
        f"two libraries hold a package `{name}`",
        second.package.span,
        "a library cannot add to another's package",
        secondary=(Label(first.package.span, "the first one is here"),),
        help=("uninstall one of them, or copy the one that is meant beside your own rules",),
    )


def _no_package(source: Source) -> Diagnostic:
    if is_twin(source.path):
        title = f"`{source.path}` has no document `kind: {PACKAGE}`"
        help_line = (
            f"begin it with the document `{{apiVersion: {API_VERSION}, kind: {PACKAGE}, "
            "metadata: {name: some.name}}`"
        )
    else:
        title = f"`{source.path}` has no `package` line"
        help_line = "write `package some.name` in the line after `kdsl 1`"
    return Diagnostic(LangCode.NO_PACKAGE, title, where=source.path, help=(help_line,))


def _packages_below(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the help line for a folder of packages in the place of one of them."""
    below = sorted(each for each in known if each.startswith(f"{name}."))
    return (f"write one of its packages: {', '.join(f'`{each}`' for each in below)}",) if below else ()


def _packages_beside(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the help line with the packages of libraries that share all words but the last.

    Those of the user's own files may be another team's.
    """
    parent = name.rpartition(".")[0]
    beside = sorted(each for each in known if parent and each.rpartition(".")[0] == parent)
    return (f"packages of `{parent}`: {', '.join(f'`{each}`' for each in beside)}",) if beside else ()


def _import_problems(
    file: File, known: Mapping[str, object] | None, shelved: Collection[str]
) -> Iterator[Diagnostic]:
    """Report imports of packages that do not exist, and two imports under one name."""
    taken: dict[str, Import] = {}
    for statement in file.imports:
        package = statement.package
        if known is not None and package.text not in known:
            title = f"there is no package `{package.text}`"
            help_, fixes = suggest(package.span, package.text, {*known, *shelved})
            if not help_ and not fixes:
                others = {*known, *shelved}
                help_ = _packages_below(package.text, others) or (
                    *_packages_beside(package.text, shelved),
                    "only named folders and files and rules of `kdsl plugins list` are read: name it too",
                )
            yield Diagnostic(
                LangCode.UNKNOWN_PACKAGE,
                title,
                package.span,
                label="no loaded file has this package",
                help=help_,
                fixes=fixes,
            )
        alias = alias_of(statement)
        if alias in taken:
            yield Diagnostic(
                LangCode.DUPLICATE_ALIAS,
                f"two imports go by the name `{alias}`",
                (statement.alias or package).span,
                secondary=(Label(taken[alias].span, "the first one is here"),),
                help=(f"give one of them another name: `import {package.text} as …`",),
            )
        taken.setdefault(alias, statement)


def _remedy(one: str, other: str) -> str:
    """Return what cures two declarations of a name, in files of which `other` may be the YAML form."""
    if other == f"{one}.yaml":
        return f"`{other}` is the YAML form of `{one}`: remove one of the two files"
    return "rename or remove one of them"


def _duplicates(files: Sequence[File]) -> Iterator[Diagnostic]:
    """Report declarations of one kind and name in a package. A predicate and a score may share a name."""
    first: dict[tuple[str, str], Declaration] = {}
    for file in files:
        for declaration in file.declarations:
            kind = type(declaration).__name__.lower()
            earlier = first.setdefault((kind, declaration.name.text), declaration)
            if earlier is not declaration:
                span = declaration.name.span
                yield Diagnostic(
                    LangCode.DUPLICATE_DECLARATION,
                    f"{kind} `{declaration.name.text}` is declared twice",
                    span,
                    secondary=(Label(earlier.name.span, "first declared here"),),
                    help=(_remedy(*sorted((span.source.path, earlier.name.span.source.path), key=len)),),
                )


def _dependency_order(grouped: Mapping[str, Sequence[File]]) -> tuple[list[str], list[Diagnostic]]:
    """Sort packages so that each comes after those it imports; report every cycle and break it."""
    imports: dict[str, dict[str, Import]] = {
        name: {
            statement.package.text: statement
            for file in grouped[name]
            for statement in file.imports
            if statement.package.text in grouped
        }
        for name in sorted(grouped)
    }
    diagnostics: list[Diagnostic] = []
    while True:
        try:
            return list(TopologicalSorter(imports).static_order()), diagnostics
        except CycleError as error:
            # graphlib lists an imported package before its importer.
            cycle: list[str] = error.args[1][::-1]
            steps = [imports[importer][imported] for importer, imported in pairwise(cycle)]
            del imports[cycle[0]][cycle[1]]
            diagnostics.append(_cycle(cycle, steps))


def _cycle(cycle: list[str], steps: Sequence[Import]) -> Diagnostic:
    shown = " → ".join(f"`{name}`" for name in cycle)
    others = tuple(
        Label(step.span, f"`{here}` imports `{step.package.text}`")
        for here, step in zip(cycle[1:-1], steps[1:], strict=True)
    )
    return Diagnostic(
        LangCode.IMPORT_CYCLE,
        f"packages import each other: {shown}" if others else f"package `{cycle[0]}` imports itself",
        steps[0].span,
        secondary=others,
        help=("move shared declarations into a package of its own",) if others else ("remove the import",),
    )


def _digest(files: Iterable[File]) -> str:
    entries = sorted(
        (
            f"{file.package.text if file.package else ''}/{Path(file.span.source.path).name}",
            file.span.source.text,
        )
        for file in files
    )
    digest = hashlib.sha256()
    for name, text in entries:
        for part in (name, text):
            content = part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(content))
            digest.update(content)
    return digest.hexdigest()
