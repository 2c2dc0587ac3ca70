"""A program: the syntax trees of rule files, by package. `loader.py` makes it, the checker reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kdsl.base.diagnostic import Diagnostic
from kdsl.lang.tree import Declaration, File, Import, Team


@dataclass(frozen=True, slots=True)
class Package:
    """The files of one package, in the order they were found."""

    name: str
    files: tuple[File, ...]

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        return tuple(declaration for file in self.files for declaration in file.declarations)


@dataclass(frozen=True, slots=True)
class Program:
    """All loaded rules. A package comes after those it imports.

    `digest` is the SHA-256 of the texts under their packages: equal for equal rules in any place. `borrowed`
    are the names of the packages taken from libraries because others import them, `shelved` those of all
    packages in libraries: empty where the libraries were not needed.
    """

    files: tuple[File, ...]
    packages: Mapping[str, Package]
    digest: str
    borrowed: frozenset[str]
    shelved: frozenset[str]


def program_of(
    files: Sequence[File], names: Iterable[str], digest: str, borrowed: frozenset[str], shelved: Iterable[str]
) -> Program:
    """Return the program of some files, with the packages of these names in this order."""
    grouped: dict[str, list[File]] = {name: [] for name in names}
    for file in files:
        if file.package:
            grouped[file.package.text].append(file)
    packages = {name: Package(name, tuple(members)) for name, members in grouped.items()}
    return Program(tuple(files), MappingProxyType(packages), digest, borrowed, frozenset(shelved))


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The program and its diagnostics. With errors it is incomplete and only good for inspection."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]


def alias_of(statement: Import) -> str:
    """Return the name of an import in its file: `import a.b` is `b` unless it has `as`."""
    return statement.alias.text if statement.alias else statement.package.text.rpartition(".")[2]


def imported_by(files: Iterable[File]) -> set[str]:
    """Return the names of the packages that the files import."""
    return {statement.package.text for file in files for statement in file.imports}


def has_teams(files: Iterable[File]) -> bool:
    """Return whether one of the files declares a team."""
    return any(isinstance(declaration, Team) for file in files for declaration in file.declarations)
