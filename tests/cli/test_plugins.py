"""`kdsl plugins`: what is installed, what one brings, what is wrong with it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl import configured
from kdsl.check.model.traversal import expressions_of
from kdsl.check.model.typed import TypedExpr
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


VILE = """
import sys
from kdsl.hooks import hookimpl

class Meta(type):
    def __dir__(cls):
        raise SystemExit(0)

class Plugin(metaclass=Meta):
    def __init__(self, args, context):
        pass

    def __dir__(self):
        raise SystemExit(0)

    @hookimpl
    def permit(self, pod):
        return None

def distance(a, b): return 0
def rack(node): return ''
"""


def test_no_command_on_plugins_ends_where_one_of_them_says(site: Site) -> None:
    site.install("abstract", files={"plugin.py": ABSTRACT})
    site.install("gone", files={"plugin.py": "raise SystemExit(0)"})
    manifest = MANIFEST.replace("kdsl_racks", "kdsl_vile").replace("Node:", "Pod:")
    site.install("vile", files={"plugin.py": VILE, "kdsl-plugin.yaml": manifest})
    site.install("weird", files={"args.schema.json": "[" * 100_000})
    points = site.root / "kdsl_weird-1.2.dist-info/entry_points.txt"
    points.write_text("[kdsl]\nweird = not a module!!\n")
    listed = kdsl("plugins", "list")
    assert listed.exit_code == 0 and "vile" in listed.stdout
    for name in ("gone", "vile", "weird", "abstract"):
        described = kdsl("plugins", "describe", name)
        assert described.exit_code == 0 and described.stdout.startswith(f"{name}: ")
    found = kdsl("plugins", "doctor", "-o", "json")
    assert found.exit_code == 1
    told = {(each["code"], each["where"]) for each in json.loads(found.stdout)["findings"]}
    assert {
        ("K1002", "plugins.gone"),
        ("K1002", "plugins.weird"),
        ("K1005", "plugins.abstract"),
        ("K1007", "plugins.vile"),
    } <= told


NOISY = """
import sys
from kdsl.hooks import Code, Status, hookimpl

print("noise of the import")

class Plugin:
    def __init__(self, args, context):
        print("noise of the constructor")
        sys.stdout.write("more of it\\n")
        sys.stdout.buffer.write(b"bytes\\n")

    @hookimpl
    def reserve(self, pod):
        print("noise of a hook")

    @hookimpl
    def filter_feasible(self, nodes):
        print("noise on a thread")

def distance(a, b):
    print("noise of a function")
    return 0

def rack(node):
    return ""
"""
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c}]}
"""


def test_what_a_plugin_prints_is_no_part_of_the_answer(site: Site) -> None:
    site.install("noisy", files={"plugin.py": NOISY})
    doctor = kdsl("plugins", "doctor", "noisy", "-o", "json")
    assert "Findings" in json.loads(doctor.stdout)["kind"]
    assert "noise of the import" in doctor.stderr
    Path("cluster.yaml").write_text(CLUSTER)
    ran = kdsl("simulate", "--cluster", "cluster.yaml", "--config", config("- name: noisy\n"), "-o", "json")
    assert (ran.exit_code, json.loads(ran.stdout)["summary"]["placed"]) == (0, 1)
    for noise in ("of the constructor", "of a hook", "on a thread"):
        assert f"noise {noise}" in ran.stderr
    assert "more of it" in ran.stderr and "bytes" in ran.stderr


@pytest.mark.parametrize(
    ("where", "code"),
    [("import sys; sys.exit(0)", "K1002"), ("def __init__(self, *all): raise SystemExit(0)", "K1005")],
)
def test_no_plugin_ends_a_run_as_if_all_were_well(site: Site, where: str, code: str) -> None:
    text = where if where.startswith("import") else f"class Plugin:\n    {where}\n"
    site.install("leaver", files={"plugin.py": text})
    Path("cluster.yaml").write_text(CLUSTER)
    ran = kdsl("simulate", "--cluster", "cluster.yaml", "--config", config("- name: leaver\n"))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert f"error[{code}]: plugin `leaver` cannot be " in ran.stderr and "SystemExit: 0" in ran.stderr


LEAVER = """
import time
from kdsl.hooks import hookimpl

class Plugin:
    def __init__(self, args, context): pass

    @hookimpl
    def permit(self, pod):
        raise SystemExit(0)
"""


