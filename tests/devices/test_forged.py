"""Annotations that somebody made up: what they claim counts for nothing, holds up nobody else, and is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.workload_objects import ResourceQuota
from kdsl.cluster.devices.codec import MAX_LENGTH, decode, held
from kdsl.cluster.devices.pods import Phase
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Outcome
from kdsl.hooks.context import NO_ANNOTATIONS
from kdsl.plan.devices.plugin import compile_devices
from kdsl.plan.devices.records import MOST, SHOWN

from tests.cli.command_line import kdsl
from tests.devices.farm import RECORD, Farm, annotated, node, pod, rules

REGISTER = "hami.io/node-nvidia-register"
MIG = "hami.io/vgpu-mig-allocations"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules(tmp_path_factory.mktemp("farm"))


def claim(name: str, record: str, where: str = "n", **more: str) -> PodInfo:
    """Return a pod on a node that says it has these cards."""
    return pod(name, annotations={RECORD: record, **more}).on(where)


# ---- records of pods -------------------------------------------------------------------------------------

NO_RECORDS = {
    "negative": "n-g0,NVIDIA,-9000,-50:;",
    "negative zero": "n-g0,NVIDIA,-0,10:;",
    "beyond 32 bits": "n-g0,NVIDIA,2147483648,10:;",
    "cores beyond 32 bits": "n-g0,NVIDIA,10,2147483648:;",
    "10^23": f"n-g0,NVIDIA,{10**23},10:;",
    "many digits": f"n-g0,NVIDIA,{'9' * 10_000},10:;",
    "leading zeros": f"n-g0,NVIDIA,{'0' * 5_000}1,10:;",
    "plus": "n-g0,NVIDIA,+5,10:;",
    "underscore": "n-g0,NVIDIA,1_000,10:;",
    "blank": "n-g0,NVIDIA, 5,10:;",
    "newline": "n-g0,NVIDIA,5\n,10:;",
    "Arabic digits": "n-g0,NVIDIA,٥٠,10:;",
    "superscript": "n-g0,NVIDIA,5²,10:;",
    "fraction": "n-g0,NVIDIA,1.5,10:;",
    "exponent": "n-g0,NVIDIA,1e3,10:;",
    "hexadecimal": "n-g0,NVIDIA,0x10,10:;",
    "no amount": "n-g0,NVIDIA,,:;",
    "three fields": "n-g0,NVIDIA,100:;",
    "one of two": "n-g1,NVIDIA,100,10:n-g0,NVIDIA,-100,10:;",
    "sum beyond 32 bits": "n-g0,NVIDIA,2147483647,10:n-g0,NVIDIA,1,10:;",
    "sum of containers": "n-g0,NVIDIA,2147483647,10:;n-g0,NVIDIA,1,10:;",
    "too long": "n-g0,NVIDIA,1,1:" * (MAX_LENGTH // 16 + 1) + ";",
    "text for terminals": "n-g0,NVIDIA,\x1b[31m,10:;",
    "a word": "n-g0;",
    "a word for terminals": "n-g0\x1b[31m",
}


@pytest.mark.parametrize("record", NO_RECORDS.values(), ids=NO_RECORDS)
def test_what_is_no_record_counts_for_nothing_and_is_told(found: RuleSet, record: str) -> None:
    farm = Farm(found, "pack", node("n"))
    farm.cluster.add_pod(claim("forger", record))
    # Both cards are idle and the next pods have all of them, no more.
    first, second = farm.place(pod("a", memory=1000)), farm.place(pod("b", memory=1000))
    assert (first.node, second.node) == ("n", "n")
    third = farm.place(pod("c", memory=1))
    assert third.outcome is Outcome.UNSCHEDULABLE and "2/2 CardInsufficientMemory" in third.message
    for decision in (first, second, third):
        fault = decision.faults[0].message
        assert len(decision.faults) == 1
        assert fault.startswith(f"pod default/forger: annotation {RECORD}: ")
        assert fault.endswith("; this record counts for nothing")
        assert repr(record[:20])[1:-1] in fault or "n-g0" in fault
        assert fault.isprintable() and len(fault) < 300


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ("garbage", "`garbage` is no card; this record counts for nothing"),
        # Containers without cards have empty records.
        (";;;;", None),
        (":;:", None),
        ("n-g0,NVIDIA,100,10:garbage:;", "`garbage` is no card; it counts for nothing"),
        # Nobody can have parts of a card that is gone, so there is nothing to tell: nodes lose cards.
        ("lost,NVIDIA,100,10:;", None),
        ("", None),
    ],
)
def test_a_record_without_cards_is_told(found: RuleSet, record: str, told: str | None) -> None:
    farm = Farm(found, "pack", node("n"))
    farm.cluster.add_pod(claim("forger", record))
    decision = farm.place(pod("a"))
    start = f"pod default/forger: annotation {RECORD}: "
    assert [each.message for each in decision.faults] == ([] if told is None else [start + told])


def test_a_record_is_told_of_until_the_pod_is_gone(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n"), node("m"))
    farm.cluster.add_pod(claim("forger", NO_RECORDS["negative"]))
    assert len(farm.place(pod("a")).faults) == 1
    farm.restart()
    assert len(farm.place(pod("b")).faults) == 1
    farm.cluster.remove_pod("default/forger")
    assert farm.place(pod("c")).faults == ()
    farm.cluster.add_pod(claim("forger", "n-g0,NVIDIA,100,10:;"))
    assert farm.place(pod("d")).faults == ()
    # Whoever asks for no cards hears nothing of them.
    farm.cluster.add_pod(claim("forger2", NO_RECORDS["plus"]))
    assert farm.place(pod("plain", resources={})).faults == ()


def test_many_records_are_told_in_few_words(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n"))
    for number in range(SHOWN + 5):
        farm.cluster.add_pod(claim(f"forger{number}", NO_RECORDS["negative"]))
    faults = farm.place(pod("a")).faults
    assert len(faults) == SHOWN + 1
    assert faults[-1].message == "5 more records of cards cannot be read"
    assert MOST > SHOWN


@pytest.mark.parametrize("record", [NO_RECORDS["negative"], NO_RECORDS["10^23"]])
def test_a_quota_is_not_passed_by_a_record(found: RuleSet, record: str) -> None:
    farm = Farm(found, "pack", node("n"))
    quota = {
        "metadata": {"name": "q", "namespace": "team"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "150"}},
    }
    farm.cluster.put(msgspec.convert(quota, ResourceQuota, strict=False))
    farm.cluster.add_pod(pod("forger", namespace="team", annotations={RECORD: record}).on("n"))
    first = farm.place(pod("a", namespace="team"))
    assert first.node == "n"
    refused = farm.place(pod("b", namespace="team"))
    assert "exceeding resource quota" in refused.message
    # Also who is refused before any node was evaluated is told.
    assert [fault.message.startswith("pod team/forger: ") for fault in refused.faults] == [True]


@pytest.mark.parametrize(
    ("record", "grants"),
    [
        ("g,N,1,2:;", [("g", 1, 2, 1)]),
        ("g,N,2147483647,0:;", [("g", 2147483647, 0, 1)]),
        ("g,N,1,2:g,N,1,2:;", [("g", 2, 4, 2)]),
        ("g,N,1,2:;g,N,1,2:;g,N,1,2:;", [("g", 3, 6, 3)]),  # more containers than the pod has
        ("h,N,1,2,more:g,N,3,4:;", [("g", 3, 4, 1), ("h", 1, 2, 1)]),
        (";;;", []),
    ],
)
def test_records_that_count(record: str, grants: list[tuple[str, int, int, int]]) -> None:
    read = held(record, (Phase.APP,))
    assert [(each.id, each.memory, each.cores, each.slots) for each in read] == grants


def test_a_text_that_is_too_long_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unsplit(str):
        __slots__ = ()

        def split(self, *about: Any) -> list[str]:  # type: ignore[override]
            raise AssertionError("nobody looks at it")

    with pytest.raises(ValueError, match="is longer than 262,144 characters"):
        decode(Unsplit("x" * (MAX_LENGTH + 1)))


def test_reservations_that_cannot_be_read_hold_up_their_card_alone(found: RuleSet) -> None:
    farm = Farm(found, "fill", node("n", cards=2, slots=7, is_mig=True))
    for number, text in enumerate(("no JSON", '[{"gpuUUID": "n-g1", "placement": {"start": -1}}]')):
        farm.cluster.add_pod(claim(f"forger{number}", "n-g1,NVIDIA,100,10:;", **{MIG: text}))
    placed = farm.place(pod("a", memory=100))
    assert (placed.node, farm.record("a")) == ("n", "n-g0,NVIDIA,125,14:;")
    refused = farm.place(pod("b", gpus=9, memory=100))
    assert "1/2 CardMigTopologyInfeasible" in refused.message
    assert "1/2 CardMigTopologyInfeasible (" in refused.message


# ---- registrations of nodes ------------------------------------------------------------------------------


def registering(name: str, *rows: dict[str, Any]) -> NodeFacts:
    usual = {"id": f"{name}-g0", "count": 4, "devmem": 1000, "devcore": 100, "type": "NVIDIA", "health": True}
    return annotated(node(name), {REGISTER: json.dumps([{**usual, **row} for row in rows])})


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"count": -1}], "`slots` must not be negative, got -1"),
        ([{"devmem": -(2**31)}], "`memory` must not be negative"),
        ([{"devcore": -100}], "`cores` must not be negative"),
        ([{"index": -1}], "`index` must not be negative"),
        ([{"devmem": 2**31}], "entry 1: `memory` is beyond 32 bits (from `devmem`)"),
        ([{"devmem": 2**63}], "entry 1: `memory` must be a whole number, not double (from `devmem`)"),
        ([{}, {"id": "b", "devcore": "x"}], "entry 2: `cores` must be a whole number, not string"),
        ([{"count": 10**23}], "NVIDIA: "),
        ([{"count": "4"}], "`slots` must be a whole number"),
        ([{"id": ""}], "`id` must be a text without any of"),
        ([{"id": "a,NVIDIA,0,0:b"}], "`id` must be a text without any of"),
        ([{}, {}], "card `bad-g0` is registered 2 times"),
        ([{}, {"devmem": 10**6}], "card `bad-g0` is registered 2 times"),
    ],
)
def test_a_registration_that_cannot_be_meant_is_that_nodes_alone(
    found: RuleSet, rows: list[dict[str, Any]], why: str
) -> None:
    farm = Farm(found, "pack", registering("bad", *rows), node("good"))
    decision = farm.place(pod("a"))
    assert decision.node == "good"
    (verdict,) = (each for each in decision.verdicts if each.node == "bad")
    assert verdict.status is not None and why in verdict.status.message
    # The node's operator reads which annotation it is, and which line of the rules reads it.
    (fault,) = verdict.status.faults
    assert fault.message.startswith(f"NVIDIA: annotation {REGISTER}: ") and why in fault.message
    assert re.fullmatch(r".*/devices/nvidia\.kdsl:\d+:\d+", fault.site)
    # Pods that ask for no cards may still run there.
    farm.cluster.remove_node("good")
    assert farm.place(pod("plain", resources={})).node == "bad"


def test_a_card_of_two_kinds_is_of_the_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    text = """kdsl 1
package farm
import devices.biren
import devices.nvidia
import kubernetes.v1_36 as kubernetes

