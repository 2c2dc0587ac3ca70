"""Structured records of a user's mistakes, collected and rendered elsewhere.

A mistake in an input is a `Diagnostic` that is returned with all the others; an exception means that the work
cannot go on. `kdsl.report.diagnostics` renders them.

Code ranges: K01 syntax, K02 types, K03 names and imports, K04 composition and rights, K05 cost, K06 dead
rules, K07 scheduling sense, K08 style, K09 tests, K10 plugins, K11 cluster objects and other inputs, K12 not
built yet.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kdsl.base.span import Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


# Of difflib, from 0 to 1. At 0.6 `images` would be near to `age`, and `flatten` to `len`.
_NEAR = 0.7
# One letter of three may be wrong in a short name, if no other name is nearer.
_NEAR_SHORT = 0.6
_SHORT = 4
_SLIP = 2
_TINY = 3


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place that explains the primary one."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `span` by `text`."""

    span: Span
    text: str


class Applicability(StrEnum):
    """The certainty of a fix: `--fix` applies only certain fixes, the user chooses among the others."""

    CERTAIN = "certain"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that removes the diagnostic's cause: `title` describes it, `edits` make it."""

    title: str
    edits: tuple[Edit, ...] = ()
    applicability: Applicability = Applicability.MAYBE

    @property
    def is_certain(self) -> bool:
        return self.applicability is Applicability.CERTAIN and bool(self.edits)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Texts are lower case, without a final full stop, with the user's own words in backticks. `where` is the
    place inside an input that has no span: a path into an object such as `pods.yaml#2:
    spec.containers[0].image`.
    """

    code: str
    title: str
    span: Span | None = None
    label: str = ""
    severity: Severity = Severity.ERROR
    where: str = ""
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def without_fixes(self) -> Diagnostic:
        """Return it with its fixes as help: for a command that cannot apply them."""
        return replace(self, help=(*self.help, *(fix.title for fix in self.fixes)), fixes=())


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether any of the diagnostics is an error."""
    return any(diagnostic.is_error for diagnostic in diagnostics)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`, None where none is near."""
    return next(iter(_near(name, known)), None)


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return a help line with the known name nearest to `name`, an empty tuple where none is near."""
    near = _near(name, known)
    return (f"did you mean `{near[0]}`?",) if near else ()


def suggest(span: Span, name: str, known: Iterable[str]) -> tuple[tuple[str, ...], tuple[Fix, ...]]:
    """Return the known name near to `name`: a fix where only one is near, a help line where several are.

    Both are empty where none is near. `span` is the span of `name`. Some names are likely another word, not a
    slip: much longer or shorter ones, as `deviceResources` for `resources`, and short ones with a letter
    replaced, as `cpu` for `gpu`.
    """
    near = _near(name, known)
    if len(near) != 1 or span.text != name or not _is_slip(name, near[0]):
        return did_you_mean(name, known), ()
    edit = Edit(span, near[0])
    return (), (Fix(f"did you mean `{near[0]}`?", (edit,), Applicability.CERTAIN),)


def _is_slip(name: str, known: str) -> bool:
    name, known = name.rpartition(".")[2], known.rpartition(".")[2]
    if len(name) == len(known) <= _TINY:
        return sorted(name.lower()) == sorted(known.lower())
    return abs(len(name) - len(known)) <= _SLIP


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names near to `name`, nearest first.

    Names of one qualifier, such as `plugins.`, are compared without it: it would make all of them near. A
    name without one is compared with the last word of the others.
    """
    candidates = sorted(set(known))
    found = _within(name, candidates, _NEAR)
    if found or len(name) > _SHORT:
        return found
    return _within(name, [each for each in candidates if abs(len(each) - len(name)) <= 1], _NEAR_SHORT)


def _within(name: str, candidates: Sequence[str], cutoff: float) -> list[str]:
    """Return up to two candidates that are as similar as `cutoff` demands, most similar first."""
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    qualifier, _, word = name.lower().rpartition(".")
    compared = {each: _compared(each, qualifier) for each in folded}
    by_full = difflib.get_close_matches(name.lower(), folded, n=4, cutoff=cutoff)
    full = [each for each in by_full if compared[each] == each or _ratio(compared[each], word) >= cutoff]
    last = [
        each for each in folded if not qualifier and "." in each and _ratio(compared[each], word) >= cutoff
    ]
    return [folded[each] for each in dict.fromkeys((*full, *last))][:2]


def _compared(name: str, qualifier: str) -> str:
    """Return the part of a known name to compare with a word behind `qualifier`."""
    if not qualifier:
        return name.rpartition(".")[2]
    return name.removeprefix(f"{qualifier}.")


def _ratio(known: str, word: str) -> float:
    return difflib.SequenceMatcher(None, known, word).ratio()
