"""A device that orders and chooses cards by functions of the shipped rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.lang.loader import load_sources
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import Demand, DeviceRequest
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.devices.program import DeviceProgram

VENDORS = Path(__file__).parents[3] / "rules" / "devices"
SPREAD = Policy()
IMPORTED = ("annotations", "choosing", "kunlun", "orders")
DEVICE = """
kdsl 1
package test
import devices.choosing
import devices.kunlun
import devices.orders

device Test {
  kind "K"
  record "cards"
  inventory for row in json.decode(node.annotations[?"none"].orValue("[]")) {
    set id = row.id
    set slots = 1
    set memory = 1
    set cores = 1
  }
  request { set count = 0 }
  charge {
    set memory = 0
    set cores = 0
  }
  fit { require device.healthy else "Unfit" }
  BODY
}
"""


@cache
def program(body: str) -> DeviceProgram:
    """Compile the device with these statements."""
    sources = [Source(f"{name}.kdsl", (VENDORS / f"{name}.kdsl").read_text()) for name in IMPORTED]
    loaded = load_sources([*sources, Source("test.kdsl", DEVICE.lstrip().replace("BODY", body))])
    checked = check_program(loaded.program)
    assert checked.rules is not None, checked.diagnostics
    return DeviceProgram(checked.rules.devices["test.Test"], CompiledFunctions(checked.rules.fns))


def given(body: str, cards: Sequence[Card], count: int, policy: Policy = SPREAD) -> str:
    """Return the names of the cards that a container gets, or the reason of the node."""
    pod = DevicePod("p", containers=(DeviceContainer("c"),))
    at = NodeCards(DeviceNode("n"), tuple(cards))
    placed = place({"K": program(body)}, Demand(pod, ({"K": DeviceRequest("K", count)},), policy), at)
    if isinstance(placed, Placed):
        return "".join(grant.id for grant in placed.allocations["K"].cards)
    return placed.reason
