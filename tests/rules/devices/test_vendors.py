"""Each YAML file that is no rule test is a node and the pods that come to it, one after the other; each keeps what it gets.

Of a pod is said what is not the default: `limits` (of one container) or `containers` (several, with `limits` and
`requests`), `init containers` and `annotations`. What is expected of it: `refused`, or `reason`, or `cards`, the record of what it
gets; beside that any of `uses devices`, `limits of c0` (after admission), `env of c0`, `score`, and `written`
(annotations). `null` is what is not said.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml
from kdsl.app import shipped_rules
from kdsl.plan.devices.program import DeviceProgram

from tests.rules.devices.desk import Desk, Json, programs_of

CASES = sorted(set(Path(__file__).parent.glob("*.yaml")) - set(Path(__file__).parent.glob("*.test.yaml")))


@cache
def programs() -> Mapping[str, DeviceProgram]:
    return programs_of(shipped_rules())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_vendor(path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    metadata = {"name": "n"} | case["node"].get("metadata", {})
    desk = Desk.of(programs(), [case["node"] | {"metadata": metadata}])
    answers = [desk.serve(pod(number, each)) for number, each in enumerate(case["pods"])]
    expected = [
        (number, key, value)
        for number, each in enumerate(case["pods"])
        for key, value in each["expected"].items()
    ]
    actual = [(number, key, said(answers[number], key)) for number, key, _ in expected]
    assert actual == expected


def pod(number: int, written: Json) -> Json:
    containers = written.get("containers", [{"limits": written.get("limits", {})}])
    return {
        "metadata": {
            "name": f"p{number}",
            "uid": f"u{number}",
            "annotations": written.get("annotations", {}),
        },
        "spec": {
            "containers": [{"name": f"c{at}", "resources": each} for at, each in enumerate(containers)],
            "initContainers": [
                {"name": f"i{at}", "resources": each}
                for at, each in enumerate(written.get("init containers", ()))
            ],
        },
    }


def said(answer: Json, key: str) -> object:
    value = answer.get(key)
    if key == "written" and value is not None:
        return {name: text for name, text in value.items() if name != "hami.io/vgpu-node"}
    return value.removeprefix("n: ") if key == "reason" and value is not None else value
