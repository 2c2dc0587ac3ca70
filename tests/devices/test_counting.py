"""Counting the cards that fit answers a node as choosing them does: on every fourth case that HAMi has answered."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.devices import counting
from kdsl.plan.devices.card_memo import CardMemo
from kdsl.plan.devices.card_shapes import AskedCard, CardShapes, numbered
from kdsl.plan.devices.counting import CardCounts
from kdsl.plan.devices.placing import NodeCards, Placed, Unplaced, is_of, place
from kdsl.plan.devices.requests import Demand

from tests.conformance import hami

VECTORS = Path(hami.__file__).parent / "data" / "hami-vectors.jsonl.gz"


def counted(counts: CardCounts, demand: Demand, at: NodeCards) -> str | None:
    """Return the reason against one node, as from classes with this node alone."""
    (kind,) = demand.kinds
    cards = [card for card in at.cards if is_of(card.type, kind)]
    tests = hami.programs()[kind].fitting.cards.identity
    answers = tests.answers(demand.pod, at.node, demand.policy, cards)
    fitting = hami.programs()[kind].fitting
    shapes = CardShapes()
    asked = [
        AskedCard(card, answers[card.id] if answers else (), number)
        for card, number in zip(cards, numbered(shapes.numbers, [each.shape for each in cards]), strict=True)
    ]
    ((request,),) = [asked.values() for asked in demand.requests if asked]
    about = {"pod": demand.pod, "node": at.node, "policy": demand.policy, "request": request}
    classes: Any = SimpleNamespace(
        card_classes=lambda kind, keys, nodes: (np.array([len(cards)]), asked, np.arange(len(cards))),
        knows_pairs=lambda kind, place, node: fitting.choosers[place].knows_pairs(cards),
        card_shapes=shapes,
        live=LiveSnapshot(),
        chooser=lambda *_: fitting.settled_chooser({**about, "devices": tuple(cards)}),
    )
    node: Any = None
    return counts.reasons(classes, [(0, (0,), ((kind, -1, 0),))], [node])[0]


@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "one-by-one"])
def test_counts_agree_with_choices(monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    monkeypatch.setattr(counting, "MIN_CARDS", 1 if at_once else 1_000)
    seen = Counter[str]()

    def both(
        programs: Any, pod: Any, requests: Any, policy: Any, at: NodeCards, quota: Quota = NO_QUOTA
    ) -> Any:
        found = place(programs, pod, requests, policy, at, quota)
        demand = Demand(pod, requests, policy, quota, None, None)
        counts = CardCounts.of(programs, demand, CardMemo(), at.node, ()) if at.cards else None
        reason = None if counts is None else counted(counts, demand, at)
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
