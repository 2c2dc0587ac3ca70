"""Nodes and cards that look alike are asked together, and answer as each alone, also for odd device rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar.access import find_key, select
from kdsl.eval.values import EvalError
from kdsl.plan.devices import classes, counting
from kdsl.plan.devices.demand import Demand

from tests.devices.farm import Farm, pod, rules
from tests.devices.test_answers import check_one, devices_of

HEAD = """kdsl 1
package farm
import kubernetes.v1_36 as kubernetes

dyn fn first(one: int, other: dyn): int = one
dyn fn areAll(tenants: list(DeviceTenant), value: dyn): bool = tenants.all(each, type(value) == int)
fn busy0(node: DeviceNode): bool = node.requested["cpu"] > quantity("50m")
"""
HEAD += "".join(f"fn busy{at + 1}(node: DeviceNode): bool = busy{at}(node)\n" for at in range(13))
DEVICE = """
device Odd {{
  kind "NVIDIA"
  record "hami.io/vgpu-devices-allocated"
  resource gpu = "nvidia.com/gpu"
  resource memory = "nvidia.com/gpumem"
  inventory for row in json.decode(node.annotations[?"cards"].orValue("[]")) {{
    set id = row.id
    set index = row.index
    set slots = 4
    set memory = 1000
    set cores = 100
    set attributes = row[?"unsigned"].orValue(false) == true ? {{"x": dyn(uint(1))}} : row[?"has"].orValue({{}})
  }}
  admit {{ applies when gpu in container.limits }}
  request {{
    set count = container.amounts[?gpu].orValue(0)
    set memory = container.amounts[?memory].orValue(0)
  }}
  charge {{
    set memory = {charge}
    set cores = 1
  }}
  fit {{
    require {test} else "CardUnfit"
    require charge.memory <= device.memory - device.usedMemory else "CardInsufficientMemory"
  }}
  order by {order}
  {choose}
  choose first else "AllocatedCardsInsufficientRequest"
}}

