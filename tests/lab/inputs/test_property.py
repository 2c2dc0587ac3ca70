"""Mappings against a slow plain reimplementation: tables of events in any order, filtered, joined and grouped."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.inputs.tables import read

USERS = {"a": "ann", "b": "bob"}
MAPPING = {
    "file": "events.csv",
    "columns": {
        "time": {"type": "time", "unit": "ms"},
        "task": "text",
        "job": "text",
        "kind": "text",
        "cpu": "float?",
        "copies": "int",
    },
    "where": 'row.kind != "noise"',
    "join": {
        "owner": {
            "file": "jobs.csv",
            "columns": {"job": "text", "user": "text"},
            "key": "row.job",
            "equals": "row.job",
        }
    },
    "group": {
        "by": {"job": "row.job", "task": "row.task"},
        "order": "row.time",
        "values": {
            "created": {"min": "row.time", "where": 'row.kind == "new"'},
            "started": {"last": "row.time", "where": 'row.kind == "run"'},
            "ended": {"max": "row.time", "where": 'row.kind == "end"'},
            "cpu": {"max": "row.cpu"},
            "copies": {"first": "row.copies"},
            "total": {"sum": "row.copies"},
            "user": {"last": "owner.user"},
        },
        "where": "group.created.hasValue()",
    },
    "repeat": "group.copies",
    "name": 'group.job + "-" + group.task',
    "arrival": "group.created",
    "duration": "group.started.hasValue() && group.ended.hasValue() && group.ended.value() >= group.started.value()"
    " ? optional.of(group.ended.value() - group.started.value()) : optional.none()",
    "cpu": "group.cpu",
    "priority": "group.total",
    "labels": {"user": "group.user"},
}


class Event(NamedTuple):
    time: int
    task: str
    job: str
    kind: str
    cpu: str
    copies: int

    @property
    def cells(self) -> str:
        return ",".join(map(str, self))


events = st.builds(
    Event,
    st.integers(0, 5000),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["new", "new", "run", "end", "noise"]),
    st.sampled_from(["", "0", "0.1", "1.25", "2.0005"]),
    st.integers(0, 3),
)


def _milli(text: str) -> int:
    return ceil(Fraction(text) * 1000)


def _expected(rows: list[Event]) -> list[tuple[Any, ...]]:
    """The pods of a table, written out: one pass for each group."""
    kept = [row for row in rows if row.kind != "noise"]
    pods = []
    for group in dict.fromkeys((row.job, row.task) for row in kept):
        # Python sorts stably: events of one time are in the order of the file.
        mine = sorted((row for row in kept if (row.job, row.task) == group), key=lambda row: row.time)
        created = [row.time for row in mine if row.kind == "new"]
        if not created:
            continue
        started = [row.time for row in mine if row.kind == "run"]
        ended = [row.time for row in mine if row.kind == "end"]
        duration = None
        if started and ended and max(ended) >= started[-1]:
            duration = (max(ended) - started[-1]) / 1000
        cpus = [row.cpu for row in mine if row.cpu]
        for copy in range(mine[0].copies):
            name = f"{group[0]}-{group[1]}-{copy}"
            cpu = max(map(_milli, cpus), default=0)
            priority = sum(row.copies for row in mine)
            pods.append((min(created), name, duration, cpu, priority, USERS.get(group[0])))
    start = min((pod[0] for pod in pods), default=0)
    pods.sort(key=lambda pod: pod[0])
    return [((at - start) / 1000, *rest) for at, *rest in pods]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(events, max_size=25))
def test_a_mapping_gives_the_pods_of_its_table(tmp_path: Path, rows: list[Event]) -> None:
    table = "\n".join([",".join(Event._fields), *(row.cells for row in rows)]) + "\n"
    jobs = "job,user\n" + "".join(f"{job},{user}\n" for job, user in USERS.items())
    reading = read(tmp_path, MAPPING, events_csv=table, jobs_csv=jobs)
    assert not reading.diagnostics
    found = [
        (
            one.at,
            one.pod.name,
            one.duration,
            one.pod.requests.amount("cpu"),
            one.pod.priority,
            one.pod.labels.get("user"),
        )
        for one in reading.workload.arrivals
    ]
    assert found == _expected(rows)
