"""The subject of a test file: a profile, or one rule alone, in rules that were loaded once.

A single rule is tested in a generated profile, so it runs as all rules do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kdsl.app import libraries
from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.disk_cache import disk_cache
from kdsl.base.real_path import real_path
from kdsl.base.span import Source, Span
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.check.model.sharing import DEVICES
from kdsl.check.names.declarations import Declarations
from kdsl.configured import ActivePlugins, activate
from kdsl.lang.program import Package, Program, has_teams, imported_by
from kdsl.lang.tree import Device, File, Predicate, Profile, Queue, Score
from kdsl.lang.yaml_tree import Plain
from kdsl.rulebook.checking import check_rules
from kdsl.settings import Settings
from kdsl.testing.codes import TestCode

_PACKAGE: Final = "kdsl.rule_test"
_LONE: Final = f"{_PACKAGE}.lone"


class SubjectKind(StrEnum):
    """The kinds of subjects; the values are the keys of a test file."""

    PROFILE = "profile"
    PREDICATE = "predicate"
    SCORE = "score"
    QUEUE = "queue"
    DEVICE = "device"


_DECLARED: Final[Mapping[SubjectKind, type[Profile | Predicate | Score | Queue | Device]]] = {
    SubjectKind.PROFILE: Profile,
    SubjectKind.PREDICATE: Predicate,
    SubjectKind.SCORE: Score,
    SubjectKind.QUEUE: Queue,
    SubjectKind.DEVICE: Device,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A profile or rule by its qualified name, and parameters for a rule that is tested alone."""

    kind: SubjectKind
    qualified: str
    params: Mapping[str, Plain] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.qualified.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Checked:
    """Checked rules, the profile to run and the plugins beside them; no rules where the diagnostics hold
    errors.
    """

    rules: RuleSet | None
    profile: str
    diagnostics: tuple[Diagnostic, ...]
    plugins: ActivePlugins

    def find(self) -> CheckedProfile:
        """Return the profile to run. Only for rules without errors."""
        assert self.rules is not None
        return self.rules.profiles[self.profile]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rule files: their trees, errors and checked rules; no rules where their check is still to be made."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]
    rules: RuleSet | None = None


