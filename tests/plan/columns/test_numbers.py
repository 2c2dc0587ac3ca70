"""Lists of numbers that differ from node to node: columns answer as the scalar back end, in every bit."""

from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.check.model.rule_set import CheckedScore
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.over_nodes import lower_macro
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.score import ScorePlugin

from tests.plan.columns.both import both_scores, both_verdicts, predicate_program
from tests.plan.lab import DEFAULT_QUEUE, rules

FREE = [[], [1000], [0], [1000, 1000], [540, 1000, 17], [17, 17, 540], [300, 0, 1000, 300], [1000] * 8]
MODELS = ["T4", "P100", ""]
FUNCTIONS = """
fn free(cards: list(Device)): list(int) = cards.map(card, card.cores - card.usedCores)
fn without(free: list(int), place: int, part: int): list(int) =
  free.transformList(at, left, at == place ? left - part : left)
"""


def _cards(node: NodeInfo) -> tuple[Card, ...]:
    number = int(node.name)
    return tuple(
        Card(f"{number}-{at}", "Kind", "Kind", 10, 1000, 1000, index=at, used_cores=1000 - left)
        for at, left in enumerate(FREE[number % len(FREE)])
    )


def _program(body: str) -> ScorePlugin:
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q scores {{ P weight 1 }} }}'
    found = rules(f"score P {{\n{body}\n}}\n{FUNCTIONS}\n{profile}")
    rule = found.profiles["t.p"].scores[0].score
    assert isinstance(rule, CheckedScore)
    return ScorePlugin(rule, CompiledFunctions(found.fns, lower=lower_macro, cards_of=_cards))


def _nodes() -> NodeSet:
    cache = ClusterCache()
    for number in range(3 * len(FREE)):
        cpu = Resources({"cpu": 1000 * number})
        cache.add_node(
            NodeFacts(str(number), labels=FrozenMap({"model": MODELS[number % len(MODELS)]}), allocatable=cpu)
        )
    return NodeSet.all(cache.snapshot())


LET = "let free = free(node.cards)\n"
GOOD = {
    "size of cards": "value node.cards.size()",
    "size": LET + "value free.size()",
    "sum": LET + "value free.sum()",
    "exists": LET + "value free.exists(left, left > 500) ? 1 : 0",
    "all": LET + "value free.all(left, left > 500) ? 1 : 0",
    "exists_one": LET + "value free.exists_one(left, left == 1000) ? 1 : 0",
    "filter": LET + "value free.filter(left, left >= 300).size() * 10 + free.filter(left, left < 20).sum()",
    "filter of cards' numbers": "value node.cards.map(card, card.index).filter(at, at % 2 == 1).sum()",
    "map": LET + "value free.map(left, left / 3).sum()",
    "doubles": LET + "value free.map(left, double(left) / 3.0).sum()",
    "signed zeros": LET
    + "let zeros = free.map(left, left == 17 ? -1.5 : left == 1000 ? 0.0 : -0.0)\n"
    + "value zeros.size() == 0 ? 1.0 : zeros.max()",
    "signed zeros from above": LET
    + "let zeros = free.map(left, left == 300 ? 1.5 : left == 1000 ? 0.0 : -0.0)\n"
    + "value zeros.size() == 0 ? 1.0 : zeros.min()",
    "sums of large numbers": LET + "value free.map(left, left * 1000000000000000).sum() / 3",
    "guarded extremes": LET + "value free.size() == 0 ? -1 : free.max() - free.min()",
    "guarded index": LET + "value free.size() > 1 ? free[1] - free[0] : 7",
    "index of": LET + "value free.indexOf(1000) * 10 + free.indexOf(17)",
    "in": LET + "value (540 in free ? 1 : 0) + (node.cards.size() in free ? 2 : 0)",
    "distinct": LET + "value free.distinct().size() * 10000 + free.distinct().sum()",
    "sort": LET + "value free.sort().transformList(at, left, at * left).sum()",
    "slice": LET + "value free.size() < 2 ? 0 : free.sort().slice(0, 2).sum()",
    "range": LET + "value lists.range(free.size()).filter(at, free[at] >= 300).map(at, at * at).sum()",
    "lists in lists": LET
    + "value lists.range(free.size()).map(at, without(free, at, 100).transformList(i, l, i * l).sum()).sum()",
    "lists by text": 'value ",1,1,2".split(",", node.cards.size() + 1).map(word, word.size()).sum()',
    "fragmentation": LET
    + 'let typical = [typicalPod(0.7, 4000, 1, 500, []), typicalPod(0.3, 0, 2, 300, ["T4"])]\n'
    + 'value fragmentation(typical, node.allocatable["cpu"] / quantity("1m"), free, '
    + 'node.labels[?"model"].orValue(""))',
    "room": LET
    + 'let typical = [typicalPod(0.7, 4000, 1, 500, []), typicalPod(0.3, 0, 2, 300, ["T4"])]\n'
    + 'value room(typical, node.allocatable["cpu"] / quantity("1m"), free, '
    + 'node.labels[?"model"].orValue(""), 0.8)',
    "the best card": LET
    + "let typical = [typicalPod(0.7, 4000, 1, 500, []), typicalPod(0.3, 0, 2, 300, [])]\n"
    + "let large = lists.range(free.size()).filter(at, free[at] >= 100)\n"
    + "value large.size() == 0 ? 0 : large.map(at, int(fragmentation(typical, 4000, "
    + 'without(free, at, 100), "T4"))).max()',
}
FAILING = {
    "the largest of none": LET + "value free.max()",
    "a sum beyond the least number": LET
    + "value free.map(left, left == 1000 ? -9223372036854775807 - 1 : left).sum() / 2",
    "a sum beyond the largest number": LET + "value free.map(left, left * 9223372036854775).sum() / 2",
    "an index": LET + "value free[1]",
    "a slice": LET + "value free.slice(0, 2).sum()",
    "an item": LET + "value free.map(left, 1000 / left).sum()",
    "a condition": LET + "value free.exists(left, 1000 / left > 900) ? 1 : 0",
}


