"""The mode `cumulative` follows what the scheduler does not decide, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kdsl.app import Settings, check_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import read_values
from kdsl.cycle.queue import SchedulingQueue
from kdsl.explain.differences import Mode
from kdsl.hooks.specs import QueuedPod
from kdsl.sim.run import simulated_engine

from tests.sim.replay.test_kinds import PREEMPT, node, pod, replay, rules
from tests.sim.replay.workloads import workload_of

Manifest = dict[str, Any]


class Run:
    """A recorded run on n1 and n2, in which a test changes the cluster between the attempts."""

    def __init__(self, made: RuleSet, *manifests: Manifest) -> None:
        self.lines: list[str] = []
        nodes = [node(name) for name in ("n1", "n2")]
        for each in nodes:
            each["metadata"]["labels"] = {"kubernetes.io/hostname": each["metadata"]["name"]}
        workload = workload_of([*nodes, *manifests])
        self.manifests = dict(workload.manifests)
        workload = replace(workload, manifests=self.manifests)
        self._context = simulated_engine(made, workload, Settings(), self.lines.append)
        self.engine, self.cluster, self.evictor = self._context.__enter__()
        self._pending = iter(workload.pending)

    def decide(self, pods: int = 1) -> None:
        """Decide so many more pods."""
        for _ in range(pods):
            self.engine.enqueue(next(self._pending))
            while (queued := self.engine.queue.pop()) is not None:
                self.engine.schedule_one(queued)

    def change(self, manifest: Manifest) -> None:
        """Change a pod on a node, as its workload or its kubelet would."""
        (read,) = read_values([manifest]).pods
        found = PodInfo.of(read)
        self.manifests["Pod", found.key] = manifest
        self.cluster.add_pod(found)

    def nodes(self) -> dict[str, str]:
        """Return the node of each placed pod."""
        return {each.key: each.node_name for each in self.cluster.pods()}

    def file(self) -> InputFile:
        """End the run and return its record."""
        self._context.__exit__(None, None, None)
        return InputFile("record.jsonl", "\n".join(self.lines).encode())


def assert_nothing_differs(made: RuleSet, file: InputFile) -> None:
    for mode in Mode:
        for old in (None, made):
            found = replay(old, made, file, mode)
            assert (found.differences, found.counts.unlike_record) == ((), 0), (mode, old is None)


def test_the_pods_of_a_node_that_goes_end_when_the_record_says_so(tmp_path: Path) -> None:
    """The API server deletes them a minute later: until then they are tried nowhere else."""
    made = rules(tmp_path, "made")
    run = Run(made, pod("home", on="n1"), *map(pod, "abcd"))
    run.decide(2)
    assert run.nodes() == {"n/home": "n1", "n/a": "n1", "n/b": "n1"}
    run.cluster.remove_node("n1")
    run.decide()
    for key in ("n/home", "n/a", "n/b"):
        run.cluster.remove_pod(key)
    run.decide()
    assert_nothing_differs(made, run.file())


def test_a_node_that_returns_still_has_its_pods(tmp_path: Path) -> None:
    made = rules(tmp_path, "made", room=2)
    run = Run(made, pod("home", on="n1"), *map(pod, "abc"))
    run.decide()
    facts = run.cluster.snapshot().node("n1").facts  # type: ignore[union-attr]
    run.cluster.remove_node("n1")
    run.decide()
    run.cluster.add_node(facts)
    run.decide()
    # n1 is full again: home and a.
    assert run.nodes() == {"n/home": "n1", "n/a": "n1", "n/b": "n2", "n/c": "n2"}
    assert_nothing_differs(made, run.file())


def test_a_pod_on_another_node_than_recorded_loses_that_node(tmp_path: Path) -> None:
    """a is on n1 in the record, and on n2 under the new rules when n2 goes."""
    old, new = rules(tmp_path, "old"), rules(tmp_path, "new", first=10)
    run = Run(old, *map(pod, "ab"))
    run.decide()
    run.cluster.remove_node("n2")
    run.decide()
    assert run.nodes() == {"n/a": "n1", "n/b": "n1"}
    found = replay(old, new, run.file(), Mode.CUMULATIVE)
    assert found.differences == () and found.counts.decided == 2


LABELS = """kdsl 1
package p
import kubernetes.v1_36 as kubernetes

