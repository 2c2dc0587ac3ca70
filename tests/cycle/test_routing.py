"""From pods to hook tables, with a router and without one."""

from __future__ import annotations

from dataclasses import replace

from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.routing import Routes
from kdsl.hooks.faults import Fault

from tests.cycle.world import cluster, plugin, pod, table


class _ByNamespace:
    """The namespace is the profile; that of `other` is somebody else's."""

    def profile_of(self, pod: PodInfo) -> str | None:
        return None if pod.namespace == "other" else pod.namespace

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        return ()


_BINDER = {"binder": plugin(bind=lambda: None)}


def test_without_a_router_the_scheduler_name_decides() -> None:
    routes = Routes([table({}), table({}, scheduler="odd")])
    found = routes.table_of(pod(scheduler_name="odd"))
    assert found is not None and found.scheduler == "odd"
    assert routes.table_of(pod(scheduler_name="unknown")) is None


def test_the_queue_and_the_cycle_follow_the_router() -> None:
    tables = [replace(table(_BINDER), profile=name) for name in ("a", "b")]
    engine = Engine(tables, cluster(2), ManualClock(), router=_ByNamespace())
    pods = [pod(name, namespace=name) for name in ("b", "a", "other", "missing")]
    found = {decision.pod: (decision.profile, decision.outcome) for decision in engine.decisions(pods)}
    assert found == {
        "a/a": ("a", Outcome.PLACED),
        "b/b": ("b", Outcome.PLACED),
        "other/other": ("", Outcome.SKIPPED),
        "missing/missing": ("", Outcome.SKIPPED),
    }
