"""Every kind of difference, on records of a few pods whose decisions someone worked out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kdsl.app import Settings, check_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.read.files import InputFile
from kdsl.explain.differences import Difference, DifferenceKind, Mode, Replayed, Room, card_ids
from kdsl.explain.moves import Cause, CauseKind
from kdsl.report.replay import why
from kdsl.sim.comparison import Side
from kdsl.sim.replay.replaying import replayed
from kdsl.sim.replay.survey import Survey
from kdsl.sim.run import simulate

from tests.sim.replay.workloads import workload_of

RULES = """kdsl 1
package p
import kubernetes.v1_36 as kubernetes

predicate Room {
  require node.podCount < ROOM else "full"
}

score First {
  value node.name == "n1" ? FIRST : 0
}

score Second {
  value node.name == "n2" ? 40 : 0
}

profile p {
  scheduler "s"
  predicates { Room }
  scores { First weight 2 Second weight 1 }
  queue kubernetes.PrioritySort
  PREEMPT
}
"""
PREEMPT = "preemption kubernetes.LowerPriority"


def rules(folder: Path, name: str, room: int = 9, first: int = 50, preempt: str = "") -> RuleSet:
    """Return the rules above with some numbers: First gives n1 twice `first`, Second gives n2 40 points."""
    text = RULES.replace("ROOM", str(room)).replace("FIRST", str(first)).replace("PREEMPT", preempt)
    path = folder / f"{name}.kdsl"
    path.write_text(text)
    checked = check_rules((path,))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def node(name: str) -> dict[str, Any]:
    meta, status = {"name": name}, {"allocatable": {"pods": "9"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def pod(name: str, priority: int = 0, on: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": "s",
        "priority": priority,
        "containers": [{"name": "c", "image": "i"}],
    }
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n"}, "spec": spec}


def record(old: RuleSet, *pods: dict[str, Any], attempts: int = 1) -> InputFile:
    """Record what the old rules do with pods on n1 and n2."""
    lines: list[str] = []
    workload = workload_of([node("n1"), node("n2"), *pods])
    simulate(old, workload, Settings(), record=lines.append, attempts=attempts)
    return InputFile("record.jsonl", "\n".join(lines).encode())


def replay(old: RuleSet | None, new: RuleSet, file: InputFile, mode: Mode = Mode.INDEPENDENT) -> Replayed:
    before = None if old is None else Side(old, Settings())
    return replayed(mode, before, Side(new, Settings()), file, Survey.of(file))


def test_a_score_moves_pods_and_nothing_cascades(tmp_path: Path) -> None:
    """First gives n1 100 points before and 20 now; Second gives n2 40: n2 leads by 20 now."""
    old, new = rules(tmp_path, "old"), rules(tmp_path, "new", first=10)
    file = record(old, pod("a"), pod("b"))
    cause = Cause(CauseKind.SCORE, "First", before=-100, now=-20)
    found = replay(old, new, file)
    assert found.differences == (
        Difference(0, "n/a", DifferenceKind.MOVED, "n1", "n2", cause),
        Difference(1, "n/b", DifferenceKind.MOVED, "n1", "n2", cause),
    )
    counts = found.counts.document()
    assert {name: count for name, count in counts.items() if count} == {
        "decided": 2,
        "different": 2,
        "moved": 2,
    }
    # The record itself has no scores: only those of the new rules are known, of which Second decides.
    recorded = replay(None, new, file)
    assert [each.cause for each in recorded.differences] == [Cause(CauseKind.SCORE, "Second", now=40)] * 2


def test_a_pod_becomes_pending_only_where_the_new_rules_reject_the_recorded_nodes(tmp_path: Path) -> None:
    """Independent: c finds a and b as recorded, both on n1, so n2 has room. Cumulative: n1 and n2 are full."""
    old, new = rules(tmp_path, "old"), rules(tmp_path, "new", room=1)
    file = record(old, pod("a"), pod("b"), pod("c"))
    site = f"{tmp_path}/new.kdsl:6"
    full = Cause(CauseKind.REJECTS, "Room", "full", site)
    assert replay(old, new, file).differences == (
        Difference(1, "n/b", DifferenceKind.MOVED, "n1", "n2", full),
        Difference(2, "n/c", DifferenceKind.MOVED, "n1", "n2", full),
    )
    found = replay(old, new, file, Mode.CUMULATIVE)
    assert found.differences == (
        Difference(1, "n/b", DifferenceKind.MOVED, "n1", "n2", full),
        Difference(2, "n/c", DifferenceKind.PENDING, "n1", "", full),
    )
    assert (found.counts.moved, found.counts.pending, found.counts.same) == (1, 1, 1)


def test_a_pod_becomes_placed(tmp_path: Path) -> None:
    old, new = rules(tmp_path, "old", room=1), rules(tmp_path, "new", room=2)
    file = record(old, pod("a"), pod("b"), pod("c"))
    full = Cause(CauseKind.ACCEPTS, "Room", "full", f"{tmp_path}/old.kdsl:6")
    assert replay(old, new, file).differences == (
        Difference(1, "n/b", DifferenceKind.MOVED, "n2", "n1", full),
        Difference(2, "n/c", DifferenceKind.PLACED, "", "n1", full),
    )
    # The record knows no verdict of a node, but that Room rejected all others.
    recorded = replay(None, new, file).differences
    assert [(each.kind, each.cause) for each in recorded] == [
        (DifferenceKind.MOVED, full),
        (DifferenceKind.PLACED, full),
    ]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_removed_predicate_is_named(tmp_path: Path, mode: Mode) -> None:
    """n1 and n2 are full for c, until Room goes."""
    old = rules(tmp_path, "old", room=1)
    rules(tmp_path, "new")
    path = tmp_path / "new.kdsl"
    path.write_text(path.read_text().replace("  predicates { Room }\n", ""))
    checked = check_rules((path,))
    assert checked.rules is not None, checked.diagnostics
    new = checked.rules
    file = record(old, pod("a", 0, "n1"), pod("b", 0, "n2"), pod("c"))
    (found,) = replay(None, new, file, mode).differences
    full = Cause(CauseKind.ACCEPTS, "Room", "full", f"{tmp_path}/old.kdsl:6")
    assert (found.before, found.after, found.cause) == ("", "n1", full)


def test_a_pod_that_only_the_record_evicts_says_for_whom(tmp_path: Path) -> None:
    old = rules(tmp_path, "old", room=1, preempt=PREEMPT)
    new = rules(tmp_path, "new", room=1)
    file = record(old, pod("low", 0, "n1"), pod("mid", 5, "n2"), pod("high", 9))
    lines = file.data.decode().splitlines()
    # The record ends before low is tried again.
    file = InputFile("record.jsonl", "\n".join(lines[:3]).encode())
    found = {each.pod: each for each in replay(None, new, file, Mode.CUMULATIVE).differences}
    assert why(found["n/low"], str) == "before: evicted for n/high"


def test_other_victims(tmp_path: Path) -> None:
    """One pod per node; the old rules evict low from n1, and the new ones keep every pod."""
    old = rules(tmp_path, "old", room=1, preempt=PREEMPT)
    new = rules(tmp_path, "new", room=1)
    file = record(old, pod("low", 0, "n1"), pod("mid", 5, "n2"), pod("high", 9))
    found = replay(old, new, file)
    assert [(each.cycle, each.pod, each.kind, each.rooms) for each in found.differences] == [
        (0, "n/high", DifferenceKind.OTHER_VICTIMS, (Room("n1", ("n/low",)), Room()))
    ]
    counts = found.counts
    assert (counts.preemptions, counts.victims) == (0, 0)
    assert (counts.old_preemptions, counts.old_victims, counts.unlike_record) == (1, 1, 0)
    # On its own placements the new side never makes room: high stays pending, and low stays on n1.
    cumulative = replay(old, new, file, Mode.CUMULATIVE)
    assert {each.pod: (each.kind, each.before, each.after) for each in cumulative.differences} == {
        "n/high": (DifferenceKind.PENDING, "n1", ""),
        "n/low": (DifferenceKind.PLACED, "", "n1"),
    }


def test_only_new_rules_evict(tmp_path: Path) -> None:
    """Cumulative: high takes the place of low, which comes back and finds none, as last does on both sides."""
    old, new = rules(tmp_path, "old", room=1), rules(tmp_path, "new", room=1, preempt=PREEMPT)
    file = record(old, pod("low", 0, "n1"), pod("mid", 5, "n2"), pod("high", 9), pod("last", 0))
    found = replay(old, new, file)
    assert [(each.pod, each.kind, each.rooms) for each in found.differences] == [
        ("n/high", DifferenceKind.OTHER_VICTIMS, (Room(), Room("n1", ("n/low",))))
    ]
    cumulative = replay(old, new, file, Mode.CUMULATIVE)
    assert {each.pod: (each.kind, each.before, each.after) for each in cumulative.differences} == {
        "n/high": (DifferenceKind.PLACED, "", "n1"),
        "n/low": (DifferenceKind.PENDING, "n1", ""),
    }
    causes = {each.pod: each.cause for each in cumulative.differences}
    assert causes == {"n/high": Cause(CauseKind.EVICTS), "n/low": Cause(CauseKind.EVICTED, reason="n/high")}
    assert (cumulative.counts.preemptions, cumulative.counts.victims) == (1, 1)


def test_old_rules_that_are_not_those_of_the_record(tmp_path: Path) -> None:
    made, other = rules(tmp_path, "made"), rules(tmp_path, "other", first=10)
    file = record(made, pod("a"), pod("b"), pod("c"))
    for mode in Mode:
        counts = replay(other, other, file, mode).counts
        assert (counts.different, counts.unlike_record, counts.decided) == (0, 3, 3)


def test_a_pod_that_ends_leaves_its_room_on_both_sides(tmp_path: Path) -> None:
    """Room for one pod per node: a ends between b and c, so c takes a's node, wherever that was."""
    old, new = rules(tmp_path, "old", room=1), rules(tmp_path, "new", room=1, first=10)
    lines = record(old, pod("a"), pod("b"), pod("c")).data.decode().splitlines()
    gone = '"changes":[{"change":"remove","objectKind":"Pod","key":"n/a"},'
    assert lines[3].startswith('{"kind":"TraceCycle"') and '"cycle":2,"changes":[' in lines[3]
    lines[3] = lines[3].replace('"changes":[', gone, 1)
    file = InputFile("record.jsonl", "\n".join(lines).encode())
    found = replay(old, new, file, Mode.CUMULATIVE)
    assert {each.pod: (each.before, each.after) for each in found.differences} == {
        "n/a": ("n1", "n2"),
        "n/b": ("n2", "n1"),
        "n/c": ("n1", "n2"),
    }


