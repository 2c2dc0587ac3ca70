"""`kdsl run --record`: what a running scheduler records, what it leaves out, and that it can be replayed."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.errors import KdslError
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.engine import Engine
from kdsl.explain.differences import Mode
from kdsl.live import run_record
from kdsl.live.run_record import RunRecord, recorded_fields
from kdsl.live.watching.changes import LiveNode, LivePod
from kdsl.live.writing.known import KnownObjects
from kdsl.sim.comparison import Side
from kdsl.sim.replay.replaying import replayed
from kdsl.sim.replay.survey import Survey

from tests.cli.command_line import kdsl
from tests.cli.live_site import PODS, Site
from tests.test_examples import ROOT

SECRET = "s3cr3t"
DEFAULT = Settings(profiles=("kubernetes.v1_36.default",))
"""The profile of all pods here. Compiling the shipped profiles with devices as well takes seconds."""
MORE = "".join(
    f"""---
apiVersion: v1
kind: Pod
metadata:
  name: more-{number}
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{{"env": "{SECRET}"}}'
    example.com/kept: "yes"
spec:
  containers:
  - name: main
    image: a
    command: [run, --password={SECRET}]
    env: [{{name: PASSWORD, value: {SECRET}}}]
    resources: {{requests: {{cpu: 500m}}}}
"""
    for number in range(6)
)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def test_a_running_scheduler_is_recorded_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    record = tmp_path / "run.jsonl.gz"
    with Site(tmp_path, PODS + MORE, record):
        pass
    text = gzip.decompress(record.read_bytes()).decode()
    assert SECRET not in text and "example.com/kept" in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("TraceStart", "TraceEnd")
    tried = {line["decision"]["pod"] for line in lines if line["kind"] == "TraceCycle"}
    assert {"finance/report", "shop/web-1"} <= tried
    assert all(line["engine"]["time"] > 10**18 for line in lines if line["kind"] == "TraceCycle")
    for mode in ("independent", "cumulative"):
        ended = kdsl("diff", "recorded", "default", "--replay", str(record), "--mode", mode)
        assert ended.exit_code == 0, ended
        assert ended.stdout.startswith("0 of ")


def test_only_fields_that_rules_read_are_recorded() -> None:
    env = [{"name": "PASSWORD", "value": SECRET}]
    raw: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "n",
            "labels": {"app": "a"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "mine": "kept"},
            "managedFields": [{"manager": SECRET}],
        },
        "spec": {
            "containers": [
                {"name": "c", "env": env, "args": [SECRET], "resources": {"requests": {"cpu": "1"}}}
            ],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        },
        "status": {"phase": "Pending"},
    }
    fields = recorded_fields("Pod", msgspec.json.encode(raw))
    assert SECRET not in json.dumps(fields)
    assert fields["metadata"]["annotations"] == {"mine": "kept"}
    (before,), (after,) = read_values([raw]).pods, read_values([fields]).pods
    kept = PodInfo.of(before).with_fields(annotations=PodInfo.of(after).annotations)
    assert PodInfo.of(after) == kept


# ---- a writer that falls behind ----------------------------------------------------------------------------


class Running:
    """An engine on a cluster in memory whose objects have their JSON, as those of an API server."""

    def __init__(self, rules: RuleSet, record: RunRecord) -> None:
        self.record = record
        self.cache, self.known, clock = ClusterCache(), KnownObjects(), ManualClock(10**18)
        for number in range(3):
            self.add_node(f"n{number}")
        record.attach(self.cache, self.known, clock)
        engine = build_engine(rules, self.cache, MemoryBinder(self.cache), clock, DEFAULT, tracer=record)
        record.follow(engine)
        self.engine: Engine = engine

    def add_node(self, name: str) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "pods": "9"}},
        }
        facts = NodeFacts.of(read_values([manifest]).nodes[0])
        self.known.put_node(LiveNode(facts, name, "1"), msgspec.json.encode(manifest))
        self.cache.add_node(facts)

    def decide_calmly(self, name: str) -> None:
        """Decide a pod, and wait until the record has it."""
        self.decide(name)
        while self.record._messages and not self.record._writing.is_over:
            threading.Event().wait(0.005)

    def decide(self, name: str) -> None:
        container = {"name": "c", "resources": {"requests": {"cpu": "300m"}}}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "n", "uid": name},
            "spec": {"containers": [container]},
        }
        pod = PodInfo.of(read_values([manifest]).pods[0])
        self.known.put_pod(pod.key, LivePod(pod, "1"), msgspec.json.encode(manifest))
        self.engine.enqueue(pod)
        while (queued := self.engine.queue.pop()) is not None:
            self.engine.schedule_one(queued)


def held(record: RunRecord) -> threading.Event:
    """Stop the writer of a record until the returned event is set."""
    hold, reached = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        reached.set()
        hold.wait()

    record._send(wait)
    assert reached.wait(20)
    return hold


def test_decisions_are_left_out_and_counted_while_the_writer_is_behind(
    rules: RuleSet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.jsonl"
    record = RunRecord(path, most_waiting=10)
    running = Running(rules, record)
    for number in range(5):
        running.decide_calmly(f"first-{number}")
    hold = held(record)
    # Each decision leaves three messages: its begin, the placement, and its end.
    for number in range(12):
        running.decide(f"behind-{number}")
    running.add_node("late")
    hold.set()
    while record._messages:
        threading.Event().wait(0.01)
    for number in range(5):
        running.decide_calmly(f"last-{number}")
    running.engine.close()
    record.close()
    assert (record.counts.recorded, record.counts.dropped) == (14, 8)
    assert "the record falls behind" in caplog.text

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    gaps = [line["dropped"] for line in lines if line.get("dropped")]
    assert gaps == [8] and lines[-1]["cycles"] == 22
    survey = Survey.of(file := InputFile(str(path), path.read_bytes()))
    assert (survey.dropped, survey.is_whole) == (8, True)
    found = replayed(Mode.INDEPENDENT, None, Side(rules, DEFAULT), file, survey)
    assert (found.counts.decided, found.counts.different, found.counts.dropped) == (14, 0, 8)
    assert found.notes == ("the record lacks 8 decisions that came faster than they were written",)


def test_a_record_that_lost_messages_has_no_last_line(
    rules: RuleSet, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last line would say that it is whole."""
    monkeypatch.setattr(run_record, "MOST_MESSAGES", 30)
    path = tmp_path / "run.jsonl"
    record = RunRecord(path)
    running = Running(rules, record)
    for number in range(3):
        running.decide_calmly(f"first-{number}")
    hold = held(record)
    for number in range(12):
        running.decide(f"behind-{number}")
    hold.set()
    running.decide("last")
    running.engine.close()
    record.close()
    assert sum(1 for _ in running.cache.pods()) == 16
    survey = Survey.of(InputFile(str(path), path.read_bytes()))
    assert (survey.attempts.total(), survey.is_whole) == (3, False)
    assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == [
        "the record ends here: 30 messages wait, its file is not written fast enough"
    ]


