"""The devices of a checked profile, and its settings for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kdsl.base.span import Span
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import CheckedParam
from kdsl.check.model.typed import CallOf, Const, TypedExpr, Var

DEVICES: Final = "Devices"
"""The subject that `set` and verdicts use for the devices of a profile."""

ASKED: Final = "askedNodes"
CHOSEN: Final = "chosen"
"""The setting that says which nodes are asked for cards, and its value for the chosen node alone."""

Setting = str | int
SETTINGS: Final[Mapping[str, Setting]] = {
    "nodePolicy": "binpack",
    "cardPolicy": "spread",
    "slotWeight": 1,
    "coreWeight": 1,
    "memoryWeight": 1,
    "weight": 1,
    ASKED: "all",
}
"""The settings of `set Devices.x = v` with their defaults: HAMi's, and the weight of the node score."""

WORDS: Final[Mapping[str, tuple[str, ...]]] = {"nodePolicy": ("binpack", "spread"), ASKED: ("all", CHOSEN)}
"""The values of settings that take few."""

CARD_POLICIES: Final = ("binpack", "spread", "numa", "mutex", "topology-aware")
"""The words of `cardPolicy` that shipped devices know. A device may know others."""


@dataclass(frozen=True, slots=True)
class CheckedSharing:
    """The devices of a profile in order, and its settings: those of `SETTINGS` that are set."""

    devices: tuple[CheckedDevice, ...]
    settings: tuple[CheckedParam, ...]
    origins: tuple[Span, ...] = field(compare=False, repr=False)

    @property
    def values(self) -> dict[str, Setting]:
        """The effective settings: the defaults, overridden by those that are set."""
        values = dict(SETTINGS)
        for each in self.settings:
            if isinstance(each.value, Const) and isinstance(each.value.value, str | int):
                values[each.variable.name] = each.value.value
        return values

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that the devices manage, without those whose names are not constant."""
        return tuple(dict.fromkeys(name for device in self.devices for name in _resources(device)))


def _resources(device: CheckedDevice) -> Iterator[str]:
    for param in device.params:
        if param.variable.name in device.resources:
            name = constant_text(device, param.value)
            if name:
                yield name


def constant_text(device: CheckedDevice, expr: TypedExpr) -> str:
    """Return a text of a device, "" where it is not constant.

    A concatenation of constants and parameters counts as constant.
    """
    return _text(expr, {param.variable.slot: param.value for param in device.params})


def _text(expr: TypedExpr, params: Mapping[int, TypedExpr]) -> str:
    match expr:
        case Const(value=str() as text):
            return text
        case Var(slot=slot) if slot in params:
            return _text(params[slot], params)
        case CallOf(function="_+_", args=args):
            parts = [_text(each, params) for each in args]
            return "".join(parts) if all(parts) else ""
        case _:
            return ""
