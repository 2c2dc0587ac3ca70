"""All mistakes of one expression are reported at once, and no mistake twice."""

from __future__ import annotations

import pytest

from tests.check.programs import findings

FIELD, TYPES, MISSING, WRONG = "K0302", "K0201", "K0204", "K0203"

CONDITIONS = {
    'pod.foo + 1 > node.bar && pod.labels["x"] == 3': [
        (FIELD, "foo"),
        (FIELD, "bar"),
        (TYPES, 'pod.labels["x"] == 3'),
        (MISSING, 'pod.labels["x"]'),
    ],
    # Operands of `&&` and the parts of `?:` are compared one by one.
    "pod.priority && pod.name && pod.foo": [(WRONG, "pod.priority"), (WRONG, "pod.name"), (FIELD, "foo")],
    'pod.priority ? 1 : "a"': [(WRONG, "pod.priority"), (TYPES, '1 : "a"')],
    "pod.priority ? true : pod.foo": [(WRONG, "pod.priority"), (FIELD, "foo")],
    # The text in brackets is checked, whatever they belong to.
    'bogus(pod.foo, "a" + 1)': [("K0303", "bogus"), (FIELD, "foo"), (TYPES, '"a" + 1')],
    "bogus.f(pod.foo)": [("K0301", "bogus"), (FIELD, "foo")],
    "[pod.foo, 1, 'a'].size() > 1": [(FIELD, "foo"), ("K0205", "'a'")],
    "{1.0: pod.foo, b'': 2}.size() > 1": [("K0205", "1.0"), (FIELD, "foo"), ("K0205", "b''")],
    # The type of a call is that of its function, even with wrong arguments.
    "pod.tolerates(pod.foo) == 3": [(TYPES, "pod.tolerates(pod.foo) == 3"), (FIELD, "foo")],
    "topology(pod.foo).count(p, p.bar == 1).here(node) > 0": [(FIELD, "foo"), (FIELD, "bar")],
    "cluster.foo.count(p, pod.bar > 1).here(node) > 0": [(FIELD, "foo"), (FIELD, "bar")],
    "node.taints.size().sortBy(t, pod.foo).size() > 0": [(WRONG, "node.taints.size()"), (FIELD, "foo")],
    "node.foo.exists(t, pod.bar > 1)": [(FIELD, "foo"), (FIELD, "bar")],
    # A key may be missing beside and inside of a mistake.
    'node.labels["a"] + 1 > 0': [(TYPES, 'node.labels["a"] + 1'), (MISSING, 'node.labels["a"]')],
    'pod.foo > 1 && node.labels["a"] == "b"': [(FIELD, "foo"), (MISSING, 'node.labels["a"]')],
    'node.taints.exists(t, t.foo == "b" && node.labels["a"] == "b")': [
        (FIELD, "foo"),
        (MISSING, 'node.labels["a"]'),
    ],
}
BROKEN_PROOFS = {
    '"a" in node.foo && node.labels["a"] == "b"': (FIELD, "foo"),
    'has(node.foo.a) && node.labels["a"] == "b"': (FIELD, "foo"),
    'node.labels[?"a"].hasvalue() && node.labels["a"] == "b"': ("K0303", "hasvalue"),
    'unknown && node.labels["a"] == "b"': ("K0301", "unknown"),
    '["a"].all(k, k in node.foo) && ["a"].all(k, node.labels[k] == "b")': (FIELD, "foo"),
}


def _found(condition: str) -> list[tuple[str, str]]:
    return findings(f'predicate P {{ require {condition} else "no" }}')


@pytest.mark.parametrize("condition", CONDITIONS)
def test_all_mistakes_of_an_expression(condition: str) -> None:
    assert sorted(_found(condition)) == sorted(CONDITIONS[condition])


@pytest.mark.parametrize("condition", BROKEN_PROOFS)
def test_a_proof_with_a_mistake_is_reported_alone(condition: str) -> None:
    assert _found(condition) == [BROKEN_PROOFS[condition]]


def test_a_part_of_a_dotted_key_is_no_mistake_of_its_own() -> None:
    assert _found('node.labels.app-name == "a"') == [(FIELD, "app-name")]


def test_a_sort_key_with_a_mistake_is_reported_once() -> None:
    assert findings("queue Q { order by int(pod.foo) + 1 }") == [(FIELD, "foo")]


def test_a_parameter_with_a_mistake_is_reported_once() -> None:
    assert [code for code, _ in findings("param a = [foo]\nparam b = a + a\nparam c = b + b")] == ["K0301"]
