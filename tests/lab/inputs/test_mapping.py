"""Mappings: each field and step on tables of a few rows, and mistakes with their places in the YAML."""

from __future__ import annotations

import gzip
from pathlib import Path
from textwrap import dedent

import pytest
from kdsl.base.errors import InvalidInputError
from kdsl.lab.inputs.mapping_file import load_mapping
from kdsl.lab.inputs.reading import Reading
from kdsl.sim.openb import GPU_MILLI, MODEL_LABEL

from tests.cli.command_line import kdsl
from tests.lab.inputs.tables import NODE, mistakes, read, requests, titles, write_mapping

ID = {"file": "pods.csv", "columns": {"id": "text"}, "name": "row.id"}


def _at(reading: Reading) -> list[tuple[str, float]]:
    return [(arrival.pod.name, arrival.at) for arrival in reading.workload.arrivals]


# ---- fields ------------------------------------------------------------------------------------------------


def test_all_fields_of_a_pod(tmp_path: Path) -> None:
    pods = {
        **ID,
        "namespace": '"Team_A"',
        "labels": {"id": "row.id", "n": 3, "no": "optional.none()"},
        "annotations": {"note": 'row.id + " / é"'},
        "scheduler": '"mine"',
        "priority": 7,
        "nodeSelector": {"zone": '"west"'},
        "cpu": 1.5,
        "memory": '"1Gi"',
        "resources": {"example.com/nic": 2},
        "cards": 0.25,
        "models": '"T4|P100"',
    }
    (arrival,) = read(tmp_path, pods, pods_csv="id\nA/b\n").workload.arrivals
    pod = arrival.pod
    assert (pod.key, pod.uid, pod.scheduler_name, pod.priority) == ("team-a/a-b", "team-a/a-b", "mine", 7)
    assert dict(pod.labels) == {"id": "A-b", "n": "3", "openb.kdsl.dev/cards": "share"}
    assert dict(pod.annotations) == {"note": "A/b / é"}
    assert dict(pod.node_selector) == {"zone": "west"}
    expected = {"cpu": 1500, "memory": 2**30, "example.com/nic": 2, GPU_MILLI: 250}
    assert dict(pod.requests.amounts()) == expected
    assert [str(one) for one in pod.device_containers[0].requests] == ["example.com/nic", GPU_MILLI]
    (term,) = pod.required_node_affinity.terms if pod.required_node_affinity else ()
    assert term.labels[0].values == frozenset({"T4", "P100"})


def test_all_fields_of_a_node(tmp_path: Path) -> None:
    node = {
        "name": 12,
        "labels": {"rack": '"R 1"'},
        "annotations": {"a": "true"},
        "cpu": '"500m"',
        "memory": 1024.5,
        "pods": 20,
        "resources": {"example.com/nic": '"4"'},
        "cards": 2,
        "model": '"A 100"',
    }
    (facts,) = read(tmp_path, {"name": '"p"'}, node).workload.nodes
    assert facts.name == "12"
    assert dict(facts.labels) == {"rack": "R-1", MODEL_LABEL: "A-100"}
    assert dict(facts.annotations) == {"a": "true"}
    amounts = {"cpu": 500, "memory": 1025, "pods": 20, "example.com/nic": 4, GPU_MILLI: 2000}
    assert dict(facts.allocatable.amounts()) == amounts
    assert dict(facts.device_capacity) == {"example.com/nic": 4, GPU_MILLI: 2000}


@pytest.mark.parametrize(
    ("cores", "milli"),
    [
        ("0.1 + 0.2", 300),
        ("1.1", 1100),
        ("0.29", 290),
        ("1.0 / 3.0", 334),
        ("0", 0),
        ("2", 2000),
        ('"1500m"', 1500),
    ],
)
def test_cores_are_rounded_up_to_thousandths(tmp_path: Path, cores: str, milli: int) -> None:
    reading = read(tmp_path, {"name": '"p"', "cpu": cores})
    assert requests(reading)["p"].get("cpu", 0) == milli


@pytest.mark.parametrize(
    ("cards", "parts"), [("0.5", 500), ("0.0001", 1), ("1", 1000), ("8.0", 8000), ("0", 0)]
)
def test_cards_are_a_share_of_one_or_whole(tmp_path: Path, cards: str, parts: int) -> None:
    assert requests(read(tmp_path, {"name": '"p"', "cards": cards}))["p"].get(GPU_MILLI, 0) == parts


