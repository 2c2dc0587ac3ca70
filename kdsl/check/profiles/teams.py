"""Teams: the owner of each file, and checks that only the platform decides it.

A file that matches the `files` pattern of a team is the team's, every other file is the platform's.
`Profiles` and `Rights` use it; `team_blocks.py` checks the statements of `team` blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Source, Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.names.declarations import D, Declarations, Located
from kdsl.check.profiles.claims import Claim, check_claim, claims_of, folder_of
from kdsl.lang.profile_tree import Files, Grant, May, TeamStatement
from kdsl.lang.program import Package, Program
from kdsl.lang.tree import File, Name, Profile, Team

S = TypeVar("S", bound=TeamStatement)


class Teams:
    """The teams of a program. Its construction reports errors in the ownership of files.

    `packages` has the names of teams by those of their packages.
    """

    def __init__(self, program: Program, declarations: Declarations, diagnostics: list[Diagnostic]) -> None:
        self.all = tuple(declarations.all(Team))
        self._claims = tuple(claim for team in self.all for claim in claims_of(team))
        self._owners: dict[Source, Claim | None] = {}
        sources = [file.span.source for file in program.files]
        used = [claim for claim in self._claims if any(map(claim.covers, sources))]
        for file in program.files:
            claims = [claim for claim in self._claims if claim.covers(file.span.source)]
            # Of two claims, the narrower one counts, so that one mistake is reported once.
            claims.sort(key=lambda claim: -len(claim.pattern.pattern))
            diagnostics.extend(_claimed_twice(file, claims))
            if not claims:
                # A file in the folder of a team counts as the team's, so that one mistake is reported once.
                claims, strays = self._strays(file, used)
                diagnostics.extend(strays)
            self._owners[file.span.source] = claims[0] if claims else None
        self.packages = {
            name: team.name
            for name, package in program.packages.items()
            for team in (self.of(file.span) for file in package.files)
            if team is not None
        }
        unmatched = tuple(self._unmatched(program))
        diagnostics.extend(unmatched)
        self._has_lost_files = bool(unmatched) or any(map(_forgets_files, self.all))
        diagnostics.extend(self._same_names())
        diagnostics.extend(self._blocks_of_teams())
        for package in program.packages.values():
            diagnostics.extend(self._mixed_packages(package.files))
        diagnostics.extend(self._named_like_libraries(program))
        diagnostics.extend(self._dependencies(program))
        diagnostics.extend(self._borrowed_profiles(program))

    def of(self, span: Span) -> Located[Team] | None:
        """Return the team that owns the file of the span; None for the platform."""
        claim = self._owners.get(span.source)
        return None if claim is None else claim.team

    def name_of(self, located: Located[D]) -> str:
        """Return the name of the team that wrote a declaration; "" for the platform."""
        team = self.of(located.declaration.span)
        return "" if team is None else team.name

    def may_be_lost(self, located: Located[D]) -> bool:
        """Return whether a declaration may be that of a team whose pattern matches no file or is missing: it
        is in a file of no team, away from the `team` blocks.
        """
        if not self._has_lost_files or self.of(located.declaration.span) is not None:
            return False
        folders = {folder_of(team.declaration.span.source) for team in self.all}
        return folder_of(located.declaration.span.source) not in folders

    def grant(self, team: Located[Team], right: str) -> Grant | None:
        """Return the grant of a right."""
        grants = (grant for may in statements_of(team, May) for grant in may.grants)
        return next((grant for grant in grants if grant.right == right), None)

    def _strays(self, file: File, used: Sequence[Claim]) -> tuple[list[Claim], list[Diagnostic]]:
        """Return the claims of teams that an unclaimed file seems to belong to, with the error.

        A claim without any match is not in `used`: `check_claim` reports its near misses.
        """
        source = file.span.source
        for matches, among, report in (
            (Claim.names, self._claims, _elsewhere),
            (Claim.surrounds, self._claims, _stray),
            (Claim.nearly_covers, used, _misspelt),
        ):
            claims = [claim for claim in among if matches(claim, source)]
            if claims:
                return claims, [report(file, claims[0])]
        return [], []

    def _unmatched(self, program: Program) -> Iterator[Diagnostic]:
        """Report patterns that match none of the files."""
        own = [file.span.source for file in program.files if _package(file) not in program.borrowed]
        unclaimed = [source for source in own if self._owners[source] is None]
        for claim in self._claims:
            yield from check_claim(claim, own, unclaimed)

    def _same_names(self) -> Iterator[Diagnostic]:
        first: dict[str, Located[Team]] = {}
        for team in self.all:
            other = first.setdefault(team.name, team)
            if other is not team:
                name, secondary = team.declaration.name, (Label(other.declaration.name.span, "first here"),)
                title = f"two teams are called `{team.name}`"
                yield Diagnostic(CheckCode.WRITTEN_TWICE, title, name.span, "second", secondary=secondary)

    def _blocks_of_teams(self) -> Iterator[Diagnostic]:
        for team in self.all:
            claim = self._owners.get(team.declaration.span.source)
            if claim is not None:
                yield Diagnostic(
                    CheckCode.PLATFORM_ONLY,
                    f"a file of team `{claim.team.name}` cannot hold a `team` block",
                    team.declaration.name.span,
                    "rights are the platform's to give",
                    secondary=(Label(claim.span, "this makes it the team's file"),),
                )

    def _mixed_packages(self, files: tuple[File, ...]) -> Iterator[Diagnostic]:
        """Report files whose owner differs from most files of their package; in a tie the team counts."""
        owners = [self._owner(file.span.source) for file in files]
        holder = max(owners, key=lambda owner: (owners.count(owner), owner != ""))
        first = files[owners.index(holder)]
        for file, owner in zip(files, owners, strict=True):
            if owner == holder or file.package is None or first.package is None:
                continue
            whose = f"a file of team `{owner}`" if owner else "no file of the team"
            claim = self._owners[file.span.source] or self._owners[first.span.source]
            yield Diagnostic(
                CheckCode.TEAM_FILES,
                f"package `{file.package.text}` is {f'team `{holder}`' if holder else 'the platform'}'s, "
                f"but this is {whose}",
                file.package.span,
                "a package belongs to one owner",
                secondary=(
                    Label(first.package.span, "this file has it, too"),
                    *([Label(claim.span, "the team's files are these")] if claim else []),
                ),
                help=("move the file to the others, or give it a package of its own",),
            )

    def _named_like_libraries(self, program: Program) -> Iterator[Diagnostic]:
        """Report packages of teams with the name of a library's package.

        An import of the library, also by another team, would get the team's package.
        """
        for name in sorted(program.shelved & program.packages.keys()):
            files = program.packages[name].files
            claims = [self._owners[file.span.source] for file in files]
            first = files[0].package
            if None not in claims and first is not None:
                claim = next(claim for claim in claims if claim is not None)
                yield Diagnostic(
                    CheckCode.TEAM_FILES,
                    f"package `{name}` of team `{claim.team.name}` is called like one of a library",
                    first.span,
                    "who imports that one would be given this",
                    secondary=(Label(claim.span, "this makes it the team's file"),),
                    help=(f"give it a name of the team's, such as `{claim.team.name}.{name}`",),
                )

    def _owner(self, source: Source) -> str:
        claim = self._owners[source]
        return "" if claim is None else claim.team.name

    def _dependencies(self, program: Program) -> Iterator[Diagnostic]:
        """Report files of the platform, or of another team, that import a team's package."""
        for file in program.files:
            own = self._owner(file.span.source)
            for statement in file.imports:
                package = program.packages.get(statement.package.text)
                owners = [self._owners[each.span.source] for each in package.files] if package else []
                claim = next((each for each in owners if each is not None), None)
                if claim is not None and claim.team.name != own:
                    importer = f"team `{own}`" if own else "the platform"
                    yield Diagnostic(
                        CheckCode.DEPENDS_ON_TEAM,
                        f"{importer} cannot import `{statement.package.text}`, which is "
                        f"team `{claim.team.name}`'s",
                        statement.package.span,
                        f"the team could change the rules of {importer}",
                        secondary=(Label(claim.span, "the team's files are these"),),
                        help=("move the shared declarations into a package of the platform",),
                    )

    def _borrowed_profiles(self, program: Program) -> Iterator[Diagnostic]:
        """Report imports of teams that add profiles of a library, since any pod could select those by
        scheduler name.

        Profiles that a file of the platform imports as well are the platform's decision.
        """
        own = [file for file in program.files if _package(file) not in program.borrowed]
        of_platform = _reachable(program, [file for file in own if self._owners[file.span.source] is None])
        for file in own:
            claim = self._owners[file.span.source]
            for statement in file.imports if claim is not None else ():
                name = statement.package.text
                if claim is None or name not in program.borrowed or name in of_platform:
                    continue
                members = program.packages[name].files
                for package in sorted(_reachable(program, members) | {name}):
                    found = next(_profiles_of(program.packages[package]), None)
                    if package in program.borrowed - of_platform and found is not None:
                        yield _borrows(statement.package, found, package, claim)


