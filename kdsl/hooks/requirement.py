"""Version requirements such as `>=1.2,<2`, of release numbers alone."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from itertools import zip_longest
from typing import Final

_CLAUSE: Final = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([0-9]+(?:\.[0-9]+)*)\s*", re.ASCII)
_RELEASE: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*", re.ASCII)
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def satisfies(version: str, requirement: str) -> bool:
    """Return whether a version meets every clause; text after its release number does not count.

    Raises ValueError where either is malformed.
    """
    release = _RELEASE.match(version)
    if release is None:
        raise ValueError(f"`{version}` is no version")
    return all(_COMPARE[sign](_order(release[0], bound), 0) for sign, bound in _clauses(requirement))


def _clauses(requirement: str) -> list[tuple[str, str]]:
    matches = [_CLAUSE.fullmatch(clause) for clause in requirement.split(",")]
    if not all(matches):
        raise ValueError(f"`{requirement}` is no requirement: write one such as `>=1.2,<2`")
    return [(match[1], match[2]) for match in matches if match]


def _order(left: str, right: str) -> int:
    """Return a number below, at or above 0 as the first release comes before, is or follows the second."""
    pairs = zip_longest(map(int, left.split(".")), map(int, right.split(".")), fillvalue=0)
    return next((one - other for one, other in pairs if one != other), 0)
