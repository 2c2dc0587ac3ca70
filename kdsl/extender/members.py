"""The members of JSON objects by key in any case, as Go reads them, without memory for unknown ones.

Short JSON can have millions of members: a call has a budget of those that Python sees.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw

MOST_MEMBERS: Final = 1_000_000
"""The most keys and named objects of a call that are read one by one: a second of work."""

_NULL: Final = b"null"


class SpentError(ValueError):
    """A call with more members than its budget."""


class _Left(threading.local):
    """The budget of the call that the thread reads."""

    members = 0


_left: Final = _Left()


class _Key(Enum):
    """The keys of `extender/v1` in lower case; all others are one, of which a `dict` keeps the last value."""

    POD = "pod"
    NODES = "nodes"
    NODE_NAMES = "nodenames"
    ITEMS = "items"
    VICTIMS = "nodenametovictims"
    META_VICTIMS = "nodenametometavictims"
    PODS = "pods"
    VIOLATIONS = "numpdbviolations"
    UID = "uid"
    POD_NAME = "podname"
    POD_NAMESPACE = "podnamespace"
    POD_UID = "poduid"
    NODE = "node"
    OTHER = ""

    @classmethod
    def _missing_(cls, value: object) -> _Key:
        take()
        return _KEYS.get(str(value).lower(), _Key.OTHER)


_KEYS: Final = {key.value: key for key in _Key}
_members: Final = msgspec.json.Decoder(dict[_Key, Raw])


def begin() -> None:
    """Begin to read a call."""
    _left.members = MOST_MEMBERS


def take(count: int = 1) -> None:
    """Count members; raises SpentError if the budget is spent."""
    _left.members -= count
    check()


def check() -> None:
    """Raise SpentError if the budget is spent: a decoder has an error of its own for that."""
    if _left.members < 0:
        raise SpentError(f"the body has more than {MOST_MEMBERS} members")


def folded(body: bytes | Raw) -> dict[str, Raw]:
    """Return the known members of an object by lower-case key, without nulls; of equal keys the last."""
    members = _members.decode(body)
    return {key.value: raw for key, raw in members.items() if key is not _Key.OTHER and not _is_null(raw)}


def count(listed: Raw) -> int:
    """Return the number of members of an object, at most the budget."""
    before = _left.members
    _members.decode(listed)
    return before - _left.members


def _is_null(raw: Raw) -> bool:
    return len(memoryview(raw)) == len(_NULL) and bytes(raw) == _NULL
