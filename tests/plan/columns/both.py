"""Runs a rule through both back ends, so that tests can hold them equal."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.check.model.rule_set import CheckedPredicate, CheckedScore
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.columns.over_nodes import lower_macro
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.scope import CompiledFunctions, LowerMacro
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin

from tests.plan.lab import DEFAULT_QUEUE, rules

_PREDICATE = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
_SCORE = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q scores {{ P weight 1 }} }}'


def checked_predicate(
    body: str, fns: str = "", steps: Steps = DEFAULT_STEPS
) -> tuple[CheckedPredicate, CompiledFunctions]:
    """Check a predicate whose body begins in line 4."""
    found = rules(f"predicate P {{\n{body}\n}}\n{fns}\n{_PREDICATE}")
    rule = found.profiles["t.p"].predicates[0]
    assert isinstance(rule, CheckedPredicate)
    return rule, CompiledFunctions(found.fns, steps=steps, lower=lower_macro)


def predicate_program(body: str, fns: str = "", steps: Steps = DEFAULT_STEPS) -> PredicateRule:
    """Compile a predicate whose body begins in line 4."""
    return PredicateRule(*checked_predicate(body, fns, steps))


def score_program(
    body: str, fns: str = "", lower: LowerMacro | None = lower_macro, steps: Steps = DEFAULT_STEPS
) -> ScorePlugin:
    found = rules(f"score P {{\n{body}\n}}\n{fns}\n{_SCORE}")
    rule = found.profiles["t.p"].scores[0].score
    assert isinstance(rule, CheckedScore)
    return ScorePlugin(rule, CompiledFunctions(found.fns, steps=steps, lower=lower))


def cluster(nodes: Sequence[NodeFacts], pods: Sequence[PodInfo] = ()) -> ClusterCache:
    """Return a cluster with copies of nodes, under names of their own, so that there are enough for columns."""
    cache = ClusterCache()
    for facts in nodes:
        cache.add_node(facts)
    for pod in pods:
        cache.add_pod(pod)
    return cache


def both_verdicts(program: PredicateRule, pod: PodInfo, nodes: NodeSet) -> tuple[list[object], list[object]]:
    """Return the answers of the column back end and of the scalar one for every node."""
    assert len(nodes) >= MIN_ROWS
    answers: list[list[object]] = []
    for is_columns in (True, False):
        frame, numbers = program.begin(pod, ClusterView(nodes.snapshot)), StatusNumbers()
        decided = program.decide(frame)
        if decided is not None:
            return [decided], [decided]
        ids = (
            program.statuses_in(frame, nodes, numbers)
            if is_columns
            else program.scalar_statuses(frame, nodes.nodes(), numbers)
        )
        statuses = [numbers.table[one] for one in ([0] * len(nodes) if ids is None else ids)]
        answers.append([(status.code, status.reasons, status.sites) for status in statuses])
    return answers[0], answers[1]


def both_scores(program: ScorePlugin, pod: PodInfo, nodes: NodeSet) -> tuple[list[str], list[str]]:
    """Return the raw scores of both back ends, exact in every bit."""
    assert len(nodes) >= MIN_ROWS

    def begin() -> list[object]:
        return program.begin(pod, ClusterView(nodes.snapshot), nodes)

    columns = program.raw_scores(begin(), nodes).tolist()
    return [repr(one) for one in columns], [
        repr(one) for one in program.scalar_scores(begin(), nodes.nodes())
    ]
