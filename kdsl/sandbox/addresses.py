"""The addresses of Services inside of the cluster. No process listens there."""

from __future__ import annotations

import ipaddress
from typing import Final

from kdsl.sandbox.call import SandboxState
from kdsl.sandbox.errors import Json
from kdsl.sandbox.resources import SERVICES

_RANGE: Final = ipaddress.IPv4Network("10.96.0.0/12")
_FIRST: Final = 10
"""The first address for a Service that names none: the ones below are for well-known Services."""


def give_address(world: SandboxState, body: Json) -> None:
    """Give a new Service an unused address, if it wants one."""
    spec = body["spec"]
    if spec["type"] == "ExternalName" or spec.get("clusterIP"):
        return
    used = {item["spec"].get("clusterIP") for item in world.store.bodies(SERVICES)}
    number = next(each for each in range(_FIRST, _RANGE.num_addresses) if str(_RANGE[each]) not in used)
    spec["clusterIP"] = str(_RANGE[number])
    spec["clusterIPs"] = [spec["clusterIP"]]
