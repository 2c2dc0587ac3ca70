from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.status import Code
from kdsl.plan.rules.compiled_profile import compile_profile
from kdsl.plan.rules.queue import QueuePlugin

from tests.plan.lab import rules


def queue(body: str, steps: Steps = DEFAULT_STEPS) -> QueuePlugin:
    found = rules(f'queue R {{\n{body}\n}}\nprofile p {{ scheduler "t" queue R }}')
    return compile_profile(found, found.profiles["t.p"], steps=steps).queue


def order(plugin: QueuePlugin, *queued: tuple[PodInfo, int]) -> list[str]:
    entries = [QueuedPod(pod, at, number) for number, (pod, at) in enumerate(queued)]
    return [entry.pod.name for entry in sorted(entries, key=plugin.queue_sort)]


def test_keys_in_order_and_descending() -> None:
    plugin = queue("order by pod.priority desc, pod.queuedAt")
    low, high = PodInfo("low"), PodInfo("high", priority=5)
    late = PodInfo("late", priority=5)
    assert order(plugin, (low, 1), (late, 9), (high, 3)) == ["high", "late", "low"]


def test_descending_texts_and_times() -> None:
    plugin = queue("order by pod.namespace desc, pod.createdAt desc")
    pods = [
        (PodInfo("a", "x", created_at=1), 0),
        (PodInfo("b", "y"), 0),
        (PodInfo("c", "x", created_at=2), 0),
    ]
    assert order(plugin, *pods) == ["b", "c", "a"]


def test_age_counts_as_priority() -> None:
    plugin = queue("order by int(pod.createdAt) - 60 * pod.priority, pod.createdAt")
    minute = 60 * 10**9
    low, high = PodInfo("low"), PodInfo("high", priority=10, created_at=9 * minute)
    late, last = (
        PodInfo(f"{age} min", priority=2**31 - 1 if age > 11 else 10, created_at=age * minute)
        for age in (11, 12)
    )
    assert order(plugin, (low, 1), (high, 2), (late, 3), (last, 4)) == ["12 min", "high", "low", "11 min"]


def test_equal_pods_keep_the_order_of_arrival() -> None:
    plugin = queue("order by pod.priority desc")
    assert order(plugin, (PodInfo("second"), 2), (PodInfo("first"), 1)) == ["second", "first"]


def test_lets_are_computed_for_every_pod() -> None:
    plugin = queue("let where = pod.namespace\norder by where")
    assert order(plugin, (PodInfo("b", "y"), 0), (PodInfo("a", "x"), 0)) == ["a", "b"]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (PodInfo("p", scheduling_gates=("x", "y")), "gates [x y]"),
        (PodInfo("p", priority=1), "rule R failed: division by zero (t.kdsl:5:12)"),
    ],
)
def test_a_pod_that_is_not_admitted(pod: PodInfo, reason: str) -> None:
    plugin = queue(
        "admit when pod.schedulingGates.size() == 0 else \"gates [${pod.schedulingGates.join(' ')}]\"\n"
        'admit when 1 / (pod.priority - 1) < 5 else "never"\n'
        "order by pod.priority"
    )
    status = plugin.pre_enqueue(pod)
    assert status is not None
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (reason,))
    assert plugin.pre_enqueue(PodInfo("q")) is None


@pytest.mark.parametrize("direction", ["", " desc"])
def test_a_key_that_costs_too_much_comes_last(direction: str) -> None:
    keys = "pod.labels.filter(a, pod.labels.exists(b, pod.labels.exists(c, a == b + c))).size()"
    plugin = queue(f"order by {keys}{direction}, pod.priority", Steps(pod=1000))
    labels = FrozenMap({f"k{at}": "" for at in range(20)})
    dear = [(PodInfo(f"dear{priority}", labels=labels, priority=priority), 0) for priority in (2, 1)]
    assert order(plugin, *dear, (PodInfo("cheap", priority=9), 0)) == ["cheap", "dear1", "dear2"]


def test_admission_is_kept_by_signature() -> None:
    plugin = queue('admit when pod.priority < 2 || pod.labels.size() > 0 else "${pod.priority}"\norder by 1')
    pods = [PodInfo(f"p{at}", priority=at % 4) for at in range(8)]
    answers = [plugin.pre_enqueue(pod) for pod in pods]
    assert [answer and answer.reasons for answer in answers] == [None, None, ("2",), ("3",)] * 2
    assert plugin.pre_enqueue(PodInfo("p", priority=2, labels=FrozenMap({"a": "b"}))) is None


def test_a_reason_that_names_the_pod_is_that_of_the_pod() -> None:
    plugin = queue('admit when pod.priority > 0 else "${pod.name} waits"\norder by 1')
    answers = [plugin.pre_enqueue(PodInfo(name)) for name in ("a", "b")]
    assert [answer and answer.reasons for answer in answers] == [("a waits",), ("b waits",)]


@pytest.mark.parametrize("keys", ["pod.priority desc, pod.createdAt", "pod.queuedAt desc, pod.priority"])
def test_fields_are_read_as_expressions_are_evaluated(keys: str) -> None:
    read = queue(f"order by {keys}")
    evaluated = queue(f'order by {keys}, "".size()')
    entries = [
        QueuedPod(PodInfo(f"p{at}", priority=at % 3 - 1, created_at=at % 2), at % 5, at) for at in range(30)
    ]
    for entry in entries:
        *found, sequence = read.queue_sort(entry)
        assert (*found, 0, sequence) == evaluated.queue_sort(entry)
