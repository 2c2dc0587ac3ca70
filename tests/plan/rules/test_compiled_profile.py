from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from kdsl.app import check_rules
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.state import CycleState
from kdsl.hooks.table import ProfileOrder, freeze
from kdsl.plan.rules.compiled_profile import compile_profile

from tests.plan.lab import filtered, node, nodes_of, predicate

RULES = Path(__file__).parents[3] / "rules"


def test_every_shipped_profile_can_be_compiled_registered_and_frozen() -> None:
    checked = check_rules([RULES])
    assert checked.rules is not None
    manager = PluginManager()
    for profile in checked.rules.profiles.values():
        compiled = compile_profile(checked.rules, profile)
        plugins: list[Any] = [*compiled.predicates, *compiled.scores, compiled.queue]
        for plugin in plugins:
            assert manager.register(plugin, plugin.name, key=plugin.key) == ()
        order = ProfileOrder(
            compiled.name,
            compiled.scheduler,
            tuple(plugin.key for plugin in compiled.predicates),
            tuple((plugin.key, plugin.weight) for plugin in compiled.scores),
            compiled.queue.key,
        )
        table, problems = freeze(manager, order)
        assert table is not None and problems == ()
        rules = [rule.name for rule in profile.predicates if not rule.plugin]
        assert [name for name, _ in table.filters] == rules
        weights = [entry.weight for entry in profile.scores if not entry.score.plugin]
        assert [hook.weight for hook in table.scores] == weights


def test_filter_without_pre_filter_prepares_itself() -> None:
    plugin = predicate('require node.name == "a" else "no"')
    nodes = nodes_of(node("a"), node("b"))
    column = plugin.filter(CycleState(), PodInfo("p"), nodes)
    assert column is not None and column.passed.tolist() == [True, False]


def test_disjoint_sets_may_be_judged_at_once() -> None:
    plugin = predicate('let size = node.allocatable["cpu"]\nrequire size > quantity("1") else "only ${size}"')
    nodes = nodes_of(*(node(f"n{at}", at * 10) for at in range(300)))
    state, pod = CycleState(), PodInfo("p")
    plugin.pre_filter(state, pod, nodes)
    parts = [NodeSet(nodes.snapshot, rows) for rows in np.array_split(nodes.rows, 10)]
    with ThreadPoolExecutor(4) as pool:
        columns = list(pool.map(lambda part: filtered(plugin, state, pod, part), parts))
    texts = [column[at].message for column in columns for at in range(len(column))]
    assert texts == [
        f"only {at * 10}m" if 0 < at <= 99 else "only 0" if at == 0 else "" for at in range(100)
    ] + ["only 1" if at == 100 else "" for at in range(100, 300)]
