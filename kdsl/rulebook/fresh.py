"""Loads rule texts with their imports, and checks them with the declarations of active plugins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TypeAlias

from kdsl.analysis.constants import check_constants
from kdsl.analysis.overlap import check_overlaps
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.check.analyses.sound import sound_part
from kdsl.check.checker import check_program
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.names.externals import Externals, without_absent
from kdsl.check.views.view import load_views
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.extensions import bring
from kdsl.lang.codes import LangCode
from kdsl.lang.loader import load_sources
from kdsl.lang.program import LoadResult, Program
from kdsl.lang.tree import Profile
from kdsl.plan.rules.queue import check_backoffs
from kdsl.rulebook.answer import CheckedRules
from kdsl.rulebook.certain import certain_errors, damage
from kdsl.rulebook.imports import with_imports
from kdsl.rulebook.texts import PLACED_PLUGINS, RuleTexts


def check_fresh(texts: RuleTexts, plugins: Collection[str], undeclared: Collection[str]) -> CheckedRules:
    """Check rule texts with the declarations of the active `plugins`; no cache has the answer."""
    loaded = load_sources(texts.own, texts.libraries)
    rules, diagnostics = _check(loaded, texts, plugins, undeclared)
    program = loaded.program
    is_whole = not any(each.is_error and isinstance(each.code, LangCode) for each in diagnostics)
    profiles = _profiles_of(program) if is_whole else None
    return CheckedRules(rules, diagnostics, len(program.files), profiles, program.borrowed, program)


_Checked: TypeAlias = tuple[RuleSet | None, tuple[Diagnostic, ...]]


def _check(
    loaded: LoadResult, texts: RuleTexts, plugins: Collection[str], undeclared: Collection[str]
) -> _Checked:
    program, diagnostics = loaded.program, (*texts.problems, *loaded.diagnostics)
    externals, misfits = bring((*PLACED_PLUGINS, *plugins), load_views(), undeclared)
    if has_errors(diagnostics):
        _, found = _check_all(program, externals, diagnostics)
        return None, (*diagnostics, *misfits, *certain_errors(found, program, diagnostics))
    rules, problems = check_once(program, externals)
    problems = without_absent(problems, externals)
    # Rules that use missing plugins can still be compared with a configuration.
    stops = any(each.is_error and each.code != PluginCode.NOT_INSTALLED for each in misfits)
    found = (*diagnostics, *misfits, *with_imports(problems, program, texts.libraries))
    return None if stops else rules, found


def _profiles_of(program: Program) -> tuple[str, ...]:
    """Return the qualified names of the declared profiles."""
    packages = program.packages.values()
    declared = ((package.name, each) for package in packages for each in package.declarations)
    return tuple(f"{name}.{each.name.text}" for name, each in declared if isinstance(each, Profile))


_MOST_CHECKED = 8
_Texts: TypeAlias = tuple[frozenset[str], tuple[tuple[str, str, tuple[str, ...]], ...]]
_checked: OrderedDict[_Texts, tuple[Externals, _Checked]] = OrderedDict()


def check_once(program: Program, externals: Externals) -> _Checked:
    """Check a program and its constants; return this process's earlier result for the same texts and plugins.

    The rules are None if they are unusable.
    """
    sources = (file.span.source for file in program.files)
    files = tuple((source.path, source.text, source.places) for source in sources)
    texts = (program.shelved, files)
    known = _checked.get(texts)
    if known is None or known[0] != externals:
        answer = _check_all(program, externals)
        known = _checked[texts] = (externals, answer)
    _checked.move_to_end(texts)
    while len(_checked) > _MOST_CHECKED:
        _checked.popitem(last=False)
    return known[1]


def _check_all(program: Program, externals: Externals, unread: Sequence[Diagnostic] = ()) -> _Checked:
    """Check a program, and the values of all its rules that have no other errors. `unread` are errors of its
    texts.
    """
    checked = check_program(program, externals=externals)
    sound = sound_part(checked.sound, (), damage(program, unread)) if unread else checked.sound
    # Functions of absent plugins have types but no values.
    more = () if externals.absent else _check_values(sound)
    return None if has_errors(more) else checked.rules, (*checked.diagnostics, *more)


def _check_values(rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Report errors that depend on values: the checker computes no values."""
    constants, overlaps = check_constants(rules), check_overlaps(rules)
    # An expression with an error in a constant has no value, which is no further error.
    backoffs = check_backoffs(sound_part(rules, constants) if constants else rules)
    return (*constants, *overlaps, *backoffs)
