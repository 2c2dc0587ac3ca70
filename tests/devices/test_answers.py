"""Cached answers that nodes share equal the answer of each node alone."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.app import check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.hooks.status import Code, Status
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices import counting, inventories
from kdsl.plan.devices.answers import CardAnswers, _Memo
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.classes import InventoryClasses
from kdsl.plan.devices.counting import CardCounts
from kdsl.plan.devices.demand import CardMemo, Demand
from kdsl.plan.devices.fitting import Chooser
from kdsl.plan.devices.identity import IdentityGroup
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.placing import Placed
from kdsl.plan.devices.plugin import DevicesPlugin
from kdsl.plan.devices.program import DeviceProgram
from kdsl.plan.memo.answers import ByRow

from tests.devices.farm import Farm, choices, node, pod, rules

HANDSHAKE, REGISTER = "hami.io/node-handshake", "hami.io/node-nvidia-register"


def annotated(name: str, key: str, text: str) -> NodeFacts:
    return node(name, 2, 1000, 4, **{key: text})


def linked(name: str, score: object) -> NodeFacts:
    """Return a node whose first card is linked with the second so well."""
    rows = [{"uuid": f"{name}-g0", "score": {f"{name}-g1": score}}]
    return annotated(name, "hami.io/node-nvidia-score", json.dumps(rows))


NODES = (
    *[node(f"n{at}") for at in range(4)],
    annotated("cordoned", "hami.io/device-cordon", "cordoned-g1"),
    annotated("same-cordon", "hami.io/device-cordon", "same-cordon-g1"),
    annotated("other-cordon", "hami.io/device-cordon", "other-cordon-g0"),
    node("tight", memory=300),
    linked("near", 100),
    linked("far", 10),
    linked("unreadable", {"is": "no number"}),
    node("instances", is_mig=True),
    annotated("split", REGISTER, json.dumps([
        {"id": f"split-g{at}", "index": at, "count": 4, "devmem": 1000, "devcore": 100, "health": True,
         "type": "NVIDIA", "numa": at // 2}
        for at in range(3)])),
    annotated("mixed", REGISTER, json.dumps([
        {"id": f"mixed-g{at}", "index": at, "count": 2 + at % 2, "devmem": 1000, "devcore": 100, "health": at != 3,
         "type": "NVIDIA-A" if at % 2 else "NVIDIA-B", "numa": at // 2, "mode": "mig" if at == 4 else "hami-core"}
        for at in range(5)])),
    node("bare", cards=0),
    annotated("broken", "hami.io/node-nvidia-register", "no list"),
    annotated("twice", "hami.io/node-nvidia-register", '[{"id":"t","count":4,"devmem":9,"devcore":9,"health":true},'
                     '{"id":"t","count":4,"devmem":900,"devcore":100,"health":true}]'),
)  # fmt: skip
KINDS: Mapping[str, PodInfo] = {
    "small": pod("small"),
    "large": pod("large", memory=700),
    "two": pod("two", gpus=2, memory=250),
    "whole": pod("whole", cores=100),
    "named": pod("named", annotations={"nvidia.com/use-gpuuuid": "n1-g0,n2-g1,cordoned-g0"}),
    "both": pod(
        "both",
        annotations={
            "nvidia.com/use-gpuuuid": "n0-g0,n1-g0,n1-g1",
            "nvidia.com/nouse-gpuuuid": "n1-g0,n0-g1,x",
        },
    ),
    "unnamed": pod("unnamed", annotations={"nvidia.com/nouse-gpuuuid": "n0-g1"}),
    "other": pod("other", annotations={"checksum": "7"}),
    "topology": pod("topology", annotations={"hami.io/gpu-scheduler-policy": "topology-aware"}),
    "links": pod("links", gpus=2, annotations={"hami.io/gpu-scheduler-policy": "topology-aware"}),
    "bound": pod("bound", gpus=2, annotations={"nvidia.com/numa-bind": "true"}),
    "three": pod("three", gpus=3, memory=50, cores=5),
    "model": pod(
        "model", gpus=2, annotations={"nvidia.com/use-gputype": "A", "nvidia.com/vgpu-mode": "hami-core"}
    ),
    "mutex": pod("mutex", annotations={"hami.io/gpu-scheduler-policy": "mutex"}),
    "pair": pod("pair", memory=400, containers=2),
    "bound pair": pod("bound-pair", containers=2, annotations={"nvidia.com/numa-bind": "true"}),
}
UPDATES: tuple[Mapping[str, str], ...] = (
    {HANDSHAKE: "Reported 2026-01-01 00:00:00"},
    {HANDSHAKE: "Deleted_2026-01-01 00:00:00"},
    {"checksum": "7"},
    {},
    {HANDSHAKE: "Requesting_2026-01-01 00:00:00", "checksum": "8"},
    {REGISTER: '[{"id":"n0-g9","count":4,"devmem":900,"devcore":100,"health":true}]'},
)
"""Annotations of nodes after an update; device rules read some of them."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from(sorted(KINDS))),
        st.tuples(st.just("delete"), st.integers(0, 20)),
        st.tuples(st.just("cordon"), st.integers(0, 3)),
        st.tuples(st.just("update"), st.integers(0, 23)),
    ),
    max_size=10,
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules(tmp_path_factory.mktemp("farm"))


