"""Counting the cards that fit answers a node as choosing them does: on every fourth case that HAMi has answered."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod, Phase
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.devices import counting
from kdsl.plan.devices.attempt import NodeCards, Unplaced, names_of
from kdsl.plan.devices.card_columns import AskedCard
from kdsl.plan.devices.counting import CardCounts, countable_turns
from kdsl.plan.devices.demand import Demand, DeviceRequest
from kdsl.plan.devices.placing import Placed, is_of, place

from tests.conformance import hami

COUNTABLE = sorted(kind for kind, each in hami.programs().items() if each.fitting.cards.are_countable_in_turn)
VECTORS = Path(hami.__file__).parent / "data" / "hami-vectors.jsonl.gz"


def counted(counts: CardCounts, demand: Demand, at: NodeCards) -> str | None:
    """Return the reason against one node, as from classes with this node alone."""
    (kind,) = demand.kinds
    cards = [card for card in at.cards if is_of(card.type, kind)]
    tests = hami.programs()[kind].fitting.cards.identity
    answers = tests.answers(demand.pod, demand.policy, at.node, cards)
    fitting = hami.programs()[kind].fitting
    different = DistinctObjects[Card]()
    numbers = different.number(map(fitting.cards.facts.key, cards), cards).tolist()
    asked = [
        AskedCard(card, answers[card.id] if answers else (), number)
        for card, number in zip(cards, numbers, strict=True)
    ]
    classes: Any = SimpleNamespace(
        card_classes=lambda keys: (np.array([len(cards)]), asked, np.arange(len(cards))),
        knows_pairs=lambda kind, place, row: fitting.choosers[place].knows_pairs(cards),
        cards=different,
        live=LiveSnapshot(),
        choosers=lambda demand, request, rows: [
            fitting.settled_chooser({**names_of(demand, at.node, request), "devices": tuple(cards)})
        ],
    )
    return counts.reasons(classes, [((0,), (((kind, -1), 0),))], np.zeros(1, np.intp))[0]


@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "one-by-one"])
def test_counts_agree_with_choices(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    for name in ("MIN_CARDS", "FEW_CARDS"):
        monkeypatch.setattr(counting, name, 1 if at_once else 1_000)
    seen = Counter[str]()

    def both(programs: Any, demand: Demand, at: NodeCards) -> Any:
        found = place(programs, demand, at)
        turns = countable_turns(programs, demand) if at.cards else []
        reason = counted(CardCounts(programs, demand, turns, at), demand, at) if turns else None
        seen["in turn"] += len(turns) > 1 and reason is not None
        if reason is None:
            seen["choice"] += 1
        elif isinstance(found, Unplaced):
            assert reason == found.reason
            seen["rejected"] += 1
        else:
            assert isinstance(found, Placed) and (reason, found.score) == ("", at.fullness)
            seen["fits"] += 1
        return found

    monkeypatch.setattr(hami, "place", both)
    for vector in islice(hami.read_vectors(VECTORS), 0, None, 4):
        assert not [problems for _, problems in hami.run_vector(vector) if problems]
    assert min(seen["fits"], seen["rejected"], seen["in turn"]) > 300


def random_demand(random: Random, kind: str) -> Demand:
    """Return a pod of which several containers request cards of a kind."""
    phases = [random.choice([Phase.APP, Phase.APP, Phase.INIT, Phase.SIDECAR]) for _ in range(3)]
    containers = tuple(DeviceContainer(f"c{number}", phase) for number, phase in enumerate(phases))
    requests = tuple(
        {kind: request} if (request := random_request(random, kind)) is not None else {} for _ in containers
    )
    policy = Policy(
        device=random.choice(["binpack", "spread", "mutex", "topology-aware", "numa,binpack"]),
        numa_bind=random.random() < 0.2,
    )
    annotations = {"metax-tech.com/sgpu-qos-policy": "best-effort"} if random.random() < 0.5 else {}
    return Demand(DevicePod("p", annotations=annotations, containers=containers), requests, policy)


def random_request(random: Random, kind: str) -> DeviceRequest | None:
    if random.random() < 0.3:
        return None
    memory, percent = random.choice([(random.randrange(6_000), 101), (0, random.randrange(1, 60))])
    return DeviceRequest(
        kind, random.choice([1, 1, 1, 2, 3]), memory, percent, random.choice([0, 10, 30, 100])
    )


def random_node(random: Random, kind: str) -> NodeCards:
    """Return a node with cards in use."""
    cards = [
        Card(
            f"card-{place}",
            kind,
            kind,
            random.choice([2, 10]),
            memory := random.choice([16_000, 24_000]),
            100,
            index=place,
            numa=place % 2,
            healthy=random.random() < 0.95,
            used=random.choice([0, 1, 2]),
            used_memory=random.choice([0, memory // 2, random.randrange(memory)]),
            used_cores=random.choice([0, 10, 40]),
        )
        for place in range(random.randrange(1, 7))
    ]
    return NodeCards(DeviceNode("n"), tuple(cards))


@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "one-by-one"])
@pytest.mark.parametrize("seed", range(4))
def test_requests_in_turn_agree_with_choices(
    monkeypatch: pytest.MonkeyPatch, seed: int, at_once: bool
) -> None:
    for name in ("MIN_CARDS", "FEW_CARDS"):
        monkeypatch.setattr(counting, name, 1 if at_once else 1_000)
    seen, random, programs = Counter[str](), Random(f"in turn {seed}"), hami.programs()
    for _ in range(600):
        kind = random.choice(COUNTABLE if random.random() < 0.6 else ["NVIDIA"])
        demand, at = random_demand(random, kind), random_node(random, kind)
        turns = countable_turns(programs, demand)
        if len(turns) < 2:
            continue
        found, reason = (
            place(programs, demand, at),
            counted(CardCounts(programs, demand, turns, at), demand, at),
        )
        if reason is None:
            seen["choice"] += 1
        elif isinstance(found, Unplaced):
            assert reason == found.reason, (kind, demand, at)
            seen["rejected"] += 1
        else:
            assert reason == "", (kind, demand, at)
            seen["fits"] += 1
    assert min(seen["fits"], seen["rejected"]) > 40, seen
