"""Which domain each row is in: the values of one label, numbered."""

from __future__ import annotations

from typing import Final

from kdsl.cluster.snapshot.snapshot import LiveSnapshot
from kdsl.plan.facts import ABSENT, FactColumn, Facts

NO_DOMAIN: Final = ABSENT
"""The number of the domain of a row whose node lacks the label."""


def domains_of(live: LiveSnapshot, topology_key: str) -> FactColumn:
    """Return the column of a label, up to date: its codes are the numbers of the domains."""
    return Facts.of(live).key("labels", topology_key)