@pytest.mark.parametrize(
    ("field", "value", "title"),
    [
        ("cards", "1.5", "1.5 cards: a pod has a share of one card, or whole cards"),
        ("cards", "-1", "-1 is not a number of cards from 0 to 1024"),
        ("cpu", '"1x"', "`1x` is not a quantity"),
        ("memory", "-1.0", "-1.0 is not an amount"),
        ("memory", "1e300", "1e+300 is not an amount"),
        ("duration", "-2", "the duration is -2 seconds"),
        ("arrival", "1e300", "1e+300 seconds are out of range"),
        ("arrival", "optional.none()", "there is no arrival"),
        ("name", '"---"', "`---` cannot become the name of an object"),
        ("name", '"a".replace("a", "")', "`` cannot become the name of an object"),
        ("repeat", "100001", "100001 is not a number of objects from 0 to 100,000"),
        ("priority", "9223372036854775807", "priority must be"),
        ("name", 'string(10 / (size("") ))', "the expression has no value: division by zero"),
    ],
)
def test_values_that_no_pod_can_have(tmp_path: Path, field: str, value: str, title: str) -> None:
    reading = read(tmp_path, {"name": '"p"', field: value})
    if field == "priority":
        assert reading.diagnostics and not reading.workload.arrivals
    else:
        assert title in titles(reading)
        assert not reading.workload.arrivals


# ---- times -------------------------------------------------------------------------------------------------


def test_times_count_from_the_earliest(tmp_path: Path) -> None:
    pods = {
        "file": "pods.csv",
        "columns": {"id": "text", "start": "time", "end": "time?"},
        "name": "row.id",
        "arrival": "row.start",
        "duration": "row.end.hasValue() ? optional.of(row.end.value() - row.start) : optional.none()",
    }
    table = "id,start,end\nb,2026-11-01T00:00:10Z,2026-11-01T00:01:10Z\na,2026-11-01T00:00:00Z,\n"
    reading = read(tmp_path, pods, pods_csv=table)
    arrivals = [(one.pod.name, one.at, one.duration, one.pod.created_at) for one in reading.workload.arrivals]
    assert arrivals == [("a", 0.0, None, 0), ("b", 10.0, 60.0, 10 * 10**9)]
    assert reading.has_times


def test_pods_without_times_arrive_one_in_each_second(tmp_path: Path) -> None:
    reading = read(tmp_path, ID, pods_csv="id\nc\na\nb\n")
    assert _at(reading) == [("c", 0.0), ("a", 1.0), ("b", 2.0)]
    assert not reading.has_times


def test_equal_times_keep_the_order_of_rows(tmp_path: Path) -> None:
    pods = {**ID, "columns": {"id": "text", "at": "int"}, "arrival": "row.at"}
    reading = read(tmp_path, pods, pods_csv="id,at\nz,5\ny,5\nx,4\n")
    assert _at(reading) == [("x", 0.0), ("z", 1.0), ("y", 1.0)]


def test_changes_of_nodes(tmp_path: Path) -> None:
    nodes = {
        "file": "nodes.csv",
        "columns": {"at": "float", "name": "text", "what": "text", "cores": "int?"},
        "name": "row.name",
        "at": "row.at",
        "change": "row.what",
        "cpu": "row.cores",
        "memory": 1,
    }
    table = "at,name,what,cores\n9,a,remove,\n2,a,add,4\n2,b,add,8\n5,b,update,6\n6,b,update,6\n7,zz,remove,\n8,a,add,4\n"
    reading = read(tmp_path, {"name": '"p"'}, nodes, nodes_csv=table)
    workload = reading.workload
    assert [node.name for node in workload.nodes] == ["a", "b"]
    changes = [
        (each.at, each.name, each.facts and each.facts.allocatable.amount("cpu"))
        for each in workload.node_changes
    ]
    # The same facts again are no change.
    assert changes == [(3.0, "b", 6000), (7.0, "a", None)]
    assert titles(reading) == ["1 change is left out: the node is not there"]


# ---- steps -------------------------------------------------------------------------------------------------


