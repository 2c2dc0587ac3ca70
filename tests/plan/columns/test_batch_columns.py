"""Selectors over columns of node facts answer as they do node by node."""

from __future__ import annotations

from random import Random
from typing import Any

from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import NodeSelectorRequirement, NodeSelectorSpec, NodeSelectorTerm
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import NodeSelector, NodeTerm, PreferredNodeTerm, read_term
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.plan.columns.batch import batch_of
from kdsl.plan.columns.fallback import BatchColumns

from tests.plan.lab import node

_KEYS = ("zone", "size", "rack")
_VALUES = ("a", "b", "c", "1", "7", "-3", "+7", "007", "9223372036854775808", "x.5", "")
_NAMES = [f"n{number}" for number in range(40)]


def _requirement(random: Random) -> NodeSelectorRequirement:
    operator = random.choice(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    counts = {"Exists": 0, "DoesNotExist": 0, "Gt": 1, "Lt": 1}
    values = random.sample(_VALUES, counts.get(operator, random.randrange(1, 7)))
    if operator in ("Gt", "Lt"):
        values = [random.choice(["0", "7", "-3", "x"])]
    return NodeSelectorRequirement(random.choice((*_KEYS, "nowhere")), operator, values)


def _term(random: Random) -> NodeSelectorTerm:
    fields = []
    if random.random() < 0.3:
        field = random.choice(["metadata.name", "metadata.name", "metadata.uid"])
        fields = [NodeSelectorRequirement(field, random.choice(["In", "NotIn"]), [random.choice(_NAMES)])]
    return NodeSelectorTerm([_requirement(random) for _ in range(random.randrange(3))], fields)


def _node(random: Random, name: str) -> Any:
    labels = {key: random.choice(_VALUES) for key in _KEYS if random.random() < 0.7}
    taints = tuple(
        Taint(random.choice("kl"), random.choice("vw"), random.choice(["NoSchedule", "PreferNoSchedule"]))
        for _ in range(random.randrange(3))
    )
    return node(name, labels=labels, taints=taints)


def _asking(random: Random) -> PodInfo:
    affinity = NodeSelector.of(NodeSelectorSpec([_term(random) for _ in range(random.randrange(1, 3))]))
    wanted = {key: random.choice(_VALUES) for key in _KEYS if random.random() < 0.2}
    return PodInfo(
        name="p",
        node_selector=FrozenMap(wanted),
        required_node_affinity=random.choice([None, affinity]),
        tolerations=tuple(
            Toleration(random.choice(["k", "l", ""]), random.choice(["Equal", "Exists"]), "v", "")
            for _ in range(random.randrange(2))
        ),
    )


def test_selectors_over_columns_answer_as_for_each_node() -> None:
    random = Random(7)
    cache = ClusterCache()
    for name in _NAMES:
        cache.add_node(_node(random, name))
    asked = 0
    for _ in range(400):
        # Changed and removed nodes leave codes behind that no node has any more.
        changed = random.choice(_NAMES)
        if random.random() < 0.2 and len(cache.snapshot().order) > 30:
            cache.remove_node(changed)
        else:
            cache.add_node(_node(random, changed))
        snapshot = cache.snapshot()
        rows = snapshot.order[[each for each in range(len(snapshot.order)) if random.random() < 0.8]]
        columns = BatchColumns(batch_of(NodeSet(snapshot, rows), []))
        nodes = [snapshot.info(row) for row in rows.tolist()]
        spec, asking = NodeSelectorSpec([_term(random) for _ in range(random.randrange(3))]), _asking(random)
        term = read_term(_term(random))
        for selector in (NodeSelector.of(spec), PreferredNodeTerm(term, 1), NodeTerm(term)):
            found = selector.matches_over(columns).tolist()
            assert found == [selector.matches(each) for each in nodes], selector
            asked += any(found) and not all(found)
        assert asking.can_be_on_over(columns).tolist() == [asking.can_be_on(each) for each in nodes]
        constraint = SpreadConstraint(
            *("zone", 1, "DoNotSchedule"),
            honors_affinity=random.random() < 0.5,
            honors_taints=random.random() < 0.5,
        )
        counted = constraint.counts_node_over(asking, columns).tolist()
        assert counted == [constraint.counts_node(asking, each) for each in nodes], (constraint, asking)
    # Most selectors divide the nodes.
    assert asked > 200
