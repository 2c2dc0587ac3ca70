"""Commands show what went wrong, and their exit codes tell of it where they are asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import validate
from kdsl.report.schemas import output_schema

from tests.cli.command_line import kdsl

RULES = """kdsl 1
package t
queue Q { order by pod.queuedAt }
predicate Gpu { require int(node.labels[?"gpus"].orValue("4")) >= 0 else "no gpus" }
score Cheap {
  value int(node.labels[?"cost"].orValue("1000"))
  normalize reverse
}
profile p {
  scheduler "default-scheduler"
  queue Q
  predicates { Gpu }
  scores { Cheap weight 1 }
}
"""
NODES = {"n1": "cost: cheap", "n2": "cost: '5'", "n3": "gpus: many", "n4": "cost: dear"}
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(RULES)


def write(rules: str, nodes: dict[str, str] = NODES) -> None:
    Path("r.kdsl").write_text(rules)
    documents = [
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"
        'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n'
        for name, labels in nodes.items()
    ]
    documents += [POD.replace("NAME", name) for name in ("a", "b")]
    Path("c.yaml").write_text("---\n".join(documents))


OPTIONS = ("--cluster", "c.yaml", "--rules", "r.kdsl")
GPU, CHEAP = "cannot convert 'many' to int", "cannot convert 'cheap' to int"


def test_simulate_lists_the_rules_that_went_wrong() -> None:
    result = kdsl("simulate", *OPTIONS)
    assert result.exit_code == 0
    assert "2 pods placed, 0 pending; 2 rules went wrong" in result.stdout
    assert (
        "WENT WRONG  ATTEMPTS  NODES             ERROR                          AT\n"
        f"Gpu                2  n3                {GPU}   r.kdsl:4:25\n"
        f"Cheap              2  2 nodes (n1, n4)  {CHEAP}  r.kdsl:6:9\n"
    ) in result.stdout


def test_different_errors_at_one_place_are_told_apart_but_for_the_fourth() -> None:
    texts = ("one", "two", "three", "four", "five")
    write(RULES.replace('node.labels[?"gpus"]', 'pod.annotations[?"gpus"]'), {"n1": "a: b"})
    pods = [POD.replace("NAME", f"{each}, annotations: {{gpus: {each}}}") for each in texts]
    Path("p.yaml").write_text("---\n".join(pods))
    lines = kdsl("simulate", *OPTIONS, "--pods", "p.yaml").stdout.split("\n")
    rows = [line.split("  ") for line in lines if line.startswith("Gpu ")]
    told = {next(cell for cell in row[2:] if " " in cell.strip()).strip() for row in rows}
    assert told == {*(f"cannot convert '{each}' to int" for each in texts[:3]), "other errors"}
    assert sorted(row for line in lines if line.startswith("Gpu ") for row in line.split()[1:2]) == list(
        "1112"
    )


@pytest.mark.parametrize("command", [("simulate",), ("explain", "a")])
@pytest.mark.parametrize("output", ["text", "json"])
def test_the_exit_code_tells_of_faults_where_it_is_asked_to(command: tuple[str, ...], output: str) -> None:
    options = (*command, *OPTIONS, "-o", output, "--fail-on-error")
    assert kdsl(*options).exit_code == 1
    write(RULES, {"n1": "cost: '4'", "n2": "cost: '5'"})
    assert kdsl(*options).exit_code == 0


def test_documents_have_the_faults() -> None:
    result = kdsl("simulate", *OPTIONS, "-o", "json")
    document = json.loads(result.stdout)
    validate(document, output_schema("Simulation"))
    cheap = {
        "source": "Cheap",
        "message": CHEAP,
        "site": "r.kdsl:6:9",
        "nodes": 2,
        "firstNodes": ["n1", "n4"],
    }
    gpu = {"source": "Gpu", "message": GPU, "site": "r.kdsl:4:25", "nodes": 1, "firstNodes": ["n3"]}
    assert [each["faults"] for each in document["decisions"]] == [[gpu, cheap]] * 2
    assert document["summary"]["faults"] == [{**gpu, "attempts": 2}, {**cheap, "attempts": 2}]
    assert [each["error"] for each in document["decisions"][0]["rejections"]] == [True]


def test_explain_tells_errors_from_what_is_never_and_not_now() -> None:
    result = kdsl("explain", "a", *OPTIONS, "-o", "wide")
    assert f"went wrong: Gpu: {GPU} on n3 (r.kdsl:4:25)\n" in result.stdout
    assert f"went wrong: Cheap: {CHEAP} on 2 nodes (n1, n4) (r.kdsl:6:9)\n" in result.stdout
    assert "1 node of 4 rejected: 0 never, 1 error, 0 not now" in result.stdout
    row = next(line for line in result.stdout.splitlines() if line.startswith("n3 "))
    assert row.split()[:3] == ["n3", "Gpu", "error"]
    # What decided is the expression that has no value.
    assert f'int(node.labels[?"gpus"].orValue("4")) >= 0: {GPU}' in row
    document = json.loads(kdsl("explain", "a", *OPTIONS, "-o", "json").stdout)
    validate(document, output_schema("Explanation"))
    findings = document["findings"]
    assert (findings["never"], findings["errors"]) == (0, 1)
    assert [each["error"] for each in findings["reasons"]] == [True]
    assert [each["error"] for each in findings["nearest"][0]["rejected"]] == [True]


def test_an_error_that_ends_attempts_is_an_error_and_no_rejection() -> None:
    write(RULES.replace("score Cheap {", "score Cheap {\n  on error abort"))
    result = kdsl("simulate", *OPTIONS)
    reasons = result.stdout.partition("PENDING BY REASON")[2].partition("\n\n")[0]
    assert "error: running Score plugins" in reasons and "Gpu" not in reasons
    explained = kdsl("explain", "a", *OPTIONS)
    assert "pod default/a could not be decided: running Score plugins" in explained.stdout
    assert f"went wrong: Cheap: {CHEAP} on n1 (r.kdsl:7:9)" in explained.stdout


def test_errors_that_reject_are_a_reason_of_their_own_kind() -> None:
    write(RULES, {"n1": "gpus: many", "n2": "gpus: few"})
    result = kdsl("simulate", *OPTIONS)
    reasons = result.stdout.partition("PENDING BY REASON")[2].partition("\n\n")[0]
    assert [line.split() for line in reasons.splitlines()[1:]] == [
        ["error:", "rule", "Gpu", "(r.kdsl:4)", "2"]
    ]


TEST = """apiVersion: kdsl.dev/v1
kind: RuleTest
rules: [r.kdsl]
profile: p
fixtures:
  nodes:
    n1: {cpu: "4", labels: {cost: cheap}}
    n2: {cpu: "4", labels: {cost: "5"}}
    n3: {cpu: "4", labels: {gpus: many}}
  pods:
    a: {cpu: "1"}
