"""A small device and what the tests of this folder ask of it."""

from __future__ import annotations

from kdsl.base.quantity import Quantity
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod, Phase
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.lang.loader import load_sources
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.program import DeviceProgram

SMALL = """
kdsl 1
package small

device Small {
  kind "K"
  record "cards"
  resource card = "v.com/card"
  resource memory = "v.com/memory"
  param most = 2

  inventory for row in ROWS {
    set id = row.id
    set slots = 4
    set memory = row.memory
    set cores = 100
    set numa = row[?"numa"].orValue(0)
    MORE
  }
  ADMIT
  request {
    set count = container.amounts[?card].orValue(0)
    set memory = container.amounts[?memory].orValue(0)
  }
  QUOTA
  charge {
    set memory = request.memory
    set cores = 10
  }
  require request.count <= most
    else "TooMany"
  fit {
    require device.slots > device.used
      else "Slots"
    TOGETHER
    require charge.memory <= device.memory - device.usedMemory
      else "Memory"
  }
  order by ORDER
  CHOOSE
  annotate "first": allocation.cards[0].id where allocation.cards.size() > 0
}
"""

ORDER = 'policy.device == "numa" ? 0.0 : policy.device == "binpack" ? -fullness : fullness, -device.numa'


def small(
    admit: str = "",
    together: str = "",
    choose: str = 'choose first else "TooFew"',
    quota: bool = False,
    more: str = "",
    rows: str = 'json.decode(node.annotations[?"register"].orValue("[]"))',
    order: str = ORDER,
    steps: Steps = DEFAULT_STEPS,
) -> DeviceProgram:
    """Return the device with these parts; with `quota` the memory counts for quotas."""
    if quota:
        together += '\n    require quota.allows(charge) else "Quota"'
    text = SMALL.lstrip().replace("ADMIT", admit).replace("TOGETHER", together).replace("CHOOSE", choose)
    text = (
        text.replace("ROWS", rows)
        .replace("MORE", more)
        .replace("ORDER", order)
        .replace("QUOTA", "quota { set memory = memory }" if quota else "")
    )
    loaded = load_sources([Source("small.kdsl", text)])
    checked = check_program(loaded.program)
    assert checked.rules is not None, checked.diagnostics
    return DeviceProgram(
        checked.rules.devices["small.Small"], CompiledFunctions(checked.rules.fns, steps=steps)
    )


def node(register: str) -> DeviceNode:
    return DeviceNode("n", annotations={"register": register})


def card(name: str, memory: int = 100, numa: int = 0, used: int = 0) -> Card:
    return Card(name, "K", "K", 4, memory, 100, numa=numa, used=used)


def container(count: int = 0, memory: int = 0, phase: Phase = Phase.APP) -> DeviceContainer:
    amounts = {"v.com/card": Quantity.of(count), "v.com/memory": Quantity.of(memory)}
    return DeviceContainer(
        "c", phase, {name: amount for name, amount in amounts.items() if not amount.is_zero}
    )


def pod(*containers: DeviceContainer) -> DevicePod:
    return DevicePod("p", containers=containers)