def test_columns_that_where_does_not_read_are_read_after_it(tmp_path: Path) -> None:
    pods = {
        **ID,
        "columns": {"id": "text", "n": "int", "unused": "int"},
        "where": 'row.id != "b"',
        "priority": "row.n",
    }
    reading = read(tmp_path, pods, pods_csv="id,n,unused\na,1,?\nb,?,?\n")
    assert not reading.diagnostics
    assert [arrival.pod.priority for arrival in reading.workload.arrivals] == [1]


def test_a_row_repeats(tmp_path: Path) -> None:
    pods = {**ID, "columns": {"id": "text", "n": "int"}, "repeat": "row.n"}
    reading = read(tmp_path, pods, pods_csv="id,n\na,2\nb,0\nc,1\n")
    assert [name for name, _ in _at(reading)] == ["a-0", "a-1", "c-0"]


def test_groups_in_the_order_of_their_first_rows(tmp_path: Path) -> None:
    pods = {
        "file": "events.csv",
        "columns": {"t": "int", "id": "text", "kind": "text", "n": "float?"},
        "group": {
            "by": {"id": "row.id"},
            "order": "row.t",
            "values": {
                "first": {"first": "row.t"},
                "kind": {"last": "row.kind"},
                "ended": {"last": "row.t", "where": 'row.kind == "end"'},
                "least": {"min": "row.n"},
                "most": {"max": "row.n"},
                "sum": {"sum": "row.t"},
            },
            "where": 'group.id != "x"',
        },
        "name": "group.id",
        "arrival": "group.first",
        "priority": "group.sum",
        "deleted": "group.ended",
        "labels": {
            "kind": "group.kind",
            "least": "string(group.least.orValue(-1.0))",
            "most": "string(group.most.orValue(-1.0))",
        },
    }
    table = "t,id,kind,n\n4,b,run,2\n9,a,end,\n1,b,new,0.5\n3,a,new,\n7,b,end,1\n5,x,new,\n6,b,late,1\n"
    reading = read(tmp_path, pods, events_csv=table)
    found = [
        (one.pod.name, one.at, one.deleted, one.pod.priority, dict(one.pod.labels))
        for one in reading.workload.arrivals
    ]
    assert found == [
        ("b", 0.0, 6.0, 18, {"kind": "end", "least": "0.5", "most": "2"}),
        ("a", 2.0, 8.0, 12, {"kind": "end", "least": "1", "most": "1"}),
    ]


def test_a_joined_row_is_found_by_its_key(tmp_path: Path) -> None:
    pods = {
        **ID,
        "columns": {"id": "text", "job": "int"},
        "join": {
            "owner": {
                "file": "jobs.csv",
                "columns": {"job": "int", "user": "text", "since": "time"},
                "where": 'row.user != "ghost"',
                "key": "row.job",
                "equals": "row.job",
            }
        },
        "where": 'owner.user != optional.of("eve")',
        "labels": {"user": "owner.user"},
        "arrival": 'owner.since.orValue(timestamp("2026-01-01T00:00:00Z"))',
    }
    jobs = "job,user,since\n1,ann,2026-01-01T00:00:03Z\n2,eve,2026-01-01T00:00:00Z\n3,ghost,never\n"
    reading = read(tmp_path, pods, pods_csv="id,job\na,1\nb,2\nc,3\n", jobs_csv=jobs)
    assert not reading.diagnostics
    found = [(one.pod.name, one.at, dict(one.pod.labels)) for one in reading.workload.arrivals]
    assert found == [("c", 0.0, {}), ("a", 3.0, {"user": "ann"})]
    assert [(each.what, each.rows, each.filtered) for each in reading.ledgers] == [
        ("nodes", 1, 0),
        ("pods", 3, 1),
        ("owner", 3, 1),
    ]


def test_a_gzipped_table_and_json_lines(tmp_path: Path) -> None:
    (tmp_path / "pods.csv.gz").write_bytes(gzip.compress(b"id\na\n"))
    (tmp_path / "nodes.jsonl.gz").write_bytes(
        gzip.compress(b'{"n": "x", "c": {"cpu": [1, 2.5]}}\n\n{"n": 7}\n')
    )
    nodes = {
        "file": "nodes.jsonl.gz",
        "columns": {
            "n": "text",
            "cpu": {"type": "float?", "from": "c.cpu.-1"},
            "many": {"type": "count", "from": "c.cpu.*"},
        },
        "name": "row.n",
        "cpu": "row.cpu.orValue(1.0)",
        "memory": "row.many",
    }
    workload = read(tmp_path, {**ID, "file": "pods.csv.gz"}, nodes).workload
    assert [
        (each.name, each.allocatable.amount("cpu"), each.allocatable.amount("memory"))
        for each in workload.nodes
    ] == [
        ("x", 2500, 2),
        ("7", 1000, 0),
    ]


