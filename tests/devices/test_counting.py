"""Counting the cards that fit answers a node as choosing them does: on every fourth case that HAMi has answered."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.devices import counting
from kdsl.plan.devices.attempt import NodeCards, Unplaced, names_of
from kdsl.plan.devices.card_columns import AskedCard
from kdsl.plan.devices.counting import CardCounts, countable_request
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.placing import Placed, is_of, place

from tests.conformance import hami

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
    request = next(request for each in demand.requests for request in each.values())
    about = names_of(demand, at.node, request)
    classes: Any = SimpleNamespace(
        card_classes=lambda keys: (np.array([len(cards)]), asked, np.arange(len(cards))),
        knows_pairs=lambda kind, place, row: fitting.choosers[place].knows_pairs(cards),
        cards=different,
        live=LiveSnapshot(),
        choosers=lambda *_: [fitting.settled_chooser({**about, "devices": tuple(cards)})],
    )
    return counts.reasons(classes, [((0,), (((kind, -1), 0),))], np.zeros(1, np.intp))[0]


@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "one-by-one"])
def test_counts_agree_with_choices(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    monkeypatch.setattr(counting, "MIN_CARDS", 1 if at_once else 1_000)
    seen = Counter[str]()

    def both(programs: Any, demand: Demand, at: NodeCards) -> Any:
        found = place(programs, demand, at)
        asked = countable_request(programs, demand) if at.cards else None
        reason = None if asked is None else counted(CardCounts(programs, demand, asked, at), demand, at)
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
    assert min(seen["fits"], seen["rejected"]) > 300
