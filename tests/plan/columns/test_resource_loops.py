"""Loops over resources, and lists that are indexed by a value of the node, over columns."""

from __future__ import annotations

import pytest
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet

from tests.plan.columns.both import both_scores, cluster, score_program

GPU = "nvidia.com/gpu"


def amounts(cpu: int, memory: int, gpu: int = 0) -> Resources:
    return Resources({"cpu": cpu, "memory": memory << 20, GPU: gpu})


NODES = NodeSet.all(
    cluster(
        [NodeFacts(f"n{at}", allocatable=amounts(500 * at, 100 + at, at % 3)) for at in range(40)],
        [
            PodInfo(f"p{at}-{other}", node_name=f"n{at}", usage=amounts(30, other, at % 2))
            for at in range(40)
            for other in range(at % 7)
        ],
    ).snapshot()
)
PODS = [
    PodInfo("p", requests=requests)
    for requests in (
        amounts(250, 64),
        amounts(4000, 90, 1),
        amounts(0, 0, 2),
        Resources(),
        amounts(7, 1 << 42),
    )
]
RATIO = "ratio(node.requested[r] + pod.requests[r], node.allocatable[r])"
SHAPE = "[[0, 0], [40, 9], [75, 2], [100, 10]]"
VALUES = [
    f'int(100.0 * ["cpu", "memory"].map(r, {RATIO}).max())',
    f'int(100.0 * ["cpu", "memory"].map(r, {RATIO}).min())',
    "pod.requests.map(r, node.allocatable[r] > pod.requests[r] ? 1 : 0).max()",
    f"int(100.0 * pod.requests.map(r, {RATIO}).max())",
    "pod.requests.all(r, pod.requests[r] <= node.allocatable[r] - node.requested[r]) ? 10 : 0",
    "pod.requests.exists(r, !(r in node.allocatable)) ? 10 : 0",
    "pod.requests.exists_one(r, node.allocatable[r] < pod.requests[r]) ? 10 : 0",
    "pod.requests.filter(r, r in node.requested).size()",
    "pod.requests.transformList(r, amount, node.allocatable[r] > amount, 3).sum()",
    "[3, 1, 2].filter(i, i > node.podCount).max()",
    "[3, 1, 2].map(i, i * node.podCount).min()",
    "[1, 5, 9][node.podCount % 3]",
    "[1, 5, 9][node.podCount]",
    "[1, 5, 9][node.podCount - 2]",
    "[true, false, true, true, false, true, true][node.podCount] ? 1 : 0",
    "int([0.5, 1.5, 2.5][node.podCount % 3] * 2.0)",
    '["a", "b", "a"][node.podCount % 3] == "a" ? 1 : 2',
    f"{SHAPE}[node.podCount % 4][1] + {SHAPE}[1][node.podCount % 2]",
    "[[1], [2, 3], [4]][node.podCount % 3][0]",
]


@pytest.mark.parametrize("value", VALUES)
def test_both_back_ends_agree(value: str) -> None:
    program = score_program(f"value {value}\non error zero\nnormalize minmax")
    assert program.scalar_parts == []
    # The recording for one pod is replayed for the next ones.
    found = [both_scores(program, pod, NODES) for pod in (*PODS, *PODS)]
    assert [columns for columns, _ in found] == [scalar for _, scalar in found]
    assert len({each for _, scalar in found for each in scalar}) > 1