@pytest.mark.parametrize("name", [*GOOD, *FAILING])
def test_columns_answer_as_the_scalar_back_end(name: str) -> None:
    program = _program(GOOD.get(name) or FAILING[name])
    columns, scalar = both_scores(program, PodInfo("p"), _nodes())
    assert columns == scalar
    assert len(set(scalar)) > 1


@pytest.mark.parametrize("name", [name for name in GOOD if name != "lists by text"])
def test_all_of_it_runs_over_columns(name: str) -> None:
    program = _program(GOOD[name])
    asked: list[str] = []
    original = ScorePlugin.scalar_scores

    def scalar_scores(*args: object, **kwargs: object) -> object:
        asked.append(name)
        return original(*args, **kwargs)  # type: ignore[arg-type]

    assert not program.scalar_parts, [part.span.text for part in program.scalar_parts]
    nodes = _nodes()
    frame = program.begin(PodInfo("p"), ClusterView(nodes.snapshot), nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScorePlugin, "scalar_scores", scalar_scores)
        program.raw_scores(frame, nodes)
    assert not asked


def test_a_profile_without_devices_sees_no_cards() -> None:
    found = rules(
        "score P { value node.cards.size() }\n"
        + f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q scores {{ P weight 1 }} }}'
    )
    rule = found.profiles["t.p"].scores[0].score
    assert isinstance(rule, CheckedScore)
    columns, scalar = both_scores(ScorePlugin(rule, CompiledFunctions(found.fns)), PodInfo("p"), _nodes())
    assert set(columns) == set(scalar) == {"0"}


@pytest.mark.parametrize("steps", range(20, 120, 3))
@pytest.mark.parametrize(
    "list_",
    ["lists.range(n)", "lists.range(n).sort()", "lists.range(n).slice(0, n)", "lists.range(n).distinct()"],
)
def test_columns_run_out_of_steps_where_the_scalar_back_end_does(list_: str, steps: int) -> None:
    text = list_.replace("n)", "node.podCount + 48)")
    body = f'require {text}.sum() < 0 else "enough"'
    program = predicate_program(body, steps=Steps(node=steps))
    columns, scalar = both_verdicts(program, PodInfo("p"), _nodes())
    assert columns == scalar
