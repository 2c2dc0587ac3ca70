"""Selects the hooks for a pod. The engine and its queue both use it, so that they always agree."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.ports import Router
from kdsl.hooks.faults import Fault
from kdsl.hooks.table import HookTable


class Routes:
    """The hook tables of an engine. Without a router a pod gets the table whose scheduler it names."""

    def __init__(self, tables: Iterable[HookTable], router: Router | None = None) -> None:
        self.adopt(tables, router)

    def adopt(self, tables: Iterable[HookTable], router: Router | None = None) -> None:
        """Use these tables from now on; attempts that have begun keep theirs."""
        self._router = router
        self._tables = {table.scheduler if router is None else table.profile: table for table in tables}

    def table_of(self, pod: PodInfo) -> HookTable | None:
        """Return the hooks of the pod's profile; None where this scheduler does not take the pod."""
        name = pod.scheduler_name if self._router is None else self._router.profile_of(pod)
        return None if name is None else self._tables.get(name)

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return the errors of selecting the pod's profile."""
        return () if self._router is None else self._router.faults_of(pod)
