"""Pods from files that never passed the API server have the priority of their class."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.documents import Document
from kdsl.cluster.read.reader import ReadResult, read_all, read_values


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def a_class(name: str, value: object, **fields: object) -> dict[str, Any]:
    meta = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta,
        "value": value,
    } | fields


def ranks(result: ReadResult) -> dict[str, tuple[int | None, str]]:
    return {pod.metadata.name: (pod.spec.priority, pod.spec.preemption_policy) for pod in result.pods}


def test_a_pod_has_the_priority_of_its_class() -> None:
    result = read_values(
        [
            a_pod("patient", priorityClassName="patient"),
            a_pod("eager", priorityClassName="patient", preemptionPolicy="PreemptLowerPriority"),
            a_pod("set", priorityClassName="patient", priority=3),
            a_pod("core", priorityClassName="system-node-critical"),
            a_pod("plain"),
            a_class("patient", 1000, preemptionPolicy="Never", globalDefault=None),
            a_class("usual", 7, globalDefault=True),
        ]
    )
    assert ranks(result) == {
        "patient": (1000, "Never"),
        "eager": (1000, "PreemptLowerPriority"),
        "set": (3, "PreemptLowerPriority"),
        "core": (2_000_001_000, "PreemptLowerPriority"),
        "plain": (7, "PreemptLowerPriority"),
    }
    assert not result.diagnostics
    assert not result.unread


def test_a_kept_source_has_it_too() -> None:
    """A record is read again without the class."""
    objects = [a_pod("p", priorityClassName="high"), a_class("high", 9, preemptionPolicy="Never")]
    documents = [Document("a", value) for value in objects]
    (source,) = read_all(documents, keeps_sources=True).sources
    again = read_values([source])
    assert ranks(again) == {"p": (9, "Never")}
    assert not again.diagnostics


def test_classes_without_effect_are_told() -> None:
    result = read_values(
        [
            a_pod("a", priorityClassName="high"),
            a_pod("b", priorityClassName="low", runtimeClassName="kata"),
            a_pod("c", runtimeClassName="kata", overhead={"cpu": "1"}),
        ]
    )
    assert [one.title for one in result.diagnostics] == [
        "2 pods have a `priorityClassName` and no `priority`, which counts as 0",
        "1 pod has a `runtimeClassName`, but not what the API server takes from the class",
    ]
    assert "`high`" in result.diagnostics[0].help[1]
    assert ranks(result)["a"] == (0, "PreemptLowerPriority")


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_defaults_the_lowest_counts(order: int) -> None:
    """As in the API server's admission."""
    defaults = [a_class("usual", 7, globalDefault=True), a_class("less", -3, globalDefault=True)]
    result = read_values([a_pod("p"), *defaults[::order]])
    assert ranks(result) == {"p": (-3, "PreemptLowerPriority")}


@pytest.mark.parametrize(
    ("value", "fields", "code", "where"),
    [
        (None, {}, InputCode.MISSING, "<values>#1"),
        ("high", {}, InputCode.WRONG_TYPE, "<values>#1: value"),
        ({}, {}, InputCode.WRONG_TYPE, "<values>#1: value"),
        (2**31, {}, InputCode.VALUE, "<values>#1: value"),
        (5, {"globalDefault": "true"}, InputCode.WRONG_TYPE, "<values>#1: globalDefault"),
        (5, {"preemptionPolicy": "never"}, InputCode.VALUE, "<values>#1: preemptionPolicy"),
    ],
)
def test_a_broken_class(value: object, fields: dict[str, object], code: InputCode, where: str) -> None:
    """Its pods would have values that a record of them could not be read with again."""
    result = read_values([a_class("high", value, **fields), a_pod("p", priorityClassName="high")])
    assert [(one.code, one.where) for one in result.diagnostics][:1] == [(code, where)]
    assert ranks(result) == {"p": (0, "PreemptLowerPriority")}


def test_a_class_may_come_twice_with_equal_values() -> None:
    """An export and a file of one's own hold the same class; others would decide by the order of files."""
    critical = a_class("system-node-critical", 2_000_001_000, preemptionPolicy="PreemptLowerPriority")
    twice = [a_class("high", 9), a_class("high", 9, preemptionPolicy="PreemptLowerPriority"), critical]
    assert not read_values(twice).diagnostics
    result = read_values([*twice, a_class("high", 8), a_pod("p", priorityClassName="high")])
    assert [one.code for one in result.diagnostics] == [InputCode.DUPLICATE_OBJECT]
    assert ranks(result)["p"] == (9, "PreemptLowerPriority")
