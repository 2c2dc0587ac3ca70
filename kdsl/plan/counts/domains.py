"""The topology domain of each row: the values of one label, numbered."""

from __future__ import annotations

from typing import Final

from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumn, FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot

NO_DOMAIN: Final = ABSENT
"""The number of the domain of a row whose node lacks the label."""


def domains_of(live: LiveSnapshot, topology_key: str) -> FactColumn:
    """Return the current column of a label: its codes are the numbers of the domains."""
    return FactColumns.of(live).key("labels", topology_key)
