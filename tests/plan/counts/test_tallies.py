"""Tallies ask about a pod or term once, and only about those that may count."""

from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.eval.scalar.meter import Meter
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts import tally
from kdsl.plan.counts.measures import Measure, PodAnswers
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import FEW_DOMAINS, Topology

from tests.plan.counts.asking import (
    ASKING,
    SELECTORS,
    TERMS,
    FactsQuestion,
    MatchingQuestion,
    NotingQuestion,
    Question,
    SelectingQuestion,
    add_zone,
)


def test_a_row_is_counted_once_at_one_version() -> None:
    cache = ClusterCache()
    for name in ("a", "b"):
        cache.add_node(NodeFacts(name, labels=FrozenMap({"zone": name})))
        cache.add_pod(PodInfo(f"on-{name}", node_name=name, priority=1))
    question = NotingQuestion("urgent")
    asked = question.asked
    for _ in range(2):
        assert Topology(cache.snapshot(), "zone").count(question, Meter.of(100)).total() == 2
    assert sorted(asked) == ["on-a", "on-b"]
    cache.add_pod(PodInfo("new", node_name="b"))
    snapshot = cache.snapshot()
    assert Topology(snapshot, "zone").count(question, Meter.of(100)).total() == 2
    assert asked[2:] == ["new"]
    info: NodeInfo = snapshot.info(0)
    Topology(snapshot.overlay(0, info.with_pod(PodInfo("x"))), "zone").count(question, Meter.of(100))
    assert sorted(asked[3:]) == sorted([*(pod.name for pod in info.pods), "x"])


def test_a_question_that_is_seldom_asked_is_counted_from_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_FEW_ARRIVALS", 16)
    cache = ClusterCache()
    add_zone(cache, *"abcdefgh")
    question = SelectingQuestion(TERMS[2])
    for number in range(400):
        app = "a" if number % 100 == 0 else "c"
        cache.add_pod(
            PodInfo(
                f"p{number}",
                node_name="abcdefgh"[number % 8],
                priority=1,
                labels=FrozenMap({"app": app}),
            )
        )
        cache.snapshot()
        if number % 40 in (30, 31, 32):
            # One question has a tally that follows a few pods, but forgets its rows after the next gap.
            before = question.asked
            count = Topology(cache.snapshot(), "zone").sum(question, Meter.of(1000))
            assert count.total() == number // 100 + 1
            if number % 40 == 30 and number > 30:
                assert question.asked - before <= number // 100 + 2
            if number > 40:
                (kept,) = TallyStore.of(cache.snapshot())._tallies._entries.values()
                assert len(kept.amounts) == (0 if number % 40 == 30 else 8)
        else:
            TallyStore.of(snapshot := cache.snapshot()).has_terms(snapshot, TermKind.PREFERRED_AFFINITY)


def test_pods_of_one_key_are_asked_about_once() -> None:
    cache = ClusterCache()
    add_zone(cache, "a", "b")
    for number in range(4):
        cache.add_pod(PodInfo(f"p{number}", node_name="ab"[number % 2], priority=number % 3))
    question = NotingQuestion("priority")
    asked = question.asked
    first = Topology(cache.snapshot(), "zone").count(question, Meter.of(100))
    assert (first.total(), first.sums.steps) == (3, 4)
    assert sorted(asked) == ["p0", "p1", "p2"]
    cache.add_pod(PodInfo("p5", node_name="a", priority=2))
    cache.add_pod(PodInfo("p6", node_name="b", priority=5))
    cache.remove_pod("default/p0")
    cache.snapshot()
    count = first.renewed(Meter.of(100))
    assert (count.total(), count.sums.steps) == (10, 5)
    assert asked[3:] == ["p6"]


def test_one_pod_is_asked_about_for_each_combination_of_facts() -> None:
    cache = ClusterCache()
    add_zone(cache, *"abcdefgh")
    for number in range(400):
        labels = FrozenMap({"app": "abcde"[number % 5], "pod": str(number)})
        cache.add_pod(PodInfo(f"p{number}", node_name="abcdefgh"[number % 8], priority=1, labels=labels))
    question = FactsQuestion("a", True)
    first = Topology(cache.snapshot(), "zone").sum(question, Meter.of(1000))
    # The five apps, again the two that count or take other steps, and one of the others.
    assert (first.total(), question.asked) == (80, 8)
    assert first.sums.steps == 80 + 240 * 2 + 80 * 3


def test_answers_for_few_pod_keys_are_kept() -> None:
    measure = Measure("zone", (), Question("priority"))
    known = PodAnswers(2)
    for number in range(9):
        assert measure.count_added((PodInfo("p", priority=number),), 0, known) == (number, 1)
        assert len(known) <= 2