profile both extends kubernetes.default {
  scheduler "both"
  devices nvidia.Nvidia, biren.Biren
}
"""
    both = rules(tmp_path_factory.mktemp("both"), text)
    plugin = compile_devices(both, both.profiles["farm.both"], NO_ANNOTATIONS, Farm(both, "both").clock)
    assert plugin is not None
    rows = json.dumps(
        [{"id": "n-g0", "count": 1, "devmem": 9, "devcore": 100, "type": "Biren", "health": True}]
    )
    inventory = plugin.inventories.inventory(
        annotated(node("n", cards=1), {"hami.io/node-biren-register": rows})
    )
    assert [card.kind for card in inventory.cards] == ["NVIDIA"]
    assert {kind: fault.message for kind, fault in inventory.faults.items()} == {
        "Biren": "Biren: annotation hami.io/node-biren-register: card `n-g0` is of another kind, too"
    }


def test_weights_that_nobody_can_multiply_are_refused(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n"))
    for number in ("9" * 400, "9" * 5_000, "٣", "+1", "1_0"):
        weights = {"hami.io/device-scoring-weights": f"slot={number},core=1,memory=1"}
        refused = farm.place(pod("a", annotations=weights))
        assert refused.outcome is Outcome.UNSCHEDULABLE
        assert "hami.io/device-scoring-weights" in refused.message and len(refused.message) < 400
    large = {"hami.io/device-scoring-weights": f"slot={10**17},core={10**17},memory={10**17}"}
    assert farm.place(pod("a", annotations=large)).node == "n"


def test_commands_tell_of_records_that_cannot_be_read(tmp_path: Path) -> None:
    rows = [{"id": "g0", "count": 4, "devmem": 1000, "devcore": 100, "type": "NVIDIA", "health": True}]
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 600}
    spec = {
        "schedulerName": "hami-scheduler",
        "containers": [{"name": "main", "resources": {"limits": limits}}],
    }
    cards = {"metadata": {"name": "n", "annotations": {REGISTER: json.dumps(rows)}}}
    claims = {"name": "forger", "annotations": {RECORD: "g0,NVIDIA,-9000,-50:;"}}
    cluster, pods = tmp_path / "cluster.json", tmp_path / "pods.json"
    objects = [
        {"apiVersion": "v1", "kind": "Node", **cards, "status": {"allocatable": {"pods": "10"}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": claims, "spec": {**spec, "nodeName": "n"}},
    ]
    waiting = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} for name in ("a", "b")
    ]
    for file, items in ((cluster, objects), (pods, waiting)):
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    inputs = ("--cluster", str(cluster), "--pods", str(pods), "--profile", "devices.profiles.hami")
    fault = f"pod default/forger: annotation {RECORD}: memory and cores of card `g0,NVIDIA,-9000,-50` are not"
    simulated, explained = kdsl("simulate", *inputs), kdsl("explain", "b", *inputs)
    assert "1 pod placed, 1 pending" in simulated.stdout
    assert "WENT WRONG" in simulated.stdout and fault in simulated.stdout
    assert f"went wrong: Devices: {fault}" in explained.stdout
    document = json.loads(kdsl("simulate", *inputs, "-o", "json").stdout)
    assert [len(each["faults"]) for each in document["decisions"]] == [1, 1]
