"""Tables and logs that mean harm: a diagnostic for each, in bounded memory, and no exception."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.cluster.api.names import is_dns_subdomain, is_label_value
from kdsl.lab.inputs.cells import RowError
from kdsl.lab.inputs.objects import label_value, object_name
from kdsl.lab.inputs.tables import MAX_ROW

from tests.lab.inputs.tables import NODE, read, titles

PODS = {
    "file": "pods.csv",
    "columns": {"id": "text", "n": "int?"},
    "name": "row.id",
    "labels": {"id": "row.id"},
}


def _titles(folder: Path, data: bytes, **more: object) -> list[str]:
    (folder / "pods.csv").write_bytes(data)
    return titles(read(folder, {**PODS, **more}))


def test_names_out_of_any_text(tmp_path: Path) -> None:
    table = 'id,n\n"=cmd|\' /C calc\'!A0",\n"a\0b\r\nc",\nÄÖ-Ü1,\n../../etc/passwd,\n'
    reading = read(tmp_path, PODS, pods_csv=table)
    assert [arrival.pod.name for arrival in reading.workload.arrivals] == [
        "cmd-c-calc-a0",
        "a-b-c",
        "1",
        "etc-passwd",
    ]
    assert [arrival.pod.labels["id"] for arrival in reading.workload.arrivals] == [
        "cmd-C-calc-A0",
        "a-b-c",
        "1",
        "etc-passwd",
    ]


@given(st.text(max_size=80))
def test_names_and_labels_are_valid_or_refused(text: str) -> None:
    try:
        assert is_dns_subdomain(object_name(text))
    except RowError as error:
        assert error.place == "name"
    try:
        assert is_label_value(label_value(text, "labels.a"))
    except RowError as error:
        assert "longer" in error.title


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]{1,9})?", fullmatch=True))
def test_valid_names_stay(text: str) -> None:
    assert object_name(text) == label_value(text, "x") == text


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (b"", "this table is empty: its first row names the columns"),
        (b'id,n\n"open,1\n', "line 2 is not CSV: unexpected end of data"),
        (b'id,n\n"a"b,1\n', "line 2 is not CSV: ',' expected after '\"'"),
        (b"id,n\n" + b"x" * 200_000 + b",1\n", "line 2 is not CSV: field larger than field limit (131072)"),
        (b"id,n\n" + b"x," * MAX_ROW, f"the row at line 2 is longer than {MAX_ROW:,} characters"),
        (b"id,n\n" + b'"\n",' * MAX_ROW, "is longer than"),
        (b"\x1f\x8bnonsense", "cannot unpack this file: unknown compression method"),
        (gzip.compress(b"id,n\na,1\n", mtime=0)[:-9], "cannot unpack this file: compressed file ended"),
        (b"id,id\na,1\n", "`pods.csv` has 2 columns `id`"),
        (b"id,n,id,id\na,1,b,c\n", "`pods.csv` has 3 columns `id`"),
    ],
)
def test_broken_tables(tmp_path: Path, data: bytes, title: str) -> None:
    assert any(title in each for each in _titles(tmp_path, data))


def test_a_column_that_is_there_twice_is_not_suggested_again(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_bytes(b"id,id,n\na,b,1\n")
    (found,) = read(tmp_path, PODS).diagnostics
    assert found.help == ("give each column a name of its own",)


def test_a_packed_line_without_end(tmp_path: Path) -> None:
    # 64 MiB of one line in 64 KiB: what is held is one row.
    data = gzip.compress(b"id,n\n" + b"x" * 2**26, mtime=0)
    assert _titles(tmp_path, data) == [f"the row at line 2 is longer than {MAX_ROW:,} characters"]


def test_bytes_that_are_no_text_matter_in_columns_that_are_read(tmp_path: Path) -> None:
    assert _titles(tmp_path, b"id,n,other\na,1,\xff\n") == []
    assert _titles(tmp_path, b"id,n\n\xff,1\n")[0] == "the cell is not UTF-8 text"


def test_a_binary_file_is_one_mistake(tmp_path: Path) -> None:
    assert _titles(tmp_path, b"\x7fELF\x00\x01\n\x00\n") == [
        "this is no table of text: its first row has a null byte"
    ]


def test_files_outside_are_no_tables(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    (tmp_path / "folder.csv").mkdir()
    expected = {
        "pipe.csv": "it is no regular file",
        "link.csv": "it is a link that leads out of the folder it stands in",
        "folder.csv": "is a directory",
        "none.csv": "no such file or directory",
        "nul\0.csv": "embedded null byte",
    }
    for name, reason in expected.items():
        (title,) = titles(read(tmp_path, {**PODS, "file": name}))
        assert title == f"cannot read `{name}`: {reason}"


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (b"[1]", "the row is not an object"),
        (b"{", "this is not JSON"),
        (b'{"id": ' + b"[" * 5000, "this is not JSON"),
        (b'{"id": [1]}', "the value is a list"),
        (b'{"id": {}}', "the value is an object"),
        (b'{"id": null}', "`` cannot become the name of an object"),
        (b'{"id": "a", "n": 1e999}', "this is not JSON"),
        (b'{"id": "a", "n": 123456789012345678901234567890}', "is not a whole number"),
        (b'{"id": "a", "n": true}', "`true` is not a whole number"),
        (b'{"id": "' + b"x" * MAX_ROW + b'"}', "is longer than"),
    ],
)
def test_hostile_json_lines(tmp_path: Path, line: bytes, title: str) -> None:
    (tmp_path / "pods.jsonl").write_bytes(line + b"\n")
    pods = {**PODS, "file": "pods.jsonl", "priority": "row.n"}
    assert any(title in each for each in titles(read(tmp_path, pods)))


@pytest.mark.parametrize("data", [b"{}", b"[1", b"", b"[" * 100_000])
def test_hostile_json_lists(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "pods.json").write_bytes(data)
    (title,) = titles(read(tmp_path, {**PODS, "file": "pods.json"}))
    assert title.startswith("this is not a list in JSON")


def test_a_row_cannot_stand_for_any_number_of_pods(tmp_path: Path) -> None:
    reading = read(
        tmp_path, {**PODS, "repeat": "row.n.orValue(1)"}, pods_csv="id,n\na,9223372036854775807\nb,-1\n"
    )
    assert not reading.workload.arrivals
    assert titles(reading)[0] == "9223372036854775807 is not a number of objects from 0 to 100,000"


def test_labels_that_the_api_refuses(tmp_path: Path) -> None:
    reading = read(
        tmp_path, {**PODS, "labels": {}}, {**NODE, "labels": {"x": f'"{"y" * 64}"'}}, pods_csv="id,n\na,\n"
    )
    assert titles(reading)[0].endswith("is longer than the value of a label, 63 characters")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.lists(st.binary(max_size=12), max_size=20).map(b",".join))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    for name in ("pods.csv", "pods.jsonl", "pods.json"):
        (tmp_path / name).write_bytes(b"id,n\n" + data if name == "pods.csv" else data)
        reading = read(tmp_path, {**PODS, "file": name, "priority": "row.n"})
        assert all(is_dns_subdomain(arrival.pod.name) for arrival in reading.workload.arrivals)