NIMBUS = Path(__file__).parents[3] / "examples" / "new-vendor"


def cards_rules(folder: Path, name: str, before: str = "", after: str = "") -> RuleSet:
    """Return the rules of the new vendor, without a choice among the cards that fit, with a text replaced."""
    device, profile = ((NIMBUS / each).read_text() for each in ("nimbus.kdsl", "profile.kdsl"))
    start, end = device.index("  // Cards of as few rings"), device.index("  // A node that gives all")
    device = f'{device[:start]}  choose first else "too few cards"\n\n{device[end:]}'
    (folder / name).mkdir()
    (folder / name / "nimbus.kdsl").write_text(device.replace(before, after, 1) if before else device)
    (folder / name / "profile.kdsl").write_text(profile)
    checked = check_rules((folder / name,))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


@pytest.mark.parametrize("mode", list(Mode))
def test_other_cards_of_one_node(tmp_path: Path, mode: Mode) -> None:
    """All three cards are equal, and the last one of equal cards comes first: east-2 under the old rules."""
    old = cards_rules(tmp_path, "old")
    healthy = "    require device.healthy\n"
    refuse = cards_rules(tmp_path, "refuse", healthy, f'    require device.index < 2 else "Kept"\n{healthy}')
    key = "orders.byPolicy(policy, fullness, device.numa, device.used, device.index)"
    order = cards_rules(tmp_path, "order", key, "[double(device.index)]")
    ids = ", ".join(
        f'{{"id": "east-{n}", "index": {n}, "mib": 9, "ring": "a", "healthy": true}}' for n in range(3)
    )
    machine = node("east")
    machine["metadata"]["annotations"] = {"nimbus.example/cards": f"[{ids}]"}
    asking = pod("notebook")
    asking["spec"]["schedulerName"] = "npus"
    asking["spec"]["containers"][0]["resources"] = {
        "limits": {"nimbus.example/npu": "1", "nimbus.example/npu-memory": "5"}
    }
    lines: list[str] = []
    simulate(old, workload_of([machine, asking]), Settings(), record=lines.append)
    file = InputFile("record.jsonl", "\n".join(lines).encode())
    site = f"{tmp_path}/refuse/nimbus.kdsl:56"
    first = "east-0 comes first by order by [double(device.index)]"
    for new, card, cause in (
        (refuse, "east-1", Cause(CauseKind.CARDS, "first", "east-2 is refused now: Kept", site)),
        (order, "east-0", Cause(CauseKind.CARDS, "first", first)),
    ):
        for side in (None, old):
            (found,) = replay(side, new, file, mode).differences
            assert (found.cycle, found.pod, found.kind) == (0, "n/notebook", DifferenceKind.OTHER_CARDS)
            assert (found.before, found.after) == ("east", "east")
            assert [card_ids(each) for each in found.cards] == [("east-2",), (card,)]
            # Where earlier decisions differ, the cards need not be due to a rule about cards.
            assert found.cause == (cause if mode is Mode.INDEPENDENT else Cause(CauseKind.CARDS))
    assert replay(None, old, file, mode).differences == ()
