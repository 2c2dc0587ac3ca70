"""Places of mistakes in the rules of a run. kdsl writes their rule file; the user wrote an experiment, so a
mistake is shown there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Edit, Fix, Label
from kdsl.base.span import Span
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_plain

FILE: Final = Path("lab-run.kdsl")
"""The name of the rule file of a run."""
PROFILE: Final = "profile"
"""The `where` of mistakes in the name of the profile."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters of the rule file that an experiment gave: those of `node` from `shift` on, or without a
    shift others that stand for the whole node.
    """

    start: int
    end: int
    node: YamlNode
    shift: int | None


@dataclass(frozen=True, slots=True)
class Written:
    """The rules of a run as an experiment states them: the profile's name, and parameters with their values
    by name.
    """

    profile: YamlNode
    values: Mapping[str, tuple[YamlScalar, YamlNode]]


def written_of(contender: YamlNode, values: Mapping[str, object]) -> Written:
    """Return what the profile of an experiment says about a choice of its values."""
    nodes: dict[str, tuple[YamlScalar, YamlNode]] = {}
    profile = contender.get("profile") if isinstance(contender, YamlMapping) else None
    if isinstance(contender, YamlMapping):
        for key, value in _settings(contender):
            if key.text in values and to_plain(value) == values[key.text]:
                nodes.setdefault(key.text, (key, value))
    return Written(profile or contender, nodes)


def _settings(contender: YamlMapping) -> Iterator[tuple[YamlScalar, YamlNode]]:
    """Yield all parameters with their values; those that replace others come first."""
    grid, listed, fixed = (contender.get(key) for key in ("grid", "list", "set"))
    for key, items in grid.entries if isinstance(grid, YamlMapping) else ():
        yield from ((key, item) for item in (items.items if isinstance(items, YamlSequence) else ()))
    for choice in (*(listed.items if isinstance(listed, YamlSequence) else ()), fixed):
        yield from choice.entries if isinstance(choice, YamlMapping) else ()


def placed(found: Iterable[Diagnostic], pieces: Sequence[Piece], written: Written) -> Iterator[Diagnostic]:
    """Yield diagnostics with the places of the experiment instead of those of the rule file."""
    places = _Places(pieces, written)
    for each in found:
        is_profile = each.span is None and each.where == PROFILE
        fixes = tuple(fix for one in each.fixes if (fix := places.fix(one)) is not None)
        lost = tuple(one.title for one in each.fixes if places.fix(one) is None)
        yield replace(
            each,
            span=written.profile.span if is_profile else each.span and places.of(each.span)[0],
            where="" if is_profile else each.where,
            secondary=tuple(Label(places.of(label.span)[0], label.text) for label in each.secondary),
            help=(*each.help, *lost),
            fixes=fixes,
        )


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of an experiment for spans of a rule file."""

    pieces: Sequence[Piece]
    written: Written

    def of(self, span: Span) -> tuple[Span, bool]:
        """Return the place of a span, and whether it has the same characters."""
        if span.source.path != str(FILE):
            return span, True
        for piece in self.pieces:
            if not piece.start <= span.start <= piece.end:
                continue
            if piece.shift is None or not isinstance(piece.node, YamlScalar):
                return piece.node.span, False
            shift = piece.shift - piece.start
            end = min(span.end, piece.end)
            return piece.node.locator()(span.start + shift, end + shift), span.end <= piece.end
        return self.written.profile.span, False

    def fix(self, fix: Fix) -> Fix | None:
        """Return a fix at the places of the experiment; None where they have other characters."""
        placed = [(*self.of(edit.span), edit.text) for edit in fix.edits]
        if not all(is_same for _, is_same, _ in placed):
            return None
        return replace(fix, edits=tuple(Edit(span, text) for span, _, text in placed))
