"""Resolves a name in a file to a declaration: in its own package first, then in imported packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kdsl.base.diagnostic import Diagnostic, suggest
from kdsl.check.model.codes import CheckCode
from kdsl.check.names.externals import NO_EXTERNALS, PLUGINS, ExternalRule, Externals
from kdsl.lang.choices import RuleKind
from kdsl.lang.program import Program, alias_of
from kdsl.lang.tree import Declaration, Device, Name, Predicate, Preemption, Profile, Queue, Score

D = TypeVar("D", bound=Declaration)

_NAMED_IN_PROFILES = (Predicate, Score, Queue, Preemption, Device, Profile)


def _without_body(rule: ExternalRule, kind: type[Predicate] | type[Score]) -> Predicate | Score:
    """Return the declaration of a plugin's rule, so that profiles can hold it like any other."""
    span = rule.span
    return kind((), name=Name(rule.name, span=span), span=span)


@dataclass(frozen=True, slots=True)
class Home:
    """The place of a name lookup: a package, and the imports of its file by their local names."""

    package: str
    imports: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Located(Generic[D]):
    """A declaration and its home."""

    declaration: D
    home: Home

    @property
    def name(self) -> str:
        return self.declaration.name.text

    @property
    def qualified(self) -> str:
        return f"{self.home.package}.{self.name}"


class Declarations:
    """All declarations of a program, and the rules of active plugins.

    `teams` has the team of each package that belongs to one: no suggestion names it to others.

    The rules of plugins are found as `plugins.X` everywhere, without an import; `all` leaves them out.
    """

    def __init__(self, program: Program, externals: Externals = NO_EXTERNALS) -> None:
        self.externals = externals
        self.teams: Mapping[str, str] = {}
        kinds = ((RuleKind.PREDICATE, Predicate), (RuleKind.SCORE, Score))
        self._placeable = [
            Located(_without_body(rule, tree), Home(PLUGINS, {}))
            for rule in externals.rules.values()
            for kind, tree in kinds
            if rule.is_active and kind in rule.kinds
        ]
        self._packages = {
            name: [
                Located(declaration, Home(name, {alias_of(each): each.package.text for each in file.imports}))
                for file in package.files
                for declaration in file.declarations
            ]
            for name, package in program.packages.items()
        }
        self._by_name: dict[tuple[str, str], list[Located[Any]]] = {}
        for package, declarations in self._packages.items():
            for each in declarations:
                self._by_name.setdefault((package, each.name), []).append(each)

    def all(self, kind: type[D]) -> Iterator[Located[D]]:
        """Yield the declarations of a kind, packages in dependency order."""
        for package in self._packages:
            yield from self._of(kind, package)

    def find(self, kind: type[D], name: str, home: Home) -> Located[D] | None:
        """Return the declaration of `name` at `home`: `X` of its package, or `p.X` of an imported package."""
        qualifier, _, last = name.rpartition(".")
        if is_external(name, home):
            return next((each for each in self._external(kind) if each.name == last), None)
        package = home.imports.get(qualifier, qualifier) if qualifier else home.package
        if package != home.package and package not in home.imports.values():
            return None
        return self._named(kind, package, last)

    def _named(self, kind: type[D], package: str, name: str) -> Located[D] | None:
        named = self._by_name.get((package, name), ())
        return next((each for each in named if isinstance(each.declaration, kind)), None)

    def visible(self, kind: type[D], home: Home) -> Iterator[str]:
        """Yield the names of a kind as they are written at `home`, for suggestions."""
        for each in self._of(kind, home.package):
            yield each.name
        for alias, package in home.imports.items():
            for each in self._of(kind, package):
                yield f"{alias}.{each.name}"
        for each in self._external(kind):
            yield each.qualified

    def undeclared(self, kind: type[Declaration], name: Name, home: Home) -> Diagnostic:
        """Return the error for a name of this kind that is neither declared at `home` nor imported."""
        known = list(self.visible(kind, home))
        help_ = self._of_another_kind(name.text, home) or self._not_imported(kind, name.text, home)
        help_, fixes = (help_, ()) if help_ else suggest(name.span, name.text, known)
        help_ = help_ or (() if fixes else _same_elsewhere(name.text, known))
        if not help_ and not fixes:
            imported = ", ".join(f"`{package}`" for package in home.imports.values())
            help_ = (f"looked in this package{' and in ' + imported if imported else '; it imports none'}",)
        return Diagnostic(
            CheckCode.UNKNOWN_RULE,
            f"unknown {_word(kind)} `{name.text}`",
            name.span,
            "not declared",
            help=help_,
            fixes=fixes,
        )

    def _of_another_kind(self, name: str, home: Home) -> tuple[str, ...]:
        found = [kind for kind in _NAMED_IN_PROFILES if self.find(kind, name, home) is not None]
        return tuple(f"`{name}` is a {_word(kind)}" for kind in found)

    def _not_imported(self, kind: type[Declaration], name: str, home: Home) -> tuple[str, ...]:
        """Return the help where a loaded package that the file does not import declares the name."""
        others = self._packages.keys() - {home.package, *home.imports.values()}
        team = self.teams.get(home.package)
        others = {each for each in others if self.teams.get(each, team) == team}
        owners = sorted(each for each in others if self._named(kind, each, name) is not None)
        return tuple(
            f"add the line `import {package}` and write `{package.rpartition('.')[2]}.{name}`"
            for package in owners
        )

    def _external(self, kind: type[D]) -> Iterator[Located[D]]:
        for located in self._placeable:
            if isinstance(located.declaration, kind):
                yield Located(located.declaration, located.home)

    def _of(self, kind: type[D], package: str) -> Iterator[Located[D]]:
        for located in self._packages.get(package, ()):
            if isinstance(located.declaration, kind):
                yield Located(located.declaration, located.home)


def is_external(name: str, home: Home) -> bool:
    """Return whether a name belongs to a plugin's rule: an import named `plugins` takes precedence."""
    return name.startswith(f"{PLUGINS}.") and PLUGINS not in home.imports


def _word(kind: type[Declaration]) -> str:
    return kind.__name__.lower()


def _same_elsewhere(name: str, known: list[str]) -> tuple[str, ...]:
    return tuple(f"did you mean `{each}`?" for each in known if each.rpartition(".")[2] == name)[:1]
