"""Questions about the pods and terms of a cluster, as rules ask them; some note what they are asked about."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from operator import attrgetter
from typing import Final

import numpy as np
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selector_index import MAX_SCOPES
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.pod_keys import PodFact, PodFacts, PodKey
from kdsl.eval.values import Value

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


class Question:
    """Asks the same of everything; `key` as for questions of one text."""

    limit = 1000

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
        return Meter.of(self.limit)

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


class FactsQuestion(Question):
    """Asks for the priority of the pods of an app, as if for the first time if it `is_new`; other pods take
    steps by their app.
    """

    numbers = count()

    def __init__(self, app: str, is_new: bool) -> None:
        super().__init__(f"priority of {app} {next(self.numbers) if is_new else 0}")
        self.app, self.asked = app, 0

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        for value in values:
            self.asked += 1
            amount, steps = self.answer_to(value)
            meter.spend(steps)
            yield amount

    def answer_to(self, pod: PodInfo) -> tuple[int, int]:
        """Return the amount and the steps."""
        app = pod.labels.get("app", "")
        return (pod.priority, 1) if app == self.app else (0, 3 if app == "c" else 2)

    @property
    def pod_key(self) -> PodKey | None:
        return PodFacts((PodFact("labels", "app"), PodFact("priority")))


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


def add_zone(cache: ClusterCache, *names: str) -> None:
    """Add nodes of one zone."""
    for name in names:
        cache.add_node(NodeFacts(name, labels=FrozenMap({"zone": "z"})))