def _package(file: File) -> str:
    return "" if file.package is None else file.package.text


def _reachable(program: Program, files: Iterable[File]) -> set[str]:
    """Return the packages that files import, directly or indirectly."""
    found: set[str] = set()
    waiting = list(files)
    while waiting:
        for statement in waiting.pop().imports:
            package = program.packages.get(statement.package.text)
            if package is not None and package.name not in found:
                found.add(package.name)
                waiting += package.files
    return found


def _profiles_of(package: Package) -> Iterator[Profile]:
    return (each for each in package.declarations if isinstance(each, Profile))


def _forgets_files(team: Located[Team]) -> bool:
    """Return whether a team has rights and no files to use them in."""
    return bool(statements_of(team, May)) and not statements_of(team, Files)


def statements_of(team: Located[Team], kind: type[S]) -> list[S]:
    """Return the statements of a kind in a team's block."""
    return [each for each in team.declaration.body if isinstance(each, kind)]


def _claimed_twice(file: File, claims: list[Claim]) -> Iterator[Diagnostic]:
    others = [claim for claim in claims[1:] if claim.team.name != claims[0].team.name]
    if others:
        names = " and ".join(f"`{claim.team.name}`" for claim in (claims[0], *others))
        yield Diagnostic(
            CheckCode.TEAM_FILES,
            f"`{file.span.source.path}` is claimed by teams {names}",
            others[0].span,
            "claims it",
            secondary=(Label(claims[0].span, "claims it as well"),),
            where=file.span.source.path,
            help=("make the patterns disjoint",),
        )


