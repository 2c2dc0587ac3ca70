"""The output of `annotate` where its expressions have no value."""

from __future__ import annotations

from pathlib import Path

from kdsl.cycle.decision import Outcome

from tests.devices.farm import Farm, node, pod, rules

FAULTY = """kdsl 1
package farm
import kubernetes.v1_36 as kubernetes

device Faulty {
  kind "NVIDIA"
  record "cards"
  resource gpu = "nvidia.com/gpu"
  inventory for row in json.decode(node.annotations[?"hami.io/node-nvidia-register"].orValue("[]")) {
    set id = row.id
    set slots = 1
    set memory = 1000
    set cores = 100
  }
  request {
    set count = container.limitAmounts[?gpu].orValue(0)
  }
  charge {
    set memory = 0
    set cores = 0
  }
  fit {
    require device.slots > device.used
      else "Slots"
  }
  choose first else "TooFew"
  annotate "v.com/second": allocation.cards[1].id
}

profile pack extends kubernetes.default {
  scheduler "pack"
  devices Faulty
}
"""


def test_a_pod_whose_annotations_have_no_value_waits_and_is_told_where(tmp_path: Path) -> None:
    farm = Farm(rules(tmp_path, FAULTY), "pack", node("n0"))
    one = farm.place(pod("one", gpus=1))
    place = f"{tmp_path / 'farm.kdsl'}:27:28"
    assert one.outcome is Outcome.UNSCHEDULABLE
    assert "rule Faulty failed: index out of range: 1 in a list of 1" in one.message
    assert [(each.message, each.site) for each in one.faults] == [
        ("rule Faulty failed: index out of range: 1 in a list of 1", place)
    ]
    assert farm.place(pod("two", gpus=2)).outcome is Outcome.PLACED, "the first gave its card back"
