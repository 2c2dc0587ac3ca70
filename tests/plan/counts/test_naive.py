"""Law: whatever happens to a cluster, counts equal a count from scratch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.change_log import ChangeLog
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot import fact_columns
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import Value
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts import measures, pod_index, store, tally
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import Topology

from tests.plan.counts.asking import (
    ASKING,
    ASKING_ELSEWHERE,
    ELSEWHERE,
    KEYS,
    LABELS,
    NAMESPACES,
    SELECTORS,
    TERMS,
    ClassQuestion,
    FactsQuestion,
    MatchingQuestion,
    Question,
    SelectingQuestion,
    is_eligible,
)

NODES: Final = st.builds(
    lambda name, zone, cordoned: NodeFacts(
        f"n{name}",
        labels=FrozenMap({"host": f"n{name}"} | ({"zone": zone} if zone else {})),
        unschedulable=cordoned,
    ),
    st.integers(0, 4),
    st.sampled_from(("", "a", "b", "c")),
    st.booleans(),
)
PODS: Final = st.builds(
    lambda name, node, priority, terms, labels: PodInfo(
        f"p{name}",
        namespace=[*NAMESPACES][max(0, name - 7)],
        node_name=f"n{node}",
        priority=priority,
        required_anti_affinity=tuple(terms),
        labels=labels,
    ),
    st.integers(0, 9),
    st.integers(0, 4),
    st.integers(-2, 3),
    st.lists(st.sampled_from(TERMS), max_size=2),
    LABELS,
)
EVENTS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NODES),
        st.tuples(st.just("pod"), PODS),
        st.tuples(st.just("gone"), st.integers(0, 9)),
        st.tuples(st.just("no node"), st.integers(0, 4)),
        st.tuples(
            st.just("team"), st.tuples(st.sampled_from([*NAMESPACES]), st.sampled_from(("a", "b", "")))
        ),
    ),
    max_size=6,
)


def naive(snapshot: Snapshot, key: str, filter_: str, question: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in snapshot.order.tolist():
        info = snapshot.info(row)
        if key in info.labels and is_eligible(info, filter_):
            count = (pod.priority if question == "priority" else pod.priority > 0 for pod in info.pods)
            sums[info.labels[key]] = sums.get(info.labels[key], 0) + sum(count)
    return sums


def naive_selected(snapshot: Snapshot, key: str, term: PodAffinityTerm) -> tuple[dict[str, int], int]:
    sums: dict[str, int] = {}
    steps = 0
    for row in snapshot.order.tolist():
        info = snapshot.info(row)
        if key in info.labels:
            matched = [pod.priority for pod in info.pods if term.matches(pod)]
            sums[info.labels[key]] = sums.get(info.labels[key], 0) + sum(matched)
            steps += 2 * len(info.pods) - len(matched)
    return sums, steps


def naive_terms(
    snapshot: Snapshot, matches: Callable[[PodAffinityTerm], bool] = lambda term: True
) -> dict[tuple[str, str], int]:
    sums: dict[tuple[str, str], int] = {}
    for row in snapshot.order.tolist():
        info = snapshot.info(row)
        for pod in info.pods:
            for term in pod.required_anti_affinity:
                if term.topology_key in info.labels and matches(term):
                    domain = (term.topology_key, info.labels[term.topology_key])
                    sums[domain] = sums.get(domain, 0) + term.weight + 1
    return sums


def check(snapshot: Snapshot) -> None:
    nodes = [snapshot.info(row) for row in snapshot.order.tolist()]
    for key in KEYS:
        for filter_ in ("", "cordoned", "roomy"):
            for question in ("urgent", "priority"):
                topology = Topology(snapshot, key)
                if filter_:
                    topology = topology.eligible(Question(filter_), Meter.of(1000))
                found = topology.count(Question(question), Meter.of(1000))
                wanted = naive(snapshot, key, filter_, question)
                assert found.domains() == len(wanted)
                assert found.total() == sum(wanted.values())
                assert found.least(0) == min(wanted.values(), default=2147483647)
                here = [wanted.get(snapshot.info(row).labels.get(key, ""), 0) for row in snapshot.order]
                assert [found.here(snapshot.info(row)) for row in snapshot.order] == here
                if not filter_:
                    # The cost of a count does not depend on its time.
                    assert found.sums.steps == sum(len(info.pods) for info in nodes if key in info.labels)
                least, largest = found.here_range
                assert all(least <= each <= largest for each in here)
                column = found.here_column
                assert (column is None) is snapshot.is_overlay
                assert column is None or np.asarray(column(snapshot.order)).tolist() == here
        for term in (*TERMS[: len(SELECTORS)], *ELSEWHERE):
            wanted, steps = naive_selected(snapshot, key, term)
            here = [wanted.get(node.labels.get(key, ""), 0) for node in nodes]
            for selecting in (SelectingQuestion(term), ClassQuestion(term)):
                found = Topology(snapshot, key).sum(selecting, Meter.of(1000))
                assert found.total() == sum(wanted.values())
                assert ([found.here(node) for node in nodes], found.sums.steps) == (here, steps)
        for asked in (FactsQuestion("a", False), FactsQuestion("c", True)):
            answers = [[asked.answer_to(pod) for pod in node.pods] for node in nodes]
            found = Topology(snapshot, key).sum(asked, Meter.of(1000))
            sums: dict[str, int] = {}
            for node, each in zip(nodes, answers, strict=True):
                domain = node.labels.get(key, "")
                sums[domain] = sums.get(domain, 0) + sum(amount for amount, _ in each)
            here = [sums[node.labels[key]] if key in node.labels else 0 for node in nodes]
            assert [found.here(node) for node in nodes] == here
            steps = [
                steps
                for node, each in zip(nodes, answers, strict=True)
                if key in node.labels
                for _, steps in each
            ]
            assert found.sums.steps == sum(steps)
    check_terms(snapshot, Question("weight"), lambda term: True)
    for pod in (ASKING, ASKING_ELSEWHERE):
        check_terms(snapshot, MatchingQuestion(pod), lambda term, pod=pod: term.matches(pod))


def check_terms(snapshot: Snapshot, question: Question, matches: Callable[[PodAffinityTerm], bool]) -> None:
    nodes = [snapshot.info(row) for row in snapshot.order.tolist()]
    terms = ClusterView(snapshot).required_anti_affinity_terms.sum(question, Meter.of(1000))
    wanted_terms = naive_terms(snapshot, matches)
    assert terms.total() == sum(wanted_terms.values())
    if not snapshot.is_overlay:
        placed = {
            term
            for node in nodes
            for pod in node.pods
            for term in pod.required_anti_affinity
            if term.topology_key in node.labels
        }
        asked = isinstance(question, MatchingQuestion)
        assert terms.sums.steps == sum(2 if asked and not matches(term) else 1 for term in placed)
    here = [sum(wanted_terms.get(pair, 0) for pair in node.labels.items()) for node in nodes]
    assert [terms.here(node) for node in nodes] == here
    least, largest = terms.here_range
    assert all(least <= each <= largest for each in here)
    column = terms.here_column
    if column is not None:
        assert np.broadcast_to(column(snapshot.order), len(here)).tolist() == here


def put_namespace(cache: ClusterCache, name: str, team: str) -> None:
    cache.put(Namespace(ObjectMeta(name, labels={"team": team} if team else {})))


def happen(cache: ClusterCache, events: list[tuple[str, Value]]) -> None:
    for kind, what in events:
        # A reader that does not count: counts apply several versions at once.
        TallyStore.of(snapshot := cache.snapshot()).has_terms(snapshot, TermKind.PREFERRED_AFFINITY)
        match kind:
            case "node":
                cache.add_node(what)
            case "pod":
                cache.add_pod(what)
            case "gone" if cache.pod(key := f"{[*NAMESPACES][max(0, what - 7)]}/p{what}") is not None:
                cache.remove_pod(key)
            case "no node" if cache.snapshot().row_of(f"n{what}") is not None:
                cache.remove_node(f"n{what}")
            case "team":
                put_namespace(cache, *what)
            case _:
                pass


def what_ifs(snapshot: Snapshot, changes: list[tuple[int, PodInfo | NodeFacts]]) -> Iterable[Snapshot]:
    """Yield overlays, each over the one before."""
    for at, change in changes:
        if not len(snapshot):
            return
        row = int(snapshot.order[at % len(snapshot)])
        info = snapshot.info(row)
        if isinstance(change, PodInfo):
            without = [pod for pod in info.pods if pod.key == change.key]
            info = info.without_pod(change) if without else info.with_pod(change.on(info.name))
        else:
            labels = FrozenMap({**change.labels, "host": "elsewhere"})
            info = info.with_facts(NodeFacts(info.name, labels=labels, unschedulable=change.unschedulable))
        snapshot = snapshot.overlay(row, info)
        yield snapshot


def nothing(patch: pytest.MonkeyPatch) -> None:
    """Forget nothing."""


def sums(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tally, "_REBUILD", 8)


def short_logs(patch: pytest.MonkeyPatch) -> None:
    since = ChangeLog.since

    def known(self: ChangeLog[Any], position: int) -> list[Any] | None:
        return None if self.position - position > 2 else since(self, position)

    patch.setattr(ChangeLog, "since", known)


def few_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fact_columns, "_SPARE", -8)


def few_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fact_columns, "MAX_KEYS", 1)


def few_tallies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(store, "MAX_BYTES", 0)


def few_arrivals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tally, "_FEW_ARRIVALS", 1)


def no_arrivals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tally, "_FEW_ARRIVALS", -99)


@pytest.mark.parametrize(
    "forget",
    [nothing, sums, short_logs, few_values, few_columns, few_tallies, few_arrivals, no_arrivals],
)
@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(EVENTS, st.lists(st.tuples(st.integers(0, 9), st.one_of(PODS, NODES)), max_size=3)),
        min_size=1,
        max_size=4,
    )
)
def test_counts_are_those_of_counting_anew(
    forget: Callable[[pytest.MonkeyPatch], None],
    history: list[tuple[list[tuple[str, Value]], list[tuple[int, PodInfo | NodeFacts]]]],
) -> None:
    cache = ClusterCache()
    for name, team in NAMESPACES.items():
        put_namespace(cache, name, team)
    with pytest.MonkeyPatch.context() as patch:
        # Few pods are enough to look for those of a namespace.
        patch.setattr(pod_index, "MANY", 2)
        # Few pods are enough to ask one of each key.
        patch.setattr(measures, "_SHARING", 1)
        # Few nodes are enough for updated sums.
        patch.setattr(tally, "_REBUILD", 0)
        forget(patch)
        for events, changes in history:
            happen(cache, events)
            snapshot = cache.snapshot()
            check(snapshot)
            for overlay in what_ifs(snapshot, changes):
                check(overlay)
            check(snapshot)
