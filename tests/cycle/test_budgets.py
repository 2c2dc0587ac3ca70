"""Disruption budgets: whose removal violates one, as asking every budget about every pod finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.workload_objects import PodDisruptionBudget
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.preemption.budgets import DisruptionBudget, DisruptionBudgets

APP = FrozenMap({"app": "x"})


@pytest.mark.parametrize(
    ("allowed", "disrupted", "namespace", "violating"),
    [
        (1, (), "default", ["b", "c"]),
        (0, (), "default", ["a", "b", "c"]),
        (1, ("a",), "default", ["c"]),
        (0, (), "other", []),
    ],
)
def test_a_budget(allowed: int, disrupted: tuple[str, ...], namespace: str, violating: list[str]) -> None:
    budget = DisruptionBudget(namespace, LabelSelector.of_labels(APP), allowed, disrupted)
    pods = [PodInfo(name, labels=APP) for name in "abc"] + [PodInfo("d")]
    bad, good = DisruptionBudgets([budget]).split(pods)
    assert [pod.name for pod in bad] == violating
    assert [pod.name for pod in good] == [pod.name for pod in pods if pod.name not in violating]


@pytest.mark.parametrize("allowed", [(0, 1), (1, 0)])
def test_one_of_several_budgets_is_enough(allowed: tuple[int, int]) -> None:
    budgets = DisruptionBudgets(
        DisruptionBudget("default", LabelSelector.of_labels(APP), each, ()) for each in allowed
    )
    pod = PodInfo("a", labels=APP)
    assert budgets.split([pod]) == ([pod], [])


KEYS, VALUES, NAMESPACES, NAMES = (st.sampled_from(each) for each in ("ab", "xy", "nm", "pqrs"))
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "key": KEYS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(VALUES, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
LABELS = st.dictionaries(KEYS, VALUES, max_size=2)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSIONS, max_size=2)}
)
BUDGETS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"namespace": NAMESPACES}),
        "spec": st.one_of(st.just({}), st.fixed_dictionaries({"selector": SELECTORS})),
        "status": st.fixed_dictionaries(
            {
                "disruptionsAllowed": st.integers(-2, 3),
                "disruptedPods": st.dictionaries(NAMES, st.just("2026-01-01T00:00:00Z"), max_size=2),
            }
        ),
    }
)
PODS = st.builds(
    lambda name, namespace, labels: PodInfo(name, namespace=namespace, labels=FrozenMap(labels)),
    NAMES,
    NAMESPACES,
    LABELS,
)


def violations(pods: Sequence[PodInfo], budgets: Sequence[dict[str, Any]]) -> list[bool]:
    """The pods that violate a budget, by kube-scheduler's filterPodsWithPDBViolation."""
    allowed = [budget["status"]["disruptionsAllowed"] for budget in budgets]
    found = []
    for pod in pods:
        violated = False
        for at, budget in enumerate(budgets):
            selector = budget["spec"].get("selector", {})
            if (
                pod.labels
                and budget["metadata"]["namespace"] == pod.namespace
                and any(selector.values())
                and selects(selector, pod.labels)
                and pod.name not in budget["status"]["disruptedPods"]
            ):
                allowed[at] -= 1
                violated |= allowed[at] < 0
        found.append(violated)
    return found


def selects(selector: dict[str, Any], labels: FrozenMap[str, str]) -> bool:
    def holds(expression: dict[str, Any]) -> bool:
        value = labels.get(expression["key"])
        match expression["operator"]:
            case "In":
                return value in expression["values"]
            case "NotIn":
                return value not in expression["values"]
            case "Exists":
                return value is not None
        return value is None

    equal = selector.get("matchLabels", {}).items()
    return all(labels.get(key) == value for key, value in equal) and all(
        map(holds, selector.get("matchExpressions", []))
    )


@settings(deadline=None, max_examples=200)
@given(st.lists(BUDGETS, max_size=8), st.lists(st.lists(PODS, max_size=8), min_size=1, max_size=3))
def test_budgets_are_kube_schedulers(written: list[dict[str, Any]], nodes: list[list[PodInfo]]) -> None:
    """On each of several nodes; a node does not see the disruptions on another."""
    budgets = DisruptionBudgets.of(msgspec.convert(written, list[PodDisruptionBudget]))
    for pods in nodes:
        violated = violations(pods, written)
        violating, others = budgets.split(pods)
        assert [*map(id, violating)] == [id(pod) for pod, bad in zip(pods, violated, strict=True) if bad]
        assert [*map(id, others)] == [id(pod) for pod, bad in zip(pods, violated, strict=True) if not bad]


def test_a_pod_asks_only_budgets_of_its_namespace_and_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counts(budget: DisruptionBudget, pod: PodInfo) -> bool:
        asked.append((budget.namespace, budget.allowed))
        return True

    monkeypatch.setattr(DisruptionBudget, "counts", counts)
    budgets = DisruptionBudgets(
        DisruptionBudget(namespace, LabelSelector.of_labels({"app": f"app-{at}"}), at, ())
        for namespace in ("default", "other")
        for at in range(5)
    )
    budgets.split([PodInfo("p", labels=FrozenMap({"app": "app-3", "tier": "web"})), PodInfo("q")])
    assert asked == [("default", 3)]
