"""One difference between two versions of rules: what `changes.py` finds and `kdsl diff` prints."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `what` of `subject` was `before` and is `after`.

    `before` is empty for what was added, `after` for what was removed, both where the name says it all.
    `site` is the `file:line` of the new version, or of the old one where it is gone.
    """

    subject: str
    kind: ChangeKind
    what: str
    before: str = ""
    after: str = ""
    site: str = ""


def whole(subject: str, kind: ChangeKind, site: str) -> Change:
    """Return the change of something that only one side has."""
    return Change(subject, kind, "", site=site)
