from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceNode, DevicePod, Phase
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.plan.devices.attempt import NodeCards, Unplaced
from kdsl.plan.devices.demand import CardMemo, Demand
from kdsl.plan.devices.facts import Facts, values_of
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.devices.program import DeviceProgram, requests_of

from tests.devices.best import best_of
from tests.plan.devices.devices import card, container, pod, small

BINPACK = Policy(device="binpack")


def placed(program: DeviceProgram, wanted: DevicePod, cards: list[Card], policy: Policy = BINPACK) -> str:
    """Return what the pod gets as text, or why it gets nothing."""
    at = NodeCards(DeviceNode("n"), tuple(cards))
    found = place({"K": program}, Demand(wanted, requests_of([program], wanted), policy), at)
    return found.allocations["K"].text if isinstance(found, Placed) else found.reason


def test_the_last_of_equal_cards_is_tried_first() -> None:
    assert placed(small(), pod(container(1, 5)), [card("a"), card("b")]) == "b,K,5,10:;"


@pytest.mark.parametrize("policy, chosen", [("binpack", "b"), ("spread", "a")])
def test_fuller_or_emptier(policy: str, chosen: str) -> None:
    cards = [card("a"), card("b", used=1)]
    assert placed(small(), pod(container(1)), cards, Policy(device=policy)) == f"{chosen},K,0,10:;"


def test_reasons_are_counted() -> None:
    cards = [card("a", memory=1), card("b", memory=1), card("c", used=4), card("d")]
    assert placed(small(), pod(container(2, 5)), cards) == "1/4 Slots, 1/4 TooFew, 2/4 Memory"


def test_more_than_there_are() -> None:
    assert placed(small(), pod(container(2)), [card("a")]) == "NodeInsufficientDevice"


def test_the_node_as_a_whole() -> None:
    assert placed(small(), pod(container(3)), [card("a"), card("b"), card("c")]) == "1/3 TooMany"


def test_cards_of_another_kind_are_no_candidates() -> None:
    other = Card("x", "Other", "Other", 4, 100, 100)
    assert placed(small(), pod(container(1)), [other]) == "NodeInsufficientDevice"


def test_together_gives_back_what_was_taken() -> None:
    program = small(together='together by device.numa else "Numa"')
    cards = [card("a", numa=0), card("b", numa=0), card("c", numa=1)]
    assert placed(program, pod(container(2)), cards, Policy(device="numa")) == "b,K,0,10:a,K,0,10:;"
    lonely = [card("a", numa=0), card("c", numa=1)]
    assert placed(program, pod(container(2)), lonely, Policy(device="numa")) == "1/2 Numa, 1/2 TooFew"
    paired = small(
        together='together by device.numa else "Numa"',
        choose='choose pairs else "TooFew" { set affinity = 1 }',
    )
    assert placed(paired, pod(container(2)), lonely, Policy(device="numa")) == "1/2 TooFew"


@pytest.mark.parametrize(
    "places, cards, expected",
    [
        (2, {"a": 0, "b": 1}, "b,K,50,10:b,K,50,10:;"),
        (1, {"a": 0, "b": 0, "c": 1}, "b,K,50,10:a,K,50,10:;"),
        (1, {"a": 0, "b": 1}, "1/2 Numa, 1/2 TooFew, 2/2 Full"),
    ],
)
def test_parts_of_cards_that_were_given_back_may_be_enough(
    places: int, cards: dict[str, int], expected: str
) -> None:
    free = ", ".join(f'{{"start": {place}, "size": 1}}' for place in range(places))
    program = small(
        together='together by device.numa else "Numa"',
        choose="""choose intervals else "TooFew" {
    set profiles = [json.decode('{"name": "half", "memory": 50, "cores": 10, "placements": [PLACES]}')]
    set busy = []
    set infeasible = "Full"
  }""".replace("PLACES", free),
    )
    of_node = [card(name, numa=numa) for name, numa in cards.items()]
    assert placed(program, pod(container(2)), of_node, Policy(device="numa")) == expected


@pytest.mark.parametrize(
    "phases, memory, expected",
    [
        pytest.param("app app", 60, "1/1 Memory", id="two at once"),
        pytest.param("init app", 60, "a,K,60,10:;a,K,60,10:;", id="one after the other"),
        pytest.param("init init app", 60, "a,K,60,10:;a,K,60,10:;a,K,60,10:;", id="three in a row"),
        pytest.param("sidecar app", 60, "1/1 Memory", id="beside a sidecar"),
        pytest.param("sidecar init", 60, "1/1 Memory", id="init beside the sidecar before it"),
        pytest.param("init sidecar", 60, "a,K,60,10:;a,K,60,10:;", id="init before the sidecar"),
    ],
)
def test_phases(phases: str, memory: int, expected: str) -> None:
    wanted = pod(*(container(1, memory, Phase(phase)) for phase in phases.split()))
    assert placed(small(), wanted, [card("a")]) == expected


def test_a_container_without_cards_keeps_its_place() -> None:
    wanted = pod(container(), container(1), container())
    assert placed(small(), wanted, [card("a")]) == ";a,K,0,10:;;"