def test_a_table_without_a_header_and_with_another_delimiter(tmp_path: Path) -> None:
    pods = {**ID, "header": ["skip", "id"], "delimiter": ";"}
    reading = read(tmp_path, pods, pods_csv="1;a\n2;b\n")
    assert [name for name, _ in _at(reading)] == ["a", "b"]


def test_files_are_the_mapping_and_all_tables(tmp_path: Path) -> None:
    pods = {**ID, "join": {"j": {"file": "jobs.csv", "columns": {"a": "int"}, "key": "row.a", "equals": "1"}}}
    path = write_mapping(tmp_path, pods, NODE)
    assert [file.name for file in load_mapping(path).files] == ["mapping.yaml", "pods.csv", "jobs.csv"]


# ---- rows with errors --------------------------------------------------------------------------------------

TABLE = "id,n\na,1\nb,x\nc,\nd,1,2\na,1\n"


def test_rows_with_errors_are_errors_with_file_line_and_column(tmp_path: Path) -> None:
    pods = {**ID, "columns": {"id": "text", "n": "int"}, "priority": "row.n"}
    reading = read(tmp_path, pods, pods_csv=TABLE)
    file = tmp_path / "pods.csv"
    assert [(each.where, each.title) for each in reading.diagnostics] == [
        (f"{file}:3: n", "`x` is not a whole number"),
        (f"{file}:4: n", "the cell is empty, and the column is not optional"),
        (f"{file}:5", "this row has 3 fields, the header has 2"),
        (f"{file}:6: name", "a second pod is named `default/a`"),
        (str(file), "4 of 5 rows have errors, and `maxErrors` is 0"),
    ]
    assert all(each.severity == "error" for each in reading.diagnostics)
    assert reading.diagnostics[-1].help[:2] == (
        "1 row: `n`: the cell is not a whole number",
        "1 row: `n`: the cell is empty, and the column is not optional",
    )


def test_allowed_errors_are_warnings_and_counted(tmp_path: Path) -> None:
    pods = {**ID, "columns": {"id": "text", "n": "int"}, "priority": "row.n", "maxErrors": 4}
    reading = read(tmp_path, pods, pods_csv=TABLE)
    assert titles(reading)[-1] == "4 of 5 rows have errors and are left out"
    assert all(each.severity == "warning" for each in reading.diagnostics)
    assert [name for name, _ in _at(reading)] == ["a"]


def test_a_table_of_errors_is_not_read_to_its_end(tmp_path: Path) -> None:
    pods = {**ID, "columns": {"id": "text", "n": "int"}, "priority": "row.n", "maxErrors": 3}
    reading = read(tmp_path, pods, pods_csv="id,n\n" + "a,x\n" * 5000)
    assert titles(reading)[-1] == (
        "1,003 of 1,003 rows have errors, and `maxErrors` is 3; the rest of the table was not read"
    )
    assert len(reading.diagnostics) == 11


def test_a_missing_column_points_into_the_mapping(tmp_path: Path) -> None:
    pods = {**ID, "columns": {"id": "text", "coures": "int"}, "cpu": "row.coures"}
    reading = read(tmp_path, pods, pods_csv="id,cores\na,1\n")
    (found,) = reading.diagnostics
    assert found.title == "`pods.csv` has no column `coures`"
    assert found.help == ("did you mean `cores`?",)
    (other, _) = read(tmp_path, pods, pods_csv="id;cores\na;1\n").diagnostics
    assert other.help == ("its columns: `id;cores`", 'write `delimiter: ";"` if it parts the columns')
    assert found.span is not None and found.span.text == "coures"


# ---- mistakes in the mapping -------------------------------------------------------------------------------

