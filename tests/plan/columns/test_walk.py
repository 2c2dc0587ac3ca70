"""The walk of a predicate for a new pod, from the search to numpy, is the one that AGENTS.md describes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.base.resources import Resources
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.plan.columns.batch import MIN_ROWS, Batch

from tests.plan.lab import DEFAULT_QUEUE, node, rules

TOUR = Path(__file__).parents[3] / "AGENTS.md"

RULES = f"""
predicate P {{ require pod.requests["cpu"] <= node.allocatable["cpu"] else "cpu" }}
{DEFAULT_QUEUE}
profile p {{ scheduler "default-scheduler" queue Q predicates {{ P }} }}
"""
MOST_CALLS = 12
"""The most calls from the memo to a column of the snapshot, besides the frames of comprehensions."""


def test_a_new_pod_walks_as_the_tour_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ClusterCache()
    for number in range(MIN_ROWS):
        cache.add_node(node(f"n{number}"))
    walks: list[list[str]] = []
    column = Batch.column

    def noted(batch: Batch, place: tuple[str, str]) -> Any:
        walks.append([each.frame.f_code.co_qualname for each in reversed(inspect.stack(0)[1:])])
        return column(batch, place)

    monkeypatch.setattr(Batch, "column", noted)
    with build_engine(
        rules(RULES), cache, MemoryBinder(cache), ManualClock(), Settings(profile="t.p")
    ) as engine:
        (decision,) = engine.decisions([PodInfo("p", requests=Resources({"cpu": 1}))])
    assert decision.node and len(walks) == 1
    walk = [name for name in walks[0] if not name.endswith("comp>")]
    tour = TOUR.read_text(encoding="utf-8")
    (sentence,) = re.findall(r"The walk of a predicate for a new pod: (.*?)\.\s", tour, re.DOTALL)
    named = re.findall(r"`([\w.]+)`", sentence)
    walk = walk[walk.index(named[0]) :]
    places = [[name.endswith(each) for name in walk].index(True) for each in named]
    assert len(named) == 6 and places == sorted(places)
    assert len(walk) - 1 - walk.index("PredicateMemo.filter") < MOST_CALLS, walk
