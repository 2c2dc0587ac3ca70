from __future__ import annotations

import pytest
from kdsl.base.quantity import Quantity
from kdsl.plan.devices.admission import admit_pod

from tests.plan.devices.devices import container, pod, small


def admit(lines: str, *containers: int) -> tuple[list[dict[str, str]], bool, str]:
    """Return the limits of all containers, whether devices are used, and the refusal."""
    admission = admit_pod([small(admit=f"admit {{ {lines} }}").admit], pod(*map(container, containers)))
    limits = [
        {name: str(amount) for name, amount in each.limits.items()} for each in admission.pod.containers
    ]
    return limits, admission.uses_devices, admission.refusal


@pytest.mark.parametrize(
    "lines, counts, expected",
    [
        pytest.param(
            "applies when card in container.limits", (1, 0), ([{"v.com/card": "1"}, {}], True, ""), id="uses"
        ),
        pytest.param("applies when card in container.limits", (0,), ([{}], False, ""), id="does not use"),
        pytest.param(
            "set limits[memory] = 3 where card in container.limits applies when memory in container.limits",
            (1,),
            ([{"v.com/card": "1", "v.com/memory": "3"}], True, ""),
            id="a line sees what the one before wrote",
        ),
        pytest.param(
            "let before = container.limits.size() set limits[memory] = 3 set limits['size'] = before",
            (1,),
            ([{"v.com/card": "1", "v.com/memory": "3", "size": "1"}], True, ""),
            id="a let is computed where it stands",
        ),
        pytest.param(
            'require container.limitAmounts[?card].orValue(0) < 2 else "no ${container.name}" set limits[memory] = 1',
            (1, 2),
            ([{"v.com/card": "1", "v.com/memory": "1"}, {"v.com/card": "2"}], True, "no c"),
            id="refused at the second container",
        ),
    ],
)
def test_limits(lines: str, counts: tuple[int, ...], expected: tuple[object, ...]) -> None:
    assert admit(lines, *counts) == expected


def test_other_targets() -> None:
    lines = """admit {
      set requests[card] = quantity("500m")
      set env["A"] = container.name
      set annotations["x"] = "y"
      set runtimeClass = pod.annotations[?"x"].orValue("none")
    }"""
    found = admit_pod([small(admit=lines).admit], pod(container(1))).pod
    (first,) = found.containers
    assert first.requests == {"v.com/card": Quantity.of_milli(500)}
    assert first.env == (("A", "c"),)
    assert (dict(found.annotations), found.runtime_class) == ({"x": "y"}, "y")
