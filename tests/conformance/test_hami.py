"""The HAMi vectors of the kinds of devices that have rules: every step must pass."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.conformance.hami import read_vectors, run_vector

DATA = Path(__file__).parent / "data" / "hami-vectors.jsonl.gz"
FAMILIES = {
    "nvidia": 903,
    "nvidia_mig": 211,
    "nvidia_topology": 150,
    "nvidia_quota": 200,
    "mlu": 225,
    "dcu": 225,
    "ascend910b3": 205,
    "ascend310p": 196,
    "ascend910c": 189,
    "metax_sgpu": 200,
    "kunlun": 200,
    "vxpu": 200,
    "aws": 200,
    "amd": 200,
    "iluvatar": 200,
    "mthreads": 200,
    "metax": 175,
    "gcu": 150,
    "enflame": 200,
    "vastai": 175,
    "biren": 175,
}
"""How many steps each has."""


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    steps = [step for vector in read_vectors(DATA, frozenset({family})) for step in run_vector(vector)]
    assert {name: problems for name, problems in steps if problems} == {}
    assert len(steps) == FAMILIES[family]


@pytest.mark.parametrize("part", ["scores", "devices", "failed", "requests", "admitted", "annotations"])
def test_a_wrong_answer_is_seen(part: str) -> None:
    vector = next(
        vector
        for vector in read_vectors(DATA, frozenset({"nvidia"}))
        if any("failed" in step and "chosen" in step for step in vector["expected"]["steps"])
    )
    step = next(step for step in vector["expected"]["steps"] if "failed" in step and "chosen" in step)
    wrong = {
        "scores": dict.fromkeys(step["scores"], 77.0),
        "devices": {node: [{"hami.io/vgpu-devices-allocated": "X,NVIDIA,1,1:;"}] for node in step["devices"]},
        "failed": dict.fromkeys(step["failed"], "1/1 CardTypeMismatch, 1/1 Other"),
        "requests": [{} for _ in step["requests"]],
        "admitted": {**step["admitted"], "annotations": {"more": "than was there"}},
        "annotations": {**step["annotations"], "more": "than was there"},
    }
    step[part] = wrong[part]
    found = [problem for _, problems in run_vector(vector) for problem in problems]
    assert any(problem.startswith(part) for problem in found)


def test_a_kind_without_rules_fails() -> None:
    (vector,) = islice(read_vectors(DATA, frozenset({"nvidia"})), 1)
    for step in vector["expected"]["steps"]:
        step["requests"] = [{"Unknown": request} for request in step["requests"]]
    assert all(problems for _, problems in run_vector(vector))
