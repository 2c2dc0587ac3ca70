"""Laws of sharing: no card gives more than it has, and what is counted is what pods say they have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.base.clock import ManualClock
from kdsl.check.model import RuleSet
from kdsl.cluster.devices.cards import Card
from kdsl.hooks.context import NO_ANNOTATIONS
from kdsl.plan.devices.plugin import compile_devices
from kdsl.plan.devices.stock import Stock

from tests.devices.farm import Farm, node, pod, rules

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("place"), st.integers(1, 3), st.sampled_from([0, 100, 400, 700, 1000]),
            st.sampled_from([0, 30, 60, 100]), st.integers(0, 2),
        ),
        st.tuples(st.just("fail"), st.integers(1, 2), st.sampled_from([100, 700]), st.just(30), st.just(0)),
        st.tuples(st.just("delete"), st.integers(0, 20)),
        st.tuples(st.just("restart")),
    ),
    min_size=1,
    max_size=14,
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules(tmp_path_factory.mktemp("farm"))


def stock_of(farm: Farm) -> Stock:
    """Return the cards as a scheduler sees them that has just been started."""
    profile = farm.rules.profiles[f"farm.{farm.profile}"]
    plugin = compile_devices(farm.rules, profile, NO_ANNOTATIONS, ManualClock())
    assert plugin is not None
    return plugin.stock


def cards_of(farm: Farm, stock: Stock) -> dict[str, tuple[Card, ...]]:
    snapshot = farm.cluster.snapshot()
    infos = [snapshot.info(row) for row in snapshot.order.tolist()]
    return {info.name: stock.cards(info) for info in infos}


@given(steps=STEPS, profile=st.sampled_from(["pack", "spread"]))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_card_gives_more_than_it_has(found: RuleSet, steps: list[Any], profile: str) -> None:
    farm = Farm(found, profile, node("x", cards=2), node("y", cards=3, memory=800, slots=2))
    kept, names = stock_of(farm), list[str]()
    for number, (kind, *rest) in enumerate(steps):
        name = f"p{number}"
        if kind == "delete":
            farm.cluster.remove_pod(f"default/{names[rest[0] % len(names)]}" if names else "default/none")
        elif kind == "restart":
            farm.restart()
        elif kind == "fail":
            before = cards_of(farm, kept)
            farm.fail(pod(name, *rest))
            assert farm.cluster.pod(f"default/{name}") is None
            assert cards_of(farm, kept) == before
        else:
            farm.place(pod(name, *rest))
            names.append(name)
        cards = cards_of(farm, kept)
        assert cards == cards_of(farm, stock_of(farm))
        for card in (card for of_node in cards.values() for card in of_node):
            assert card.used <= card.slots, card
            assert card.used_memory <= card.memory, card
            assert card.used_cores <= card.cores, card
            assert card.used == sum(1 for _ in card.tenants)
            assert card.used_memory == sum(tenant.memory for tenant in card.tenants)
