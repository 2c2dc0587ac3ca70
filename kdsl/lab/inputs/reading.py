"""The result of reading a trace of any form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.read.reader import Manifest
from kdsl.lab.inputs.ledger import Ledger
from kdsl.lab.timed import TimedWorkload
from kdsl.records.manifests import ObjectId


@dataclass(frozen=True, slots=True)
class Reading:
    """A workload over time and the diagnostics of its files.

    `manifests` are its objects as written, by kind and key; empty unless requested. `ledgers` count the rows
    of tables. Without `has_times` pods have no times of arrival: one arrives in each second.
    """

    workload: TimedWorkload
    diagnostics: tuple[Diagnostic, ...]
    manifests: Mapping[ObjectId, Manifest] = field(default_factory=dict)
    ledgers: tuple[Ledger, ...] = ()
    has_times: bool = True