def test_a_hook_that_leaves_is_told_with_the_pod(site: Site) -> None:
    site.install("leaver", files={"plugin.py": LEAVER})
    Path("cluster.yaml").write_text(CLUSTER)
    ran = kdsl("simulate", "--cluster", "cluster.yaml", "--config", config("- name: leaver\n"))
    assert ran.exit_code == 0
    assert 'running Permit plugin "leaver": SystemExit: 0' in ran.stdout


@pytest.mark.parametrize(("limit", "is_told"), [("1ms", True), ("1h", False), ("0s", False)])
def test_a_slow_hook_is_a_warning_and_changes_nothing(site: Site, limit: str, is_told: bool) -> None:
    slow = LEAVER.replace("raise SystemExit(0)", "time.sleep(0.002)")
    site.install("sloth", files={"plugin.py": slow})
    Path("cluster.yaml").write_text(CLUSTER)
    path = config(f"- name: sloth\nlimits: {{slowHook: {limit}, hook: 0s}}\n")
    for command in (("simulate",), ("explain", "a")):
        ran = kdsl(*command, "--cluster", "cluster.yaml", "--config", path)
        assert ran.exit_code == 0
        assert ("warning[K1024]: plugin `sloth` was slow in `permit`: " in ran.stderr) is is_told
        assert "sloth" not in ran.stdout


ABSTRACT = """
import abc

class Plugin(abc.ABC):
    @abc.abstractmethod
    def permit(self): ...
"""


def test_what_only_a_configuration_makes_a_mistake_is_a_warning(site: Site) -> None:
    free = kdsl("plugins", "doctor", "racks")
    assert free.exit_code == 0
    assert "warning[K1020]: plugin `racks` does not declare the reads of `rack`" in free.stdout
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
        ("  args: {sizes: [1, two]}\n", "6:21", "the argument `sizes[1]` of plugin `racks` must be a whole number"),
        ("  args:\n    explode: 3\n", "7:14", "the argument `explode` of plugin `racks` must be `true` or `false`"),
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
    active = config("- {name: racks, allowUndeclared: true}\n")
    # The plugin's `permit` answers nonsense: a case says so, or fails.
    wrong = kdsl("test", "--config", active, "p.test.yaml")
    assert (wrong.exit_code, "`permit` must return None, Status or Wait" in wrong.stdout) == (1, True), wrong
    case = Path("p.test.yaml").read_text()
    Path("p.test.yaml").write_text(case.replace("feasible: [n]", "feasible: [n], faults: [racks]"))
    result = kdsl("test", "--config", active, "p.test.yaml")
    assert result.exit_code == 0, result
    assert kdsl("test", "p.test.yaml").exit_code == 2


