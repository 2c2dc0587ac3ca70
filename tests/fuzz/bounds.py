"""Runs rules that the checker let pass, each alone: nothing may be raised, and none may go beyond its cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from unittest import mock

from kdsl.analysis.cost.profiles import profile_costs
from kdsl.analysis.cost.rules import PODS_OF_A_NODE
from kdsl.analysis.cost.shapes import measure
from kdsl.check.model.rule_set import (
    CheckedPredicate,
    CheckedPreemption,
    CheckedQueue,
    CheckedScore,
    RuleSet,
    WrittenRule,
)
from kdsl.check.views.view import load_views
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Meter, Steps
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import Candidate, QueuedPod
from kdsl.hooks.state import CycleState
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.preemption import PreemptionPlugin
from kdsl.plan.rules.queue import QueuePlugin
from kdsl.plan.rules.score import ScorePlugin

from tests.plan.lab import node, nodes_of

POD = PodInfo("p", images=("a", "b"), namespace="n" * 60)
VICTIM = PodInfo("v", namespace="n", uid="v", labels=POD.labels, node_name="m", priority=-1)
NODES = (node("n" * 100), node("m", labels={f"k{at}": "v" * 63 for at in range(20)}))


class PastItsBoundError(AssertionError):
    """A rule took more steps than the formula of its cost says."""


def stay_within_bounds(found: RuleSet, path: str) -> None:
    """Run the rules of a file, as profiles use them, on a pod and nodes: with the steps that formulas say.

    Raises PastItsBoundError where one needs more. A rule whose formula is above what rules may spend is run
    with that: it is stopped there.
    """
    views, nodes = load_views(), nodes_of(*NODES, pods=(VICTIM,))
    objects = [("Pod", POD), ("Pod", VICTIM), *(("Node", each) for each in nodes.nodes())]
    sizes = {**measure(views, objects), PODS_OF_A_NODE: 1}
    for profile in found.profiles.values():
        for each in profile_costs(found, profile, views):
            if each.cost is None or each.rule.span.source.path != path:
                continue
            bounds = [
                part.at(lambda name: sizes.get(name, 0)) for part in (each.cost.per_node, each.cost.per_pod)
            ]
            is_bounded = None not in bounds and max(bound or 0 for bound in bounds) <= DEFAULT_STEPS.node
            steps = (
                Steps(bounds[0] or 0, sum(bound or 0 for bound in bounds)) if is_bounded else DEFAULT_STEPS
            )
            with _watched() as over:
                _run(each.rule, CompiledFunctions(found.fns, steps=steps), nodes)
            if over and is_bounded:
                raise PastItsBoundError(f"{each.rule.qualified}: {over[0]}; its cost is {each.cost}")


@contextmanager
def _watched() -> Iterator[list[str]]:
    """Collect what is said of meters that run out."""
    over: list[str] = []
    spend = Meter.spend

    def watched(meter: Meter, steps: int) -> None:
        if meter.left < steps:
            over.append(f"more than {meter.limit} steps")
        spend(meter, steps)

    with mock.patch.object(Meter, "spend", watched):
        yield over


def _run(rule: WrittenRule, functions: CompiledFunctions, nodes: NodeSet) -> None:
    """Ask a rule all that the cycle asks it; only PluginError, the end of an attempt, may be raised."""
    state = CycleState()
    match rule:
        case CheckedPredicate():
            predicate = PredicatePlugin((PredicateRule(rule, functions, "it"),))
            with suppress(PluginError):
                if predicate.pre_filter(state, POD, nodes) is None:
                    predicate.filter(state, POD, nodes)
        case CheckedScore():
            score = ScorePlugin(rule, functions, 1, "it")
            with suppress(PluginError):
                score.pre_score(state, POD, nodes)
                score.normalize_score(state, POD, nodes, score.score(state, POD, nodes))
        case CheckedQueue():
            queue = QueuePlugin(rule, "it", functions)
            queue.backoff()
            queue.pre_enqueue(POD)
            # Every sort key is comparable with every other.
            sorted(queue.queue_sort(QueuedPod(pod, at, at)) for at, pod in enumerate((POD, VICTIM)))
        case CheckedPreemption():
            preemption = PreemptionPlugin(rule, "it", functions)
            preemption.may_preempt(POD, (VICTIM,))
            victims = preemption.find_victims(POD, (VICTIM,))
            assert preemption.enough_candidates(POD, 10) >= 1
            preemption.choose_candidate(POD, [Candidate(name, tuple(victims), 0) for name in "nm"])
            preemption.may_have_victims(POD, nodes)
