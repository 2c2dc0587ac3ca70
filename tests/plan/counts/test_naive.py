"""Law: whatever happens to a cluster, counts equal a count from scratch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.log import Log
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selector_index import MAX_SCOPES
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot import fact_columns
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.pod_keys import PodKey
from kdsl.eval.values import EvalError, Value
from kdsl.plan.counts import measures, pod_index, store, tally
from kdsl.plan.counts.measures import Measure, PodAnswers
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import FEW_DOMAINS, PodTerms, Topology

KEYS: Final = ("zone", "host")
SELECTORS: Final = (
    LabelSelector(),
    None,
    LabelSelector(frozenset({LabelRequirement("app", Operator.IN, frozenset({"a"}))})),
    LabelSelector(frozenset({LabelRequirement("app", Operator.IN, frozenset({"a", "b"}))})),
    LabelSelector(
        frozenset(
            {LabelRequirement("app", Operator.EXISTS), LabelRequirement("run", Operator.IN, frozenset({"1"}))}
        )
    ),
    LabelSelector(frozenset({LabelRequirement("app", Operator.NOT_IN, frozenset({"b"}))})),
    LabelSelector(frozenset({LabelRequirement("run", Operator.EXISTS)})),
)
_OF_APP_A: Final = SELECTORS[2]
NAMESPACES: Final = {"default": "a", "other": "b", "bare": ""}
"""The label `team` of each namespace; empty if it has none."""
ELSEWHERE: Final = tuple(
    PodAffinityTerm("zone", 0, selector, frozenset(names), among)
    for selector in (LabelSelector(), _OF_APP_A, SELECTORS[5])
    for names, among in (
        (("other",), None),
        (("other", *map(str, range(MAX_SCOPES))), None),
        (("bare",), LabelSelector.of_labels({"team": "a"})),
        ((), LabelSelector.of_labels({"team": "b"})),
        ((), LabelSelector(frozenset({LabelRequirement("team", Operator.NOT_IN, frozenset({"a"}))}))),
    )
)
"""Terms about the pods of other namespaces."""
TERMS: Final = (
    *(
        PodAffinityTerm(key, weight, selector, frozenset({"default"}), None)
        for key in KEYS
        for weight in (0, 3)
        for selector in SELECTORS
    ),
    *ELSEWHERE,
)
LABELS: Final = st.builds(
    lambda app, run: FrozenMap(({"app": app} if app else {}) | ({"run": run} if run else {})),
    st.sampled_from(("", "a", "b", "c")),
    st.sampled_from(("", "1", "2")),
)
ASKING: Final = PodInfo(
    "counter", labels=FrozenMap({"app": "a", "run": "1"}), namespace_labels=FrozenMap({"team": "a"})
)
ASKING_ELSEWHERE: Final = ASKING.with_fields(namespace="other", namespace_labels=FrozenMap({"team": "b"}))
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


class Question:
    """Asks the same of everything; `key` as for questions of one text."""

    def __init__(self, name: str) -> None:
        self.key = name

    @property
    def on_facts(self) -> bool:
        return self.key != "roomy"

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        for value in values:
            meter.spend(1)
            match self.key:
                case "cordoned":
                    yield not value.unschedulable
                case "roomy":
                    yield value.pod_count < 2
                case "urgent":
                    yield value.priority > 0
                case "priority":
                    yield value.priority
                case "weight":
                    yield value.weight + 1
                case "bare weight":
                    yield value.weight

    def answer(self, value: Value, meter: Meter) -> Value:
        (only,) = self.answers((value,), meter)
        return only

    @property
    def selecting(self) -> object:
        return None

    def choose(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Count many nodes only: both ways of beginning a count are gone."""
        if len(nodes) < 3:
            return None
        is_in = [is_eligible(node, self.key) for node in nodes.nodes()]
        return nodes.take(np.array(is_in, dtype=np.bool_)), 2

    def meter(self) -> Meter:
        return Meter.of(1000)

    @property
    def pod_key(self) -> PodKey | None:
        return attrgetter("priority") if self.key == "priority" else None


class SelectingQuestion(Question):
    """Asks for the priority of the pods that a term matches; any other pod costs one step more than those."""

    def __init__(self, term: PodAffinityTerm) -> None:
        super().__init__(f"priority of {term}")
        self.term = term
        self.asked = 0

    @property
    def selecting(self) -> object:
        return self.term

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        for value in values:
            self.asked += 1
            matches = self.term.matches(value)
            meter.spend(1 if matches else 2)
            yield value.priority if matches else 0


def class_of(pod: PodInfo) -> object:
    return pod.priority, pod.labels, pod.namespace, pod.namespace_labels


class ClassQuestion(SelectingQuestion):
    """Asks as if for the first time. Pods of one class have one answer."""

    numbers = count()

    def __init__(self, term: PodAffinityTerm) -> None:
        super().__init__(term)
        self.key = f"{self.key} {next(self.numbers)}"

    @property
    def pod_key(self) -> PodKey | None:
        return class_of


class MatchingQuestion(Question):
    """Asks for the weight, and one more, of the terms that match a pod; any other term costs one step more."""

    def __init__(self, pod: PodInfo) -> None:
        super().__init__(f"matching weight {pod.key}")
        self.pod, self.asked = pod, 0

    @property
    def selecting(self) -> object:
        return self.pod

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        for value in values:
            self.asked += 1
            matches = value.matches(self.pod)
            meter.spend(1 if matches else 2)
            yield value.weight + 1 if matches else 0