def test_a_pod_that_is_not_counted_leaves_the_sums_as_they_are() -> None:
    cache = ClusterCache()
    add_zone(cache, *"abcdefgh")
    first = Topology(cache.snapshot(), "zone").count(Question("urgent"), Meter.of(100))
    mark = first.sums.mark
    for name, priority in (("idle", 0), ("urgent", 1)):
        cache.add_pod(PodInfo(name, node_name="a", priority=priority))
        cache.snapshot()
        count = first.renewed(Meter.of(100))
        assert (count.sums.mark is mark) is (priority == 0)
        assert count.total() == priority


def test_terms_that_are_worth_nothing_leave_the_sums_as_they_are() -> None:
    cache = ClusterCache()
    add_zone(cache, *"ab")
    worthless, worthy = TERMS[0], TERMS[len(SELECTORS)]
    terms = ClusterView(cache.snapshot()).required_anti_affinity_terms
    happenings = [
        ("p1", "a", worthless, 0, 1),
        ("p2", "b", worthless, 0, 1),
        ("p3", "a", worthy, 3, 2),
        ("p4", "a", worthless, 3, 2),
        ("p5", "b", worthy, 6, 2),
    ]
    count, mark = terms.count(Question("bare weight"), Meter.of(100)), None
    for name, node, term, total, distinct in happenings:
        cache.add_pod(PodInfo(name, node_name=node, required_anti_affinity=(term,)))
        cache.snapshot()
        assert count.has_mark(mark) is (name in ("p2", "p4"))
        found = count.renewed(Meter.of(100)) or terms.count(Question("bare weight"), Meter.of(100))
        count, mark = found, found.sums.mark
        assert (count.total(), count.sums.steps) == (total, distinct)
    for name, total, distinct in (("p1", 6, 2), ("p3", 3, 2), ("p5", 0, 1), ("p4", 0, 1), ("p2", 0, 0)):
        cache.remove_pod(f"default/{name}")
        cache.snapshot()
        found = count.renewed(Meter.of(100))
        assert found is not None
        assert (found.total(), found.sums.steps) == (total, distinct)


def test_labels_determine_a_count_over_few_domains() -> None:
    cache = ClusterCache()
    for number in range(FEW_DOMAINS + 1):
        cache.add_node(NodeFacts(f"n{number}", labels=FrozenMap({"zone": str(number)})))
        count = Topology(cache.snapshot(), "zone").count(Question("urgent"), Meter.of(100))
        assert count.label_keys == (frozenset({"zone"}) if number < FEW_DOMAINS else None)


def test_only_pods_that_a_selector_may_match_are_asked_about() -> None:
    cache = ClusterCache()
    add_zone(cache, "a", "b")
    for number in range(20):
        labels = FrozenMap({"app": "ab"[number % 2], "run": str(number)})
        cache.add_pod(PodInfo(f"p{number}", node_name="ab"[number % 2], priority=number, labels=labels))
    term = PodAffinityTerm("zone", 0, SELECTORS[4], frozenset({"default"}), None)
    question = SelectingQuestion(term)
    count = Topology(cache.snapshot(), "zone").sum(question, Meter.of(1000))
    assert (count.total(), count.sums.steps) == (1, 39)
    # The selected one, and one for the cost of the others.
    assert question.asked == 2
    # At the next version the question gets a tally, which follows from there.
    again = SelectingQuestion(term)
    for name, app, total, asked in (("late", "b", 1, 2), ("later", "a", 1, 3)):
        labels = FrozenMap({"app": app, "run": name})
        cache.add_pod(PodInfo(name, node_name="a", labels=labels))
        count = Topology(cache.snapshot(), "zone").sum(again, Meter.of(1000))
        assert (count.total(), again.asked) == (total, asked)


def test_pods_and_terms_of_other_namespaces_are_not_asked_about() -> None:
    cache = ClusterCache()
    add_zone(cache, "a", "b")
    everyone = LabelSelector(frozenset({LabelRequirement("app", Operator.EXISTS)}))
    for number in range(400):
        namespace = f"n{number % 20}"
        term = PodAffinityTerm("zone", number, everyone, frozenset({namespace}), None)
        cache.add_pod(
            PodInfo(
                f"p{number}",
                namespace=namespace,
                node_name="ab"[number % 2],
                priority=1,
                labels=FrozenMap({"app": "a"}),
                required_anti_affinity=(term,),
            )
        )
    snapshot = cache.snapshot()
    question = SelectingQuestion(PodAffinityTerm("zone", 0, everyone, frozenset({"n3"}), None))
    assert Topology(snapshot, "zone").sum(question, Meter.of(1000)).total() == 20
    assert question.asked == 21
    asking = MatchingQuestion(ASKING.with_fields(namespace="n3"))
    terms = ClusterView(snapshot).required_anti_affinity_terms.sum(asking, Meter.of(1000))
    assert terms.total() == sum(range(3, 400, 20)) + 20
    assert asking.asked == 21