def _stray(file: File, claim: Claim) -> Diagnostic:
    team, path = claim.team.name, file.span.source.path
    return Diagnostic(
        CheckCode.TEAM_FILES,
        f"`{path}` stands in the folder of team `{team}`, but the pattern of the team leaves it out",
        claim.span,
        "else it would be the platform's",
        where=path,
        help=(f'move the file, or write `files "{claim.home}**.kdsl"`',),
    )


def _elsewhere(file: File, claim: Claim) -> Diagnostic:
    team, source = claim.team.name, file.span.source
    return Diagnostic(
        CheckCode.TEAM_FILES,
        f"`{source.path}` is team `{team}`'s by its name, but a link in it leads out of its folder",
        claim.span,
        "else it would be the platform's",
        where=source.path,
        notes=(f"it leads to `{source.places[-1]}`",),
        help=("name the file by where it is, and remove the link",),
    )


def _misspelt(file: File, claim: Claim) -> Diagnostic:
    team, path = claim.team.name, file.span.source.path
    return Diagnostic(
        CheckCode.TEAM_FILES,
        f"`{path}` differs from the pattern of team `{team}` only in capital letters or accents",
        claim.span,
        "else it would be the platform's",
        where=path,
        help=("rename the file or its folder, or correct the pattern",),
    )


def _borrows(name: Name, profile: Profile, package: str, claim: Claim) -> Diagnostic:
    return Diagnostic(
        CheckCode.PLATFORM_ONLY,
        f"team `{claim.team.name}` cannot bring in profile `{profile.name.text}` of `{package}`",
        name.span,
        "any pod could select it",
        secondary=(Label(claim.span, "this makes it the team's file"),),
        help=(f"import `{package}` in a file of the platform, which says that its profiles may be used",),
    )