HEAD = "apiVersion: kdsl.dev/v1\nkind: Mapping\nnodes: [{name: '\"n\"', cpu: 1, memory: 1}]\npods:\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- nme: 1\n  name: 1", [("5:3", "unknown key `pods[0].nme`")]),
        ("- name: row.x", [("5:13", "`row` has no field `x`")]),
        ("- name: 1 +", [("5:12", "expected an expression after `+`")]),
        ("- name: [1]", [("5:9", "`pods[0].name` must be text or a number or `true` or `false`")]),
        ("- name: true", [("5:9", "`name` must be text or a whole number, and this is `bool`")]),
        ("- name: 1\n  where: 2", [("6:10", "`where` must be true or false, and this is `int`")]),
        (
            "- name: 1\n  columns: {a: int}",
            [("6:3", "`columns` is about a table, and there is no `file` here")],
        ),
        (
            "- name: 1\n  file: x.csv\n  columns: {aB: int, a_b: int}",
            [("7:22", "`a_b` and `aB` are the same name: write one of them differently")],
        ),
        (
            "- name: 1\n  file: x.csv\n  columns: {a: {type: int, unit: s}, b: count}",
            [
                ("7:13", "`unit` is for times, and `a` is `int`"),
                ("7:38", "`count` counts values of a JSON row, and this file is CSV"),
            ],
        ),
        (
            "- name: 1\n  file: x.json\n  delimiter: ';'",
            [("7:3", "`delimiter` is about CSV, and this file is JSON")],
        ),
        (
            "- name: 1\n  group: {by: {a: 1}, values: {a: {first: 1}, b: {}, c: {min: true}}}",
            [
                ("6:32", "`a` is a name of `by`, too"),
                ("6:47", "`b` needs one of `first`, `last`, `min`, `max`, `sum`"),
                ("6:63", "`min` must be a value with an order, and this is `bool`"),
            ],
        ),
        ("- name: 1\n  group: {by: {a: 1}}\n  cpu: row.x", [("7:8", "unknown name `row`")]),
        (
            "- name: 1\n  join: {Row: {file: a.csv, columns: {a: int}, key: row.a, equals: '\"x\"'}}",
            [
                ("6:10", "the name `Row` is taken: name the table differently"),
                ("6:68", "`equals` is `string`, and `key` is `int`: no row has the other's key"),
            ],
        ),
        (
            "- name: 1\n  labels: {a b: 1}\n  resources: {-x: 2}",
            [
                ("6:12", "`a b` is no key here: one is like `team`, or `example.com/team`"),
                ("7:15", "`-x` is no key here: one is like `team`, or `example.com/team`"),
            ],
        ),
        ("- name: 1\n  maxErrors: -1", [("6:14", "`pods[0].maxErrors` must be at least 0")]),
        (
            "- name: 1\n  duration: timestamp(0)",
            [("6:13", "`duration` must be a duration, or a number of seconds, and this is `timestamp`")],
        ),
    ],
)
def test_mistakes_have_their_places(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    assert mistakes(tmp_path, HEAD + text + "\n") == expected


def test_a_mapping_without_mistakes_has_none(tmp_path: Path) -> None:
    assert mistakes(tmp_path, HEAD + "- name: 1\n") == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: &a [*a]", b"a: 1\n---\nb: 1\n", b"", b"[" * 200, b"1"])
def test_other_files_are_no_mappings(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_bytes(content)
    ended = kdsl("lab", "inspect", str(path))
    assert ended.exit_code == 2
    assert "error" in ended.stderr and "Traceback" not in ended.stderr


def test_a_wrong_type_of_a_column_is_told_all_types(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(HEAD + "- {name: 1, file: x.csv, columns: {a: integer}}\n", encoding="utf-8")
    said = kdsl("lab", "inspect", str(path)).stderr
    assert "help: write it like `text` or `int` or `float?` or `bool` or `time` or `count`\n" in said


def test_the_message_shows_the_place_in_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(HEAD + "- name: row.x\n", encoding="utf-8")
    ended = kdsl("lab", "inspect", str(path))
    assert ended.exit_code == 2
    expected = f"""
        error[K0302]: `row` has no field `x`
          --> {path}:5:13
           |
         5 | - name: row.x
           |             ^ not a field of `Row`
    """
    assert dedent(expected).strip() in ended.stderr


def test_a_table_in_place_of_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text("id,cores\na,1\n")
    with pytest.raises(InvalidInputError) as raised:
        load_mapping(tmp_path / "pods.csv")
    (found,) = raised.value.diagnostics
    assert found.title.endswith("pods.csv` is not a mapping: it has no keys")
    assert found.help == (
        "a mapping is a YAML file that begins with `apiVersion: kdsl.dev/v1` and `kind: Mapping`",
    )