def test_a_plugin_that_cannot_be_registered_is_the_only_error(site: Site) -> None:
    site.install("lost", files={"plugin.py": "class Plugin:\n    def __init__(self, args, context): pass"})
    Path("cluster.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    found = kdsl("simulate", "--config", config("- {name: lost}\n"), "--cluster", "cluster.yaml")
    assert found.exit_code == 2 and "plugin `lost` has no hooks" in found.stderr
    assert "1 error\n" in found.stderr, found.stderr


def test_a_plugin_that_no_profile_adds_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "\n    @hookimpl\n    def filter_node(self, state, pod, node): return None"
    body += "\n    @hookimpl\n    def score_node(self, state, pod, node): return 1"
    head = "from kdsl.hooks import hookimpl\nclass Plugin:\n    def __init__(self, args, context): pass"
    for name in ("judge", "jury"):
        site.install(name, files={"plugin.py": f"{head}{body}\n"})
    walks: list[object] = []

    def counted(values: object) -> Iterator[TypedExpr]:
        walks.append(values)
        return expressions_of(values)

    monkeypatch.setattr(configured, "expressions_of", counted)
    found = kdsl("check", "--config", config("- {name: judge}\n- {name: jury}\n"))
    assert found.exit_code == 0
    for name in ("judge", "jury"):
        assert f"no profile in use adds the predicate or score of plugin `{name}`" in found.stdout
    assert "`filter_node`, `score_node` will not run" in found.stdout
    assert len(walks) == 1
    path = config("- {name: judge}\n")
    Path("rules").mkdir()
    Path("rules/r.kdsl").write_text(
        "kdsl 1\npackage r\nimport kubernetes.v1_36 as kubernetes\nprofile p extends kubernetes.default {\n"
        '  scheduler "s"\n  add score plugins.Judge weight 1\n}\n'
    )
    found = kdsl("check", "--config", path, "rules")
    assert (found.exit_code, "will not run" in found.stdout) == (0, False), found


@pytest.mark.parametrize("use", ["node.rack", "rackOf(node)", 'string(plugins.Racks.distance("a", "b"))'])
def test_a_plugin_whose_functions_are_used_need_not_stand_in_a_profile(site: Site, use: str) -> None:
    hook = "\n    @hookimpl\n    def filter_node(self, state, pod, node): return None\n"
    code = CODE.replace("\ndef distance", f"{hook}\ndef distance", 1)
    (site.root / "kdsl_racks/plugin.py").write_text(code)
    Path("rules").mkdir()
    rules = """kdsl 1
package r
import kubernetes.v1_36 as kubernetes
fn rackOf(one: Node): string = one.rack
predicate P { require USE != "x" else "x" }
profile p extends kubernetes.default {
  scheduler "s"
  add predicate P
}
"""
    path = config("- {name: racks, allowUndeclared: true}\n")
    for text, is_told in ((rules.replace("USE", use), False), (rules.replace("USE", "node.name"), True)):
        Path("rules/r.kdsl").write_text(text)
        found = kdsl("check", "--config", path, "rules")
        assert (found.exit_code, "will not run" in found.stdout) == (0, is_told), found


def test_none_of_two_plugins_of_one_name_is_described(site: Site) -> None:
    site.install("racks", distribution="kdsl-rival")
    described = kdsl("plugins", "describe", "racks")
    assert (described.exit_code, described.stdout) == (2, "")
    said = " ".join(described.stderr.split())
    assert "plugin `racks` is offered by" in said and "uninstall all but one of them" in said


DECIDES = """from kdsl.hooks import Code, Status, hookimpl

class Plugin:
    def __init__(self, args, context): pass

    @hookimpl
    def pre_filter(self, state, pod):
        state.values["mine"] = pod.name

    @hookimpl
    def filter_node(self, node):
        return Status(Code.UNSCHEDULABLE, ("too hot", "too loud"))

    @hookimpl
    def decided_by(self, state, node):
        return ANSWER
"""
HOT = """kdsl 1
package hot
import kubernetes.v1_36

profile hot extends kubernetes.v1_36.default {
  scheduler "hot"
  add predicate plugins.Racks
}
"""
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {schedulerName: hot, containers: [{name: c}]}\n"


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            "{'too hot': ['38 C for ' + state.values['mine'], 'at \\x1b[31mnoon']}",
            [
                "1 node: racks: too hot (not now)",
                "    n: 38 C for p; at \\x1b[31mnoon",
                "1 node: racks: too loud (not now)",
            ],
        ),
        ("None", ["1 node: racks: too hot (not now)", "1 node: racks: too loud (not now)"]),
        (
            "{'too hot': ['', ''], 'too loud': ['', '90 dB']}",
            [
                "1 node: racks: too hot (not now)",
                "1 node: racks: too loud (not now)",
                "    n: 90 dB",
            ],
        ),
        (
            "{'too hot': '38 C'}",
            [
                '    n: unknown: running DecidedBy plugin "racks": TypeError: what decided is str: give a list,'
            ],
        ),
        ("1 / 0", ['    n: unknown: running DecidedBy plugin "racks": ZeroDivisionError: division by zero']),
    ],
)
def test_a_plugin_explains_its_rejections(site: Site, answer: str, lines: list[str]) -> None:
    for name, text in {"hot.kdsl": HOT, "nodes.yaml": NODE, "pods.yaml": POD}.items():
        Path(name).write_text(text)
    (site.root / "kdsl_racks" / "plugin.py").write_text(DECIDES.replace("ANSWER", answer))
    (site.root / "kdsl_racks" / "kdsl-plugin.yaml").unlink()
    names = ["VolumeBinding", "DynamicResources", "racks"]
    given = config("".join(f"- name: {name}\n" for name in names))
    world = ("--cluster", "nodes.yaml", "--pods", "pods.yaml", "--rules", "hot.kdsl", "--config", given)
    result = kdsl("explain", "p", *world)
    assert result.exit_code == 0, result.stderr
    assert [line for line in dict.fromkeys(result.stdout.splitlines()) if line in lines] == lines
    assert "    n:" not in [line.rstrip() for line in result.stdout.splitlines()]
    document = json.loads(kdsl("explain", "p", *world, "-o", "json").stdout)
    Draft202012Validator(output_schema("Explanation")).validate(document)