class NotingQuestion(Question):
    """Records the names of the pods it is asked about."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.asked: list[str] = []

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        values = tuple(values)
        self.asked.extend(value.name for value in values)
        return super().answers(values, meter)


def is_eligible(info: NodeInfo, filter_: str) -> bool:
    match filter_:
        case "cordoned":
            return not info.unschedulable
        case "roomy":
            return info.pod_count < 2
    return True


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
    check_terms(snapshot, Question("weight"), lambda term: True)
    for pod in (ASKING, ASKING_ELSEWHERE):
        check_terms(snapshot, MatchingQuestion(pod), lambda term, pod=pod: term.matches(pod))


def check_terms(snapshot: Snapshot, question: Question, matches: Callable[[PodAffinityTerm], bool]) -> None:
    nodes = [snapshot.info(row) for row in snapshot.order.tolist()]
    terms = PodTerms(snapshot, TermKind.REQUIRED_ANTI_AFFINITY).sum(question, Meter.of(1000))
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
    since = Log.since

    def known(self: Log[Any], position: int) -> list[Any] | None:
        return None if self.position - position > 2 else since(self, position)

    patch.setattr(Log, "since", known)


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
@settings(max_examples=60, deadline=None)
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
    _zone(cache, *"abcdefgh")
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
    _zone(cache, "a", "b")
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


def test_answers_for_few_pod_keys_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MAX_POD_KEYS", 2)
    measure = Measure("zone", (), Question("priority"))
    known: PodAnswers = {}
    for number in range(9):
        assert measure.count_added((PodInfo("p", priority=number),), 0, known) == (number, 1)
        assert len(known) <= 2


def _zone(cache: ClusterCache, *names: str) -> None:
    for name in names:
        cache.add_node(NodeFacts(name, labels=FrozenMap({"zone": "z"})))


def _total(cache: ClusterCache, steps: int = 1000) -> int:
    class Limited(Question):
        def meter(self) -> Meter:
            return Meter.of(steps)

    return Topology(cache.snapshot(), "zone").count(Limited("priority"), Meter.of(1000)).total()


def test_sums_that_were_too_large_come_back_into_range() -> None:
    cache, large = ClusterCache(), 1 << 59
    _zone(cache, *"abcdefgh")
    cache.add_pod(PodInfo("p1", node_name="a", priority=large))
    assert _total(cache) == large
    cache.add_pod(PodInfo("p2", node_name="b", priority=10 * large))
    for name, priority in (("p3", 10 * large), ("p4", 1), ("p5", 1)):
        with pytest.raises(EvalError, match="overflow"):
            _total(cache)
        cache.add_pod(PodInfo(name, node_name="a", priority=priority))
    cache.remove_pod("default/p2")
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)
    cache.remove_pod("default/p3")
    assert _total(cache) == large + 2
    cache.add_pod(PodInfo("p6", node_name="b", priority=5))
    assert _total(cache) == large + 7


def test_nodes_that_are_gone_do_not_limit_the_sums() -> None:
    cache, large = ClusterCache(), 1 << 60
    _zone(cache, *"abcdefghijklmnop")
    cache.add_pod(PodInfo("p1", node_name="a", priority=large))
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)
    for name in "efghijklmnop":
        cache.remove_node(name)
    assert _total(cache) == large
    _zone(cache, *"efghijklmnop")
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)


def test_a_node_out_of_range_is_counted_again_when_pods_come_that_bring_it_back() -> None:
    cache, large = ClusterCache(), 1 << 62
    _zone(cache, "a")
    cache.add_pod(PodInfo("p1", node_name="a", priority=large))
    assert _total(cache) == large
    cache.add_pod(PodInfo("p2", node_name="a", priority=large))
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)
    cache.add_pod(PodInfo("p3", node_name="a", priority=-large))
    assert _total(cache) == large


def test_a_node_that_took_too_many_steps_is_counted_again_when_it_takes_less() -> None:
    cache = ClusterCache()
    _zone(cache, "a", "b")
    for number in range(4):
        cache.add_pod(PodInfo(f"p{number}", node_name="a", priority=1))
        assert _total(cache, 4) == number + 1
    for name in ("p4", "p5"):
        cache.add_pod(PodInfo(name, node_name="a", priority=1))
        with pytest.raises(EvalError, match="more than 4 steps"):
            _total(cache, 4)
    cache.remove_pod("default/p0")
    cache.remove_pod("default/p1")
    assert _total(cache, 4) == 4


def test_a_pod_that_is_not_counted_leaves_the_sums_as_they_are() -> None:
    cache = ClusterCache()
    _zone(cache, *"abcdefgh")
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
    _zone(cache, *"ab")
    worthless, worthy = TERMS[0], TERMS[len(SELECTORS)]
    terms = PodTerms(cache.snapshot(), TermKind.REQUIRED_ANTI_AFFINITY)
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
    _zone(cache, "a", "b")
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
    _zone(cache, "a", "b")
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
    terms = PodTerms(snapshot, TermKind.REQUIRED_ANTI_AFFINITY).sum(asking, Meter.of(1000))
    assert terms.total() == sum(range(3, 400, 20)) + 20
    assert asking.asked == 21
