"""Whether all cards have a place in the order of trying if one has."""

from __future__ import annotations

import pytest

from tests.plan.devices.devices import small

LOOP = "pod.annotations.map(key, key).size()"


@pytest.mark.parametrize(
    "key",
    [
        "device.index",
        "-fullness",
        f"pod.name == '' ? device.numa : {LOOP}",
        "pod.annotations.map(key, key == '' ? device.index : 0)",
    ],
)
def test_total(key: str) -> None:
    assert small(order=key).order.is_total


@pytest.mark.parametrize(
    "key",
    [
        "device.numa / request.count",
        "device.id",
        f"device.index == 0 ? 0 : {LOOP}",
        f"fullness > 0.5 && {LOOP} > 0 ? 1 : 0",
        f"cel.bind(first, device.index == 0, first ? 0 : {LOOP})",
        f"[1].filter(one, one > device.index).map(one, {LOOP})",
        f"[1].exists(one, one > device.index || {LOOP} > 0) ? 1 : 0",
    ],
)
def test_a_card_may_have_no_place(key: str) -> None:
    """A test of the card decides whether a loop runs, which may take too many steps."""
    assert not small(order=key).order.is_total
