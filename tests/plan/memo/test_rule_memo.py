"""Pods that are new to a profile share the answers of the rules in which they are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Meter, Steps
from kdsl.hooks.state import CycleState
from kdsl.plan.compile.budget import Share
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.memo.scores import ScoreMemo
from kdsl.plan.rules.compiled_profile import compile_profile
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScoreError, ScorePlugin

from tests.plan.lab import DEFAULT_QUEUE, compile_rules, rules
from tests.plan.memo.test_joined import column_of
from tests.plan.memo.totals import totals_of

RULES = f"""
predicate Zone {{ require node.labels[?"zone"] == pod.labels[?"zone"] else "zone" }}
predicate Busy {{ require node.podCount < pod.priority else "busy" }}
score Near {{ value node.labels[?"zone"] == pod.labels[?"zone"] ? 7 : 0 }}
score Free {{ value pod.priority - node.podCount normalize minmax }}
{DEFAULT_QUEUE}
profile p {{
  scheduler "t"
  queue Q
  predicates {{ Zone Busy }}
  scores {{ Near weight 2 Free weight 1 }}
}}
"""


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache()
    for name in "abc":
        cache.add_node(NodeFacts(name, labels=FrozenMap({"zone": name})))
    return cache


def pod(priority: int, zone: str) -> PodInfo:
    return PodInfo("p", labels=FrozenMap({"zone": zone}), priority=priority)


def runs(monkeypatch: pytest.MonkeyPatch, plugin: type, method: str) -> Counter[str]:
    """Count the runs of each rule."""
    count: Counter[str] = Counter()
    run = getattr(plugin, method)

    def counted(self: PredicateRule | ScorePlugin, *args: object, **named: object) -> object:
        count[self.name] += 1
        return run(self, *args, **named)

    monkeypatch.setattr(plugin, method, counted)
    return count


def reasons(joined: PredicateMemo, one: PodInfo, cache: ClusterCache) -> list[str]:
    nodes, state = NodeSet.all(cache.snapshot()), CycleState()
    joined.pre_filter(state, one, nodes)
    column = column_of(joined, state, one, nodes)
    return [" ".join(column.table[number].reasons) for number in column.ids.tolist()]


def test_a_predicate_runs_for_the_first_two_pods_that_it_cannot_distinguish(
    cache: ClusterCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = PredicateMemo(compile_rules(RULES).predicates)
    count = runs(monkeypatch, PredicateRule, "statuses_of")
    for priority in range(1, 6):
        assert reasons(joined, pod(priority, "b"), cache) == ["zone", "", "zone"]
    assert count == {"Zone": 2, "Busy": 5}
    cache.update_node(NodeFacts("a", labels=FrozenMap({"zone": "b"})))
    assert reasons(joined, pod(6, "b"), cache) == ["", "", "zone"]
    assert reasons(joined, pod(7, "b"), cache) == ["", "", "zone"]
    assert count == {"Zone": 3, "Busy": 7}


def test_the_first_rejection_is_reported_whichever_rule_is_kept(cache: ClusterCache) -> None:
    joined = PredicateMemo(compile_rules(RULES.replace("{ Zone Busy }", "{ Busy Zone }")).predicates)
    for priority in (1, 2, 0, 3):
        busy = "busy" if priority == 0 else ""
        assert reasons(joined, pod(priority, "b"), cache) == [busy or "zone", busy, busy or "zone"]


def test_a_score_runs_for_the_first_two_pods_that_it_cannot_distinguish(
    cache: ClusterCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = ScoreMemo(compile_rules(RULES).scores)
    count = runs(monkeypatch, ScorePlugin, "raw_of")
    cache.add_pod(PodInfo("q", node_name="a"))
    nodes = NodeSet.all(cache.snapshot())
    for priority in range(1, 6):
        assert totals_of(joined, pod(priority, "b"), nodes) == [0, 114, 100]
    assert count == {"Near": 2, "Free": 5}


def test_a_loop_over_pods_runs_again_where_they_changed(
    cache: ClusterCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such rules do not run over columns, so their answers are kept although they read the pods on nodes."""
    text = f"""
predicate Calm {{ require node.pods.map(p, p.priority).sum() < 9 else "urgent" }}
score Teams {{ value node.pods.map(p, p.namespace).distinct().size() }}
{DEFAULT_QUEUE}
profile p {{ scheduler "t" queue Q predicates {{ Calm }} scores {{ Teams weight 1 }} }}
"""
    compiled = compile_rules(text)
    predicates, scores = PredicateMemo(compiled.predicates), ScoreMemo(compiled.scores)
    asked: list[list[str]] = []
    for plugin, method in ((PredicateRule, "statuses_of"), (ScorePlugin, "raw_of")):
        run = getattr(plugin, method)

        def recorded(
            self: object, pod: PodInfo, nodes: NodeSet, run: Callable[..., object] = run, **named: object
        ) -> object:
            asked.append(list(nodes.names()))
            return run(self, pod, nodes, **named)

        monkeypatch.setattr(plugin, method, recorded)

    def answers(priority: int) -> tuple[list[str], list[int] | None]:
        asked.clear()
        one = pod(priority, "b")
        return reasons(predicates, one, cache), totals_of(scores, one, NodeSet.all(cache.snapshot()))

    assert answers(1) == answers(2) == (["", "", ""], [0, 0, 0])
    assert answers(3) == (["", "", ""], [0, 0, 0])
    assert asked == []
    cache.add_pod(PodInfo("q", node_name="b", priority=9))
    assert answers(4) == (["", "urgent", ""], [0, 1, 0])
    assert asked == [["b"], ["b"]]
    cache.remove_pod("default/q")
    assert answers(5) == (["", "", ""], [0, 0, 0])