def devices_of(farm: Farm, steps: Steps = DEFAULT_STEPS) -> DevicesPlugin:
    sharing = farm.rules.profiles[f"farm.{farm.profile}"].sharing
    assert sharing is not None
    functions = CompiledFunctions(farm.rules.fns, steps=steps)
    return DevicesPlugin(sharing, "devices", functions, MemoryAnnotations(farm.cluster), ManualClock())


def check(farm: Farm, plugin: DevicesPlugin) -> None:
    """Compare the answers about pods of all kinds."""
    for wanted in KINDS.values():
        check_one(farm, plugin, wanted)


def check_one(farm: Farm, plugin: DevicesPlugin, wanted: PodInfo) -> None:
    """Compare the answers of all nodes with those of a plugin that keeps nothing and chooses cards on each."""
    snapshot = farm.cluster.snapshot()
    fresh = Inventories(plugin.inventories.programs)
    demand = plugin.demand(wanted, snapshot)
    assert isinstance(demand, Demand)
    column = plugin.answers.column(demand, snapshot, snapshot.order)
    scores = plugin.answers.scores(demand, snapshot, snapshot.order).tolist()
    for at, row in enumerate(snapshot.order.tolist()):
        said = CardAnswers(fresh).ask(replace(demand, memo=CardMemo()), snapshot.info(row))
        if isinstance(said, Placed):
            assert (column.ids[at], scores[at]) == (0, float(said.score))
        else:
            assert (column.table[column.ids[at]], scores[at]) == (said, 0.0)


def check_what_ifs(farm: Farm, plugin: DevicesPlugin) -> None:
    """Compare the answers of nodes without a pod, and with one that is nominated, with those of a plugin that
    keeps nothing.
    """
    snapshot = farm.cluster.snapshot()
    fresh = CardAnswers(Inventories(plugin.inventories.programs))
    for row in snapshot.order.tolist():
        info = snapshot.info(row)
        nominated = KINDS["two"].on(info.name)
        for other in (*[info.without_pod(each) for each in info.pods[:1]], info.with_pod(nominated)):
            overlay, rows = snapshot.overlay(row, other), np.array([row], np.intp)
            cards = plugin.cards_in(overlay, row)
            for wanted in KINDS.values():
                demand = plugin.demand(wanted, snapshot)
                assert isinstance(demand, Demand)
                said = fresh.ask(replace(demand, memo=CardMemo()), other, cards)
                column = plugin.answers.column(demand, overlay, rows, [cards])
                score = plugin.answers.scores(demand, overlay, rows, [cards])[0]
                if isinstance(said, Placed):
                    assert (column.ids[0], score) == (0, float(said.score))
                else:
                    assert (column.table[column.ids[0]], score) == (said, 0.0)


