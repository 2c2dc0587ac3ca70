"""`kdsl plugins`: what is installed, what one brings, what is wrong with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.report.schemas import output_schema

from tests.cli.command_line import kdsl
from tests.hooks.test_installed import PLUGIN, Site

MANIFEST = """apiVersion: kdsl.dev/v1alpha1
kind: PluginManifest
doc: Where nodes stand.
requires: ">=0.1"
functions:
  distance: {call: "kdsl_racks.plugin:distance", args: [string, string], result: int, reads: [], pure: true, doc: how far}
fields:
  Node:
    rack: {call: "kdsl_racks.plugin:rack", type: string, cost: 3}
"""
CODE = f"{PLUGIN}\ndef distance(a, b): return 0\ndef rack(node): return ''\n"
RULES = "kdsl 1\npackage racks\n"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    site = Site(tmp_path / "site")
    site.install("racks", files={"plugin.py": CODE, "kdsl-plugin.yaml": MANIFEST, "rules/r.kdsl": RULES})
    yield site
    for name in set(sys.modules) - before:
        if name.startswith("kdsl_") and not name.startswith("kdsl_plugins"):
            del sys.modules[name]


def config(plugins: str) -> str:
    Path("kdsl.yaml").write_text(
        f"apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nplugins:\n- name: default-binder\n{plugins}"
    )
    return "kdsl.yaml"


def test_list_shows_what_is_installed_and_what_of_it_is_active() -> None:
    lines = [line.split() for line in kdsl("plugins", "list").stdout.splitlines()]
    assert ["racks", "no", "kdsl-racks", "1.2", "kdsl_racks.plugin:Plugin"] in lines
    assert ["racks", "kdsl-racks", "1.2", str(Path.cwd() / "site/kdsl_racks/rules")] in lines
    result = kdsl("plugins", "list", "--config", config("- name: racks\n"), "-o", "json")
    active = {each["name"]: each["active"] for each in json.loads(result.stdout)["plugins"]}
    assert active["racks"] is True
    assert not any(name.startswith("kdsl_racks") for name in sys.modules)


def test_describe_says_what_a_plugin_brings_without_importing_it() -> None:
    result = kdsl("plugins", "describe", "racks")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "racks: kdsl-racks 1.2, not active\n"
        "entry point kdsl_racks.plugin:Plugin, plugins.Racks in rule files\n"
        "needs kdsl >=0.1\n"
        "\n"
        "Where nodes stand.\n"
        "\n"
        "KIND      NAME                                         KNOWN WITH  READS       COST  WHAT\n"
        "function  plugins.Racks.distance(string, string): int  static      -           10    how far\n"
        "field     node.rack: string                            cluster     undeclared  3\n"
        "\n"
        "ARGUMENT  TYPE     REQUIRED  WHAT\n"
        "explode   boolean  no\n"
        "sizes     array    no\n"
    )
    assert not any(name.startswith("kdsl_racks") for name in sys.modules)


def test_describe_as_a_document() -> None:
    document = json.loads(kdsl("plugins", "describe", "racks", "-o", "json").stdout)
    assert document["kind"] == "Plugin"
    function, field = document["plugin"]["brings"]
    assert (function["name"], function["args"], function["type"]) == (
        "plugins.Racks.distance",
        ["string", "string"],
        "int",
    )
    assert (field["kind"], field["name"], field["declared"]) == ("field", "node.rack", False)
    assert document["plugin"]["args"]["type"] == "object"


@pytest.mark.parametrize("command", ["describe", "doctor"])
def test_a_plugin_that_is_not_installed(command: str) -> None:
    result = kdsl("plugins", command, "rakcs")
    assert result.exit_code == 2
    assert "plugin `rakcs` is not installed; did you mean `racks`?" in result.stderr


def test_the_doctor_finds_a_healthy_plugin_healthy() -> None:
    result = kdsl("plugins", "doctor", "default-binder")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 plugin examined, 0 findings\n"


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"plugin.py": "import no_such_module"}, "K1002"),
        ({"args.schema.json": "[]"}, "K1003"),
        ({"plugin.py": PLUGIN.replace("def permit", "def allow")}, "K1006"),
        ({"plugin.py": PLUGIN.replace("self, pod", "self, pood")}, "K1007"),
        ({"plugin.py": PLUGIN.replace("@hookimpl", "")}, "K1010"),
        ({"kdsl-plugin.yaml": "x: 1"}, "K1017"),
        ({"kdsl-plugin.yaml": MANIFEST.replace("kdsl_racks.plugin", "kdsl_sick.plugin")}, "K1019"),
        ({"kdsl-plugin.yaml": MANIFEST.replace(">=0.1", ">=99")}, "K1021"),
    ],
)
def test_the_doctor_finds(site: Site, files: dict[str, str], code: str) -> None:
    site.install("sick", files=files)
    result = kdsl("plugins", "doctor", "sick", "-o", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    Draft202012Validator(output_schema("Findings")).validate(document)
    assert code in [each["code"] for each in document["findings"]]


def test_what_only_a_configuration_makes_a_mistake_is_a_warning(site: Site) -> None:
    free = kdsl("plugins", "doctor", "racks")
    assert free.exit_code == 0
    assert "warning[K1020]: plugin `racks` does not say what `rack` read" in free.stdout
    refused = kdsl("plugins", "doctor", "racks", "--config", config("- name: racks\n"))
    assert refused.exit_code == 1
    assert "error[K1020]" in refused.stdout and "--> kdsl.yaml:5:9" in refused.stdout
    allowed = kdsl(
        "plugins", "doctor", "racks", "--config", config("- {name: racks, allowUndeclared: true}\n")
    )
    assert (allowed.exit_code, allowed.stdout) == (0, "")


def test_the_doctor_reports_rule_packages(site: Site) -> None:
    site.install("empty")
    site.install("thief", files={"rules/r.kdsl": RULES})
    result = kdsl("plugins", "doctor", "default-binder")
    assert result.exit_code == 1
    assert "error[K1022]: rule package `empty` of `kdsl-empty` is not there" in result.stdout
    assert "error[K0359]: two libraries hold a package `racks`" in result.stdout


@pytest.mark.parametrize(
    ("plugin", "place", "title"),
    [
        ("  args: {sizes: [1, two]}\n", "6:21", "argument does not fit plugin `racks`: 'two' is not of type 'integer'"),
        ("  args:\n    explode: 3\n", "7:14", "argument does not fit plugin `racks`: 3 is not of type 'boolean'"),
        ('  requires: ">=2"\n', "5:9", "plugin `racks` is kdsl-racks 1.2, required is >=2"),
    ],
)  # fmt: skip
def test_check_shows_the_line_of_the_configuration(plugin: str, place: str, title: str) -> None:
    (Path("site/kdsl_racks/kdsl-plugin.yaml")).unlink()
    result = kdsl("check", "--config", config(f"- name: racks\n{plugin}"), "--format", "concise")
    assert result.exit_code == 1
    assert f"kdsl.yaml:{place}: error" in result.stdout
    assert title in result.stdout


def test_commands_know_the_plugins_of_the_configuration() -> None:
    Path("rules").mkdir()
    Path("rules/r.kdsl").write_text(
        "kdsl 1\npackage team\n"
        'predicate P { require node.rack == "" else "x" }\nscore S { value 1 }\n'
        "queue Q { order by pod.queuedAt }\n"
        'profile p { scheduler "s" queue Q predicates { P } scores { S weight 1 } }\n'
    )
    path = config("- {name: racks, allowUndeclared: true}\n")
    for command in (
        ("check", "rules"),
        ("lint", "rules"),
        ("show", "p", "--rules", "rules"),
        ("diff", "rules", "rules"),
        ("diff", "p", "p", "--rules", "rules"),
    ):
        with_plugins = kdsl(*command, "--config", path)
        assert with_plugins.exit_code == 0, (command, with_plugins)
        assert kdsl(*command).exit_code != 0, command


def test_rule_tests_know_them_too() -> None:
    Path("p.kdsl").write_text('kdsl 1\npackage team\npredicate P { require node.rack == "" else "x" }\n')
    Path("p.test.yaml").write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: P\nrules: [p.kdsl]\n"
        "fixtures: {nodes: {n: {}}, pods: {a: {}}}\ntests: [{name: all, pod: a, expect: {feasible: [n]}}]\n"
    )
    result = kdsl("test", "--config", config("- {name: racks, allowUndeclared: true}\n"), "p.test.yaml")
    assert result.exit_code == 0, result
    assert kdsl("test", "p.test.yaml").exit_code == 2
