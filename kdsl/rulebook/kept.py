"""What came of checking some rule texts, kept on disk: the verdict first, then the checked rules.

The name of a kept answer is a digest of all that it depends on: the texts and their places, the libraries,
the installed plugins and the code of kdsl. Answers that plugins of others take part in are not kept, since
nothing says when those change. They are unpickled: only the user's own files are read.
"""

from __future__ import annotations

import copyreg
import io
import os
import pickle
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from kdsl import __version__
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.kept import digest_of, prune, read_kept, write_kept
from kdsl.hooks.installed import InstalledPlugin, installed_plugins, installed_rules, package_folder
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, RuleTexts

if TYPE_CHECKING:
    from kdsl.rulebook.checking import CheckedRules

MAX_ANSWERS: Final = 8
"""The most answers that are kept; a new one takes the place of those that were written longest ago."""

_OWN: Final = "kdsl"
_PREFIX = "checked-"
_CODE = (".py", ".lark", ".yaml")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of rule files comes to: `files` and `profiles` are how many there are.

    `profiles` is None where the rules cannot be used.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    profiles: int | None


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The place of an answer, which may not be there yet; without a `path` it is kept nowhere."""

    path: Path | None = None

    def verdict(self) -> Verdict | None:
        """Return the verdict alone, which takes next to no time."""
        kept = self._open()
        if kept is None:
            return None
        verdict: Verdict = pickle.load(kept)
        return verdict

    def rules(self) -> CheckedRules | None:
        """Return all that came of the check."""
        kept = self._open()
        if kept is None:
            return None
        pickle.load(kept)
        checked: CheckedRules = pickle.load(kept)
        return checked

    def write(self, checked: CheckedRules) -> None:
        """Keep an answer."""
        if self.path is None:
            return
        stream = io.BytesIO()
        for part in (checked.verdict, checked):
            _pickler(stream).dump(part)
        write_kept(self.path, stream.getvalue())
        prune(self.path.parent, _PREFIX, MAX_ANSWERS)

    def _open(self) -> io.BytesIO | None:
        kept = None if self.path is None else read_kept(self.path)
        return None if kept is None else io.BytesIO(kept)


def kept_answer(
    folder: Path | None,
    texts: RuleTexts,
    plugins: Collection[str] = DEFAULT_PLUGINS.keys(),
    undeclared: Collection[str] = (),
) -> KeptAnswer:
    """Return where in `folder` the answer about these texts with these active plugins is kept."""
    if folder is None or texts.problems:
        return KeptAnswer()
    installed = installed_plugins()
    active = {*PLACED_PLUGINS, *plugins}
    if any(each.name in active and each.distribution != _OWN for each in installed):
        return KeptAnswer()
    sources = (texts.own, *texts.libraries())
    # Where a file stands tells whose it is.
    parts = [sys.version, _code(), str(Path.cwd()), *sorted(active), "undeclared", *sorted(undeclared)]
    parts += [part for plugin in installed for part in _identity(plugin, plugin.name in active)]
    parts += [str(rules) for rules in installed_rules()]
    for shelf in sources:
        parts += ["files", *(part for source in shelf for part in (source.path, source.text))]
    return KeptAnswer(folder / f"{_PREFIX}{digest_of(*parts)}")


def _pickler(stream: io.BytesIO) -> pickle.Pickler:
    """Return a pickler that writes read-only views of dicts too."""
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {
        **copyreg.dispatch_table,
        MappingProxyType: lambda view: (_read_only, (dict(view),)),
    }
    return pickler


def _read_only(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(items)


def _identity(plugin: InstalledPlugin, is_active: bool) -> Iterator[str]:
    yield from (plugin.name, plugin.target, plugin.distribution, plugin.version, str(is_active))
    folder = package_folder(plugin.entry_point.module) if is_active else None
    if folder is not None:
        yield from _stamps(folder)


@cache
def _code() -> str:
    """Return what identifies the code of kdsl, by the times and sizes that tell stale bytecode too."""
    return digest_of(__version__, *_stamps(Path(__file__).parent.parent))


def _stamps(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_CODE):
                path = Path(place, name)
                state = path.stat()
                yield f"{path} {state.st_size} {state.st_mtime_ns}"
