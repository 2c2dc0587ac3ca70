"""`kdsl diff … --cluster`: which pods move between two sets of rules, and what told their nodes apart."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.report import moves as report
from kdsl.report.schemas import output_schema

from tests.cli.command_line import Ended, kdsl
from tests.test_examples import ROOT

QUICKSTART = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
GOLDEN = Path(__file__).parent / "golden"
RULES = """kdsl 1
package p
import kubernetes.v1_36 as kubernetes

predicate Room {
  require node.podCount < ROOM else "full"
}

predicate Zone {
  require node.labels[?"zone"].orValue("") != "CLOSED" else unresolvable "the zone is closed"
}

score First {
  value node.name == "n1" ? FIRST : 0
}

score Second {
  value node.name == "n2" ? 40 : 0
}

profile p {
  scheduler "s"
  predicates { Zone Room }
  scores { First weight 2 Second weight 1 }
  queue kubernetes.PrioritySort
  PREEMPT
}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {{name: n{0}, labels: {{zone: z{0}}}}}\nstatus: {{allocatable: {{pods: '9'}}}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{0}, namespace: n}}\nspec: {{schedulerName: s, priority: {1}, containers: [{{name: c, image: i}}]{2}}}\n"


def pod(number: int, priority: int = 0, node: str = "") -> str:
    return POD.format(number, priority, f", nodeName: {node}" if node else "")


def diff(folder: Path, old: str, new: str, *objects: str, more: tuple[str, ...] = ()) -> Ended:
    """Compare the rules with some words replaced: `ROOM=1 FIRST=50`."""
    for name, words in (("old", old), ("new", new)):
        text = RULES
        for word in (*words.split(), "ROOM=9", "FIRST=50", "CLOSED=none", "PREEMPT="):
            before, _, after = word.partition("=")
            text = text.replace(before, after.replace("_", " "))
        (folder / f"{name}.kdsl").write_text(text)
    (folder / "cluster.yaml").write_text("\n---\n".join((NODE.format(1), NODE.format(2), *objects)))
    rules = (str(folder / "old.kdsl"), str(folder / "new.kdsl"))
    return kdsl("diff", *rules, "--cluster", str(folder / "cluster.yaml"), *more)


def pods_of(ended: Ended) -> list[str]:
    """Return the part of the text that is about pods."""
    return ended.stdout.rpartition("\n\n")[2].replace("  (", " (").splitlines()


