"""Values that only some rows have, over columns: entries of maps and lists, and the branches of `?:`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import Frame
from kdsl.eval.values import Value
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin

from tests.plan.columns.both import both_scores, both_verdicts, cluster, predicate_program, score_program

KEYS = "kji"
NODES = NodeSet.all(
    cluster(
        [
            NodeFacts(
                f"n{at}",
                # Every combination of keys, each with two values.
                labels=FrozenMap(
                    {key: f"{key}{at % 5}" for place, key in enumerate(KEYS) if at >> place & 1}
                    | {"n": f"{at}"}
                ),
                unschedulable=at % 3 == 0,
                allocatable=Resources({"cpu": at * 500, "memory": at << 20}),
            )
            for at in range(40)
        ],
        [PodInfo(f"p{at}-{number}", node_name=f"n{at}") for at in range(40) for number in range(at % 4)],
    ).snapshot()
)
POD = PodInfo("p", labels=FrozenMap({"k": "k1", "j": "j2", "x": "y"}), priority=2)
MAP = "pod.labels.transformMap(key, v, key in node.labels, node.labels[key])"
COUNTS = "pod.labels.transformMap(key, v, key in node.labels, node.podCount + v.size())"
PART = "[1, 2, 3, 4].filter(i, i > node.podCount)"
LEFT = {
    f"{PART}[1] > 3": 10,
    f"{PART}.filter(i, i < 4).map(i, 6 / (i - node.podCount - 1)).size() > 1": 30,
    "[1, 2].map(i, node.podCount > i, 4 / (node.podCount - 2)).sum() > 1": 10,
    "[1, 2].map(i, 4 / (node.podCount - i) > 0, node.podCount).sum() > 1": 20,
    "[9223372036854775807, 1].map(i, i == 1 || node.podCount > 1, i).sum() > 0": 20,
    "[9223372036854775807, 1].map(i, i - node.podCount).sum() > 0": 10,
    'node.labels[?"k"].orValue("k1") in ["k1", "k2"]': 6,
    '!("j" in node.labels) || node.labels["j"] in ["j1", "j2"]': 6,
    "node.unschedulable ? 7 : 3": 2,
    "node.unschedulable ? 1.5 : 2.5": 2,
    "node.podCount > 1 ? 4 / (node.podCount - 2) : node.podCount": 10,
    "node.podCount > 1 ? node.podCount : 4 / (node.podCount - 1)": 10,
    "node.podCount > 1 ? 1 / 0 : node.podCount": 20,
    "node.podCount > 1 ? node.podCount : 1 / 0": 20,
    "4 / node.podCount > 2 ? node.podCount : 9": 10,
}
"""The number of nodes that columns leave to the scalar back end: those with an error, and one per group if a
rule reads few facts; otherwise none.
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of nodes given to the scalar back end, by call: all of them once, to compare, and those that
    columns leave to it.
    """
    found: list[int] = []
    evaluate, evaluate_score = PredicateRule.scalar_statuses, ScorePlugin.scalar_scores

    def watched(program: PredicateRule, frame: Frame, nodes: Iterable[Value], *others: Value) -> Value:
        given = list(nodes)
        found.append(len(given))
        return evaluate(program, frame, given, *others)

    def watched_score(
        program: ScorePlugin, frame: Frame, nodes: Iterable[Value], **others: Value
    ) -> Iterator[int | float]:
        given = list(nodes)
        found.append(len(given))
        return evaluate_score(program, frame, given, **others)

    monkeypatch.setattr(PredicateRule, "scalar_statuses", watched)
    monkeypatch.setattr(ScorePlugin, "scalar_scores", watched_score)
    yield found


@pytest.mark.parametrize(
    "condition",
    [
        f"{MAP}.size() > 1",
        f'"k" in {MAP}',
        f'"x" in {MAP} || node.podCount > 1',
        f'"z" in {MAP} || node.podCount > 1',
        f'{MAP}[?"k"].orValue("") == "k1"',
        f'let m = {MAP} @ "j" in m && m["j"] == "j2"',
        f'let m = {MAP} @ !("k" in m) || m["k"] == "k1"',
        f'let m = {MAP} @ node.podCount > 0 || ("z" in m && m["z"] == "k1")',
        f'{MAP}.exists(key, value, value == "k1" || value == "j2")',
        f'{MAP}.all(key, value, value == key + "1")',
        f'{MAP}.exists_one(key, key == "k" || key == "j")',
        f"{COUNTS}.transformList(key, v, v).sum() > 3",
        f"{COUNTS}.transformMap(key, v, v > 2, v * 2).size() == 1",
        f'let m = {COUNTS} @ "j" in m && m["j"] > 3',
        'let m = pod.labels.transformMap(key, v, node.podCount + v.size()) @ "j" in m && m["j"] > 3',
        "let m = [1, 2].transformMap(at, i, i > node.podCount, i * 2) @ 0 in m && m[0] + node.podCount > 1",
        f'let m = {COUNTS} @ "k" in m && "j" in m && m["k"] + m["j"] > 5',
        f"{COUNTS}.all(key, v, v < 4)",
        f"{PART}.size() > 2",
        f"{PART}.sum() > 6",
        f"{PART}[0] + node.podCount > 2",
        f"{PART}[1] > 3",
        f"{PART}.map(i, i * node.podCount).sum() > 4",
        f"{PART}.exists(i, i * node.podCount == 4)",
        f"{PART}.all(i, i + node.podCount > 3)",
        f"{PART}.filter(i, i < 4).map(i, 6 / (i - node.podCount - 1)).size() > 1",
        "[1, 2].map(i, node.podCount > i, 4 / (node.podCount - 2)).sum() > 1",
        "[1, 2].map(i, 4 / (node.podCount - i) > 0, node.podCount).sum() > 1",
        "[1, 2, 3].exists_one(i, i == node.podCount || i == 1)",
        "[9223372036854775807, 1].map(i, i == 1 || node.podCount > 1, i).sum() > 0",
        "[9223372036854775807, 1].map(i, i - node.podCount).sum() > 0",
        'node.labels[?"k"].orValue("k1") in ["k1", "k2"]',
        '!("j" in node.labels) || node.labels["j"] in ["j1", "j2"]',
        "node.podCount in [1, 3] || node.unschedulable",
    ],
)
def test_entries_that_some_nodes_have(condition: str, asked: list[int]) -> None:
    lets, _, last = condition.rpartition(" @ ")
    columns, scalar = both_verdicts(predicate_program(f'{lets}\nrequire {last} else "no"'), POD, NODES)
    assert columns == scalar
    assert len(set(map(str, scalar))) > 1
    assert sum(asked) - len(NODES) == LEFT.get(condition, 0)


@pytest.mark.parametrize(
    "condition",
    [
        f"math.least({PART}) > 2",
        f"math.greatest({PART}) - node.podCount > 2",
        f"math.least({PART}.map(i, i * 2)) > 4",
    ],
)
def test_extremes_of_entries_that_some_nodes_have(condition: str) -> None:
    columns, scalar = both_verdicts(predicate_program(f'require {condition} else "no"'), POD, NODES)
    assert columns == scalar
    assert len(set(map(str, scalar))) > 1


@pytest.mark.parametrize(
    "value",
    [
        "node.unschedulable ? node.podCount : 7",
        "node.unschedulable ? 7 : node.podCount",
        "node.unschedulable ? 7 : 3",
        "node.unschedulable ? 1.5 : 2.5",
        "node.unschedulable ? double(node.podCount) : 0.5",
        "node.unschedulable ? 0.5 : double(node.podCount)",
        "node.unschedulable ? double(node.podCount) / 3.0 : double(node.podCount)",
        "node.podCount > 1 ? 4 / (node.podCount - 2) : node.podCount",
        "node.podCount > 1 ? node.podCount : 4 / (node.podCount - 1)",
        "node.podCount >= 0 ? node.podCount : 1 / 0",
        "node.podCount < 0 ? 1 / 0 : node.podCount",
        "node.podCount > 1 ? 1 / 0 : node.podCount",
        "node.podCount > 1 ? node.podCount : 1 / 0",
        "4 / node.podCount > 2 ? node.podCount : 9",
        "(node.unschedulable ? node.podCount : 3) * (node.podCount > 1 ? 2 : node.podCount)",
        '(node.unschedulable ? node.labels[?"k"].orValue("none") : "other").size()',
        '(node.unschedulable ? "one" : node.labels[?"k"].orValue("")).size()',
        '(node.unschedulable ? node.labels[?"k"] : node.labels[?"j"]).orValue("none").size()',
        '(node.unschedulable ? "one" : "three").size() + node.podCount',
        '(node.unschedulable ? node.allocatable["cpu"] : node.requested["cpu"]) / quantity("100m")',
        '(node.unschedulable ? node.allocatable["cpu"] : quantity("2")) / quantity("100m")',
        '(node.unschedulable ? node.allocatable["cpu"] : node.allocatable["memory"]) / quantity("100m")',
        "(node.unschedulable ? node.podCount > 0 : node.podCount > 1) ? node.podCount : 5",
        "(node.unschedulable ? true : node.podCount > 1) ? node.podCount : 5",
        f"(node.unschedulable ? {PART} : [node.podCount]).size()",
    ],
)
def test_both_branches(value: str, asked: list[int]) -> None:
    columns, scalar = both_scores(score_program(f"value {value}"), POD, NODES)
    assert columns == scalar
    assert len(set(scalar)) > 1
    assert sum(asked) - len(NODES) == LEFT.get(value, 0)


@pytest.mark.parametrize(
    "body",
    [
        "(is ? dyn(n) : dyn(double(n) / 2.0)) == dyn(1)",
        "(is ? dyn(n) : dyn(n > 1)) == dyn(1)",
        "(is ? dyn(1) : dyn(1.5)) == dyn(1)",
        "int(is ? dyn(n) : dyn(double(n) / 2.0)) == 1",
        "cel.bind(x, is ? dyn(n) : dyn(double(n) / 2.0), n > 1)",
        "[is ? dyn(n) : dyn(double(n) / 2.0)].exists(x, x == 1)",
        "type(is ? dyn(n) : dyn(double(n) / 2.0)) == int",
    ],
)
def test_branches_of_two_types(body: str) -> None:
    program = predicate_program(
        'require given(node.unschedulable, node.podCount) else "no"',
        f"dyn fn given(is: bool, n: int): bool = {body}",
    )
    columns, scalar = both_verdicts(program, POD, NODES)
    assert columns == scalar
    assert len(set(map(str, scalar))) > 1


@pytest.mark.parametrize(
    ("call", "facts"),
    [
        ('int(node.labels[?"n"].orValue("0")) % 7 == 3', ('node.labels["n"]',)),
        (
            'node.labels[?"k"].or(node.labels[?"j"]).orValue("") == "k1"',
            ('node.labels["k"]', 'node.labels["j"]'),
        ),
        ("string(node.podCount) == '2'", None),
    ],
)
def test_a_call_without_a_kernel_runs_once_per_combination_of_its_facts(
    call: str, facts: tuple[str, ...] | None
) -> None:
    program = predicate_program(f'require node.podCount < 2 || {call} else "no"')
    assert [part.facts for part in program.scalar_parts] == [facts]
    columns, scalar = both_verdicts(program, POD, NODES)
    assert columns == scalar
