"""Pods of test files get the priority of their class, from manifests, from `objects` and in a matrix."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command_line import kdsl

CLASSES = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 1
globalDefault: true
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec: {priorityClassName: high, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
TEST = """\
apiVersion: kdsl.dev/v1
kind: RuleTest
profile: kubernetes.v1_36.default
fixtures:
  from: [pod.yaml, classes.yaml]
  nodes:
    node: {cpu: "1"}
  pods:
    runs: {cpu: "1", on: node}
    calm: {cpu: "1", spec: {priorityClassName: calm}}
    medium: {cpu: "1", spec: {priorityClassName: medium}}
  objects:
  - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: calm}, value: 1}
  - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: medium}, value: 2}
tests:
- {name: a class of a file, pod: urgent, expect: {nominated: node, victims: [runs]}}
- {name: no more than the default, pod: calm, expect: {nominated: "", victims: []}}
- {name: a class of the test, pod: medium, expect: {nominated: node, victims: [runs]}}
- name: in a matrix
  pod: medium
  matrix: {pods.medium.spec: [{priorityClassName: high}]}
  expect: {nominated: node, victims: [runs]}
"""


def test_pods_have_the_priority_of_their_class(tmp_path: Path) -> None:
    (tmp_path / "classes.yaml").write_text(CLASSES)
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "t.test.yaml").write_text(TEST)
    result = kdsl("test", str(tmp_path))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "4 passed in 1 file\n", "")


def test_an_expression_reads_the_priority_of_a_class_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "classes.yaml").write_text(CLASSES)
    (tmp_path / "pod.yaml").write_text(POD)
    files = ("--pod", str(tmp_path / "pod.yaml"), "--cluster", str(tmp_path / "classes.yaml"))
    result = kdsl("eval", "pod.priority", *files)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "1000\n", "")
