"""Runs one workload under two sets of rules, and compares the node of each pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kdsl.app import Settings
from kdsl.check.model.rule_set import RuleSet
from kdsl.explain.moves import Moves, ends_of, moved_pods, moves_of
from kdsl.sim.run import simulate
from kdsl.sim.workload import Workload


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sets of rules, and its settings."""

    rules: RuleSet
    settings: Settings


def compare(
    old: Side, new: Side, workload: Workload, on_decision: Callable[[], None] = lambda: None
) -> Moves:
    """Return the pods that get another node under the new rules, and why.

    If there are any, both sides run again: only then are the nodes known whose verdicts must be recorded.
    """
    homes = {pod.key: pod.node_name for pod in workload.placed}
    runs = [simulate(each.rules, workload, each.settings, on_decision).decisions for each in (old, new)]
    nodes: Mapping[str, tuple[str, str]] = moved_pods(ends_of(runs[0]), ends_of(runs[1]), homes)
    if nodes:
        runs = [
            simulate(each.rules, workload, each.settings, on_decision, verdict_nodes=nodes).decisions
            for each in (old, new)
        ]
    return moves_of(runs[0], runs[1], homes)
