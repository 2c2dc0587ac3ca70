"""The `files` lines of teams: which files match them, and whether they match what was meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean
from kdsl.base.globs import glob
from kdsl.base.span import Source, Span
from kdsl.check.codes import CheckCode
from kdsl.check.declarations import Located
from kdsl.lang.profile_tree import Files
from kdsl.lang.tree import Team

_WHOLE_FOLDER = re.compile(r"([^*?]+/)[*/]+\.kdsl")
"""The patterns that give a folder to a team and not only some of its files."""
_ODD_STEPS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Claim:
    """A `files` line: what matches it is the team's.

    The pattern counts from the folder of the file that holds the line, or from the folder above it:
    `folders`. `home` is the folder that it gives to the team as a whole, as `teams/ml/*.kdsl` does; "" where
    it gives none.
    """

    team: Located[Team]
    files: Files
    pattern: re.Pattern[str]
    home: str
    folders: tuple[str, ...]

    @property
    def span(self) -> Span:
        return self.files.span

    def covers(self, source: Source) -> bool:
        """Tell whether a file is the team's, in either form of rule files."""
        path = _place(source.path).removesuffix(".yaml")
        return any(self.pattern.fullmatch(each) is not None for each in self._below(path))

    def surrounds(self, source: Source) -> bool:
        """Tell whether a file stands in the team's folder, at any depth."""
        return self.home != "" and any(
            each.startswith(self.home) for each in self._below(_place(source.path))
        )

    def below(self, source: Source) -> tuple[str, ...]:
        """Return the path of a file from each of the folders that patterns count from and that it is in."""
        return self._below(_place(source.path))

    def _below(self, path: str) -> tuple[str, ...]:
        return tuple(path.removeprefix(folder) for folder in self.folders if path.startswith(folder))


def claims_of(team: Located[Team]) -> Iterator[Claim]:
    """List the `files` lines of a team."""
    for files in team.declaration.body:
        if isinstance(files, Files):
            parents = Path(_place(files.span.source.path)).parents[:2]
            folders = tuple(f"{folder}/" for folder in parents)
            pattern = str(files.pattern.value)
            whole = _WHOLE_FOLDER.fullmatch(pattern)
            yield Claim(team, files, glob(pattern), "" if whole is None else whole[1], folders)


def check_claim(claim: Claim, own: Sequence[Source], unclaimed: Sequence[Source]) -> Iterator[Diagnostic]:
    """Report a pattern that matches none of the files. `unclaimed` are those that are no team's.

    It is an error where a folder of nearly that name holds files, which would be the platform's, and else a
    warning: a team may be made known before it has written anything.
    """
    pattern = claim.files.pattern
    title = f"the pattern {pattern.raw} matches no rule file"
    is_odd = not _ODD_STEPS.isdisjoint(str(pattern.value).split("/"))
    if is_odd or not str(pattern.value).endswith(".kdsl"):
        help_: tuple[str, ...] = ('rule files end in `.kdsl`, as in `"teams/ml/**.kdsl"`',)
        if is_odd:
            # Places are compared by their names, in which there are no such steps.
            help_ = ("patterns count from the folder of this file or the one above it",)
        yield Diagnostic(CheckCode.TEAM_GRANT, title, pattern.span, "no rule file", help=help_)
    elif not any(map(claim.covers, own)):
        near = _near(claim, unclaimed)
        if near:
            label, help_ = "else its files would be the platform's", did_you_mean(near[0], near)
        else:
            label, help_ = f"team `{claim.team.name}` has no file", ("the first file of the team ends this",)
        severity = Severity.ERROR if near else Severity.WARNING
        yield Diagnostic(CheckCode.TEAM_GRANT, title, pattern.span, label, severity=severity, help=help_)


def _near(claim: Claim, unclaimed: Sequence[Source]) -> list[str]:
    """List the folders of unclaimed files that differ from the folder of the pattern as slips do; the files,
    where the pattern is the path of one.

    The folder of the `team` block is the platform's, whatever it is called.
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


def _place(path: str) -> str:
    """Return the absolute path by its name alone: where a file stands counts, not what a link leads to."""
    return os.path.normpath(Path(path).absolute())