@pytest.mark.parametrize(
    ("name", "more"),
    [("diff-pods", ()), ("diff-pods-markdown", ("-o", "markdown")), ("diff-pods-json", ("-o", "json"))],
)
def test_golden(name: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ended = kdsl("diff", "default", "binpacking", *QUICKSTART, *more)
    assert (ended.exit_code, ended.stderr) == (1, "")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(ended.stdout, encoding="utf-8")
    assert ended.stdout == golden.read_text(encoding="utf-8")


def test_the_document_fits_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    validator = Draft202012Validator(output_schema("RuleChanges"))
    for more in ((), QUICKSTART):
        validator.validate(json.loads(kdsl("diff", "default", "binpacking", *more, "-o", "json").stdout))
    ended = diff(tmp_path, "", "ROOM=1", pod(1), pod(2), more=("-o", "json"))
    document = json.loads(ended.stdout)
    validator.validate(document)
    assert document["pods"]["summary"] == {
        "moved": 1,
        "pending": 0,
        "placed": 0,
        "unchanged": 1,
        "skipped": 0,
    }


def test_equal_rules_move_nothing(tmp_path: Path) -> None:
    ended = diff(tmp_path, "", "", pod(1), pod(2))
    assert ended == Ended(0, "no differences\n\n0 pods move, 2 unchanged\n", "")


def test_rules_that_differ_and_move_nothing(tmp_path: Path) -> None:
    ended = diff(tmp_path, "", "FIRST=60", pod(1))
    assert ended.exit_code == 1
    assert pods_of(ended) == ["0 pods move, 1 unchanged"]


def test_a_score_that_decides(tmp_path: Path) -> None:
    """First favours n1 by 100 points before, by 20 now; Second favours n2 by 40 all the time."""
    ended = diff(tmp_path, "", "FIRST=10", pod(1), pod(2))
    assert pods_of(ended) == [
        "pods that move",
        "  score First gives the new node more over the old one",
        "    ~ n/p1: n1 → n2 (-20, before -100)",
        "    ~ n/p2: n1 → n2 (-20, before -100)",
        "2 pods move, 0 unchanged",
    ]


def test_a_predicate_that_rejects_the_old_node(tmp_path: Path) -> None:
    ended = diff(tmp_path, "", "CLOSED=z1", pod(1))
    assert pods_of(ended) == [
        "pods that move",
        f"  Zone rejects the old node: the zone is closed ({tmp_path}/new.kdsl:10)",
        "    ~ n/p1: n1 → n2",
        "1 pod moves, 0 unchanged",
    ]


def test_a_predicate_that_no_longer_rejects_the_new_node(tmp_path: Path) -> None:
    ended = diff(tmp_path, "CLOSED=z1", "", pod(1))
    assert pods_of(ended)[1:3] == [
        f"  Zone no longer rejects the new node: the zone is closed ({tmp_path}/old.kdsl:10)",
        "    ~ n/p1: n2 → n1",
    ]


def test_pods_that_become_pending_and_placed(tmp_path: Path) -> None:
    objects = [pod(number) for number in range(1, 5)]
    ended = diff(tmp_path, "ROOM=2", "ROOM=1", *objects)
    assert pods_of(ended) == [
        "pods that move",
        f"  Room rejects the old node: full ({tmp_path}/new.kdsl:6)",
        "    ~ n/p2: n1 → n2",
        "pods that become pending",
        f"  Room rejects the old node: full ({tmp_path}/new.kdsl:6)",
        "    - n/p3: n2",
        "    - n/p4: n2",
        "1 pod moves, 2 become pending, 1 unchanged",
    ]
    back = diff(tmp_path, "ROOM=1", "ROOM=2", *objects)
    assert pods_of(back)[-5:] == [
        "pods that become placed",
        f"  Room no longer rejects the new node: full ({tmp_path}/old.kdsl:6)",
        "    + n/p3: n2",
        "    + n/p4: n2",
        "1 pod moves, 2 become placed, 1 unchanged",
    ]


def test_other_evictions(tmp_path: Path) -> None:
    """Whoever is evicted comes back and waits, since nobody has less priority."""
    preempt = "PREEMPT=preemption_kubernetes.LowerPriority"
    objects = (pod(1, 5, "n1"), pod(2, 5, "n2"), pod(3, 9))
    ended = diff(tmp_path, "ROOM=1", f"ROOM=1 {preempt}", *objects)
    lines = pods_of(ended)
    assert lines[lines.index("evictions") :] == [
        "evictions",
        "  only under the new rules",
        "    + n/p1 for n/p3",
        "0 pods move, 1 becomes pending, 1 becomes placed, 1 other eviction, 0 unchanged",
    ]
    assert lines[: lines.index("evictions")] == [
        "pods that become pending",
        "  evicted for n/p3",
        "    - n/p1: n1",
        "pods that become placed",
        "  other pods are evicted for it",
        "    + n/p3: n1",
    ]


def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    ended = diff(tmp_path, "", "FIRST=100/(node.podCount-node.podCount)", pod(1))
    assert ended.exit_code == 1
    assert "First" in ended.stdout.rpartition("\n\n")[2]


def test_pods_without_a_profile_are_no_silent_agreement(tmp_path: Path) -> None:
    other = pod(1).replace("schedulerName: s", "schedulerName: other")
    ended = diff(tmp_path, "", "ROOM=1", other)
    assert pods_of(ended) == ["0 pods move, 1 unchanged (1 of them asked for a scheduler without a profile)"]
    assert pods_of(diff(tmp_path, "", "CLOSED=z1", other, more=("--profile", "p")))[-1] == (
        "1 pod moves, 0 unchanged"
    )


def test_long_lists_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "SHOWN", 1)
    lines = pods_of(diff(tmp_path, "", "CLOSED=z1", pod(1), pod(2), pod(3)))
    assert lines[-3:] == [
        "    ~ n/p1: n1 → n2",
        "    … and 2 more (-o json lists all)",
        "3 pods move, 0 unchanged",
    ]


def test_input_that_cannot_be_read_is_said_with_the_answer(tmp_path: Path) -> None:
    ended = diff(tmp_path, "", "CLOSED=z1", pod(1), "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n")
    assert ended.exit_code == 2
    assert "1 pod moves, 0 unchanged" in ended.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("default", "binpacking", "--pods", "x"), "--pods goes with --cluster"),
        (("default", "binpacking", "--profile", "x"), "--profile goes with --cluster"),
        (("default", "binpacking", "--cluster", "x", "--profile", "x"), "--profile goes with two folders"),
    ],
)
def test_wrong_usage(args: tuple[str, ...], said: str) -> None:
    ended = kdsl("diff", *args)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert said in ended.stderr
