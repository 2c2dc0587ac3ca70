"""Cards chosen by what the pod, the node and its other cards say; devices that are asked about the chosen node alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_rules
from kdsl.lab.running import run
from kdsl.lab.traces import Trace, TraceNode, TracePod

RULES = """kdsl 1
package t
import policies.atc23.cards

device Milli extends cards.Milli {{
  order by {order}
}}

profile p extends cards.base {{
  scheduler "t"
  devices Milli
  set Devices.askedNodes = "{asked}"
}}
"""
SMALL, LARGE = TracePod("small", 1000, 0, 1, 100), TracePod("large", 8000, 0, 1, 100)
FIRST_OR_LAST = "? -device.index : device.index"
ORDERS = {
    # The requests of each pod count, though their containers want the same of the cards.
    f'pod.requests["cpu"] > quantity("4") {FIRST_OR_LAST}': [0, 3, 0],
    f'node.requested["cpu"] > quantity("0") {FIRST_OR_LAST}': [0, 3, 3],
    f'node.allocatable["cpu"] > quantity("4") {FIRST_OR_LAST}': [3, 3, 3],
    # A card beside a used one: the keys of a card depend on the others.
    "devices.exists(d, d.index + 1 == device.index && d.used > 0) ? 0 : 1, device.index": [0, 1, 1],
}


def _cards(folder: Path, order: str, asked: str) -> list[int]:
    path = folder / "t.kdsl"
    path.write_text(RULES.format(order=order, asked=asked), encoding="utf-8")
    checked = check_rules([path])
    assert checked.rules is not None, checked.diagnostics
    pods = (SMALL, LARGE, TracePod("last", 1000, 0, 1, 100))
    result = run(checked.rules, "t.p", Trace((TraceNode("n", 32000, 1, 4, ""),), pods, ()))
    return [placed.cards[0] for placed in result.placements]


@pytest.mark.parametrize("asked", ["all", "chosen"])
@pytest.mark.parametrize("order", ORDERS)
def test_cards_by_what_is_requested(order: str, asked: str, tmp_path: Path) -> None:
    assert _cards(tmp_path, order, asked) == ORDERS[order]


def test_a_device_may_refuse_the_chosen_node(tmp_path: Path) -> None:
    path = tmp_path / "t.kdsl"
    text = RULES.format(order="device.index", asked="chosen").replace("cards.base", "loose")
    loose = 'profile loose {\n  scheduler "u"\n  queue kubernetes.PrioritySort\n  predicates { kubernetes.NodeResourcesFit }\n}\n'
    text = text.replace(
        "import policies.atc23.cards\n",
        "import kubernetes.v1_36 as kubernetes\nimport policies.atc23.cards\n",
    )
    path.write_text(text + loose, encoding="utf-8")
    checked = check_rules([path])
    assert checked.rules is not None, checked.diagnostics
    pods = (TracePod("one", 1000, 0, 1, 600), TracePod("two", 1000, 0, 1, 600))
    result = run(checked.rules, "t.p", Trace((TraceNode("n", 32000, 1, 1, ""),), pods, ()))
    # The predicates let it pass; the device has no card for it.
    assert [placed.node for placed in result.placements] == ["n", None]
    assert any("CardInsufficientCore" in reason for reason in result.pending)
