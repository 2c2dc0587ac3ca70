"""`kdsl diff … --replay`: records that cannot be used end with a diagnostic and its place."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from kdsl.explain.differences import Counts

from tests.cli.command_line import kdsl
from tests.test_examples import ROOT


def lines_of(record: str) -> list[str]:
    return gzip.decompress(Path(record).read_bytes()).decode().splitlines()


def with_fields(line: str, **fields: object) -> str:
    return json.dumps({**json.loads(line), **fields})


def changed(lines: list[str], number: int, line: str) -> list[str]:
    """Return the lines with the one of this number, from 1 on, replaced."""
    return [line if at == number else each for at, each in enumerate(lines, start=1)]


def refused(folder: Path, data: bytes, name: str = "bad.jsonl") -> str:
    """Replay a file in both modes; return what is said about it."""
    path = folder / name
    path.write_bytes(data)
    said = set()
    for mode in ("independent", "cumulative"):
        ended = kdsl("diff", "recorded", "default", "--replay", str(path), "--mode", mode)
        assert (ended.exit_code, ended.stdout) == (2, ""), ended
        assert "Traceback" not in ended.stderr
        said.add(ended.stderr.replace(str(path), name))
    assert len(said) == 1
    return said.pop()


NO_NODE = {"outcome": "placed", "node": ""}
PENDING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def on_a_node(line: str) -> str:
    tried = json.loads(line)["pod"]
    return with_fields(line, pod={**tried, "spec": {**tried["spec"], "nodeName": "x"}})


BAD_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": "none"}}


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (lambda lines: [], "bad.jsonl", "the record is empty"),
        (lambda lines: lines[1:], "bad.jsonl:1", "a record begins with the cluster"),
        (lambda lines: [*lines[:3], lines[0]], "bad.jsonl:4", "which is only its first line"),
        (lambda lines: [*lines, lines[-1]], f"bad.jsonl:{11}", "nothing may follow the last line"),
        (
            lambda lines: [*lines[:2], lines[3], lines[2]],
            "bad.jsonl:3",
            "this is decision 2, the next one is 1",
        ),
        (lambda lines: [*lines[:2], *lines[3:]], "bad.jsonl:3", "this is decision 2, the next one is 1"),
        (lambda lines: [*lines[:4], lines[4][:200]], "bad.jsonl:5", "it was cut off"),
        (lambda lines: changed(lines, 3, lines[2][:200]), "bad.jsonl:3", "it ends within a value"),
        (lambda lines: changed(lines, 3, ""), "bad.jsonl:3", "it is empty"),
        (lambda lines: changed(lines, 2, "[" * 100_000), "bad.jsonl:2", ""),
        (lambda lines: changed(lines, 2, "NaN"), "bad.jsonl:2", ""),
        (lambda lines: changed(lines, 1, lines[0].replace("v1alpha1", "v9", 1)), "bad.jsonl:1", "apiVersion"),
        (lambda lines: changed(lines, 2, with_fields(lines[1], kind="TraceX")), "bad.jsonl:2", "TraceX"),
        (lambda lines: changed(lines, 2, with_fields(lines[1], pod=7)), "bad.jsonl:2", "pod"),
        (lambda lines: changed(lines, 2, with_fields(lines[1], pod=BAD_POD)), "bad.jsonl:2#1", "containers"),
        (lambda lines: changed(lines, 2, with_fields(lines[1], decision={})), "bad.jsonl:2", "malformed"),
        (lambda lines: changed(lines, 2, with_fields(lines[1], dropped=-1)), "bad.jsonl:2", "decision 0"),
        (
            lambda lines: changed(lines, 10, with_fields(lines[9], cycles=3)),
            "bad.jsonl:10",
            "had 3 decisions",
        ),
        (
            lambda lines: changed(
                lines, 2, with_fields(lines[1], changes=[{"change": "place", "pod": "a/b", "node": "c"}])
            ),
            "bad.jsonl:2",
            "pod `a/b` is placed before it was tried",
        ),
        (
            lambda lines: changed(
                lines,
                2,
                with_fields(lines[1], changes=[{"change": "remove", "objectKind": "Node", "key": "x"}]),
            ),
            "bad.jsonl:2",
            "Node `x` is removed, and was not there",
        ),
        (
            lambda lines: changed(
                lines, 2, with_fields(lines[1], engine={**json.loads(lines[1])["engine"], "tieBreak": "dice"})
            ),
            "bad.jsonl:2",
            "there is no tie-break `dice`",
        ),
        (
            lambda lines: changed(
                lines,
                2,
                with_fields(lines[1], engine={**json.loads(lines[1])["engine"], "startIndex": 10**30}),
            ),
            "bad.jsonl:2",
            "startIndex, attempts and time",
        ),
        (
            lambda lines: changed(
                lines, 2, with_fields(lines[1], decision={**json.loads(lines[1])["decision"], **NO_NODE})
            ),
            "bad.jsonl:2",
            "is `placed`, and has no node",
        ),
        (
            lambda lines: changed(lines, 2, on_a_node(lines[1])),
            "bad.jsonl:2",
            "was tried, and is on node `x`",
        ),
        (
            lambda lines: changed(lines, 1, with_fields(lines[0], objects=[PENDING])),
            "bad.jsonl:1",
            "pod `default/p` has no node: a pod without a node is no part of the cluster",
        ),
        (
            lambda lines: changed(
                lines, 1, with_fields(lines[0], objects=[{"kind": "Node", "metadata": []}])
            ),
            "bad.jsonl:1",
            "",
        ),
        (
            lambda lines: changed(
                lines,
                1,
                with_fields(lines[0], objects=[{"apiVersion": "v1", "kind": "Secret", "metadata": {}}]),
            ),
            "bad.jsonl:1",
            "a record holds no Secret",
        ),
    ],
)
def test_a_record_that_cannot_be_used(
    record: str, tmp_path: Path, change: object, place: str, message: str
) -> None:
    lines = lines_of(record)
    assert len(lines) == 10 and callable(change)
    said = refused(tmp_path, "\n".join(change(lines)).encode())
    assert place in said and message in said


def test_bytes_that_are_no_record(tmp_path: Path, record: str) -> None:
    assert "cannot unpack" in refused(tmp_path, Path(record).read_bytes()[:-40], "bad.jsonl.gz")
    assert "bad.jsonl:1" in refused(tmp_path, b"\xff\xfe\x00")
    assert "bad.jsonl:1" in refused(tmp_path, b"\n\n")


def test_a_line_is_bounded(tmp_path: Path, record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdsl.records import lines

    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    said = refused(tmp_path, gzip.compress(b" " * 5_000_000), "bad.jsonl.gz")
    assert "bad.jsonl.gz:1" in said and "it is longer than 1,000 bytes" in said


def test_a_record_is_bounded_when_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdsl.cluster.read import files

    monkeypatch.setattr(files, "MAX_BYTES", 100_000)
    assert "larger than" in refused(tmp_path, gzip.compress(b"[" * 10_000_000), "bad.jsonl.gz")


def test_a_record_without_its_last_line_is_replayed_with_a_note(tmp_path: Path, record: str) -> None:
    path = tmp_path / "short.jsonl"
    path.write_text("\n".join(lines_of(record)[:5]))
    ended = kdsl("diff", "recorded", "default", "--replay", str(path))
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        "0 of 4 decisions differ",
        "note: the record has no last line: it was cut off, or its run has not ended",
    ]


@pytest.mark.parametrize(("last", "said"), [(2, "0 of 1 decision differs"), (3, "0 of 2 decisions differ")])
def test_a_record_of_one_decision(tmp_path: Path, record: str, last: int, said: str) -> None:
    path = tmp_path / "short.jsonl"
    path.write_text("\n".join(lines_of(record)[:last]))
    ended = kdsl("diff", "recorded", "default", "--replay", str(path))
    assert ended.stdout.splitlines()[0] == said


# ---- what the documentation shows --------------------------------------------------------------------------


def test_the_page_shows_what_happens(record: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^\$ kdsl (diff .+)\n((?:.+\n|\n)+?)```$", page, re.MULTILINE)
    args = [part.strip("'") for part in re.findall(r"'[^']*'|\S+", shown[0])]
    ended = kdsl(*(record if part == "run.jsonl.gz" else part for part in args))
    assert ended.stdout == shown[1]
    lines = lines_of(record)
    said = refused(tmp_path, "\n".join([*lines[:2], lines[3], lines[2]]).encode(), "run.jsonl")
    assert said.partition("\n\n")[0].rstrip() in page


def test_the_page_names_every_count() -> None:
    page = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    table = page[page.index("| name | decisions") :]
    table = table[: table.index("\n\n")]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(Counts().document())


def test_the_example_of_a_pull_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "examples" / "lab" / "pull-request" / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ kdsl (diff .+)\n((?:.+\n|\n)+?)```$", page, re.MULTILINE)
    commands = [[part.strip("'") for part in re.findall(r"'[^']*'|\S+", each)] for each, _ in shown]
    assert [kdsl(*args).stdout for args in commands] == [output for _, output in shown]
    assert [kdsl(*args).exit_code for args in commands] == [1, 0]
    quoted = "\n".join(line[2:] for line in page.splitlines() if line.startswith(">"))
    assert kdsl(*commands[0], "-o", "markdown").stdout.rstrip("\n") == quoted
