"""The rights that rules, plugins and options need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kdsl.cli.main import run

RULES = """kdsl 1
package a
predicate Room { require node.podCount < 5 else "full" }
queue Q { order by pod.priority desc }
profile p { scheduler "s" predicates { Room } queue Q }
"""
CONFIG = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [a.kdsl]}\nplugins: []\n"


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    assert run(["rbac", *options]) == 0
    text = capsys.readouterr().out
    roles = {each["kind"]: each.get("rules", []) for each in yaml.safe_load_all(text)}
    return text, roles


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    (tmp_path / "a.kdsl").write_text(RULES)
    (tmp_path / "kdsl.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return "--config", "kdsl.yaml"


def test_rules_that_read_little_need_little(
    capsys: pytest.CaptureFixture[str], small: tuple[str, str]
) -> None:
    text, roles = printed(capsys, *small, "--no-delegation", "--no-leader-elect")
    assert [(each["apiGroups"], each["resources"], each["verbs"]) for each in roles["ClusterRole"]] == [
        ([""], ["nodes", "pods"], ["list", "watch"]),
        ([""], ["pods"], ["get"]),
        ([""], ["nodes"], ["get"]),
        ([""], ["pods/binding"], ["create"]),
        ([""], ["pods/status"], ["patch"]),
        (["", "events.k8s.io"], ["events"], ["create", "patch"]),
    ]
    assert "Role" not in roles
    lines = text.splitlines()
    assert all(
        lines[at - 1].startswith("# ") for at, line in enumerate(lines) if line.startswith("- apiGroups")
    )


def test_a_shadow_reads_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], small: tuple[str, str]
) -> None:
    _, roles = printed(capsys, *small, "--shadow")
    verbs = {verb for each in roles["ClusterRole"] for verb in each["verbs"]}
    written = [each["resources"] for each in roles["ClusterRole"] if "create" in each["verbs"]]
    assert verbs == {"list", "watch", "create"} and written == [["tokenreviews"], ["subjectaccessreviews"]]
    assert "Role" not in roles


def test_an_extender_binds_and_reports_nothing(
    capsys: pytest.CaptureFixture[str], small: tuple[str, str]
) -> None:
    _, roles = printed(capsys, *small, "--extender", "--webhook-configuration", "mine", "--no-delegation")
    assert [(each["apiGroups"], each["resources"], each["verbs"]) for each in roles["ClusterRole"]] == [
        ([""], ["nodes", "pods"], ["list", "watch"]),
        ([""], ["pods"], ["get"]),
        ([""], ["nodes"], ["get"]),
        ([""], ["pods/binding"], ["create"]),
        (["admissionregistration.k8s.io"], ["mutatingwebhookconfigurations"], ["get", "patch"]),
    ]
    assert roles["ClusterRole"][-1]["resourceNames"] == ["mine"] and "Role" not in roles


@pytest.mark.parametrize("options", [("--extender", "--shadow"), ("--webhook-configuration", "a")])
def test_what_an_extender_does_not_do(capsys: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    assert run(["rbac", *options]) == 2
    assert "--extender excludes --shadow" in " ".join(capsys.readouterr().err.split())


def test_a_lease_without_leader_election_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rbac", "--lease", "own", "--no-leader-elect"]) == 2
    assert "--no-leader-elect excludes --lease" in " ".join(capsys.readouterr().err.split())


def test_the_shipped_rules_need_what_their_parts_say(capsys: pytest.CaptureFixture[str]) -> None:
    text, roles = printed(
        capsys, "--lease", "mine", "--name", "r", "--namespace", "n", "--service-account", "s"
    )
    for said in (
        "# replicasets: rule `PodTopologySpread`",
        "# pods make room for others: `LowerPriority`",
        "# volumes are bound before their pod: plugin `VolumeBinding`",
        "# annotations say which cards a pod gets",
    ):
        assert said in text
    assert roles["Role"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["mine"], "verbs": ["get", "update"]},
    ]  # fmt: skip
    binding = next(each for each in yaml.safe_load_all(text) if each["kind"] == "RoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    assert binding["metadata"] == {"name": "r", "namespace": "n"}


def test_a_name_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rbac", "--name", "a: b\n- c"]) == 2
    assert "is no name" in capsys.readouterr().err
