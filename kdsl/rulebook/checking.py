"""Load rule files with their imports, and check them with the declarations of active plugins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kdsl.analysis.constants import check_constants
from kdsl.analysis.overlap import check_overlaps
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.disk_cache import DiskCache
from kdsl.base.heap import growing_heap
from kdsl.check.checker import check_program
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.names.externals import Externals, without_absent
from kdsl.check.views.view import load_views
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.extensions import bring
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import NO_DRAFTS, Drafts
from kdsl.lang.loader import Program, load_sources
from kdsl.lang.tree import Profile
from kdsl.plan.rules.queue import check_backoffs
from kdsl.rulebook.answer_cache import Verdict, kept_answer
from kdsl.rulebook.certain import certain_errors
from kdsl.rulebook.imports import with_imports
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, RuleTexts, read_texts


@dataclass(frozen=True, slots=True)
class CheckedRules:
    """The result for some rule files.

    `rules` is None if they are unusable; `files` is the number of files read.
    """

    rules: RuleSet | None
    diagnostics: tuple[Diagnostic, ...]
    files: int
    program: Program

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on these rules."""
        return Verdict(self.diagnostics, self.files, None if self.rules is None else len(self.rules.profiles))

    @property
    def profiles(self) -> tuple[str, ...] | None:
        """Return the names of the profiles, usable or not; None if a text could not be read completely."""
        if any(each.is_error and isinstance(each.code, LangCode) for each in self.diagnostics):
            return None
        packages = self.program.packages.values()
        declared = ((package.name, each) for package in packages for each in package.declarations)
        return tuple(f"{name}.{each.name.text}" for name, each in declared if isinstance(each, Profile))


def check_rules(
    paths: Sequence[Path | str],
    plugins: Collection[str] = DEFAULT_PLUGINS.keys(),
    undeclared: Collection[str] = (),
    drafts: Drafts = NO_DRAFTS,
    keep: DiskCache | None = None,
) -> CheckedRules:
    """Load and check the rule files of `paths`, which may use declarations of the active `plugins`.

    Imported packages that are missing there come from the libraries. Plugins in `undeclared` may provide
    functions without declared reads. The answer is stored in the cache `keep`, and read from there.
    """
    return check_texts(read_texts(paths, drafts), plugins, undeclared, keep)


@growing_heap()
def check_texts(
    texts: RuleTexts,
    plugins: Collection[str] = DEFAULT_PLUGINS.keys(),
    undeclared: Collection[str] = (),
    keep: DiskCache | None = None,
) -> CheckedRules:
    """Check rule files already read: see `check_rules`."""
    answer = kept_answer(keep, texts, plugins, undeclared)
    checked = answer.rules()
    if checked is None:
        checked = _check(texts, plugins, undeclared)
        answer.write(checked)
    return checked


def check_text(path: Path, text: str) -> CheckedRules:
    """Check a rule file that is not written yet as if it were at `path`, alone with the libraries."""
    return check_rules((path,), drafts={path: text.encode()})


def _check(texts: RuleTexts, plugins: Collection[str], undeclared: Collection[str]) -> CheckedRules:
    loaded = load_sources(texts.own, texts.libraries)
    diagnostics = (*texts.problems, *loaded.diagnostics)
    files = len(loaded.program.files)
    externals, misfits = bring((*PLACED_PLUGINS, *plugins), load_views(), undeclared)
    if has_errors(diagnostics):
        found = check_program(loaded.program, externals=externals).diagnostics
        certain = certain_errors(found, loaded.program, diagnostics)
        return CheckedRules(None, (*diagnostics, *misfits, *certain), files, loaded.program)
    rules, problems = check_once(loaded.program, externals)
    problems = without_absent(problems, externals)
    found = (*diagnostics, *misfits, *with_imports(problems, loaded.program, texts.libraries))
    # Rules that use missing plugins can still be compared with a configuration.
    stops = any(each.is_error and each.code != PluginCode.NOT_INSTALLED for each in misfits)
    return CheckedRules(None if stops else rules, found, files, loaded.program)


_Checked: TypeAlias = tuple[RuleSet | None, tuple[Diagnostic, ...]]
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
        checked = check_program(program, externals=externals)
        rules = checked.rules
        # Functions of absent plugins have types but no values.
        more = () if rules is None or externals.absent else _check_values(rules)
        answer = (None if has_errors(more) else rules, (*checked.diagnostics, *more))
        known = _checked[texts] = (externals, answer)
    _checked.move_to_end(texts)
    while len(_checked) > _MOST_CHECKED:
        _checked.popitem(last=False)
    return known[1]


def _check_values(rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Report errors that depend on values: the checker computes no values."""
    constants, overlaps = check_constants(rules), check_overlaps(rules)
    # An expression with an error in a constant has no value, which is no further error.
    return (*constants, *overlaps, *(() if constants else check_backoffs(rules)))
