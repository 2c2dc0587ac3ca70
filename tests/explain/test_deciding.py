"""The values that decided a condition, for random rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kdsl.cluster.objects.taints import Taint, Toleration

from tests.explain.cases import case, decided, node, pod

FNS = 'fn sizeOf(labels: map(string, string)): int = int(labels[?"size"].orValue("0"))\n'
WILD = Taint("wild", "", "NoSchedule")


@pytest.mark.parametrize(
    ("condition", "atoms"),
    [
        ("pod.priority + 1 > 5", ["0 + 1 > 5"]),
        ("2 * (pod.priority - 3) >= 0", ["2 * (0 - 3) >= 0"]),
        ("node.name == 'a' || node.name == 'b'", ['"n" == "a"', '"n" == "b"']),
        ("node.name == 'n' && node.podCount > 0", ["0 > 0"]),
        ("pod.priority > 1 && node.podCount > 0", ["0 > 1", "0 > 0"]),
        ("!(node.name == 'n')", ['"n" == "n" holds']),
        ("!(pod.labels in [pod.labels])", ["{} in [{}] holds"]),
        ("has(node.labels.zone)", ["has(node.labels.zone) = false"]),
        ("!has(node.labels.size)", ["has(node.labels.size) = true"]),
        ("!node.unschedulable", ["node.unschedulable = true"]),
        ("node.unschedulable ? pod.priority > 1 : true", ["0 > 1"]),
        ("node.unschedulable ? false : true", ["node.unschedulable = true"]),
        ('"zone" in node.labels', ['"zone" in {"size": "7"}']),
        ('pod.requests["cpu"] <= node.allocatable["cpu"] / 10', ["1 <= 8 / 10"]),
        ("sizeOf(node.labels) >= 10", ["7 >= 10"]),
        ("node.taints.all(t, t.key != 'wild')", ['"wild" != "wild"']),
        ("pod.tolerations.exists(t, t.key == 'x')", ['"calm" == "x"']),
        ("pod.tolerations.exists(t, t.key == 'x' && t.effect == '')", ['"calm" == "x"']),
        ("100 / pod.priority > 0", ["100 / pod.priority > 0: division by zero"]),
    ],
)
def test_the_atoms_that_decide(tmp_path: Path, condition: str, atoms: list[str]) -> None:
    rule = f'{FNS}predicate P {{\n  require {condition}\n    else "no"\n}}\n'
    cordoned = node("n", {"size": "7"}, (WILD,), unschedulable=True)
    calm = pod("p", tolerations=(Toleration("calm", "Exists", "", ""),))
    found = decided(case(tmp_path, rule, [cordoned], calm).findings())["n"]["P"]
    assert [re.sub(r" \([a-z]+ = .*\)$", "", text) for text in found] == atoms


def test_a_let_without_a_value_is_the_atom(tmp_path: Path) -> None:
    rule = """predicate P {
  let share = 100 /
    pod.priority
  require share > 0 else "no"
}
"""
    found = case(tmp_path, rule, [node("n")], pod("p")).findings()
    assert decided(found)["n"]["P"] == ["100 / pod.priority: division by zero"]


def test_names_and_loops_are_looked_into(tmp_path: Path) -> None:
    rule = """predicate P {
  report all
  let isBig = node.allocatable["cpu"] > quantity("4")
  let isFree = !isBig
  require isFree else "big"
  for r, amount in pod.requests where amount > quantity("0") {
    let left = node.allocatable[r] - node.requested[r]
    require amount <= left else "short of ${r}"
  }
}
"""
    found = case(tmp_path, rule, [node("n")], pod("busy", "7", node_name="n"), pod("p", "2")).findings()
    (judged,) = found.nodes
    (rejected,) = judged.rejected
    assert rejected.reasons == ("big", "short of cpu")
    assert decided(found)["n"]["P"] == ["8 > 4 holds", '2 <= 1 (r = "cpu")']
    assert [failed.condition for failed in rejected.failed] == ["isFree", "amount <= left"]


@pytest.mark.parametrize(
    ("asked", "there", "text"),
    [
        ("32Gi", "31Gi", "32Gi <= 31Gi"),
        ("32Gi", "33500123456", "32Gi <= 31948.21Mi"),
        ("32Gi", "32715Mi", "32Gi <= 32715Mi"),
        ("32Gi", "34359738367", "32Gi <= 34359738367"),
        ("1000", "999", "1000 <= 999"),
    ],
)
def test_bytes_are_shown_as_people_write_them(tmp_path: Path, asked: str, there: str, text: str) -> None:
    """The last two differ by one byte: rounded, both sides would look equal."""
    rule = f"""predicate P {{
  require quantity("{asked}") <= node.allocatable["memory"]
    else "no"
}}
"""
    found = case(tmp_path, rule, [node("n", memory=there)], pod("p")).findings()
    assert decided(found)["n"]["P"] == [text]


def test_counts_are_shown_in_digits(tmp_path: Path) -> None:
    rule = """predicate P {
  require quantity("9k") <= node.allocatable["x.io/vmem"]
    else "no"
}
"""
    found = case(tmp_path, rule, [node("n", **{"x.io/vmem": "7000"})], pod("p")).findings()
    assert decided(found)["n"]["P"] == ["9000 <= 7000"]


def test_objects_are_called_by_their_names(tmp_path: Path) -> None:
    rule = """fn crowded(where: Node): bool = where.podCount > 0

predicate P {
  require node.pods.all(other, other.priority > 1)
    else "no"
}

predicate Q {
  require !crowded(node)
    else "no"
}
"""
    found = case(tmp_path, rule, [node("n")], pod("old", node_name="n"), pod("p")).findings()
    assert decided(found)["n"] == {
        "P": ["0 > 1 (other = pod default/old)"],
        "Q": ["1 > 0 holds (where = node n)"],
    }


def test_resources_are_compared_one_by_one(tmp_path: Path) -> None:
    rule = 'predicate P {\n  require pod.requests <= node.allocatable - node.requested else "no"\n}\n'
    found = case(tmp_path, rule, [node("n", cpu="1500m")], pod("p", "2")).findings()
    assert decided(found)["n"]["P"] == ['2 <= 1500m (resource = "cpu")']
