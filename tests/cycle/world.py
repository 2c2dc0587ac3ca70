"""A small world for the tests of the cycle: nodes `n0`, `n1`, … and plugins made of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.hooks.guard import Guard
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.specs import hookimpl
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.hooks.table import HookTable, ProfileOrder, SampleSize, freeze


def pod(name: str = "p", **fields: Any) -> PodInfo:
    """A pod with its name as UID."""
    return PodInfo(name, uid=f"uid-{name}", **fields)


def cluster(nodes: int) -> ClusterCache:
    """A cluster of so many nodes; node `n<i>` has row i."""
    cache = ClusterCache()
    for at in range(nodes):
        cache.add_node(NodeFacts(f"n{at}"))
    return cache


def snapshot(nodes: int) -> Snapshot:
    """The snapshot of such a cluster."""
    return cluster(nodes).snapshot()


def plugin(**hooks: Callable[..., Any]) -> object:
    """A plugin whose hooks are these functions; they take the arguments of the hook, without `self`."""
    made = type("Plugin", (), {})()
    for name, function in hooks.items():
        setattr(made, name, hookimpl(function))
    return made


def always(answer: Any) -> Callable[[], Any]:
    """A hook that always gives this answer."""
    return lambda: answer


def table(
    plugins: Mapping[str, object],
    *,
    scores: Mapping[str, int] | None = None,
    predicates: Iterable[str] | None = None,
    queue: str = "",
    preemption: str = "",
    sample_size: SampleSize | None = None,
    scheduler: str = "default-scheduler",
    check_all: bool = False,
    are_rules: bool = False,
    guard: Guard | None = None,
) -> HookTable:
    """Freeze plugins into a profile: those with a filter or PreFilter hook are its predicates, in order.

    With a `guard` their time is limited as it says.
    """
    manager = PluginManager(guard)
    for name, one in plugins.items():
        assert manager.register(one, name, is_rule=are_rules, is_limited=guard is not None) == ()
    if predicates is None:
        filters = ("filter", "filter_node", "pre_filter", "add_pod")
        predicates = [name for name, one in plugins.items() if any(hasattr(one, hook) for hook in filters)]
    order = ProfileOrder(
        "default",
        scheduler,
        predicates=tuple(predicates),
        scores=tuple((scores or {}).items()),
        queue=queue,
        preemption=preemption,
        plugins=tuple(plugins),
        check_all=check_all,
    )
    frozen, _ = freeze(manager, order)
    assert frozen is not None
    return replace(frozen, sample_size=sample_size)


def attempt(
    plugins: Mapping[str, object], nodes: int = 3, of: PodInfo | None = None, **options: Any
) -> Attempt:
    """An attempt to place a pod on `nodes` nodes."""
    return Attempt(table(plugins, **options), of or pod(), snapshot(nodes))


def engine(
    plugins: Mapping[str, object], nodes: int = 3, *, options: EngineOptions | None = None, **rest: Any
) -> Engine:
    """An engine over a fresh cluster whose pods are bound by a plugin that says yes."""
    with_binder = {**plugins, "binder": plugin(bind=lambda: None)}
    return Engine([table(with_binder, **rest)], cluster(nodes), ManualClock(), options or EngineOptions())


def rejecting(reasons: Mapping[int, str], code: Code = Code.UNSCHEDULABLE) -> object:
    """A plugin that rejects the nodes of these rows."""

    def judge(nodes: NodeSet) -> StatusColumn:
        return column(nodes, {row: Status(code, (reason,)) for row, reason in reasons.items()})

    return plugin(filter=judge)


def column(nodes: NodeSet, statuses: Mapping[int, Status]) -> StatusColumn:
    """Answer with these statuses by row, success for the others."""
    return StatusColumn.of(statuses.get(row, SUCCESS) for row in nodes.rows.tolist())


def scoring(values: Mapping[int, int] | Callable[[int], float]) -> object:
    """A plugin that scores nodes by row; 0 where nothing is said."""
    value = values if callable(values) else lambda row: values.get(row, 0)
    return plugin(score=lambda nodes: np.array([value(row) for row in nodes.rows.tolist()]))
