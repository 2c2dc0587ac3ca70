"""Nodes with equal cards of any vendor are asked together, and answer as each node alone."""

from __future__ import annotations

import json

import msgspec
import pytest
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.devices.demand import Demand

from tests.bench import shapes, unlike_cards
from tests.devices.farm import Farm, choices, pod, rules
from tests.devices.test_answers import check_one, devices_of

RULES = """kdsl 1
package farm
import devices.profiles

profile all extends profiles.gpu { scheduler "all" }
"""
NODES, PODS = 24, 8


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules(tmp_path_factory.mktemp("farm"), RULES)


@pytest.mark.parametrize("shape", unlike_cards.VENDORS)
def test_nodes_of_a_vendor_are_asked_together(
    found: RuleSet, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = list(shapes.nodes(shape, NODES))
    for each in nodes[::3]:
        # Equal in all facts, but for a card.
        annotations = each["metadata"]["annotations"]
        for key, text in annotations.items():
            annotations[key] = json.dumps(json.loads(text)[1:]) if text.startswith("[") else text
    read = [msgspec.convert(each, Node, strict=False) for each in nodes]
    farm = Farm(found, "all", *map(NodeFacts.of, read))
    plugin = devices_of(farm)
    for each in shapes.pending_pods(shape, PODS):
        wanted, snapshot = PodInfo.of(msgspec.convert(each, Pod, strict=False)), farm.cluster.snapshot()
        demand = plugin.demand(wanted, snapshot)
        assert isinstance(demand, Demand)
        with monkeypatch.context() as patch:
            asked = choices(patch)
            plugin.answers.column(demand, snapshot, snapshot.order)
        assert len(asked) < NODES // 2
        check_one(farm, plugin, wanted)
        farm.place(wanted)
    assert any(node.pods for node in farm.cluster.nodes())


def test_nodes_may_have_cards_of_other_vendors_only(found: RuleSet) -> None:
    read = [msgspec.convert(each, Node, strict=False) for each in shapes.nodes("unlike-ascend", 2)]
    farm = Farm(found, "all", *map(NodeFacts.of, read))
    # The cards that a container takes are not there for the next one.
    refused = farm.place(pod("p", containers=2))
    assert refused.faults == ()
    assert {each.reason: each.nodes for each in refused.rejections} == {"NodeInsufficientDevice": 2}
