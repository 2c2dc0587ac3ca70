"""The `files` lines of teams: the files that match them, and errors for lines that match no file."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.globs import glob
from kdsl.base.span import Source, Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.names.declarations import Located
from kdsl.lang.profile_tree import Files
from kdsl.lang.tree import Team

_WHOLE_FOLDER = re.compile(r"((?>[^*?]+)(?<=/))[*/]+\.kdsl")
"""The patterns that give a whole folder to a team and not only some of its files."""
_ODD_STEPS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Claim:
    """A `files` line: files that match it belong to the team.

    The pattern is relative to the folder of the file with the line, or to that folder's parent: `folders` by
    the location of that file, `named_folders` by its name. `home` is the folder that it gives to the team as
    a whole, as `teams/ml/*.kdsl` does; "" where it gives none.
    """

    team: Located[Team]
    files: Files
    pattern: re.Pattern[str]
    home: str
    folders: tuple[str, ...]
    named_folders: tuple[str, ...]

    @property
    def span(self) -> Span:
        return self.files.span

    def covers(self, source: Source) -> bool:
        """Return whether a file, in either form of rule files, belongs to the team.

        Its location decides, or a link that stays in its folder.
        """
        return self._matches(self.below(source))

    def names(self, source: Source) -> bool:
        """Return whether the pattern matches the file's name, wherever a link of this name leads."""
        return self._matches(_below((_by_name(source.path),), self.named_folders))

    def nearly_covers(self, source: Source) -> bool:
        """Return whether a file would be the team's but for capital letters and the encoding of accents."""
        pattern = glob(_folded(str(self.files.pattern.value)))
        folders = tuple(map(_folded, self.folders))
        return any(
            pattern.fullmatch(each.removesuffix(".yaml")) is not None
            for each in _below(tuple(map(_folded, _places(source))), folders)
        )

    def surrounds(self, source: Source) -> bool:
        """Return whether a file is in the team's folder, at any depth."""
        return self.home != "" and any(each.startswith(self.home) for each in self.below(source))

    def below(self, source: Source) -> tuple[str, ...]:
        """Return the paths of a file relative to each base folder of the pattern that contains it."""
        return _below(_places(source), self.folders)

    def _matches(self, paths: Sequence[str]) -> bool:
        return any(self.pattern.fullmatch(each.removesuffix(".yaml")) is not None for each in paths)


def claims_of(team: Located[Team]) -> Iterator[Claim]:
    """Yield the claim for each `files` line of a team."""
    for files in team.declaration.body:
        if isinstance(files, Files):
            source = files.span.source
            pattern = str(files.pattern.value)
            whole = _WHOLE_FOLDER.fullmatch(pattern)
            folders, named = _above(_places(source)), _above((_by_name(source.path),))
            yield Claim(team, files, glob(pattern), "" if whole is None else whole[1], folders, named)


def check_claim(claim: Claim, own: Sequence[Source], unclaimed: Sequence[Source]) -> Iterator[Diagnostic]:
    """Report a pattern that matches none of the files.

    `unclaimed` are the files of no team: the intended file may be among them, and would be the platform's.
    """
    pattern = claim.files.pattern
    title = f"the pattern {pattern.raw} matches no rule file"
    value = str(pattern.value)
    literal = next((each for each in "{[\\" if each in value), "")
    as_itself = (f"`{literal}` stands for itself: a pattern has `*`, `**` and `?`",) if literal else ()
    is_odd = not _ODD_STEPS.isdisjoint(value.split("/"))
    if is_odd or not value.endswith(".kdsl"):
        help_: tuple[str, ...] = ('rule files end in `.kdsl`, as in `"teams/ml/**.kdsl"`',)
        if value.endswith("/"):
            help_ = (f'a pattern names files: write `"{value}*.kdsl"`',)
        elif is_odd:
            # Locations are compared by their names, which have no such steps.
            help_ = ("patterns count from the folder of this file or the one above it",)
        help_ = (*help_, *as_itself)
        yield Diagnostic(CheckCode.TEAM_GRANT, title, pattern.span, "no rule file", help=help_)
    elif not any(map(claim.covers, own)):
        near = _near(claim, unclaimed)
        if near:
            label, help_ = "else its files would be the platform's", did_you_mean(near[0], near)
        else:
            label = f"team `{claim.team.name}` has no file"
            usual = "check its folder as well, or add the line together with the first file of the team"
            help_ = as_itself or (usual,)
        yield Diagnostic(CheckCode.TEAM_GRANT, title, pattern.span, label, help=help_)


def _near(claim: Claim, unclaimed: Sequence[Source]) -> list[str]:
    """Return the folders of unclaimed files that differ from the pattern's folder by a typing error, or the
    files where the pattern is a path.

    The folder of the `team` block is the platform's, whatever its name.
    """
    pattern = str(claim.files.pattern.value)
    fixed = re.split(r"[*?]", pattern)[0]
    wanted = PurePosixPath(fixed if fixed == pattern else fixed[: fixed.rfind("/") + 1]).parts
    platform = {PurePosixPath(each).parent for each in claim.below(claim.span.source)}
    places = {
        place
        for source in unclaimed
        for path in map(PurePosixPath, claim.below(source))
        for place in (path, *path.parents)
        if not platform & {place, path.parent} and len(place.parts) == len(wanted)
    }
    return sorted(
        str(place)
        for place in places
        if place.parts != wanted
        and all(
            one == other or did_you_mean(one, [other]) for one, other in zip(wanted, place.parts, strict=True)
        )
    )


def folder_of(source: Source) -> str:
    """Return the absolute folder of a file."""
    return str(Path(_places(source)[0]).parent)


def _places(source: Source) -> tuple[str, ...]:
    """Return the absolute paths that decide the owner of a file; for a text without a file, its name."""
    return source.places or (_by_name(source.path),)


def _by_name(path: str) -> str:
    """Return the absolute path by its name alone, without resolving links."""
    return os.path.normpath(Path(path).absolute())


def _above(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the folder of each path, and that folder's parent."""
    return tuple(dict.fromkeys(f"{folder}/" for path in paths for folder in Path(path).parents[:2]))


def _below(paths: Sequence[str], folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(path.removeprefix(folder) for path in paths for folder in folders if path.startswith(folder))


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()
