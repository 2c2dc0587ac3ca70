"""Commands as a user runs them: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from kdsl import __version__
from kdsl.cli.main import COMMANDS

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def stable(text: str) -> str:
    """Cut what changes from run to run (how long things took) and with every rule edited (their digest)."""
    return re.sub(r"\n[\d,]+ pods/s, .*\n", "\n", re.sub(r"rules [0-9a-f]{12}", "rules DIGEST", text))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("simulate", ("simulate", *QUICKSTART)),
        ("simulate-summary", ("simulate", *QUICKSTART, "-o", "summary")),
        ("explain-pending", ("explain", "report", *QUICKSTART)),
        ("explain-placed", ("explain", "shop/web-1", *QUICKSTART)),
        ("explain-pending-wide", ("explain", "report", *QUICKSTART, "-o", "wide")),
        ("explain-placed-wide", ("explain", "shop/web-1", *QUICKSTART, "-o", "wide")),
        ("explain-standing", ("explain", "db-0", *QUICKSTART)),
        ("explain-node-wide", ("explain", "report", *QUICKSTART, "--node", "cpu-a1", "-o", "wide")),
        ("explain-node", ("explain", "report", *QUICKSTART, "--node", "cpu-a1")),
        ("explain-what-if", ("explain", "report", *QUICKSTART, "--what-if", "pod.requests.cpu=11")),
        ("plugins", ("plugins", "list")),
        ("help", ("--help",)),
    ],
)
def test_golden(name: str, args: Sequence[str]) -> None:
    result = kdsl(*args)
    assert result.exit_code == 0, result.stderr
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(stable(result.stdout), encoding="utf-8")
    assert stable(result.stdout) == golden.read_text(encoding="utf-8")


def test_version() -> None:
    result = kdsl("version")
    assert (result.exit_code, result.stdout) == (0, f"kdsl {__version__}\n")


def test_shipped_rules_are_clean() -> None:
    result = kdsl("check", "rules")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith("profiles\n")
    assert kdsl("fmt", "--check", "rules").exit_code == 0


def test_a_broken_rule_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(
        'kdsl 1\npackage a\n\npredicate P {\n  require node.lables.size() > 0\n    else "no"\n}\n'
    )
    result = kdsl("check", str(tmp_path))
    assert result.exit_code == 1
    assert "error[K0302]" in result.stdout or "error[K03" in result.stdout
    assert "did you mean `labels`?" in result.stdout
    concise = kdsl("check", "--format", "concise", str(tmp_path))
    assert concise.stdout.startswith(f"{tmp_path}/a.kdsl:5:")


def test_rules_may_import_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "team.kdsl").write_text(
        'kdsl 1\npackage team\nimport kubernetes.v1_36 as kubernetes\n\nprofile team extends kubernetes.default {\n  scheduler "team"\n}\n'
    )
    assert kdsl("check", str(tmp_path)).exit_code == 0
    result = kdsl("simulate", *QUICKSTART, "--rules", str(tmp_path), "--profile", "team", "-o", "json")
    assert result.exit_code == 0
    assert {decision["profile"] for decision in json.loads(result.stdout)["decisions"]} == {"team.team"}


def test_fmt_rewrites_checks_and_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1\npackage a\nparam   x:int=1 // one\n")
    assert kdsl("fmt", "--check", str(path)).exit_code == 1
    shown = kdsl("fmt", "--diff", str(path))
    assert shown.exit_code == 1 and "-param   x:int=1 // one" in shown.stdout
    assert kdsl("fmt", str(path)).exit_code == 0
    assert "param x: int = 1  // one" in path.read_text()
    assert kdsl("fmt", "--check", str(path)).exit_code == 0


def test_fmt_reads_standard_input() -> None:
    result = kdsl("fmt", "-", stdin="kdsl 1\npackage a\nparam x:int=1\n")
    assert result.exit_code == 0
    assert "param x: int = 1\n" in result.stdout
    assert kdsl("fmt", "-", stdin="kdsl 1\npredicate {\n").exit_code == 2
    assert kdsl("fmt", "-", "rules").exit_code == 2
    assert kdsl("fmt", "--check", "-", stdin=result.stdout).exit_code == 0
    shown = kdsl("fmt", "--diff", "-", stdin="kdsl 1\npackage a\nparam x:int=1\n")
    assert shown.exit_code == 1 and "-param x:int=1\n" in shown.stdout


def test_fmt_of_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1\npackage a\nparam x int\n")
    assert kdsl("fmt", str(path)).exit_code == 2
    assert path.read_text() == "kdsl 1\npackage a\nparam x int\n"


@pytest.mark.parametrize("before", [b"kdsl 1\r\npackage a\r\n", b"\xef\xbb\xbfkdsl 1\npackage a\n"])
def test_fmt_takes_out_what_windows_editors_put_in(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "a.kdsl"
    path.write_bytes(before)
    assert kdsl("check", str(path)).exit_code == 0
    assert kdsl("fmt", "--check", str(path)).exit_code == 1
    assert kdsl("fmt", str(path)).exit_code == 0
    assert path.read_bytes() == b"kdsl 1\npackage a\n"
    assert kdsl("fmt", "-", stdin=before).stdout == "kdsl 1\npackage a\n"


def test_fmt_goes_on_after_a_file_it_cannot_format(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_bytes(b"kdsl 1\npackage a\n// caf\xe9\n")
    (tmp_path / "b.kdsl").write_text("kdsl 1\npackage   a\n")
    result = kdsl("fmt", str(tmp_path), str(tmp_path / "missing.kdsl"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error[K0356]" in result.stderr and "error[K0355]" in result.stderr
    assert (tmp_path / "b.kdsl").read_text() == "kdsl 1\npackage a\n"
    latin = kdsl("fmt", "-", stdin=(tmp_path / "a.kdsl").read_bytes())
    assert (latin.exit_code, latin.stdout) == (2, "") and "<stdin>" in latin.stderr


def test_fmt_says_what_it_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*, dir: Path, prefix: str) -> tuple[int, str]:
        raise PermissionError(13, "Permission denied", str(dir))

    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage   a\n")
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    result = kdsl("fmt", str(tmp_path))
    assert result.exit_code == 2
    assert f"cannot write `{tmp_path}/a.kdsl`: permission denied" in result.stderr


def test_editing_a_rule_changes_the_next_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "rules", tmp_path / "rules")
    path = tmp_path / "rules" / "kubernetes" / "v1_36.kdsl"
    text = path.read_text()
    path.write_text(
        text.replace('else "Too many pods"', 'else "No room"').replace(
            '"node(s) were unschedulable"', '"node(s) are cordoned"'
        )
    )
    result = kdsl("simulate", *QUICKSTART, "--rules", str(tmp_path / "rules"))
    assert result.exit_code == 0
    assert "1 node(s) are cordoned" in result.stdout


def test_two_equal_runs_print_equal_decisions() -> None:
    first, second = (json.loads(kdsl("simulate", *QUICKSTART, "-o", "json").stdout) for _ in range(2))
    assert first["decisions"] == second["decisions"]
    assert (
        yaml.safe_load(kdsl("simulate", *QUICKSTART, "-o", "yaml").stdout)["decisions"] == first["decisions"]
    )


def test_placements_file(tmp_path: Path) -> None:
    path = tmp_path / "placements.txt"
    assert kdsl("simulate", *QUICKSTART, "--placements", str(path)).exit_code == 0
    lines = path.read_text().splitlines()
    assert "train gpu-b1 5 1" in lines and "report - 0 0" in lines
    assert len(lines) == 8


def test_a_placements_file_that_cannot_be_opened_costs_no_run(tmp_path: Path) -> None:
    result = kdsl("simulate", *QUICKSTART, "--placements", str(tmp_path / "nowhere" / "placements.txt"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "placements.txt`: no such file or directory" in result.stderr


def test_what_can_be_read_is_scheduled_and_the_rest_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: bad}\nstatus: {allocatable: {cpu: 1GB}}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: good}\nstatus: {allocatable: {cpu: '8', memory: 32Gi, pods: '10'}}\n"
    )
    result = kdsl("simulate", "--cluster", str(broken), "--pods", "examples/quickstart/pods.yaml")
    assert result.exit_code == 2
    assert f"{broken}#1" in result.stderr and "status.allocatable.cpu" in result.stderr
    assert "shop/web-1" in result.stdout and "good" in result.stdout


def test_an_unknown_profile_names_the_known_ones() -> None:
    result = kdsl("simulate", *QUICKSTART, "--profile", "binpaking", "-o", "json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean `binpacking`?" in result.stderr


def test_plugins_list_as_json() -> None:
    document = json.loads(kdsl("plugins", "list", "-o", "json").stdout)
    assert [(plugin["name"], plugin["active"]) for plugin in document["plugins"]] == [
        ("DynamicResources", True),
        ("Extender", False),
        ("VolumeBinding", True),
        ("default-binder", True),
    ]


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ("nobody", "no pod in the input is called `nobody`"),
        ("mgration", "did you mean `migration`?"),
        ("shop/mgration", "did you mean `shop/migration`?"),
        ("done", "pod `jobs/done` has finished"),
        ("web-2", "say which: `shop/web-2`, `jobs/web-2`"),
    ],
)
def test_explain_says_why_it_cannot(tmp_path: Path, pod: str, said: str) -> None:
    more = tmp_path / "more.yaml"
    more.write_text(
        "\n---\n".join(pod_text(name, phase) for name, phase in (("done", "Failed"), ("web-2", "")))
    )
    result = kdsl("explain", pod, *QUICKSTART, "--pods", str(more))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def pod_text(name: str, phase: str = "", **spec: str) -> str:
    """Write a pod of the namespace `jobs`."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "jobs"},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
            "status": {"phase": phase} if phase else {},
        }
    )


