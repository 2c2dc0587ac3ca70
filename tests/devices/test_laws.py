"""Laws of sharing: no card gives more than it has, and what is counted is what pods say they have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.base.clock import ManualClock
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.context import NO_ANNOTATIONS
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.plugin import compile_devices

from tests.devices.farm import MIG_PLACES, MIG_SIZES, RECORD, Farm, node, pod, rules

INSTANCES = "hami.io/vgpu-mig-allocations"

AMOUNTS = st.one_of(
    st.sampled_from(
        [
            "-9000",
            "-1",
            "2147483648",
            "9223372036854775807",
            "9223372036854775808",
            str(10**23),
            "+5",
            "1_0",
            "٣",
            "",
            " 1",
            "1e3",
        ]
    ),
    st.integers(0, 1200).map(str),
    st.just("2147483647"),
)
FORGED = st.lists(
    st.lists(
        st.builds(
            "{},NVIDIA,{},{}:".format, st.sampled_from(["x-g0", "x-g1", "y-g0", "none"]), AMOUNTS, AMOUNTS
        ),
        max_size=4,
    ).map("".join),
    max_size=3,
).map(lambda containers: "".join(f"{each};" for each in containers))
"""Records that anybody may have written, some of which can be read: with cards and containers twice, and any amounts."""

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("place"), st.integers(1, 3), st.sampled_from([0, 100, 400, 700, 1000]),
            st.sampled_from([0, 10, 30, 60, 100]), st.integers(0, 2), st.integers(1, 2),
        ),
        st.tuples(
            st.just("fail"), st.integers(1, 2), st.sampled_from([100, 700]), st.just(30), st.just(0), st.just(1)
        ),
        st.tuples(st.just("forge"), st.sampled_from(["x", "y"]), FORGED),
        st.tuples(st.just("delete"), st.integers(0, 20)),
        st.tuples(st.just("restart")),
    ),
    min_size=1,
    max_size=14,
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules(tmp_path_factory.mktemp("farm"))


def stock_of(farm: Farm) -> Inventories:
    """Return the cards as a scheduler sees them that has just been started."""
    profile = farm.rules.profiles[f"farm.{farm.profile}"]
    plugin = compile_devices(farm.rules, profile, NO_ANNOTATIONS, ManualClock())
    assert plugin is not None
    return plugin.inventories


def cards_of(farm: Farm, inventories: Inventories) -> dict[str, tuple[Card, ...]]:
    snapshot = farm.cluster.snapshot()
    infos = [snapshot.info(row) for row in snapshot.order.tolist()]
    return {info.name: inventories.cards(info) for info in infos}


def wanted(name: str, gpus: int, memory: int, cores: int, priority: int, containers: int) -> PodInfo:
    return pod(name, gpus, memory, cores, priority, containers=containers)


def instances_of(farm: Farm) -> dict[str, list[tuple[str, int, int]]]:
    """Return the instances that pods say they have: by card the profile, the start and the size of each."""
    found: dict[str, list[tuple[str, int, int]]] = {}
    snapshot = farm.cluster.snapshot()
    for row in snapshot.order.tolist():
        for placed in snapshot.info(row).pods:
            for each in json.loads(placed.annotations.get(INSTANCES, "[]")):
                place = each["placement"]
                found.setdefault(each["gpuUUID"], []).append((each["profile"], place["start"], place["size"]))
    return found


def assert_instances_are_apart(farm: Farm) -> None:
    for card, instances in instances_of(farm).items():
        taken: set[int] = set()
        for profile, start, size in instances:
            assert start in MIG_PLACES[profile] and size == MIG_SIZES[profile], (card, instances)
            assert taken.isdisjoint(range(start, start + size)), (card, instances)
            taken.update(range(start, start + size))


NODES = {
    "shared": (node("x", cards=2), node("y", cards=3, memory=800, slots=2)),
    "mig": (node("x", cards=1, is_mig=True), node("y", cards=2, memory=800, slots=7, is_mig=True)),
    "both": (node("x", cards=1), node("y", cards=1, slots=7, is_mig=True)),
}


@given(steps=STEPS, profile=st.sampled_from(["pack", "spread", "fill"]), nodes=st.sampled_from(sorted(NODES)))
@settings(max_examples=28, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_card_gives_more_than_it_has(found: RuleSet, steps: list[Any], profile: str, nodes: str) -> None:
    farm = Farm(found, profile, *NODES[nodes])
    kept, names, before = stock_of(farm), list[str](), dict[str, Card]()
    for number, (kind, *rest) in enumerate(steps):
        name = f"p{number}"
        if kind == "delete":
            farm.cluster.remove_pod(f"default/{names[rest[0] % len(names)]}" if names else "default/none")
        elif kind == "restart":
            farm.restart()
        elif kind == "fail":
            was = cards_of(farm, kept)
            farm.fail(wanted(name, *rest))
            assert farm.cluster.pod(f"default/{name}") is None
            assert cards_of(farm, kept) == was
        elif kind == "forge":
            farm.cluster.add_pod(forger(name, *rest))
            names.append(name)
        else:
            farm.place(wanted(name, *rest))
            names.append(name)
        cards = cards_of(farm, kept)
        assert cards == cards_of(farm, stock_of(farm))
        assert_instances_are_apart(farm)
        for card in (card for of_node in cards.values() for card in of_node):
            assert_no_more_is_given(card, before.get(card.id), kind == "forge")
            before[card.id] = card


def assert_no_more_is_given(card: Card, before: Card | None, is_forged: bool) -> None:
    """The used part of a card is the sum of its tenants, none of it negative. No more is given than is left; only who
    makes up a record claims more.
    """
    assert card.used >= len(card.tenants)
    assert card.used_memory == sum(tenant.memory for tenant in card.tenants)
    assert card.used_cores == sum(tenant.cores for tenant in card.tenants)
    assert all(0 <= each.memory < 2**31 and 0 <= each.cores < 2**31 for each in card.tenants)
    if not is_forged and (before is None or card.used > before.used):
        assert card.used <= card.slots, card
        assert card.used_memory <= card.memory, card
        assert card.used_cores <= card.cores, card


@given(record=FORGED)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_record_counts_as_it_is_written_or_for_nothing(found: RuleSet, record: str) -> None:
    farm = Farm(found, "spread", *NODES["shared"])
    farm.cluster.add_pod(forger("forger", "x", record))
    decision = farm.place(pod("honest", memory=1, cores=0))
    # The other node is left whatever one claims of its cards; an unreadable record is told.
    assert decision.node
    amounts = [piece.split(",")[2:] for piece in record.replace(";", ":").split(":") if piece]
    is_readable = all(len(each) < 11 and each.isascii() and each.isdigit() and int(each) < 2**31
                      for both in amounts for each in both)  # fmt: skip
    if not is_readable:
        assert [fault.message.startswith("pod default/forger: ") for fault in decision.faults] == [True]
        cards = [card for of_node in cards_of(farm, stock_of(farm)).values() for card in of_node]
        assert {tenant.name for card in cards for tenant in card.tenants} == {"honest"}


def forger(name: str, where: str, record: str) -> PodInfo:
    return pod(name, annotations={RECORD: record}).on(where)


def test_pods_share_the_places_of_a_card(found: RuleSet) -> None:
    farm = Farm(found, "fill", node("n", cards=1, slots=7, is_mig=True))
    for at in range(4):
        farm.place(pod(f"p{at}", memory=200))
    # 2g has three places; the fourth finds none although memory is left.
    assert instances_of(farm) == {"n-g0": [("2g", 0, 2), ("2g", 2, 2), ("2g", 4, 2)]}
    assert farm.place(pod("small", memory=100)).node == "n"
    farm.cluster.remove_pod("default/p1")
    assert farm.place(pod("again", memory=200)).node == "n"
    assert sorted(instances_of(farm)["n-g0"])[1:] == [("2g", 0, 2), ("2g", 2, 2), ("2g", 4, 2)]


def test_a_pod_has_a_card_in_mig_mode_alone_unless_it_is_filled(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=1, slots=7, is_mig=True))
    assert farm.place(pod("one", gpus=2, memory=100)).node == "n"
    assert "CardNotHealth" in farm.place(pod("two", memory=100)).message
    assert sorted(instances_of(farm)["n-g0"]) == [("1g", 0, 1), ("1g", 1, 1)]


def test_instances_take_slots(found: RuleSet) -> None:
    farm = Farm(found, "fill", node("n", cards=1, slots=4, is_mig=True))
    assert farm.place(pod("three", gpus=3, memory=100)).node == "n"
    assert "1/1 CardMigTopologyInfeasible" in farm.place(pod("two", gpus=2, memory=100)).message
    assert farm.place(pod("one", memory=100)).node == "n"
