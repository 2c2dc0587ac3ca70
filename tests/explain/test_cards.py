"""Cards of a pod that is explained: why each is given or refused, what would help, and the same as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kdsl.app import Settings
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.explain.cards import CardOutcome, CardsOfNode, RefusedCards, count_refused
from kdsl.explain.explanation import Explanation
from kdsl.explain.inspection import Inspection
from kdsl.report.explanation import wide_text
from kdsl.report.explanation_document import explanation_envelope
from kdsl.report.schemas import output_schema
from kdsl.sim.run import explain
from kdsl.sim.what_if import changed, read_changes
from kdsl.sim.workload import Workload

from tests.devices.farm import RECORD, RULES, annotated, node, pod, rules
from tests.explain.cases import PRINTER, cures

MORE = """
device ByIndex extends nvidia.Nvidia {
  order by device.index desc
}

profile ordered extends kubernetes.default {
  scheduler "ordered"
  devices ByIndex
}

profile parts extends kubernetes.default {
  scheduler "parts"
  devices ascend.Ascend910A
}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    text = RULES.replace("import devices.nvidia\n", "import devices.ascend\nimport devices.nvidia\n") + MORE
    return rules(tmp_path_factory.mktemp("farm"), text)


def asking(name: str, gpus: int = 1, memory: int = 100, cores: int = 10, **fields: Any) -> PodInfo:
    """Return a pod that asks for cards, with its requests as the API sets them."""
    amounts = {"nvidia.com/gpu": gpus, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": cores}
    return pod(name, resources={"limits": amounts, "requests": amounts}, **fields)


def holder(name: str, where: str, record: str) -> PodInfo:
    """Return a pod that runs on a node and has cards."""
    return pod(name, annotations={RECORD: record}).on(where)


def told(
    found: RuleSet,
    nodes: list[NodeFacts],
    wanted: PodInfo,
    *placed: PodInfo,
    profile: str = "pack",
    what_if: tuple[str, ...] = (),
    ask: str = "",
) -> Explanation:
    workload = Workload(nodes, placed, [wanted])
    if what_if:
        workload, wanted = changed(workload, wanted, read_changes(what_if, workload))
    return explain(found, workload, Settings(profile=profile), wanted, Inspection(ask))


def reasons(cards: CardsOfNode | None) -> dict[str, str]:
    """Return what became of each card."""
    assert cards is not None
    return {each.card.id: each.reason or str(each.outcome) for one in cards.containers for each in one.cards}


def test_every_card_of_a_pending_pod_has_its_reason(found: RuleSet) -> None:
    cordon = {"hami.io/device-cordon": "n-g1"}
    nodes = [annotated(node("n", cards=3), cordon), node("m", cards=1), node("bare", cards=0)]
    taken = holder("taken", "n", "n-g0,NVIDIA,900,10:;"), holder("busy", "m", "m-g0,NVIDIA,500,10:;")
    explanation = told(found, nodes, pod("p", gpus=2, memory=600), *taken)
    findings = explanation.findings
    assert findings is not None and explanation.cards is None
    known = {each.node: each for each in findings.nodes}
    cards = known["n"].cards
    assert reasons(cards) == {"n-g0": "CardInsufficientMemory", "n-g1": "CardCordoned", "n-g2": "left"}
    assert cards is not None and cards.reason == known["n"].rejected[0].reasons[0]
    (container,) = cards.containers
    assert (container.container, container.chooser, container.order) == ("main", "first", "")
    first = next(each for each in container.cards if each.card.id == "n-g0")
    assert [PRINTER.text(atom) for atom in first.atoms] == ["600 <= 1000 - 900"]
    assert first.failed is not None and first.failed.site.startswith("rules/devices/nvidia.kdsl:")
    # A node that has too few cards is not asked card by card; one without any has none to tell of.
    assert known["m"].cards is not None and known["m"].cards.reason == "NodeInsufficientDevice"
    assert known["bare"].cards is not None and known["bare"].cards.containers == ()
    assert findings.cards == (
        RefusedCards("AllocatedCardsInsufficientRequest", 1, 1),
        RefusedCards("CardCordoned", 1, 1),
        RefusedCards("CardInsufficientMemory", 1, 1),
    )


def test_the_card_that_lacks_least_decides(found: RuleSet) -> None:
    taken = holder("a", "n", "n-g0,NVIDIA,900,10:n-g1,NVIDIA,300,10:;")
    findings = told(found, [node("n")], pod("p", memory=800), taken).findings
    assert findings is not None
    (rejected,) = findings.nodes[0].rejected
    assert [PRINTER.text(atom) for each in rejected.failed for atom in each.atoms] == ["800 <= 1000 - 300"]
    assert findings.nodes[0].shortage == pytest.approx(100 / 800)


def test_a_placed_pod_has_its_cards_explained(found: RuleSet) -> None:
    taken = holder("a", "n", "n-g1,NVIDIA,300,10:;")
    explanation = told(found, [node("n", cards=3)], pod("p"), taken)
    cards = explanation.cards
    assert cards is not None and cards.score is not None
    assert [(each.card.id, each.outcome) for each in cards.containers[0].cards] == [
        ("n-g1", CardOutcome.GIVEN), ("n-g2", CardOutcome.UNASKED), ("n-g0", CardOutcome.UNASKED),
    ]  # fmt: skip
    first = cards.containers[0].cards[0]
    assert (first.card.used_memory, first.fullness > 0) == (300, True)
    assert [(each.memory, each.cores) for each in first.grants] == [(100, 10)]
    text = wide_text(explanation)
    assert (
        "main asks for 1 NVIDIA of 100 MiB and 10 cores, the fullest first (`binpack` of the profile)" in text
    )
    assert "given: 100 MiB, 10 cores" in text and "not needed" in text


def test_an_order_of_ones_own_and_a_policy_of_the_pod(found: RuleSet) -> None:
    ordered = told(found, [node("n")], pod("p"), profile="ordered")
    assert "cards by `order by device.index desc`, chosen by `first`" in wide_text(ordered)
    assert reasons(ordered.cards) == {"n-g1": "given", "n-g0": "not asked"}
    own = pod("p", annotations={"hami.io/gpu-scheduler-policy": "numa,binpack"})
    text = wide_text(told(found, [node("n")], own))
    assert "by NUMA node, then the fullest first (`numa,binpack` of the pod's annotation)" in text


def test_a_condition_on_the_node_as_a_whole(found: RuleSet) -> None:
    row = {"id": "a", "count": 4, "devmem": 32768, "devcore": 30, "type": "Ascend910A", "health": True}
    facts = annotated(node("n", cards=0), {"hami.io/node-register-Ascend910A": json.dumps([row])})
    limits = {"limits": {"huawei.com/Ascend910A": 1}}
    wanted = pod("p", annotations={"huawei.com/vnpu-mode": "hami-core"}, resources=limits)
    findings = told(found, [facts], wanted, profile="parts").findings
    assert findings is not None and findings.nodes[0].cards is not None
    failed = findings.nodes[0].cards.containers[0].failed
    assert failed is not None and failed.reason == "ModeNotFit"
    assert cures(findings)["Devices"] == [
        "pod.annotations.huawei.com/vnpu-mode-",
        "node.n.annotations.hami-vnpu-core=true",
    ]


@pytest.mark.parametrize(
    ("wanted", "found_cures"),
    [
        (asking("p", memory=900), ["pod.requests.nvidia.com/gpumem=600", "pods-=default/low"]),
        (asking("p", memory=1200), ["pod.requests.nvidia.com/gpumem=600"]),
        (asking("p", cores=95), ["pod.requests.nvidia.com/gpucores=90", "pods-=default/low"]),
        (asking("p", gpus=2), ["pod.requests.nvidia.com/gpu=1"]),
        (
            asking("p", annotations={"nvidia.com/use-gputype": "A100"}),
            ["pod.annotations.nvidia.com/use-gputype-"],
        ),
        (
            asking("p", annotations={"hami.io/gpu-scheduler-policy": "mutex"}),
            ["pod.annotations.hami.io/gpu-scheduler-policy-", "pods-=default/low"],
        ),
    ],
    ids=["memory", "more-than-there-is", "cores", "count", "type", "mutex"],
)
def test_what_would_help(found: RuleSet, wanted: PodInfo, found_cures: list[str]) -> None:
    low = holder("low", "n", "n-g0,NVIDIA,400,10:;")
    findings = told(found, [node("n", cards=1)], wanted, low).findings
    assert findings is not None
    assert cures(findings)["Devices"] == found_cures
    # Whatever is said to help does.
    for fit in findings.fits:
        steps = tuple(step.text for step in fit.steps if hasattr(step, "text"))
        assert told(found, [node("n", cards=1)], wanted, low, what_if=steps).decision.node == "n"


def test_a_cordoned_card_can_be_given_back(found: RuleSet) -> None:
    facts = annotated(node("n", cards=1), {"hami.io/device-cordon": "n-g0"})
    findings = told(found, [facts], pod("p")).findings
    assert findings is not None
    assert cures(findings)["Devices"] == ["node.n.annotations.hami.io/device-cordon-"]


def test_what_if_a_pod_asks_for_cards(found: RuleSet) -> None:
    plain = pod("p", resources={"limits": {"cpu": "1"}})
    explanation = told(found, [node("n")], plain, what_if=("pod.requests.nvidia.com/gpu=2",))
    assert reasons(explanation.cards) == {"n-g1": "given", "n-g0": "given"}
    none = told(found, [node("n")], pod("p"), what_if=("pod.requests-",))
    assert (none.decision.node, none.cards) == ("n", None)


def test_the_node_that_is_asked_for(found: RuleSet) -> None:
    explanation = told(found, [node("n"), node("m")], pod("p"), ask="m")
    assert explanation.findings is not None and explanation.findings.asked is not None
    assert reasons(explanation.findings.asked.cards) == {"m-g1": "given", "m-g0": "not asked"}


def test_the_document_has_it_all(found: RuleSet) -> None:
    validator = Draft202012Validator(output_schema("Explanation"))
    taken = holder("a", "n", "n-g0,NVIDIA,900,10:;")
    placed = envelope(told(found, [node("n")], pod("p"), taken))
    validator.validate(placed)
    assert [each["outcome"] for each in placed["cards"]["containers"][0]["cards"]] == ["given", "not asked"]
    pending = envelope(told(found, [node("n")], pod("p", gpus=2, memory=600), taken, ask="n"))
    validator.validate(pending)
    (container,) = pending["findings"]["node"]["cards"]["containers"]
    refused, left = container["cards"]
    assert (refused["id"], refused["decidedBy"]) == ("n-g0", ["600 <= 1000 - 900"])
    assert (left["id"], left["outcome"]) == ("n-g1", "left")
    assert pending["findings"]["refusedCards"] == [
        {"reason": "AllocatedCardsInsufficientRequest", "cards": 1, "nodes": 1},
        {"reason": "CardInsufficientMemory", "cards": 1, "nodes": 1},
    ]


def envelope(explanation: Explanation) -> Any:
    """Return an explanation as a program reads it."""
    return json.loads(json.dumps(explanation_envelope(explanation)))


def test_reasons_are_added_up_over_nodes() -> None:
    texts = [
        ("1/2 CardNotHealth, 1/2 CardInsufficientMemory", 3),
        ("2/2 CardNotHealth", 1),
        ("node unregistered", 7),
    ]
    assert count_refused(texts) == (
        RefusedCards("CardNotHealth", 5, 4), RefusedCards("CardInsufficientMemory", 3, 3),
    )  # fmt: skip


def test_cards_that_a_nominated_pod_will_need(found: RuleSet) -> None:
    """A pod that was promised a node has its cards there: one before it in the queue finds them taken."""
    wanted = asking("p", memory=300)
    promised = asking("later", memory=800).with_fields(nominated_node_name="n", created_at=1)
    for waiting, node_name in (((wanted,), "n"), ((wanted, promised), "")):
        workload = Workload([node("n", cards=1)], [], waiting)
        explanation = explain(found, workload, Settings(profile="pack"), wanted)
        assert (explanation.decision.pod, explanation.decision.node) == ("default/p", node_name)
    assert explanation.findings is not None
    (judged,) = explanation.findings.nodes
    assert (judged.rejected[0].rule, judged.rejected[0].promised) == ("Devices", True)
    assert reasons(judged.cards) == {"n-g0": "CardInsufficientMemory"}
    assert "not now (room is promised)" in wide_text(explanation)
