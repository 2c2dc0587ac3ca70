"""The result of a check of rule texts, cached on disk: the verdict separately from the checked rules. Their
syntax trees, which few commands need, are kept by `kdsl/lang/tree_cache.py`.

The name of a cached answer is a digest of everything it depends on: the texts and their places, the
libraries, the installed plugins and the code of kdsl. Answers that depend on third-party plugins are not
cached, since their changes cannot be detected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kdsl import __version__
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.disk_cache import DiskCache, digest_of
from kdsl.base.installed import InstalledPlugin, installed_plugins, installed_rules, package_folder
from kdsl.base.record_codec import RecordCodec, UnknownRecordError
from kdsl.lang.tree_cache import TREE_RECORDS, tree_of
from kdsl.rulebook.answer import CheckedRules, StoredRules, Verdict
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, RuleTexts

if TYPE_CHECKING:
    from kdsl.lang.program import Program

MAX_ANSWERS: Final = 32
"""The most cached answers; a new one replaces the oldest."""

_OWN: Final = "kdsl"
_VERDICT = "verdict-"
_RULES = "rules-"
# Reading a verdict must not import the checker, whose import would dominate the time of `kdsl check`.
_VERDICTS: Final = RecordCodec(
    (
        "kdsl.rulebook.answer",
        "kdsl.base.span",
        "kdsl.base.diagnostic",
        "kdsl.lang.codes",
        "kdsl.check.model.codes",
        "kdsl.hooks.codes",
        "kdsl.analysis.cost.codes",
    )
)
_CHECKED: Final = RecordCodec(
    (
        *_VERDICTS.modules,
        *TREE_RECORDS,
        "kdsl.check.model.rule_set",
        "kdsl.check.model.typed",
        "kdsl.check.model.types",
        "kdsl.check.model.devices",
        "kdsl.check.model.sharing",
    )
)
_CODE = (".py", ".lark", ".yaml")


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The place of an answer, which may not exist yet; without a cache it is never stored."""

    disk: DiskCache | None = None
    name: str = ""

    def verdict(self) -> Verdict | None:
        """Return the verdict only, which is fast."""
        verdict = self._read(_VERDICT, _VERDICTS)
        return verdict if isinstance(verdict, Verdict) else None

    def rules(self, with_trees: bool = False) -> CheckedRules | None:
        """Return the checked rules, and the syntax trees of usable ones where they are needed."""
        kept = self._read(_RULES, _CHECKED)
        if not isinstance(kept, StoredRules):
            return None
        checked = kept.checked
        if not with_trees or checked.rules is None:
            return checked
        program = self._program(kept)
        return None if program is None else replace(checked, program=program)

    def _program(self, kept: StoredRules) -> Program | None:
        """Return the syntax trees, which are kept file by file, with the sources of the rules: spans of both
        are in one file only if they have one source.
        """
        from kdsl.lang.program import program_of

        files = [tree_of(self.disk, source) for source in kept.sources]
        known = [file for file in files if file is not None]
        if len(known) < len(files):
            return None
        return program_of(known, kept.packages, kept.digest, kept.checked.borrowed, kept.shelved)

    def write(self, checked: CheckedRules) -> None:
        """Store a new answer, unless the codec lacks one of its types: then it is checked again next time."""
        program = checked.program
        if self.disk is None or program is None:
            return
        sources = tuple(file.span.source for file in program.files)
        names = tuple(program.packages)
        kept = StoredRules(replace(checked, program=None), sources, names, program.digest, program.shelved)
        try:
            verdict, rules = _VERDICTS.encode(checked.verdict), _CHECKED.encode(kept)
        except UnknownRecordError:
            return
        self.disk.write(_VERDICT + self.name, verdict)
        self.disk.write(_RULES + self.name, rules)
        for prefix in (_VERDICT, _RULES):
            self.disk.prune(prefix, MAX_ANSWERS)

    def _read(self, prefix: str, codec: RecordCodec) -> object:
        """Return the stored record, None if it cannot be read."""
        content = None if self.disk is None else self.disk.read(prefix + self.name)
        if content is None:
            return None
        try:
            return _decoded(codec, content)
        except ValueError:
            return None


@lru_cache(maxsize=3)
def _decoded(codec: RecordCodec, content: bytes) -> object:
    """Decode a record; reloads, and the commands of a test, read the same one again."""
    return codec.decode(content)


def kept_answer(
    disk: DiskCache | None,
    texts: RuleTexts,
    plugins: Collection[str] = DEFAULT_PLUGINS.keys(),
    undeclared: Collection[str] = (),
) -> KeptAnswer:
    """Return the place of the answer for these texts with these active plugins."""
    if disk is None or texts.problems:
        return KeptAnswer()
    installed = installed_plugins()
    active = {*PLACED_PLUGINS, *plugins}
    if any(each.name in active and each.distribution != _OWN for each in installed):
        return KeptAnswer()
    shelves = (texts.own, *texts.libraries())
    paths = [each.path for shelf in shelves for each in shelf if not isinstance(each, Diagnostic)]
    # The path of a file decides whether it belongs to a library.
    folder = "" if all(map(os.path.isabs, paths)) else str(Path.cwd())
    parts = [sys.version, _code(), folder, *sorted(active), "undeclared", *sorted(undeclared)]
    parts += [part for plugin in installed for part in _identity(plugin, plugin.name in active)]
    parts += [str(rules) for rules in installed_rules()]
    for shelf in shelves:
        parts.append("files")
        for source in shelf:
            if isinstance(source, Diagnostic):
                return KeptAnswer()
            parts += (source.path, source.text, repr(source.places))
    return KeptAnswer(disk, digest_of(*parts))


def _identity(plugin: InstalledPlugin, is_active: bool) -> Iterator[str]:
    yield from (plugin.name, plugin.target, plugin.distribution, plugin.version, str(is_active))
    folder = package_folder(plugin.module) if is_active else None
    if folder is not None:
        yield from _stamps(folder)


@cache
def _code() -> str:
    """Return a digest of kdsl's code, from modification times and sizes, as for bytecode."""
    return digest_of(__version__, *_stamps(Path(__file__).parent.parent))


def _stamps(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_CODE):
                path = Path(place, name)
                state = path.stat()
                yield f"{path} {state.st_size} {state.st_mtime_ns}"