@pytest.mark.parametrize(
    "parts, place_of_error",
    [
        ({"together": 'require json.decode("[").size() > 0 else "Never"'}, "34:13"),
        ({"together": 'together by json.decode("[") else "Never"'}, "34:17"),
        (
            {
                "choose": 'choose first where json.decode("[").size() > 0 else "Never"\n  choose first else "TooFew"'
            },
            "39:22",
        ),
        ({"choose": 'choose listed else "Never" { set choices = json.decode("[") }'}, "39:46"),
    ],
)
def test_an_error_has_the_place_of_its_expression(parts: dict[str, Any], place_of_error: str) -> None:
    program, wanted = small(**parts), pod(container(1))
    at = NodeCards(DeviceNode("n"), (card("a"),))
    found = place({"K": program}, Demand(wanted, requests_of([program], wanted), BINPACK), at)
    assert isinstance(found, Unplaced) and found.fault is not None
    assert (found.fault.message, found.fault.site) == ("K: invalid JSON", f"small.kdsl:{place_of_error}")


def test_an_error_keeps_the_node_out() -> None:
    program = small(choose="choose pairs { set affinity = 1 / (device.memory - 100) }")
    three = [card("a"), card("b"), card("c")]
    assert placed(program, pod(container(2)), three) == "K: division by zero"


def test_pairs_take_the_nearest() -> None:
    near = '{"a": {"c": 9}, "b": {"c": 1, "a": 2}}'
    program = small(
        choose=f"choose pairs {{ set affinity = json.decode('{near}')[?device.id].orValue({{}})[?other.id].orValue(0) }}"
    )
    cards = [card("c"), card("b"), card("a")]
    assert placed(program, pod(container(2)), cards) == "a,K,0,10:c,K,0,10:;"
    assert placed(program, pod(container(1)), cards) == "c,K,0,10:;"


def test_annotations() -> None:
    program = small()
    wanted = pod(container(1))
    at = NodeCards(DeviceNode("n"), (card("a"),))
    found = place({"K": program}, Demand(wanted, requests_of([program], wanted), BINPACK), at)
    assert not isinstance(found, Unplaced)
    written = program.annotations(wanted, at.node, BINPACK, found.allocations["K"], now=0)
    assert written == {"cards": "a,K,0,10:;", "first": "a"}


def test_best_nodes() -> None:
    scores = {"a": np.float32(1), "b": np.float32(2), "c": np.float32(2)}
    assert best_of(scores, Policy("binpack")) == ("b", "c")
    assert best_of(scores, Policy("spread")) == ("a",)
    assert best_of({}, Policy()) == ()


def test_what_is_known_of_cards_without_a_quota_says_nothing_of_cards_with_one() -> None:
    program, memo = small(quota=True), CardMemo()
    wanted, at = pod(container(1, 60)), NodeCards(DeviceNode("n"), (card("a"), card("b")))
    requests = requests_of([program], wanted)

    def ask(quota: Quota) -> str:
        found = place({"K": program}, Demand(wanted, requests, BINPACK, quota, memo=memo), at)
        return found.allocations["K"].text if isinstance(found, Placed) else found.reason

    limited = Quota({"v.com/memory": 50})
    assert [ask(quota) for quota in (NO_QUOTA, limited, NO_QUOTA, limited)] == [
        "b,K,60,10:;", "2/2 Quota", "b,K,60,10:;", "2/2 Quota",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "gate, expected",
    [
        ('device.id == "a"', Facts(card=(("id", None),))),
        ('node.name == "n"', Facts(node=(("name", None),))),
        ('node.labels[?"zone"].orValue("") == "a"', Facts(node=(("labels", ("zone",)),))),
        ("node.labels.size() == 0", Facts(node=(("labels", None),))),
        ('device.attributes["x"] == 1', Facts(card=(("attributes", ("x",)),))),
        ("device.tenants.size() == 1", Facts()),
        (
            "device.tenants.exists(one, one.name == device.id)",
            Facts(used=(("id", None),), tenants=(("name", None),)),
        ),
        (
            "device.tenants.exists(one, devices[0].id == one.name)",
            Facts(card=(("id", None),), tenants=(("name", None),)),
        ),
    ],
)
def test_what_tells_nodes_apart(gate: str, expected: Facts) -> None:
    assert not small().facts
    chooses = f'choose first where devices.exists(device, {gate}) else "TooFew"\n  choose first'
    assert small(choose=chooses).facts == expected


def test_the_order_of_labels_tells_pods_apart() -> None:
    one, other = [DevicePod("p", labels=FrozenMap(dict.fromkeys(keys, ""))) for keys in ("ab", "ba")]
    assert values_of(one, (("labels", None),)) != values_of(other, (("labels", None),))


def test_whether_two_names_are_of_one_card_tells_no_nodes_apart() -> None:
    shared = "require !allocated.exists(each, each.cards.exists(one, one.id == device.id))"
    program = small(together=f'{shared} else "Again"')
    assert not program.facts
    assert placed(program, pod(container(1), container(1)), [card("a"), card("b")]) == "b,K,0,10:;a,K,0,10:;"
    assert placed(program, pod(container(1), container(1)), [card("a")]) == "1/1 Again"
