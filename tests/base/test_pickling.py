"""Values that keep their hash go to other processes without it: texts have other hashes there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources

VALUES = [
    FrozenMap({"zone": "a", "pool": "b"}),
    FrozenMap({}),
    Resources({"cpu": 4000, "pods": 10}),
    Resources({}),
]
CHECK = """
import pickle, sys
value, text = pickle.load(sys.stdin.buffer)
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
made = eval(text)
assert value == made
assert {made: "found"}[value] == "found"
"""


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_value_is_found_under_an_equal_one_in_another_process(
    value: FrozenMap[str, str] | Resources, seed: str
) -> None:
    hash(value)  # The hash is kept from here on.
    is_map = isinstance(value, FrozenMap)
    text = repr(value) if is_map else f"Resources({dict(value._amounts)!r})"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    subprocess.run(
        [sys.executable, "-c", CHECK], input=pickle.dumps((value, text)), env=environment, check=True
    )


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_pickled_value_is_equal(value: FrozenMap[str, str] | Resources) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value and hash(again) == hash(value) and list(again.items()) == list(value.items())
