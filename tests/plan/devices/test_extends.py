from __future__ import annotations

import pytest
from kdsl.base.quantity import Quantity
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.cluster.devices.pods import DeviceContainer, DevicePod
from kdsl.lang.loader import load_sources
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.program import DeviceProgram

CHIPS = """kdsl 1
package chips

device First {
  kind word
  record word + "-cards"
  param word = "First"
  resource card = "v.com/" + word
  resource other = card + "-other"
  inventory for number in lists.range(1) {
    set id = string(number)
    set slots = 1
    set memory = 1
    set cores = 1
  }
  request {
    set count = container.amounts[?card].orValue(0)
    set memory = container.amounts[?other].orValue(0)
  }
  charge {
    set memory = 0
    set cores = 0
  }
  choose first
}

device Second extends First {
  set word = "Second"
}

device Third extends First {
  set word = "Third"
  set card = "w.com/third"
}
"""


@pytest.mark.parametrize(
    "name, kind, card, other",
    [
        ("First", "First", "v.com/First", "v.com/First-other"),
        ("Second", "Second", "v.com/Second", "v.com/Second-other"),
        ("Third", "Third", "w.com/third", "w.com/third-other"),
    ],
)
def test_names_follow_the_parameters(name: str, kind: str, card: str, other: str) -> None:
    """`kind`, `record` and resources are made of parameters as each device sets them."""
    checked = check_program(load_sources([Source("chips.kdsl", CHIPS)]).program)
    assert checked.rules is not None, checked.diagnostics
    program = DeviceProgram(checked.rules.devices[f"chips.{name}"], CompiledFunctions(checked.rules.fns))
    assert (program.kind, program.record) == (kind, f"{kind}-cards")
    container = DeviceContainer("c", limits={card: Quantity.of(2), other: Quantity.of(3)})
    request = program.request(DevicePod("p"), container)
    assert request is not None
    assert (request.count, request.memory) == (2, 3)