@pytest.mark.parametrize("profile", ["pack", "spread"])
@settings(max_examples=3, deadline=None)
@given(steps=STEPS)
def test_kept_answers_are_those_of_the_nodes(
    found: RuleSet, profile: str, steps: list[tuple[str, str | int]]
) -> None:
    farm = Farm(found, profile, *NODES)
    plugin = devices_of(farm)
    placed: list[str] = []
    for number, (what, which) in enumerate(steps):
        if isinstance(which, str):
            kind = KINDS[which]
            limits = kind.device_containers[0].limits
            wanted = pod(
                f"p{number}",
                gpus=limits["nvidia.com/gpu"].as_integer(),
                memory=limits["nvidia.com/gpumem"].as_integer(),
                cores=limits["nvidia.com/gpucores"].as_integer(),
                annotations=kind.annotations,
            )
            if farm.place(wanted).node:
                placed.append(wanted.key)
        elif what == "delete" and placed:
            farm.cluster.remove_pod(placed.pop(which % len(placed)))
        elif what == "cordon":
            farm.cluster.add_node(annotated(f"n{which}", "hami.io/device-cordon", f"n{which}-g0"))
        elif what == "update":
            farm.cluster.add_node(node(f"n{which % 4}", 2, 1000, 4, **UPDATES[which // 4]))
        check(farm, plugin)
        check_what_ifs(farm, plugin)


def test_only_what_devices_read_of_nodes_is_read_again(
    found: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    farm = Farm(found, "pack", *NODES)
    plugin = devices_of(farm)
    check(farm, plugin)
    read, asked = Inventories._read, []

    def counted(self: Inventories, facts: NodeFacts) -> NodeCards:
        asked.append(facts.name)
        return read(self, facts)

    def asked_after(annotations: Mapping[str, str]) -> list[str]:
        farm.cluster.add_node(node("n1", 2, 1000, 4, **annotations))
        snapshot = farm.cluster.snapshot()
        demand = plugin.demand(KINDS["small"], snapshot)
        assert isinstance(demand, Demand)
        asked.clear()
        plugin.answers.column(demand, snapshot, snapshot.order)
        return asked.copy()

    monkeypatch.setattr(Inventories, "_read", counted)
    assert asked_after({HANDSHAKE: "Reported 1"}) == asked_after({HANDSHAKE: "Reported 2", "x": "y"}) == []
    assert asked_after({HANDSHAKE: "Deleted_3"}) == asked_after({REGISTER: "[]"}) == ["n1"]
    assert asked_after({"hami.io/device-cordon": "n1-g0"}) == ["n1"]
    assert asked_after({"hami.io/device-cordon": "n1-g0", "x": "z"}) == []
    check(farm, plugin)


@pytest.mark.parametrize("profile", ["pack", "spread"])
def test_unlike_requests_on_unlike_cards(found: RuleSet, profile: str) -> None:
    random = Random(f"requests {profile}")
    farm = Farm(found, profile, *NODES, *[node(f"m{at}", 4, 1000 + at, 3) for at in range(6)])
    plugin = devices_of(farm)
    for number in range(40):
        wanted = pod(
            f"p{number}",
            random.choice([1, 1, 2, 3]),
            random.randrange(20, 700),
            random.choice([0, 100, random.randrange(1, 60)]),
            annotations=random.choice(list(KINDS.values())).annotations,
        )
        check_one(farm, plugin, wanted)
        farm.place(wanted)


COSTLY = """kdsl 1
package farm
import kubernetes.v1_36 as kubernetes

device Costly {
  kind "NVIDIA"
  record "hami.io/vgpu-devices-allocated"
  resource gpu = "nvidia.com/gpu"
  inventory for row in json.decode(node.annotations[?"hami.io/node-nvidia-register"].orValue("[]")) {
    set id = row.id
    set slots = row.count
    set memory = row.devmem
    set cores = row.devcore
    set numa = row[?"numa"].orValue(0)
  }
  admit { applies when gpu in container.limits }
  request { set count = container.amounts[?gpu].orValue(0) }
  charge {
    set memory = 300
    set cores = 1
  }
  fit {
    require lists.range(device.memory).all(number, number >= 0) else "never"
    together by device.numa else "NumaNotFit"
    require charge.memory <= device.memory - device.usedMemory else "CardInsufficientMemory"
  }
  choose first else "AllocatedCardsInsufficientRequest"
}

profile costly extends kubernetes.default {
  scheduler "costly"
  devices Costly
}
"""


@pytest.mark.parametrize("steps", [1070, 2130, 3190, 90000])
def test_cards_that_take_too_many_steps_together_or_have_different_places(tmp_path: Path, steps: int) -> None:
    farm = Farm(rules(tmp_path, COSTLY), "costly", *NODES)
    check(farm, devices_of(farm, Steps(pod=steps)))


def test_nodes_that_look_alike_are_counted_once(found: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(found, "pack", *NODES)
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()
    asked: list[Hashable] = []
    reasons = CardCounts.reasons

    def counted(self: CardCounts, classes: InventoryClasses, keys: Any, nodes: Any) -> list[str | None]:
        asked.extend(keys)
        return reasons(self, classes, keys, nodes)

    monkeypatch.setattr(CardCounts, "reasons", counted)
    demand = plugin.demand(KINDS["small"], snapshot)
    assert isinstance(demand, Demand)
    plugin.answers.column(demand, snapshot, snapshot.order)
    assert 0 < len(asked) == len(set(asked)) < len(NODES) - 3
    before = len(asked)
    plugin.answers.column(demand, snapshot, snapshot.order)
    assert len(asked) == before


def test_nodes_that_look_alike_are_asked_once(found: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(found, "pack", *NODES)
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()
    # No request but the last is counted, as with choosers that do not take the first cards.
    monkeypatch.setattr(counting, "GREEDY", frozenset())
    asked = choices(monkeypatch)
    demand = plugin.demand(KINDS["pair"], snapshot)
    assert isinstance(demand, Demand)
    plugin.answers.column(demand, snapshot, snapshot.order)
    assert [name for name in asked if name.startswith("n")] == ["n0"]
    plugin.answers.column(demand, snapshot, snapshot.order)
    assert len(asked) == len(set(asked))


def test_nodes_that_are_gone_are_forgotten(found: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventories, "SPARE_NODES", 4)
    farm = Farm(found, "pack", node("kept"))
    plugin = devices_of(farm)
    kept, sizes = plugin.inventories, list[int]()
    for number in range(30):
        farm.cluster.add_node(node(f"n{number}"))
        check_one(farm, plugin, KINDS["small"])
        farm.cluster.remove_node(f"n{number}")
        sizes += (len(kept._idle), len(kept._used))
    assert 1 < max(sizes) < 10


def test_pods_that_name_cards_ask_few_nodes(found: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(found, "pack", *[node(f"n{at}") for at in range(40)])
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()
    answers, asked = IdentityGroup.answers, list[str]()

    def counted(self: IdentityGroup, frame: Any, at: Any, cards: Any) -> Any:
        if not self.reads_node:
            asked.append(at.name)
        return answers(self, frame, at, cards)

    monkeypatch.setattr(IdentityGroup, "answers", counted)
    named = {"nvidia.com/use-gpuuuid": "n3-g0,n7-g0,n9-g1", "nvidia.com/nouse-gpuuuid": "n9-g1,n8-g1"}
    demand = plugin.demand(pod("p", annotations=named), snapshot)
    assert isinstance(demand, Demand)
    column = plugin.answers.column(demand, snapshot, snapshot.order)
    assert sorted(asked) == ["n0", "n3", "n8", "n9"]
    fitting = {name for name, number in zip(snapshot.names, column.ids, strict=True) if not number}
    assert fitting == {"n3", "n7"}
    # A node with the name of a card of another.
    farm.cluster.add_node(
        node("n8", 2, 1000, 4, **{REGISTER: NODES[0].annotations[REGISTER].replace("n0-", "n7-")})
    )
    check_one(farm, plugin, pod("p", annotations=named))


@pytest.mark.parametrize(("kind", "greedy"), [("small", []), ("pair", ["first"]), ("pair", [])])
def test_equal_what_ifs_are_asked_once(
    found: RuleSet, monkeypatch: pytest.MonkeyPatch, kind: str, greedy: list[str]
) -> None:
    monkeypatch.setattr(counting, "GREEDY", frozenset(greedy))
    farm = Farm(found, "pack", *[node(f"n{at}") for at in range(20)])
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()
    asked = choices(monkeypatch)
    demand, nominated = plugin.demand(KINDS[kind], snapshot), KINDS["two"]
    assert isinstance(demand, Demand)
    for row in snapshot.order.tolist():
        info = snapshot.info(row).with_pod(nominated.on(snapshot.names[row]))
        overlay = snapshot.overlay(row, info)
        cards = plugin.cards_in(overlay, row)
        plugin.answers.column(demand, overlay, np.array([row], np.intp), [cards])
    # Each nominated pod gets its cards. One node stands for all, by the number of its cards if that decides.
    assert len(asked) == 20 + (kind == "pair" and not greedy)


def test_profiles_of_cards_are_read_once(found: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(found, "pack", *[node(f"n{at}", memory=1000 + at, is_mig=True) for at in range(5)])
    snapshot = farm.cluster.snapshot()
    read, computed = Chooser._value_of, list[str]()

    def counted(self: Chooser, name: str, attributes: Any) -> Any:
        computed.append(name)
        return read(self, name, attributes)

    monkeypatch.setattr(Chooser, "_value_of", counted)
    plugin = devices_of(farm)
    for memory in (100, 120, 140):
        demand = plugin.demand(pod("p", memory=memory, cores=0), snapshot)
        assert isinstance(demand, Demand)
        plugin.answers.column(demand, snapshot, snapshot.order)
    assert computed == ["profiles"] * 5


def test_links_of_cards_are_computed_once(found: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    farm = Farm(found, "pack", *NODES)
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()
    asked = choices(monkeypatch)
    read = Chooser.knows_pairs
    computed = list[int]()
    monkeypatch.setattr(
        Chooser, "knows_pairs", lambda self, cards: computed.append(len(cards)) or read(self, cards)
    )
    policy = {"hami.io/gpu-scheduler-policy": "topology-aware"}
    for memory in (100, 200):
        demand = plugin.demand(pod("p", 2, memory, annotations=policy), snapshot)
        assert isinstance(demand, Demand)
        plugin.answers.column(demand, snapshot, snapshot.order)
    assert 0 < len(computed) < len(NODES)
    assert "unreadable" in asked and not {"near", "far", "n0", "n1"} & set(asked)


def test_annotations_that_devices_do_not_read_make_no_difference(found: RuleSet) -> None:
    farm = Farm(found, "pack", *NODES)
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()

    def signature(**annotations: str) -> Hashable:
        written = {key.replace("_", "/"): text for key, text in annotations.items()}
        demand = plugin.demand(pod("p", annotations=written), snapshot)
        assert isinstance(demand, Demand)
        return demand.signature

    assert signature() == signature(checksum="1") == signature(checksum="2", other="x")
    named = {"nvidia.com_use-gpuuuid": "n0-g0"}
    assert signature(**named) == signature(**named, checksum="1") != signature()


def test_the_annotations_that_shipped_devices_read_are_known() -> None:
    shipped = check_rules((shipped_rules(),)).rules
    assert shipped is not None
    functions = CompiledFunctions(shipped.fns)
    programs = {name: DeviceProgram(device, functions) for name, device in shipped.devices.items()}
    assert None not in [program.node_annotations for program in programs.values()]
    read = {name: dict(program.pod_parts).get("annotations", ()) for name, program in programs.items()}
    assert len(read) > 20 and None not in read.values()
    assert read["devices.metax.MetaxGpu"] == ()
    assert read["devices.mthreads.Mthreads"] == ("mthreads.ai/nouse-gpuuuid", "mthreads.ai/use-gpuuuid")
    ascend = read["devices.ascend.Ascend910B3"]
    assert ascend is not None and "hami.io/use-Ascend910B3-uuid" in ascend


def test_scores_of_outcomes_are_copied_at_once() -> None:
    memo = _Memo(0, ByRow(LiveSnapshot(), np.dtype(np.int32)))
    outcomes = [
        np.float32(2.5),
        Status(Code.UNSCHEDULABLE, ("a",)),
        np.float32(0.1),
        Status(Code.ERROR, ("b",)),
    ]
    numbers = [memo.number(each) for each in (*outcomes, outcomes[0])]
    assert numbers == [0, -1, 1, -2, 0]
    assert memo.scores(np.array(numbers, np.int32)).tolist() == [2.5, 0.0, float(np.float32(0.1)), 0.0, 2.5]
    # In a busy cluster there is a score for each node: one by one they would take longer than the decision.
    assert memoryview(memo._scores).itemsize == 8
