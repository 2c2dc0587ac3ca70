"""Predicates and scores of plugins in profiles: placed among rules, checked by name, at work in decisions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kdsl.app import DEFAULT_PLUGINS, CheckedRules, check_rules, find_profile
from kdsl.report.profile import profile_text

from tests.cli.command_line import kdsl
from tests.hooks.test_installed import Site

PLUGIN = """
import numpy as np
from kdsl.hooks import Code, Status, hookimpl

class Plugin:
    def __init__(self, args, context):
        self.wanted = args["node"]

    @hookimpl
    def filter_node(self, node):
        if node.name != self.wanted:
            return Status(Code.UNSCHEDULABLE, (f"not {self.wanted}",))
"""
SCORE = """
import numpy as np
from kdsl.hooks import hookimpl

class Plugin:
    def __init__(self, args, context):
        self.wanted = args["node"]

    @hookimpl
    def score(self, nodes):
        return np.array([100 if node.name == self.wanted else 0 for node in nodes.nodes()], dtype=np.int64)
"""
SCHEMA = '{"type": "object", "properties": {"node": {"type": "string"}}, "required": ["node"]}'
PROFILE = """kdsl 1
package team

import kubernetes.v1_36 as kubernetes

profile base extends kubernetes.default {
  scheduler "base"
  STATEMENTS
}
"""
CLUSTER = "\n---\n".join(
    f"""apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "10"}}}}"""
    for name in ("a", "b", "c")
)
POD = """apiVersion: v1
kind: Pod
metadata: {name: p, namespace: n}
spec: {schedulerName: base, containers: [{name: c, image: i}]}
"""
ACTIVE = {**DEFAULT_PLUGINS, "only-node": {"node": "b"}, "liked-node": {"node": "c"}}


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Install a predicate, a score, and a plugin that cannot be imported."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    before = set(sys.modules)
    site = Site(tmp_path / "site")
    schema = {"args.schema.json": SCHEMA}
    site.install("only-node", files={"plugin.py": PLUGIN, **schema})
    site.install("liked-node", files={"plugin.py": SCORE, **schema})
    site.install("broken", files={"plugin.py": "import nothing_of_this_name"})
    yield site
    for name in set(sys.modules) - before:
        if name.partition(".")[0].startswith("kdsl_") and name != "kdsl_plugins":
            sys.modules.pop(name, None)


def check(folder: Path, *statements: str, active: dict[str, object] | None = None) -> CheckedRules:
    folder = folder / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "team.kdsl").write_text(PROFILE.replace("STATEMENTS", "\n  ".join(statements)))
    return check_rules([folder], ACTIVE if active is None else active)


def only_finding(folder: Path, *statements: str) -> tuple[str, tuple[str, ...]]:
    (found,) = check(folder, *statements).diagnostics
    assert found.code == "K0307"
    assert found.span is not None
    return found.title, found.help


def test_a_plugin_stands_where_the_profile_puts_it(tmp_path: Path) -> None:
    rules = check(
        tmp_path,
        "add predicate plugins.OnlyNode before NodeName",
        "add score plugins.LikedNode weight 7",
    ).rules
    assert rules is not None
    profile = find_profile(rules, "base")
    names = [predicate.qualified for predicate in profile.predicates]
    assert names[names.index("plugins.OnlyNode") + 1].endswith(".NodeName")
    assert "    plugins.LikedNode weight 7" in profile_text(profile)


def test_it_can_be_taken_out_again(tmp_path: Path) -> None:
    more = '}\nprofile other extends base {\n  scheduler "other"\n  disable predicate OnlyNode'
    rules = check(tmp_path, "add predicate plugins.OnlyNode", more).rules
    assert rules is not None
    assert "only-node" not in [each.plugin for each in find_profile(rules, "other").predicates]
    assert "only-node" in [each.plugin for each in find_profile(rules, "base").predicates]


def test_an_unknown_one_gets_the_nearest_name(tmp_path: Path) -> None:
    found = only_finding(tmp_path, "add predicate plugins.OnlyNod")
    assert found == ("unknown predicate `plugins.OnlyNod`", ("did you mean `plugins.OnlyNode`?",))


def test_one_that_is_not_active_names_the_key_that_is_missing(tmp_path: Path) -> None:
    (found,) = check(tmp_path, "add predicate plugins.OnlyNode", active={}).diagnostics
    assert found.title == "plugin `only-node` is not active"
    assert found.help == ("add `- name: only-node` under `plugins` in the file of `--config`",)
    assert "kdsl_only_node" not in sys.modules


def test_one_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    found = only_finding(tmp_path, "add score plugins.OnlyNode weight 1")
    assert found == ("plugin `only-node` is no score", ("it can serve as a predicate",))
    (found_all,) = check(tmp_path, "add score plugins.OnlyNode weight 1").diagnostics
    assert found_all.label == "it has no hook `score` or `score_node`"


def test_it_cannot_be_tightened(tmp_path: Path) -> None:
    (found,) = check(
        tmp_path,
        "add predicate plugins.OnlyNode",
        'tighten plugins.OnlyNode { require node.name != "x" else unschedulable "x" }',
    ).diagnostics
    assert found.title == "`plugins.OnlyNode` is a plugin, which cannot be tightened"


def test_the_package_name_is_taken(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "mine.kdsl").write_text("kdsl 1\npackage plugins\n")
    assert [each.title for each in check(tmp_path).diagnostics] == ["the package name `plugins` is taken"]


def test_one_that_cannot_be_imported_is_left_to_the_configuration(tmp_path: Path) -> None:
    assert check(tmp_path, "add predicate plugins.Broken", active={"broken": {}}).diagnostics == ()


def config(folder: Path, only: str = "b") -> str:
    check(folder, "add predicate plugins.OnlyNode before NodeName", "add score plugins.LikedNode weight 7")
    (folder / "cluster.yaml").write_text(f"{CLUSTER}\n---\n{POD}")
    (folder / "kdsl.yaml").write_text(
        "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [rules]}\nprofiles: [base]\n"
        f"plugins:\n- name: default-binder\n- {{name: only-node, args: {{node: {only}}}}}\n"
        "- {name: liked-node, args: {node: c}}\n"
    )
    return str(folder / "kdsl.yaml")


@pytest.mark.parametrize("only", ["a", "b"])
def test_it_decides(tmp_path: Path, only: str) -> None:
    path = config(tmp_path, only)
    result = kdsl(
        "explain", "n/p", "--config", path, "--cluster", str(tmp_path / "cluster.yaml"), "-o", "json"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    decision = json.loads(result.stdout)["decision"]
    assert decision["node"] == only
    assert f"not {only}" in result.stdout
    assert '"only-node"' in result.stdout


def test_show_and_check_take_the_configuration(tmp_path: Path) -> None:
    path = config(tmp_path)
    shown = kdsl("show", "base", "--config", path)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "plugins.OnlyNode" in shown.stdout
    assert kdsl("check", "--config", path).exit_code == 0
    assert kdsl("check", str(tmp_path / "rules")).exit_code == 1