def test_a_pod_of_another_scheduler_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(pod_text("other", schedulerName="another"))
    result = kdsl("explain", "other", *QUICKSTART[:2], "--pods", str(path))
    assert result.exit_code == 0
    assert result.stdout == "pod jobs/other is skipped: no profile for scheduler another\n"
    wide = kdsl("explain", "other", *QUICKSTART[:2], "--pods", str(path), "-o", "wide").stdout
    assert re.search(r"\n\nno profile  rules [0-9a-f]{12}\n", wide)
    assert kdsl("explain", "other", *QUICKSTART[:2], "--pods", str(path), "--exit-code").exit_code == 1


def test_gaps_of_the_input_are_warnings(tmp_path: Path) -> None:
    path = tmp_path / "deployment.yaml"
    path.write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
    result = kdsl("simulate", "--cluster", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the input has no node and no pod" in result.stderr
    assert "1 Deployment" in result.stderr
    path.write_text(pod_text("lost"))
    result = kdsl("simulate", "--cluster", str(path))
    assert (result.exit_code, "1 pending" in result.stdout) == (0, True)
    assert "there is no node in the input" in result.stderr
    path.write_text(pod_text("lost", nodeName="gone"))
    result = kdsl("simulate", *QUICKSTART, "--pods", str(path))
    assert result.exit_code == 0
    assert "1 pod runs on nodes that are not in the input" in result.stderr
    assert "`jobs/lost` on `gone`" in result.stderr


def test_without_its_cluster_a_run_gives_no_answer(tmp_path: Path) -> None:
    """A misspelt path must not end in pods that find no node."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.json").write_text('{"apiVersion": "v1", "kind": "List", "items": [')
    for name, said in (
        ("nowhere.yaml", "cannot read this file"),
        ("empty", "this folder holds no YAML or JSON files"),
        ("cut.json", "this is not JSON"),
    ):
        for command in (("simulate",), ("explain", "report")):
            result = kdsl(*command, "--cluster", str(tmp_path / name), *QUICKSTART[2:])
            assert (result.exit_code, result.stdout) == (2, "")
            assert said in result.stderr
            assert "1 error\n" in result.stderr
            assert "K1114" not in result.stderr
    beside = kdsl("simulate", *QUICKSTART, "--pods", str(tmp_path / "nowhere.yaml"))
    assert (beside.exit_code, beside.stdout) == (2, "")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, 2),  # the folder is empty
        (b"", 1),
        (b"kdsl 1\npackage a\n// caf\xe9\n", 2),
        (b"kdsl 1\r\npackage a\r\n", 0),
        (b"\xef\xbb\xbfkdsl\t1\npackage\ta\n", 0),
    ],
)
def test_check_of_odd_files(tmp_path: Path, content: bytes | None, code: int) -> None:
    if content is not None:
        (tmp_path / "a.kdsl").write_bytes(content)
    result = kdsl("check", str(tmp_path), str(tmp_path))
    assert result.exit_code == code
    assert bool(result.stdout) == (code > 0)
    # Rules without a profile decide about no pod.
    assert kdsl("simulate", *QUICKSTART, "--rules", str(tmp_path)).exit_code == 2


def test_check_of_a_missing_path_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for args in ((), ("nowhere",)):
        result = kdsl("check", *args)
        assert result.exit_code == 2
        assert "no such file or directory" in result.stdout


def test_the_shipped_rules_can_be_found() -> None:
    result = kdsl("rules")
    assert result.exit_code == 0
    assert (Path(result.stdout.rstrip("\n")) / "kubernetes" / "v1_36.kdsl").is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = kdsl(name, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize("args", [("simulat",), ("simulate",), ("check", "--format", "xml"), ("explain",)])
def test_wrong_usage_exits_with_two(args: Sequence[str]) -> None:
    assert kdsl(*args).exit_code == 2


@pytest.mark.parametrize(
    "args",
    [
        *(("check", ""), ("lint", "rules", ""), ("fmt", "--check", ""), ("test", ""), ("convert", "")),
        *(("check", "--config", ""), ("diff", "", "rules"), ("eval", "1", "--pod", "")),
        *(("simulate", "--cluster", ""), ("show", "default", "--rules", "")),
    ],
)
def test_an_empty_path_is_not_the_current_folder(args: Sequence[str]) -> None:
    result = kdsl(*args)
    assert (result.exit_code, result.stdout) == (2, "")


def test_the_plan_of_one_profile() -> None:
    whole = kdsl("check", "--plan", "rules/kubernetes")
    one = kdsl("check", "--plan", "--profile", "kubernetes.v1_34.default_1_34", "rules/kubernetes")
    assert whole.exit_code == one.exit_code == 0
    titles = [line for line in whole.stdout.splitlines() if "profile kubernetes." in line]
    assert {line for line in one.stdout.splitlines() if "profile kubernetes." in line} == {
        line
        for line in titles
        if line.removesuffix(", in operations").endswith("kubernetes.v1_34.default_1_34")
    }
    unknown = kdsl("check", "--plan", "--profile", "default_1_33", "rules/kubernetes")
    assert (unknown.exit_code, "did you mean" in unknown.stderr) == (2, True)
    assert kdsl("check", "--profile", "default").exit_code == 2


def test_cards_that_nobody_asks_for_are_shown() -> None:
    cluster = ("simulate", "--cluster", "examples/gpu-sharing/cluster.yaml")
    shown = kdsl(*cluster, "--show", "cards")
    assert shown.exit_code == 0
    assert "4 cards, 0.0% allocated" in shown.stdout
    assert "cards" not in kdsl(*cluster).stdout
    without = kdsl(
        *cluster, "--show", "cards", "--rules", "examples/teams/platform", "--rules", "examples/teams/teams"
    )
    assert without.exit_code == 2
    assert "no profile of the rules has devices" in without.stderr


def test_rule_tests(tmp_path: Path) -> None:
    test = tmp_path / "a.test.yaml"
    body = (
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: kubernetes.v1_36.NodeName\n"
        "fixtures: {nodes: {a: {}, b: {}}, pods: {named: {nodeName: a}, free: {}}}\n"
        "tests:\n- {name: named, pod: named, expect: {feasible: [%s]}}\n"
    )
    test.write_text(body % "a")
    passed = kdsl("test", "-v", str(test))
    assert (passed.exit_code, passed.stdout) == (0, f"{test}\n  ok    named\n\n1 passed in 1 file\n")
    assert kdsl("test", str(test), "-k", "nothing").exit_code == 2
    assert kdsl("test", str(tmp_path / "none")).exit_code == 2
    covered = kdsl("test", "--cover=90", str(test))
    assert covered.exit_code == 1 and "3/4  predicate NodeName" in covered.stdout
    bare = kdsl("test", "--cover", str(test))
    assert bare.exit_code == 0 and "never false  applies when" in bare.stdout
    test.write_text(body % "b")
    failed = kdsl("test", "--format", "json", str(test))
    assert failed.exit_code == 1 and json.loads(failed.stdout)["failed"] == 1
    assert "<failure" in kdsl("test", "--format", "junit", str(test)).stdout
    test.write_text("kind: RuleTest\n")
    assert kdsl("test", str(test)).exit_code == 2
    (tmp_path / "empty").mkdir()
    assert kdsl("test", str(tmp_path / "empty")).exit_code == 2
    neither = kdsl("test", "--cover=most")
    assert neither.exit_code == 2 and "neither a percentage nor a file" in neither.stderr