profile odd extends kubernetes.default {{
  scheduler "odd"
  devices Odd
  set Devices.nodePolicy = "spread"
  set Devices.weight = 1000
}}
"""
USUAL = {"charge": "request.memory", "test": "device.index >= 0", "order": "device.index", "choose": ""}
CASES = {
    "an argument that the function does not use": {"charge": 'first(50, device.attributes["x"])'},
    "an argument that is used for tenants": {"test": 'areAll(device.tenants, device.attributes["x"])'},
    "attributes of used cards": {"test": 'device.tenants.all(each, device.attributes["x"] == 1)'},
    "names of used cards": {"test": 'device.tenants.all(each, device.id.endsWith("2"))'},
    "numbers of another type": {"test": 'type(device.attributes[?"x"].orValue(1)) == int'},
    "an order without a value": {"order": 'device.attributes["x"] == 1'},
    "an order without a value for used cards": {"order": "10 / (100 - device.usedMemory)"},
    "an order by name": {"order": "device.id", "test": "device.index > 0"},
    "pairs by the node": {
        "choose": 'choose pairs where request.count > 1 else "No" {'
        ' set affinity = node.name == "none" ? device.index / other.index : 0 }'
    },
    "a node in the depth of functions": {
        "choose": 'choose listed where busy13(node) else "No" {'
        " set choices = [fitting.filter(each, each > 1)].filter(each, each.size() >= request.count) }"
    },
}  # fmt: skip


def node(name: str, *attributes: dict[str, Any], labels: dict[str, str] | None = None) -> NodeFacts:
    rows = [{"id": f"{name}-{at}", "index": at, **each} for at, each in enumerate(attributes)]
    written: dict[str, Any] = {
        "metadata": {"name": name, "annotations": {"cards": json.dumps(rows)}, "labels": labels or {}},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
    }
    return NodeFacts.of(msgspec.convert(written, Node, strict=False))


ONE, TWO, NONE = {"has": {"x": 1}}, {"has": {"x": 2}}, {"has": {}}
NODES = (
    *[node(f"one-{at}", ONE, ONE, ONE) for at in range(3)],
    *[node(f"two-{at}", TWO, TWO, TWO) for at in range(3)],
    node("none", NONE, NONE, NONE),
    node("last", ONE, ONE, NONE),
    node("unsigned", {"unsigned": True}, ONE, ONE),
    node("few", ONE),
)


@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_of_each_node(tmp_path: Path, case: str) -> None:
    farm = Farm(rules(tmp_path, HEAD + DEVICE.format(**USUAL | CASES[case])), "odd", *NODES)
    plugin = devices_of(farm)
    for number in range(12):
        for gpus in (1, 2, 3):
            check_one(farm, plugin, pod(f"p{number}", gpus, 100))
        limits = {"nvidia.com/gpu": 1 + number % 2, "nvidia.com/gpumem": 100}
        farm.place(pod(f"p{number}", resources={"limits": limits, "requests": {"cpu": "100m"}}))
    assert any(each.pods for each in farm.cluster.nodes())


def test_lists_that_differ_in_length_put_cards_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A used card has its zero in the place of the other key of idle ones: they may not be mixed up."""
    order = "device.used > 0 ? [1, 0] : [1], device.used > 0 ? [9] : [9, 9]"
    farm = Farm(rules(tmp_path, HEAD + DEVICE.format(**USUAL | {"order": order})), "odd", node("n", {}, {}))
    monkeypatch.setattr(counting, "MIN_CARDS", 1)
    # The second container gets an idle card, so that there is none left for the third.
    limits = [{"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory} for memory in (600, 300, 800)]
    containers = [{"name": f"c{at}", "resources": {"limits": each}} for at, each in enumerate(limits)]
    written = {"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": containers}}
    wanted = PodInfo.of(msgspec.convert(written, Pod, strict=False))
    check_one(farm, devices_of(farm), wanted)
    assert farm.place(wanted).node == ""


def test_choosers_are_found_again_with_new_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = 'choose listed where node.labels[?"zone"].orValue("") == "a" else "No" { set choices = [] }'
    nodes = [node("a", ONE, labels={"zone": "a"}), node("b", ONE, labels={"zone": "b"})]
    farm = Farm(rules(tmp_path, HEAD + DEVICE.format(**USUAL | {"choose": choose})), "odd", *nodes)
    plugin, wanted = devices_of(farm), pod("p")
    check_one(farm, plugin, wanted)
    # All numbers become void, and the facts get other ones.
    monkeypatch.setattr(classes, "SPARE_CLASSES", -100)
    monkeypatch.setattr(classes, "_most", lambda live: -1)
    snapshot = farm.cluster.snapshot()
    demand = plugin.demand(wanted, snapshot)
    assert isinstance(demand, Demand)
    plugin.answers.column(demand, snapshot, snapshot.order[::-1])
    monkeypatch.undo()
    check_one(farm, plugin, wanted)


def test_kept_keys_of_orders_count_for_the_size_of_a_memo(tmp_path: Path) -> None:
    farm = Farm(rules(tmp_path, HEAD + DEVICE.format(**USUAL | CASES["an order by name"])), "odd", *NODES)
    plugin, snapshot = devices_of(farm), farm.cluster.snapshot()
    demand = plugin.demand(pod("p"), snapshot)
    assert isinstance(demand, Demand)
    plugin.answers.column(demand, snapshot, snapshot.order)
    memo = demand.memo
    assert len(memo) > sum(map(len, memo._sort_keys.values())) >= 3 * len(NODES) - 2


MARKED = """
device {name} {{
  kind "{name}"
  record "cards-{name}"
  resource card = "v.com/{name}"
  inventory for row in [node.name + "-{name}"] {{ set id = row set slots = 4 set memory = 1000 set cores = 100 }}
  admit {{ applies when card in container.limits }}
  request {{ set count = container.amounts[?card].orValue(0) }}
  charge {{ set memory = 1 set cores = 1 }}
  fit {{ require pod.annotations[?"mark-{mark}"].orValue("") != "no-{name}" else "CardRefused" }}
  order by device.index
  choose first else "TooFew"
}}
"""


def marked(name: str, *kinds: str, **marks: str) -> PodInfo:
    limits = {f"v.com/{kind}": 1 for kind in kinds}
    annotations = {f"mark-{mark}": text for mark, text in marks.items()}
    return pod(name, annotations=annotations, resources={"limits": limits})


def test_pods_of_other_kinds_are_told_apart_by_what_each_kind_reads(tmp_path: Path) -> None:
    devices = "".join(MARKED.format(name=name, mark=mark) for name, mark in (("A", 2), ("B", 1), ("C", 3)))
    profile = 'profile p extends kubernetes.default {\n  scheduler "p"\n  devices A, B, C\n}\n'
    farm = Farm(rules(tmp_path, HEAD + devices + profile), "p", node("n"))
    assert farm.place(marked("first", "A", "B", **{"1": "x", "2": "no-A"})).node == ""
    # The annotations that its kinds read have the same texts in order, but A reads another one of them.
    assert farm.place(marked("second", "A", "C", **{"2": "x", "3": "no-A"})).node == "n"


def test_an_error_names_no_class_of_kdsl() -> None:
    card = Card("a", "K", "K", 4, 1000, 100)
    for read in (select, find_key):
        with pytest.raises(EvalError, match="`dyn` hides the fields of this object, read them without it"):
            read(card, "id")
        with pytest.raises(EvalError, match="int has no fields"):
            read(1, "id")
