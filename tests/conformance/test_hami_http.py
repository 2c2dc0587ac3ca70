"""A slice of the HAMi vectors through the extender's paths: every step must pass.

All of them take about three minutes: `python -m tests.conformance.hami FILE --through http`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tests.conformance.hami import read_vectors
from tests.conformance.hami_http import steps_through_http
from tests.conformance.test_hami import DATA, FAMILIES

PARTS = ("admitted", "failed", "best", "scores", "annotations", "devices")
EACH = 24
"""One in so many scenarios is run: at least one of each family, and both default policies of both kinds."""


def test_a_slice_passes() -> None:
    vectors = list(islice(read_vectors(DATA), 0, None, EACH))
    assert {vector["family"] for vector in vectors} == set(FAMILIES)
    assert len({(vector["node_policy"], vector["gpu_policy"]) for vector in vectors}) == 4
    steps = list(steps_through_http(vectors))
    assert {name: problems for _, name, problems in steps if problems} == {}
    assert len(steps) == sum(len(vector["pods"]) for vector in vectors)


def test_wrong_answers_are_seen() -> None:
    spoiled = dict(zip(PARTS, _spoiled(), strict=True))
    found: dict[str, list[str]] = {part: [] for part in PARTS}
    for _, name, problems in steps_through_http(spoiled.values()):
        part = next(part for part, vector in spoiled.items() if name.startswith(vector["id"]))
        found[part] += problems
    for part, problems in found.items():
        word = {"best": "chosen", "devices": "annotations"}.get(part, part)
        assert any(each.startswith(word) for each in problems), (part, problems)


def _spoiled() -> Iterator[dict[str, Any]]:
    """Yield a scenario with a wrong answer for each part of what HAMi says, all of one pair of policies."""
    vectors = read_vectors(DATA, frozenset({"nvidia"}))
    ours = (each for each in vectors if (each["node_policy"], each["gpu_policy"]) == ("binpack", "spread"))
    for part in PARTS:
        for vector in ours:
            steps = vector["expected"]["steps"]
            step = next((s for s in steps if "failed" in s and ("chosen" in s) is (part != "failed")), None)
            if step is not None:
                step[part] = _wrong(step)[part]
                yield vector
                break


def _wrong(step: dict[str, Any]) -> dict[str, Any]:
    record = "hami.io/vgpu-devices-allocated"
    return {
        "admitted": {**step["admitted"], "annotations": {"more": "than was there"}},
        "failed": dict.fromkeys(step["failed"], "1/1 CardTypeMismatch, 1/1 Other"),
        "best": ["nowhere"],
        "scores": dict.fromkeys(step.get("scores", ()), 77.0),
        "annotations": {**step.get("annotations", {}), "more": "than was there"},
        "devices": {node: [{record: "X,NVIDIA,1,1:;"}] for node in step.get("devices", ())},
    }