score Lead {
  value node.name == "FIRST" ? 50 : 0
}

profile p {
  scheduler "s"
  predicates { kubernetes.InterPodAffinity }
  scores { Lead weight 1 }
  queue kubernetes.PrioritySort
}
"""


def labelled(manifest: Manifest, app: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {"app": app}}}


def test_a_changed_label_counts_on_the_own_node(tmp_path: Path) -> None:
    """b refuses nodes with pods of the app `x`, which a gets while it runs: on n1 in the record, else on n2."""
    sides = []
    for first in ("n1", "n2"):
        path = tmp_path / f"{first}.kdsl"
        path.write_text(LABELS.replace("FIRST", first))
        checked = check_rules((path,))
        assert checked.rules is not None, checked.diagnostics
        sides.append(checked.rules)
    old, new = sides
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    refusing = pod("b")
    refusing["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    run = Run(old, pod("a"), refusing)
    run.decide()
    run.change(labelled(pod("a", on="n1"), "x"))
    run.decide()
    assert run.nodes() == {"n/a": "n1", "n/b": "n2"}
    file = run.file()
    assert_nothing_differs(old, file)
    found = replay(old, new, file, Mode.CUMULATIVE)
    assert {each.pod: each.after for each in found.differences} == {"n/a": "n2", "n/b": "n1"}


def test_a_victim_that_ends_slowly(tmp_path: Path) -> None:
    """A live victim is on its node until it has ended, and its deletion changes it once more."""
    made = rules(tmp_path, "made", room=1, preempt=PREEMPT)
    run = Run(made, pod("home", on="n1"), pod("a"), pod("big", priority=9), pod("c"))
    ending = pod("home", on="n1")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    run.evictor.evict = lambda *_: run.change(ending)  # type: ignore[method-assign]
    run.decide(2)
    run.cluster.remove_pod("n/home")
    (big,) = (PodInfo.of(each) for each in read_values([pod("big", priority=9)]).pods)
    run.engine.queue.delete(big.key)
    run.engine.enqueue(big)
    while (queued := run.engine.queue.pop()) is not None:
        run.engine.schedule_one(queued)
    run.decide()
    assert run.nodes() == {"n/a": "n2", "n/big": "n1"}
    file = run.file()
    assert_nothing_differs(made, file)
    counts = replay(None, made, file, Mode.CUMULATIVE).counts
    assert (counts.victims, counts.old_victims) == (1, 1)


def test_an_evicted_pod_stays_away_when_the_recorded_one_changes(tmp_path: Path) -> None:
    """Only the new rules evict home, from a full n1. When x ends, c has room there on both sides."""
    old = rules(tmp_path, "old", room=2)
    new = rules(tmp_path, "new", room=2, preempt=PREEMPT)
    home = pod("home", on="n1")
    others = (pod("x", 1, "n1"), pod("y", 1, "n2"), pod("z", 1, "n2"))
    run = Run(old, home, *others, pod("big", priority=9), pod("c"))
    run.decide()
    run.change(labelled(home, "x"))
    run.cluster.remove_pod("n/x")
    run.decide()
    assert run.nodes() == {"n/home": "n1", "n/y": "n2", "n/z": "n2", "n/c": "n1"}
    found = replay(old, new, run.file(), Mode.CUMULATIVE)
    assert {each.pod: (each.before, each.after) for each in found.differences} == {
        "n/home": ("n1", ""),
        "n/big": ("", "n1"),
    }


def test_a_tried_pod_that_another_scheduler_places(tmp_path: Path) -> None:
    """n1 and n2 are full for a; somebody puts it on n2 nevertheless, where b then has no room either."""
    made = rules(tmp_path, "made", room=1)
    run = Run(made, pod("one", on="n1"), pod("two", on="n2"), pod("a"), pod("b"))
    run.decide()
    run.engine.leave_queue(PodInfo(name="a", namespace="n"))
    run.change(pod("a", on="n2"))
    run.cluster.remove_pod("n/two")
    run.decide()
    assert run.nodes() == {"n/one": "n1", "n/a": "n2"}
    assert_nothing_differs(made, run.file())


def test_a_record_that_ends_before_the_victims(tmp_path: Path) -> None:
    """big has no second attempt in the record: under the same rules it waits for its victim, too."""
    made = rules(tmp_path, "made", room=1, preempt=PREEMPT)
    run = Run(made, pod("home", on="n1"), pod("a"), pod("big", priority=9))
    run.evictor.evict = lambda *_: None  # type: ignore[method-assign]
    run.decide(2)
    assert run.nodes() == {"n/home": "n1", "n/a": "n2"}
    file = run.file()
    assert_nothing_differs(made, file)
    assert replay(None, made, file, Mode.CUMULATIVE).counts.victims == 1


def terminating(manifest: Manifest) -> Manifest:
    meta = {**manifest["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {**manifest, "metadata": meta}


def lingering_run(made: RuleSet) -> Run:
    """Return a run in which big evicts home from n1, and tall has to take n2 before home has ended."""
    run = Run(made, pod("home", on="n1"), pod("big", priority=9), pod("tall", priority=5))
    run.evictor.evict = lambda *_: run.change(terminating(pod("home", on="n1")))  # type: ignore[method-assign]
    run.change(pod("mid", priority=1, on="n2"))
    run.decide()
    run.cluster.remove_pod("n/mid")
    # Node n1 would be preferred, and would have room if home had left at once.
    run.engine.queue.delete("n/big")
    run.engine.nominator.delete(PodInfo(name="big", namespace="n"))
    run.decide()
    run.cluster.remove_pod("n/home")
    assert run.nodes() == {"n/tall": "n2"}
    return run


def test_a_victim_counts_until_it_has_ended(tmp_path: Path) -> None:
    made = rules(tmp_path, "made", room=1, preempt=PREEMPT)
    file = lingering_run(made).file()
    for old in (None, made):
        found = replay(old, made, file, Mode.CUMULATIVE)
        assert (found.differences, found.counts.victims) == ((), 1)


def test_no_pod_is_taken_from_the_queue_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pod waits for room, is woken by each pod that ends, and is tried again by the record last."""
    made, count = rules(tmp_path, "made", room=1), 40
    run = Run(made, pod("a", on="n1"), pod("b", on="n2"), *(pod(f"p{each}") for each in range(count)))
    waiting = list(run._pending)
    for each in waiting:
        run.engine.schedule_one(each)
    run.change(pod("c", on="n2"))
    run.cluster.remove_pod("n/a")
    run.change(pod("d", on="n1"))
    for each in waiting:
        run.engine.schedule_one(each)
    file, pops, pop = run.file(), list[str](), SchedulingQueue.pop

    def counted(queue: SchedulingQueue) -> QueuedPod | None:
        found = pop(queue)
        if found is not None:
            pops.append(found.pod.key)
        return found

    monkeypatch.setattr(SchedulingQueue, "pop", counted)
    assert replay(made, made, file, Mode.CUMULATIVE).differences == ()
    # Two sides, two attempts for each pod, and one waking.
    assert len(pops) <= 2 * 3 * count


def test_a_victim_leaves_no_room_before_it_has_ended(tmp_path: Path) -> None:
    """tall is tried while home still ends on n1, so it waits for home as well."""
    made = rules(tmp_path, "made", room=1, preempt=PREEMPT)
    home, mid = pod("home", on="n1"), pod("mid", priority=20, on="n2")
    run = Run(made, home, mid, pod("big", priority=9), pod("tall", priority=10))
    run.evictor.evict = lambda *_: run.change(terminating(home))  # type: ignore[method-assign]
    run.decide()
    run.engine.queue.delete("n/big")
    run.decide()
    run.engine.queue.delete("n/tall")
    run.cluster.remove_pod("n/home")
    file = run.file()
    assert_nothing_differs(made, file)
    assert replay(None, made, file, Mode.CUMULATIVE).counts.victims == 2
