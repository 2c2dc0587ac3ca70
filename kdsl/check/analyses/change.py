"""One difference between two versions of rules. `changes.py` finds it, `kdsl diff` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from kdsl.check.model.rule_set import CheckedProfile
from kdsl.lang.tree import Statement

T = TypeVar("T", CheckedProfile, Statement)


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One difference: the property `what` of `subject` was `before` and is `after`.

    `before` is empty for an addition, `after` for a removal; both are empty where the name is enough. `site`
    is the `file:line` in the new version, or in the old version for a removal.
    """

    subject: str
    kind: ChangeKind
    what: str
    before: str = ""
    after: str = ""
    site: str = ""


def compared(
    subject: str, old: T | None, new: T | None, differences: Callable[[str, T, T], Iterable[PropertyChange]]
) -> Iterator[PropertyChange]:
    """Yield the changes of a subject in two versions; None stands for a version that does not have it."""
    if old is not None and new is not None:
        yield from differences(subject, old, new)
    elif new is not None:
        yield PropertyChange(subject, ChangeKind.ADDED, "", site=new.span.site)
    elif old is not None:
        yield PropertyChange(subject, ChangeKind.REMOVED, "", site=old.span.site)
