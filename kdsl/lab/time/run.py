"""One run over time: a workload under a profile, with the history of its pods and the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from kdsl.app import Settings, devices_in_use
from kdsl.base.errors import KdslError
from kdsl.base.garbage import settled_heap
from kdsl.base.times import SECOND
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.devices.typical import TypicalPod
from kdsl.cycle.decision import TieBreak
from kdsl.lab.time.autoscaler import Autoscaler
from kdsl.lab.time.expander import expander_of
from kdsl.lab.time.fleet import Fleet
from kdsl.lab.time.meter import Meter, Sample
from kdsl.lab.time.plan import TimePlan, nanoseconds
from kdsl.lab.time.pod_log import PodLog
from kdsl.lab.time.simulation import Simulation
from kdsl.lab.time.trial import Trial
from kdsl.lab.time.world import decides_by_kind, open_world
from kdsl.lab.timed import TimedWorkload
from kdsl.plan.card_table import no_cards
from kdsl.sim.workload import Workload


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The result of a run: the pods that were there and those that arrived, in order, and the samples.

    `end` is the time at which it ended, in seconds; the means are over time, see `Meter`.
    """

    pods: tuple[PodLog, ...]
    samples: tuple[Sample, ...]
    end: float
    allocation_mean: float | None
    fragmentation_mean: float | None
    nodes_mean: float | None
    nodes_max: int
    cost: float
    late: int
    """Pods that were placed only because they were tried again without an event: rules miss an event."""


def run_over_time(
    rules: RuleSet,
    profile: str,
    workload: TimedWorkload,
    plan: TimePlan,
    seed: int = 0,
    tie_break: TieBreak = TieBreak.FIRST,
    typical: Sequence[TypicalPod] = (),
) -> TimedRun:
    """Run a workload over time under a profile; all nodes are looked at for each pod.

    `seed` is for the tie-break `random`. Fragmentation is measured for `typical` pods. Raises KdslError if
    two pods or nodes have one name, or pods evict each other forever.
    """
    settings = Settings(profile=profile, seed=seed, tie_break=tie_break, percentage=100)
    devices = next(devices_in_use(rules, settings, ()), None)
    cards_of = no_cards if devices is None else devices.inventories.cards
    fleet = Fleet(plan.groups)
    nodes = [*workload.nodes, *fleet.first()]
    _check_names(workload, nodes, fleet)
    cluster = Workload(nodes, workload.placed, (), workload.catalog).cluster()
    # Without devices there are no cards that could be lost.
    meter = Meter(cards_of, typical if devices is not None else (), nanoseconds(plan.sample))
    with ExitStack() as stack:
        world = stack.enter_context(open_world(rules, settings, cluster, evicts=True))
        scaler = None
        if plan.scaling is not None:
            trial = Trial(rules, settings, cards_of, has_catalog=bool(workload.catalog))
            stack.callback(trial.close)
            scaler = Autoscaler(plan.scaling, expander_of(plan.scaling.expander), fleet, trial, cards_of)
        stack.enter_context(settled_heap())
        by_kind = decides_by_kind(rules, settings)
        simulation = Simulation(world, plan, fleet, meter, scaler, shares_kinds=by_kind)
        simulation.run(workload)
        return TimedRun(
            tuple(simulation.logs.values()),
            meter.samples,
            world.now / SECOND,
            meter.allocation_mean,
            meter.fragmentation_mean,
            meter.nodes_mean,
            meter.nodes_max,
            meter.cost,
            simulation.late,
        )


def _check_names(workload: TimedWorkload, nodes: Sequence[Any], fleet: Fleet) -> None:
    pods = [pod.key for pod in workload.placed] + [each.pod.key for each in workload.arrivals]
    changed = [change.name for change in workload.node_changes]
    for what, names in (("pods", pods), ("nodes", [node.name for node in nodes])):
        if len(names) != len(set(names)):
            again = next(name for at, name in enumerate(names) if name in names[:at])
            raise KdslError(f"two {what} of the workload are called `{again}`")
    taken = {group.name for group in fleet.groups}
    for name in (*changed, *(node.name for node in workload.nodes)):
        if name.rpartition("-")[0] in taken and name.rpartition("-")[2].isdigit():
            raise KdslError(f"node `{name}` of the workload has a name of a node group")