class Library:
    """Loads rule files, each set of paths once. The `plugins` of the settings are active beside them."""

    def __init__(self, settings: Settings) -> None:
        self.plugins = activate(settings)
        self._undeclared = settings.undeclared
        self._loaded: dict[tuple[Path, ...], Loaded] = {}

    def load(self, paths: Sequence[Path]) -> Loaded:
        """Load the rule files of `paths`; imported packages that they lack come from the libraries."""
        key = tuple(real_path(path) for path in paths)
        if key not in self._loaded:
            self._loaded[key] = self._load(paths)
        return self._loaded[key]

    def _load(self, paths: Sequence[Path]) -> Loaded:
        keep = disk_cache(os.environ)
        known = check_rules(paths, self.plugins.args.keys(), self._undeclared, keep=keep, with_trees=True)
        if known.program is not None and known.rules is not None and not known.diagnostics:
            return Loaded(known.program, (), known.rules)
        # A test reports errors of its files and those of its subject, each in its place.
        from kdsl.lang.loader import load_rules

        loaded = load_rules(paths, library=libraries())
        return Loaded(loaded.program, loaded.diagnostics)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of the loaded files and of the plugins."""
        found = (each for loaded in self._loaded.values() for each in loaded.diagnostics)
        return (*self.plugins.diagnostics, *found)


def find_subject(program: Program, kind: SubjectKind, name: str, span: Span) -> Subject | Diagnostic:
    """Return the declaration of this qualified name, or the only one whose last word it is."""
    declared = [each.qualified for each in Declarations(program).all(_DECLARED[kind])]
    matching = [each for each in declared if name in (each, each.rpartition(".")[2])]
    if name in declared or len(matching) == 1:
        return Subject(kind, name if name in declared else matching[0])
    if matching:
        names = ", ".join(f"`{each}`" for each in matching)
        title = f"several {kind}s are called `{name}`: {names}"
        return Diagnostic(TestCode.UNKNOWN_RULE, title, span, "which one")
    hint = did_you_mean(name, [*declared, *(each.rpartition(".")[2] for each in declared)])
    known = hint or (f"{kind}s: {', '.join(sorted(declared)) or 'none'}",)
    title, rules = f"there is no {kind} `{name}`", "`rules:` names the rule files to test"
    return Diagnostic(TestCode.UNKNOWN_RULE, title, span, "unknown", help=(*known, rules))


def check_subject(loaded: Loaded, subject: Subject, plugins: ActivePlugins) -> Checked:
    """Check the rules of files, and a profile around the subject where it is a rule.

    The program is checked once for all its subjects, a rule's own profile only with the packages it imports.
    """
    rules, problems = _rules_of(loaded, plugins)
    if rules is None or subject.kind is SubjectKind.PROFILE:
        return Checked(rules, subject.qualified, problems, plugins)
    from kdsl.check.checker import check_program

    lone = _lone_profile(subject)
    if not isinstance(lone, File):
        return Checked(None, "", lone, plugins)
    checked = check_program(_around(loaded.program, lone), externals=plugins.externals)
    if checked.rules is None:
        return Checked(None, "", checked.diagnostics, plugins)
    profiles = MappingProxyType({**rules.profiles, **checked.rules.profiles})
    return Checked(replace(rules, profiles=profiles), _LONE, problems, plugins)


def _rules_of(loaded: Loaded, plugins: ActivePlugins) -> tuple[RuleSet | None, tuple[Diagnostic, ...]]:
    if loaded.rules is not None:
        return loaded.rules, ()
    from kdsl.rulebook.fresh import check_once

    return check_once(loaded.program, plugins.externals)


def check_mutant(program: Program, subject: Subject, plugins: ActivePlugins) -> RuleSet | None:
    """Check a program that is not the one of its texts, and a profile around the subject where it is a rule.

    Return None for errors.
    """
    from kdsl.check.checker import check_program

    lone = None if subject.kind is SubjectKind.PROFILE else _lone_profile(subject)
    if isinstance(lone, File):
        program = _with_package(program, lone, program.packages)
    return check_program(program, externals=plugins.externals).rules


def _around(program: Program, file: File) -> Program:
    """Return the program of a file, its imports, and the packages of teams, which apply to all profiles."""
    needed = imported_by([file])
    needed |= {package.name for package in program.packages.values() if has_teams(package.files)}
    found: list[Package] = []
    # A package comes after those it imports.
    for package in reversed(list(program.packages.values())):
        if package.name in needed:
            found.append(package)
            needed |= imported_by(package.files)
    return _with_package(program, file, {package.name: package for package in reversed(found)})


def _with_package(program: Program, file: File, others: Mapping[str, Package]) -> Program:
    """Return the program of a file and other packages."""
    packages = {**others, _PACKAGE: Package(_PACKAGE, (file,))}
    files = tuple(one for package in packages.values() for one in package.files)
    return replace(program, files=files, packages=MappingProxyType(packages))


def _lone_profile(subject: Subject) -> File | tuple[Diagnostic, ...]:
    """Return a file with a profile around one rule, or errors in its parameters."""
    from kdsl.lang.parser import parse_file

    parsed = parse_file(Source("<rule test>", _lone_text(subject)))
    return parsed.diagnostics if parsed.file is None or has_errors(parsed.diagnostics) else parsed.file


def _lone_text(subject: Subject) -> str:
    """Return the text of a minimal profile around one rule."""
    kind, rule = subject.kind, f"tested.{subject.name}"
    settings = DEVICES if kind is SubjectKind.DEVICE else subject.name
    lines = [
        "kdsl 1",
        f"package {_PACKAGE}",
        f"import {subject.qualified.rpartition('.')[0]} as tested",
        "queue Arrival { order by pod.queuedAt }",
        # Without any score the first feasible node would end the search.
        "score Nothing { value 0 }",
        "profile lone {",
        f'  scheduler "{_PACKAGE}"',
        f"  queue {rule if kind is SubjectKind.QUEUE else 'Arrival'}",
        f"  predicates {{ {rule} }}" if kind is SubjectKind.PREDICATE else "",
        f"  scores {{ {rule if kind is SubjectKind.SCORE else 'Nothing'} weight 1 }}",
        f"  devices {rule}" if kind is SubjectKind.DEVICE else "",
        *(f"  set {settings}.{name} = {_literal(value)}" for name, value in subject.params.items()),
        "}",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _literal(value: Plain) -> str:
    """Return a plain value as an expression."""
    match value:
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(key)}: {_literal(each)}' for key, each in value.items())}}}"
    return json.dumps(value)