tests:
- {name: c, pod: a, nodes: NODES, expect: EXPECT}
"""


@pytest.mark.parametrize(
    ("nodes", "expect", "mismatches"),
    [
        ("[n1, n2]", "{scores: {n1: {Cheap: 0}}}", [("nothing goes wrong", CHEAP)]),
        ("[n1, n2]", "{scores: {n1: {Cheap: 0}}, faults: [Cheap]}", []),
        ("[n1, n2]", "{scores: {n1: {Cheap: 0}}, faults: []}", [("[]", "[Cheap]")]),
        ("[n1, n2, n3]", "{picks: n1, faults: [Cheap]}", [("[Cheap]", "[Gpu, Cheap]")]),
        ("[n2]", "{picks: n2, faults: [Cheap]}", [("[Cheap]", "[]")]),
        ("[n1]", "{picks: n1}", [("nothing goes wrong", CHEAP)]),
        ("[n3]", "{rejected: {n3: {code: unresolvable}}}", [("nothing goes wrong", GPU)]),
        ("[n3]", f'{{rejected: {{n3: {{reason: "rule Gpu failed: {GPU} (r.kdsl:4:25)"}}}}}}', []),
    ],
)
def test_a_case_fails_where_something_goes_wrong_that_it_does_not_expect(
    nodes: str, expect: str, mismatches: list[tuple[str, str]]
) -> None:
    Path("t.test.yaml").write_text(TEST.replace("NODES", nodes).replace("EXPECT", expect))
    result = kdsl("test", "t.test.yaml", "--format", "json")
    assert result.exit_code == (1 if mismatches else 0), result.stdout + result.stderr
    (case,) = json.loads(result.stdout)["cases"]
    assert len(case["mismatches"]) == len(mismatches)
    for found, (expected, actual) in zip(case["mismatches"], mismatches, strict=True):
        assert (found["field"], found["expected"]) == ("faults", expected)
        assert actual in found["actual"]


def test_a_queue_case_fails_where_admission_goes_wrong() -> None:
    write(RULES.replace("queue Q {", 'queue Q { admit when int(pod.labels[?"x"].orValue("y")) > 0 else "no"'))
    case = '{name: c, queue: ["a@t=1"], expect: {order: []}}'
    Path("t.test.yaml").write_text(TEST.partition("- {name")[0] + f"- {case}\n")
    result = kdsl("test", "t.test.yaml")
    assert result.exit_code == 1
    assert "Q: cannot convert 'y' to int (r.kdsl:3:" in result.stdout


PREEMPTION = """
preemption Room {
  eligible when int(pod.labels[?"eligible"].orValue("1")) > 0 else "not eligible"
  victim when int(victim.labels[?"spare"].orValue("1")) > 0
  order by victim.priority desc
  candidates int(pod.labels[?"enough"].orValue("1"))
  choose by candidate.violations
}
"""
FULL = (
    'predicate Fit { require node.podCount < 1 else unschedulable "full" }\n'
    "queue Q { order by pod.priority desc, pod.queuedAt }\n"
)


def _pod(name: str, priority: int, labels: str = "", node: str = "") -> str:
    where = f"nodeName: {node}, " if node else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"
        f"spec: {{{where}priority: {priority}, containers: [{{name: c, image: i}}]}}\n"
    )


@pytest.mark.parametrize(
    ("labels", "victim", "message", "expr"),
    [
        ("eligible: maybe", "", "cannot convert 'maybe' to int", 'int(pod.labels[?"eligible"]'),
        ("", "spare: please", "cannot convert 'please' to int", 'int(victim.labels[?"spare"]'),
        ("enough: few", "", "cannot convert 'few' to int", 'int(pod.labels[?"enough"]'),
    ],
)
def test_what_goes_wrong_in_preemption_is_told_at_every_attempt(
    labels: str, victim: str, message: str, expr: str
) -> None:
    rules = (
        f"kdsl 1\npackage t\n{FULL}{PREEMPTION}score N {{ value 0 }}\n"
        'profile p {\n  scheduler "default-scheduler"\n  queue Q\n  predicates { Fit }\n'
        "  scores { N weight 1 }\n  preemption Room\n}\n"
    )
    Path("r.kdsl").write_text(rules)
    node = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
        'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n'
    )
    pods = (_pod("low", 0, victim, "n1"), _pod("x", 9, labels), _pod("y", 8, labels))
    Path("c.yaml").write_text("---\n".join((node, *pods)))
    result = kdsl("simulate", *OPTIONS, "-o", "json")
    assert result.exit_code == 0, result.stdout + result.stderr
    document = json.loads(result.stdout)
    line = next(at for at, text in enumerate(rules.splitlines(), 1) if expr in text)
    decisions = [each for each in document["decisions"] if each["pod"] in ("default/x", "default/y")]
    asked = [each for each in decisions if each["postFilter"] is not None]
    assert len(asked) > 1
    for decision in asked:
        assert [(each["source"], each["message"]) for each in decision["faults"]] == [("Room", message)]
        assert decision["faults"][0]["site"].startswith(f"r.kdsl:{line}:")


def test_a_team_that_cannot_tell_whether_a_pod_is_its_own_is_told_of() -> None:
    owns = 'team red {\n  owns int(pod.labels[?"red"].orValue("0")) > 0\n  files "red/*.kdsl"\n}\n'
    Path("r.kdsl").write_text(RULES + owns)
    Path("c.yaml").write_text(
        "---\n".join(
            [
                "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
                'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n',
                _pod("a", 0, "red: very"),
                _pod("b", 0, "red: very"),
                _pod("c", 0),
            ]
        )
    )
    Path("red").mkdir()
    Path("red/own.kdsl").write_text("kdsl 1\npackage red\n")
    result = kdsl("simulate", *OPTIONS, "--rules", "red", "-o", "json")
    document = json.loads(result.stdout)
    found = [
        [(each["source"], each["message"]) for each in d.get("faults", [])] for d in document["decisions"]
    ]
    wrong = [("red", "cannot convert 'very' to int")]
    assert found == [wrong, wrong, []]


DEVICE = """
device Other {
  kind "OTHER"
  record "t.io/record"
  inventory for id in ["a"] {
    set id = id
    set slots = 1
    set memory = int(node.annotations[?"memory"].orValue("1"))
    set cores = 1
  }
  request { set count = 1 }
  require 1 / int(node.annotations[?"part"].orValue("1")) == 1 else "Part"
  charge {
    set memory = 1
    set cores = 1
  }
  choose first
}
"""


def test_a_device_that_goes_wrong_rejects_its_nodes_and_is_told_of() -> None:
    Path("r.kdsl").write_text(
        f"kdsl 1\npackage t\n{DEVICE}queue Q {{ order by pod.queuedAt }}\nscore N {{ value 0 }}\n"
        'predicate P { require node.name != "x" else "x" }\n'
        'profile p {\n  scheduler "default-scheduler"\n  queue Q\n  predicates { P }\n'
        "  scores { N weight 1 }\n  devices Other\n}\n"
    )
    nodes = [
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n"
        'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n'
        for name, annotations in (("n1", "memory: much"), ("n2", "part: '0'"), ("n3", "memory: much"))
    ]
    pods = [
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
        'spec: {containers: [{name: c, image: i, resources: {limits: {t.io/gpu: "1"}}}]}\n'
        for name in ("a", "b")
    ]
    Path("c.yaml").write_text("---\n".join((*nodes, *pods)))
    for _ in range(2):
        document = json.loads(kdsl("simulate", *OPTIONS, "-o", "json").stdout)
        for decision in document["decisions"]:
            assert [(each["source"], each["message"], each["firstNodes"]) for each in decision["faults"]] == [
                ("Devices", "OTHER: annotation memory: cannot convert 'much' to int", ["n1", "n3"]),
                ("Devices", "OTHER: division by zero", ["n2"]),
            ]