def test_the_first_part_of_a_tightened_predicate_is_reported_whichever_is_kept(cache: ClusterCache) -> None:
    """The predicate reads the pods of a node, its tightening does not, as the predicate before it."""
    text = f"""
predicate Labels {{ require node.labels.size() < 9 else "labels" }}
predicate Busy {{ require node.podCount < 0 else "busy" }}
{DEFAULT_QUEUE}
profile base {{ scheduler "b" queue Q predicates {{ Labels Busy }} }}
profile p extends base {{
  scheduler "t"
  tighten Busy {{ require "rack" in node.labels else unresolvable "rack" }}
}}
"""
    joined = PredicateMemo(compile_rules(text).predicates)
    for priority in (1, 2, 3, 1, 1):
        assert reasons(joined, pod(priority, "b"), cache) == ["busy"] * 3


def test_answers_end_with_the_share_of_steps_under_which_they_were_found() -> None:
    """10,000 steps are enough for three nodes, and not for four, from that moment on."""
    sum_of_pairs = "node.labels.transformList(j, w, (k + v + j + w).size()).sum()"
    found = rules(
        f"""
predicate Pairs {{ require node.labels.transformList(k, v, {sum_of_pairs}).sum() > 3 else "few" }}
score Sum {{ value node.labels.transformList(k, v, {sum_of_pairs}).sum() > 3 ? 7 : 0 }}
{DEFAULT_QUEUE}
profile p {{ scheduler "t" queue Q predicates {{ Pairs }} scores {{ Sum weight 1 }} }}
"""
    )
    steps = Steps(node=10_000, rule=10_000)
    compiled = compile_profile(found, found.profiles["t.p"], steps=steps)
    predicates, scores = PredicateMemo(compiled.predicates), ScoreMemo(compiled.scores)
    cache, labels = ClusterCache(), FrozenMap({f"k{at}": "v" for at in range(35)})
    for name in "abc":
        cache.add_node(NodeFacts(name, labels=labels))

    def answers() -> tuple[list[str], list[int] | None]:
        one = pod(1, "b")
        return reasons(predicates, one, cache), totals_of(scores, one, NodeSet.all(cache.snapshot()))

    for _ in range(3):
        assert answers() == ([""] * 3, [7] * 3)
    cache.add_node(NodeFacts("d", labels=labels))
    failed = "rule Pairs failed: more than 2500 steps, the rule's share for a pod (t.kdsl:4:27)"
    for _ in range(3):
        assert reasons(predicates, pod(1, "b"), cache) == [failed] * 4
        with pytest.raises(ScoreError, match="rule Sum failed: more than 2500 steps"):
            answers()
    cache.remove_node("d")
    assert answers() == ([""] * 3, [7] * 3)


def test_values_of_a_pod_are_computed_once_for_a_repeated_signature(
    cache: ClusterCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = 0
    value_meter = Share.value_meter

    def counted(self: Share, parts: int = 1) -> Meter:
        nonlocal computed
        computed += 1
        return value_meter(self, parts)

    monkeypatch.setattr(Share, "value_meter", counted)
    compiled = compile_rules(f"""
predicate Rare {{
  let rare = pod.labels.filter(key, key.startsWith("zone")).size()
  require node.podCount < 5 + rare else "busy"
}}
score Few {{
  let rare = pod.labels.filter(key, key.startsWith("zone")).size()
  value 90 - node.podCount - rare
}}
{DEFAULT_QUEUE}
profile p {{ scheduler "t" queue Q predicates {{ Rare }} scores {{ Few weight 1 }} }}
""")
    predicates, scores = PredicateMemo(compiled.predicates), ScoreMemo(compiled.scores)
    per_pod: list[int] = []
    for at in range(5):
        computed = 0
        assert reasons(predicates, pod(0, "b"), cache) == ["", "", ""]
        assert totals_of(scores, pod(0, "b"), NodeSet.all(cache.snapshot())) == [89 - at, 89, 89]
        per_pod.append(computed)
        # Its node is of a class that no rule has judged yet.
        cache.add_pod(PodInfo(f"q{at}", node_name="a"))
    assert per_pod[0] > 0 and per_pod[2:] == [0, 0, 0]