def test_a_plugin_prepares_its_explanations_once(site: Site) -> None:
    nodes = "---\n".join(NODE.replace("name: n", f"name: n{at}") for at in range(3))
    for name, text in {"hot.kdsl": HOT, "nodes.yaml": nodes, "pods.yaml": POD}.items():
        Path(name).write_text(text)
    code = DECIDES.replace('state.values["mine"] = pod.name', 'state.values["mine"] = node_names.append(1)')
    code = code.replace("class Plugin", "node_names = []\n\nclass Plugin", 1)
    code = code.replace("ANSWER", "{'too hot': [f'call {len(node_names)}'], 'too loud': []}")
    (site.root / "kdsl_racks" / "plugin.py").write_text(code)
    (site.root / "kdsl_racks" / "kdsl-plugin.yaml").unlink()
    names = ["VolumeBinding", "DynamicResources", "racks"]
    given = config("".join(f"- name: {name}\n" for name in names))
    world = ("--cluster", "nodes.yaml", "--pods", "pods.yaml", "--rules", "hot.kdsl", "--config", given)
    document = kdsl("explain", "p", *world, "-o", "json").stdout
    calls = re.findall(r"call (\d+)", document)
    assert len(calls) >= 3
    assert len(set(calls)) == 1


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("pre_filter(self, state, pod)", 'rejected by plugin "racks" without a reason'),
        ("filter_node(self, node)", '1 rejected by plugin "racks" without a reason'),
        ("reserve(self, pod)", '1 rejected by plugin "racks" without a reason'),
        ("permit(self, pod)", '1 rejected by plugin "racks" without a reason'),
    ],
)
def test_a_rejection_without_a_reason_names_the_plugin(site: Site, hook: str, why: str) -> None:
    for name, text in {"hot.kdsl": HOT, "nodes.yaml": NODE, "pods.yaml": POD}.items():
        Path(name).write_text(text)
    code = f"""from kdsl.hooks import Code, Status, hookimpl

class Plugin:
    def __init__(self, args, context): pass

    @hookimpl
    def pre_filter(self, state): pass

    @hookimpl
    def {hook}:
        return Status(Code.UNSCHEDULABLE)
"""
    (site.root / "kdsl_racks" / "plugin.py").write_text(code)
    (site.root / "kdsl_racks" / "kdsl-plugin.yaml").unlink()
    names = ["VolumeBinding", "DynamicResources", "racks"]
    given = config("".join(f"- name: {name}\n" for name in names))
    world = ("--cluster", "nodes.yaml", "--pods", "pods.yaml", "--rules", "hot.kdsl", "--config", given)
    (line,) = (each for each in kdsl("simulate", *world).stdout.splitlines() if each.startswith("default/p "))
    assert f"0/1 nodes are available: {why}." in line


def test_a_plugin_whose_preparation_fails_is_not_asked_again_for_each_node(site: Site) -> None:
    for name, text in {"hot.kdsl": HOT, "pods.yaml": POD}.items():
        Path(name).write_text(text)
    fails = """with open("calls", "a") as file:
            file.write("x")
        raise ValueError("no link")"""
    code = DECIDES.replace('state.values["mine"] = pod.name', fails)
    (site.root / "kdsl_racks" / "plugin.py").write_text(code)
    (site.root / "kdsl_racks" / "kdsl-plugin.yaml").unlink()
    given = config("".join(f"- name: {name}\n" for name in ("VolumeBinding", "DynamicResources", "racks")))
    calls = []
    for count in (3, 9):
        nodes = "---\n".join(NODE.replace("name: n", f"name: n{at}") for at in range(count))
        Path("nodes.yaml").write_text(nodes)
        Path("calls").write_text("")
        world = ("--cluster", "nodes.yaml", "--pods", "pods.yaml", "--rules", "hot.kdsl", "--config", given)
        assert "no link" in kdsl("explain", "p", *world, "--all").stdout
        calls.append(len(Path("calls").read_text()))
    assert calls[0] == calls[1]