def test_a_record_that_ends_with_the_last_decision_says_so(
    rules: RuleSet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    record = RunRecord(tmp_path / "run.jsonl", most=100)
    Running(rules, record).decide_calmly("a")
    record.close()
    assert [each.getMessage() for each in caplog.records if each.name == run_record.__name__] == [
        f"the record ends here: `{tmp_path}/run.jsonl` has 100 bytes, the most that can be read again"
    ]


def test_no_object_repeats_its_manifest(rules: RuleSet, tmp_path: Path) -> None:
    """`kubectl apply` repeats the environment of a workload in an annotation."""
    path = tmp_path / "run.jsonl"
    record = RunRecord(path)
    running = Running(rules, record)
    for name in ("before", "after"):
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "mine": name}
        manifest = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": "n", "annotations": annotations},
            "spec": {"selector": {"matchLabels": {"app": "a"}}},
        }
        (found,) = read_values([manifest]).catalog
        running.cache.put(found)
        running.decide(f"pod-{name}")
    record.close()
    text = path.read_text()
    assert SECRET not in text and '"mine":"before"' in text and '"mine":"after"' in text


def test_a_record_ends_at_its_largest_size_and_the_scheduler_goes_on(
    rules: RuleSet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.jsonl"
    record = RunRecord(path, most=9_000)
    running = Running(rules, record)
    for number in range(20):
        running.decide_calmly(f"pod-{number}")
    record.close()
    assert sum(1 for _ in running.cache.pods()) == 20
    data = path.read_bytes()
    assert 0 < len(data) <= 9_000 and "the record ends here" in caplog.text
    survey = Survey.of(file := InputFile(str(path), data))
    assert not survey.is_whole and survey.attempts.total() >= 2
    assert replayed(Mode.INDEPENDENT, None, Side(rules, DEFAULT), file, survey).differences == ()


def test_an_attempt_that_crashes_loses_no_change(rules: RuleSet, tmp_path: Path) -> None:
    """The changes before it are in the next line."""
    path = tmp_path / "run.jsonl"
    record = RunRecord(path)
    running = Running(rules, record)
    running.decide("a")
    running.add_node("late")
    pod = PodInfo(name="lost", namespace="n", uid="lost")
    manifest = {"metadata": {"name": "lost", "namespace": "n"}, "spec": {"containers": [{"name": "c"}]}}
    running.known.put_pod(pod.key, LivePod(pod, "1"), msgspec.json.encode(manifest))
    running.engine._begin(pod)
    running.decide("b")
    record.close()
    survey = Survey.of(InputFile(str(path), path.read_bytes()))
    assert survey.attempts.total() == 2
    changes = json.loads(path.read_text().splitlines()[2])["changes"]
    assert [each.get("pod") or each["object"]["metadata"]["name"] for each in changes] == ["n/a", "late"]


def test_a_file_that_cannot_be_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(KdslError, match="cannot write"):
        RunRecord(tmp_path / "no-folder" / "run.jsonl")
    ended = kdsl("run", "--shadow", "--record", str(tmp_path / "run.jsonl"))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--record goes without --shadow" in ended.stderr
