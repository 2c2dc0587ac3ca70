"""Values that keep their hash go to other processes without it: texts have other hashes there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.objects.spread import SpreadConstraint

SELECTOR = "LabelSelector(frozenset({LabelRequirement('app', Operator.IN, frozenset({'a', 'b'}))}))"
TEXTS = [
    "FrozenMap({'zone': 'a', 'pool': 'b'})",
    "FrozenMap({})",
    "Resources({'cpu': 4000, 'pods': 10})",
    "Resources({})",
    f"SpreadConstraint('zone', 1, 'DoNotSchedule', 'team', 2, {SELECTOR}, False, True)",
    "SpreadConstraint('zone', 1, 'ScheduleAnyway')",
    f"PodAffinityTerm('zone', 5, {SELECTOR}, frozenset({{'one', 'two'}}), {SELECTOR})",
    "PodAffinityTerm('zone', 0, None, frozenset(), None)",
]
"""Values, as Python makes them."""
NAMES = (
    *(FrozenMap, Resources, LabelSelector, LabelRequirement, Operator, SpreadConstraint, PodAffinityTerm),
)
CHECK = f"""
import pickle, sys
value, text = pickle.load(sys.stdin.buffer)
{"; ".join(f"from {each.__module__} import {each.__name__}" for each in NAMES)}
made = eval(text)
assert value == made
assert {{made: "found"}}[value] == "found"
"""


def _made(text: str) -> object:
    return eval(text, {each.__name__: each for each in NAMES})


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_value_is_found_under_an_equal_one_in_another_process(text: str, seed: str) -> None:
    value = _made(text)
    hash(value)  # The hash is kept from here on.
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    subprocess.run(
        [sys.executable, "-c", CHECK], input=pickle.dumps((value, text)), env=environment, check=True
    )


@pytest.mark.parametrize("text", TEXTS)
def test_a_pickled_value_is_equal(text: str) -> None:
    value = _made(text)
    again = pickle.loads(pickle.dumps(value))
    assert again == value and hash(again) == hash(value)
    if isinstance(value, (FrozenMap, Resources)):
        assert list(again.items()) == list(value.items())


def test_the_keys_of_a_pickled_selector_count_in_another_process() -> None:
    check = (
        "import pickle, sys; pickle.load(sys.stdin.buffer);"
        "from kdsl.base.frozen_map import FrozenMap;"
        "from kdsl.cluster.objects.label_selectors import SELECTED_KEYS;"
        "assert SELECTED_KEYS.among(FrozenMap({'app': 'a', 'other': 'b'})) == (('app', 'a'),)"
    )
    subprocess.run([sys.executable, "-c", check], input=pickle.dumps(_made(SELECTOR)), check=True)
