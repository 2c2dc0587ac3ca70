"""One difference between two versions of rules. `changes.py` finds it, `kdsl diff` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
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


def whole(subject: str, kind: ChangeKind, site: str) -> Change:
    """Return the change for a subject that only one side has."""
    return Change(subject, kind, "", site=site)
