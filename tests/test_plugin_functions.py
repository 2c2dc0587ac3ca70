"""Functions, view fields and rule packages of plugins: typed, called, contained, and never there by chance."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kdsl.app import DEFAULT_PLUGINS, CheckedRules, check_rules
from kdsl.base.events import Resource
from kdsl.check.analyses.cures import predicate_cures

from tests.cli.command_line import Ended, kdsl
from tests.hooks.test_installed import Site

FUNCTIONS = """
CALLS = []

def rack_of(node):
    CALLS.append(node.name)
    return node.labels.get("rack", "")

def distance(one, other):
    if not one:
        raise ValueError("no rack")
    return abs(int(one) - int(other))

def tier(pod):
    return pod.labels.get("tier", "low")

def wrong(text):
    return text
"""
MANIFEST = """
apiVersion: kdsl.dev/v1alpha1
kind: PluginManifest
functions:
  distance: {call: "kdsl_racks.functions:distance", args: [string, string], result: int, reads: [], pure: true}
  wrong: {call: "kdsl_racks.functions:wrong", args: [string], result: int, reads: [], pure: true}
fields:
  Node:
    rack: {call: "kdsl_racks.functions:rack_of", type: string, reads: [node.static], pure: true}
  Pod:
    tier: {call: "kdsl_racks.functions:tier", type: string, reads: [pod.labels], pure: true}
"""
UNDECLARED = MANIFEST.replace(", reads: [node.static], pure: true", "")
RULES = 'kdsl 1\npackage racks\nparam NEAR = "3"\n'
PLUGIN = """
from kdsl.hooks import hookimpl

class Plugin:
    def __init__(self, args, context):
        pass

    @hookimpl
    def post_bind(self):
        pass
"""
ACTIVE = {**DEFAULT_PLUGINS, "racks": {}}
NODES = "\n---\n".join(
    f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{rack}, labels: {{rack: '{rack}'}}}}\n"
    'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}'
    for rack in (1, 2, 7)
)
POD = """apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: n, labels: {tier: high}}
spec: {schedulerName: s, containers: [{name: c, image: i}]}
"""


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield Site(tmp_path / "site")
    for name in set(sys.modules) - before:
        if name.startswith("kdsl_") and not name.startswith("kdsl_plugins"):
            del sys.modules[name]


@pytest.fixture
def racks(site: Site) -> Site:
    site.install("racks", files=files())
    return site


def files(manifest: str = MANIFEST) -> dict[str, str]:
    return {
        "plugin.py": PLUGIN,
        "functions.py": FUNCTIONS,
        "kdsl-plugin.yaml": manifest,
        "rules/racks.kdsl": RULES,
    }


def write(text: str, imports: str = "") -> Path:
    Path("rules").mkdir(exist_ok=True)
    path = Path("rules/team.kdsl")
    path.write_text(f"kdsl 1\npackage team\n{imports}\n{text}\n")
    return path


def check(
    text: str, imports: str = "", active: Mapping[str, Any] = ACTIVE, undeclared: tuple[str, ...] = ()
) -> CheckedRules:
    return check_rules([write(text, imports)], active, undeclared)


def titles(checked: CheckedRules) -> list[tuple[str, str]]:
    return [(each.code, each.title) for each in checked.diagnostics]


def profile(*rules: str, uses: str = "") -> str:
    body = "\n".join(rules)
    return (
        f"{body}\nqueue Q {{ order by pod.queuedAt }}\n"
        f'profile p {{ scheduler "s" queue Q predicates {{ {uses or "P"} }} scores {{ S weight 1 }} }}'
    )


SCORE = "score S { value 1 }"
NEAR = 'predicate P { require plugins.Racks.distance(node.rack, "1") < 3 else "too far" }'


def explain(text: str, *, config: str = "- name: racks\n", imports: str = "") -> Ended:
    write(text, imports)
    Path("cluster.yaml").write_text(f"{NODES}\n---\n{POD.replace('NAME', 'p')}")
    Path("kdsl.yaml").write_text(
        "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [rules]}\n"
        f"plugins:\n- name: default-binder\n{config}"
    )
    return kdsl("explain", "n/p", "--config", "kdsl.yaml", "--cluster", "cluster.yaml", "-o", "json")


def verdicts(result: Ended) -> dict[str, str]:
    assert result.exit_code == 0, result.stderr
    decision = json.loads(result.stdout)["decision"]
    return {
        each["node"]: "feasible" if each["feasible"] else each["status"]["reasons"][0]
        for each in decision["verdicts"]
    }


def test_where_a_function_raised_is_shown_to_its_author(racks: Site) -> None:
    score = 'score S { value plugins.Racks.distance(node.rack, "x") }'
    assert explain(profile('predicate P { require node.name != "" else "x" }', score)).exit_code == 0
    options = ("--config", "kdsl.yaml", "--cluster", "cluster.yaml", "--traceback")
    for command in (("simulate",), ("explain", "n/p")):
        shown = kdsl(*command, *options)
        assert shown.exit_code == 0, shown
        lines = shown.stdout.splitlines()
        at = lines.index("Traceback of S (most recent call last):")
        assert lines[at + 1].endswith('functions.py", line 11, in distance')
        assert lines[at + 2] == "    return abs(int(one) - int(other))"
        why = "ValueError: invalid literal for int() with base 10: 'x'"
        assert lines[at + 3] == f"`plugins.Racks.distance` of plugin `racks` raised {why}"
        brief = kdsl(*command, *options[:-1]).stdout
        assert "Traceback" not in brief and "`--traceback` shows where the code of a plugin raised" in brief
        document = kdsl(*command, *options, "-o", "json").stdout
        found = json.loads(document)
        decision = found["decision"] if command[0] == "explain" else found["decisions"][0]
        (fault,) = decision["faults"]
        assert (fault["nodes"], fault["firstNodes"]) == (3, ["n1", "n2", "n7"])
        assert [(each["line"], each["function"]) for each in fault["traceback"]] == [(11, "distance")]


@pytest.mark.parametrize(
    ("args", "call"),
    [("Claim", "claims.all(c, plugins.Racks.ready(c))"), ("list(Claim)", "plugins.Racks.ready(claims)")],
)
def test_what_changes_a_claim_wakes_pods_that_a_function_of_claims_rejects(
    site: Site, args: str, call: str
) -> None:
    """The function may read the volume of a claim without declaring it: the volume comes with the claim."""
    call_of = '{call: "kdsl_racks.functions:wrong", args: [ARGS], result: bool, reads: [], pure: true}'
    ready = f"  ready: {call_of}\nfields:".replace("ARGS", args)
    site.install("racks", files=files(MANIFEST.replace("fields:", ready, 1)))
    rules = check(
        profile(f'predicate P {{ let claims = cluster.claims(pod) require {call} else "x" }}', SCORE)
    ).rules
    assert rules is not None
    (predicate,) = rules.profiles["team.p"].predicates
    found = {pattern.resource for pattern in predicate_cures(predicate, rules.fns).patterns}
    assert {Resource.PERSISTENT_VOLUME_CLAIM, Resource.PERSISTENT_VOLUME, Resource.STORAGE_CLASS} <= found


def test_a_function_and_a_field_are_typed_from_the_manifest(racks: Site) -> None:
    checked = check(profile(NEAR, SCORE))
    assert titles(checked) == []
    assert checked.rules is not None
    (predicate,) = checked.rules.profiles["team.p"].predicates
    assert predicate.reads == {"node.static"}


@pytest.mark.parametrize(
    ("expression", "code", "title"),
    [
        ('plugins.Racks.distance(node.rack, 1) < 3', "K0203", "argument 2 of `plugins.Racks.distance` must be `string`, not `int`"),
        ('plugins.Racks.distance("1") < 3', "K0202", "`plugins.Racks.distance` takes 2 arguments, not 1"),
        ('plugins.Racks.distance("1", "2") == "3"', "K0201", None),
        ('plugins.Racks.distanc("1", "2") < 3', "K0303", "unknown function `plugins.Racks.distanc`"),
        ('plugins.Rack.distance("1", "2") < 3', "K0303", "unknown function `plugins.Rack.distance`"),
        ('node.rak == ""', "K0302", "`node` has no field `rak`"),
        ("has(node.rack)", "K0215", None),
    ],
)  # fmt: skip
def test_mistakes_are_those_of_any_function_or_field(
    racks: Site, expression: str, code: str, title: str | None
) -> None:
    (found,) = check(f"predicate P {{ require {expression} else 'x' }}").diagnostics
    assert found.code == code
    assert title is None or found.title == title


def test_without_activation_nothing_of_it_is_there(racks: Site) -> None:
    (unknown, function) = check(
        f"predicate O {{ require node.rack == '' else 'x' }}\n{NEAR.replace('node.rack', 'node.name')}",
        active=DEFAULT_PLUGINS,
    ).diagnostics
    assert unknown.title == "`node` has no field `rack`"
    assert function.title == "plugin `racks` is not active"
    assert function.help == ("add `- name: racks` under `plugins` in the file of `--config`",)
    assert not any(name.startswith("kdsl_racks") for name in sys.modules)


def test_they_decide(racks: Site) -> None:
    assert verdicts(explain(profile(NEAR, SCORE))) == {"n1": "feasible", "n2": "feasible", "n7": "too far"}


def test_a_field_of_pods_is_there_in_every_kind_of_rule(racks: Site) -> None:
    text = (
        'fn urgent(p: Pod): bool = p.tier == "high"\n'
        'predicate P { require urgent(pod) else "x" }\n'
        'score S { value pod.tier == "high" ? 1 : 0 }\n'
        'queue Q { admit when pod.tier != "none" else "no tier" order by pod.queuedAt }\n'
        'profile p { scheduler "s" queue Q predicates { P } scores { S weight 1 } }'
    )
    assert set(verdicts(explain(text)).values()) == {"feasible"}
    assert "feasible" not in verdicts(explain(text.replace('p.tier == "high"', 'p.tier == "low"'))).values()


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("plugins.Racks.distance('', node.rack) < 3", "`plugins.Racks.distance` of plugin `racks` raised ValueError: no rack"),
        ("plugins.Racks.wrong(node.rack) < 3", "`plugins.Racks.wrong` of plugin `racks` did not return int: it is str"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_the_rules_error_and_names_the_plugin(
    racks: Site, argument: str, reason: str
) -> None:
    found = verdicts(explain(profile(f"predicate P {{ require {argument} else 'x' }}", SCORE)))
    assert all(reason in each for each in found.values()), found
    other = verdicts(explain(profile(f"predicate P {{ require {argument} || true else 'x' }}", SCORE)))
    assert set(other.values()) == {"feasible"}


def test_a_sort_key_cannot_be_what_may_fail(racks: Site) -> None:
    (found,) = check("queue Q { order by pod.tier }").diagnostics
    assert found.code == "K0213"
    assert "a function of a plugin may fail" in f"{found.title} {found.label} {found.notes} {found.help}"


def test_owns_reads_what_the_manifest_says(racks: Site) -> None:
    Path("rules").mkdir()
    team = 'team t { owns pod.tier == "high" files "rules/t/**.kdsl" contact "t" }'
    assert "K0417" not in [code for code, _ in titles(check(team))]


def test_a_parameter_may_call_what_reads_nothing(racks: Site) -> None:
    assert titles(check('param far = plugins.Racks.distance("1", "9")')) == []


def test_undeclared_functions_need_leave(site: Site) -> None:
    site.install("racks", files=files(UNDECLARED))
    refused = check(profile(NEAR, SCORE))
    assert refused.rules is None
    assert titles(refused) == [("K1020", "plugin `racks` does not declare the reads of `rack`")]
    allowed = check(profile(NEAR, SCORE), undeclared=("racks",))
    assert allowed.rules is not None
    (predicate,) = allowed.rules.profiles["team.p"].predicates
    assert predicate.reads == {"undeclared"}


@pytest.mark.parametrize(("manifest", "calls"), [(MANIFEST, 6), (UNDECLARED, 9)])
def test_what_is_declared_is_remembered_and_the_rest_is_asked_for_every_pod(
    site: Site, manifest: str, calls: int
) -> None:
    site.install("racks", files=files(manifest))
    explain(profile(NEAR, SCORE), config="- {name: racks, allowUndeclared: true}\n")
    before = len(_calls())
    pods = "\n---\n".join(POD.replace("NAME", name) for name in "abc")
    Path("two.yaml").write_text(f"{NODES}\n---\n{pods}")
    result = kdsl("simulate", "--config", "kdsl.yaml", "--cluster", "two.yaml")
    assert result.exit_code == 0, result.stderr
    assert len(_calls()) - before == calls


def _calls() -> list[str]:
    found: list[str] = sys.modules["kdsl_racks.functions"].CALLS
    return found


def test_undeclared_calls_are_no_constants(site: Site) -> None:
    site.install("racks", files=files(MANIFEST.replace("args: [string, string], result: int, reads: [], pure: true", "args: [string, string], result: int")))  # fmt: skip
    found = check('param far = plugins.Racks.distance("1", "9")', undeclared=("racks",))
    assert titles(found) == [("K0212", "the value of `far` is not known beforehand")]


@pytest.mark.parametrize(
    ("changes", "code", "title"),
    [
        ({"functions.py": "1 / 0"}, "K1019", "`kdsl_racks.functions:distance` of plugin `racks` cannot be imported: ZeroDivisionError: division by zero"),
        ({"functions.py": "distance = 3"}, "K1019", "`kdsl_racks.functions:distance` of plugin `racks` cannot be imported: it is int, not a function"),
        ({"kdsl-plugin.yaml": MANIFEST + "requires: '>=9'\n"}, "K1021", "plugin `racks` needs kdsl >=9, this is 0.1.0"),
        ({"kdsl-plugin.yaml": "a: [\n"}, "K0120", None),
    ],
)  # fmt: skip
def test_a_broken_plugin_is_named_and_the_rules_do_not_run(
    site: Site, changes: dict[str, str], code: str, title: str | None
) -> None:
    site.install("racks", files=files() | changes)
    checked = check("param x = 1")
    assert checked.rules is None
    assert (code, title) in [(each, title and text) for each, text in titles(checked)]


def test_active_plugins_of_one_name_in_rules_are_refused(site: Site) -> None:
    site.install("pair-score")
    site.install("pair_score", distribution="kdsl-other")
    both = {**DEFAULT_PLUGINS, "pair-score": {}, "pair_score": {}}
    expected = [("K1018", "plugin `pair_score` is `plugins.PairScore` in rule files, as `pair-score` is")]
    assert titles(check("param x = 1", active=both)) == expected
    assert titles(check("param x = 1", active={"pair_score": {}})) == []


def test_active_plugins_with_one_field_are_refused(racks: Site) -> None:
    racks.install("more", files=files(MANIFEST.replace("kdsl_racks", "kdsl_more")))
    found = titles(check("param x = 1", active={**ACTIVE, "more": {}}))
    assert ("K1018", "plugin `more` brings the field `Node.rack`, as `racks` does") in found


def test_the_digest_of_rules_covers_the_active_plugins(racks: Site) -> None:
    digests = [
        checked.rules.digest
        for active in (DEFAULT_PLUGINS, ACTIVE, ACTIVE)
        if (checked := check("param x = 1", active=active)).rules is not None
    ]
    assert digests[0] != digests[1] == digests[2]
    info = racks.root / "kdsl_racks-1.2.dist-info" / "METADATA"
    info.write_text("Metadata-Version: 2.1\nName: kdsl-racks\nVersion: 1.3\n")
    newer = check("param x = 1").rules
    assert newer is not None and newer.digest != digests[1]


def test_a_rule_package_is_imported_by_its_name(racks: Site) -> None:
    assert titles(check("param near = racks.NEAR", "import racks", active=DEFAULT_PLUGINS)) == []


def test_nobody_adds_to_the_package_of_another(racks: Site) -> None:
    racks.install("thief", files={"rules/x.kdsl": RULES})
    (found,) = check("param near = racks.NEAR", "import racks").diagnostics
    assert (found.code, found.title) == ("K0359", "two libraries hold a package `racks`")
    assert found.span is not None and "kdsl_thief/rules/x.kdsl" in str(found.span)
    assert "kdsl_racks/rules/racks.kdsl" in str(found.secondary[0].span)


def test_shipped_packages_are_nobody_elses_to_add_to(site: Site) -> None:
    site.install("thief", files={"rules/x.kdsl": "kdsl 1\npackage kubernetes.v1_36\nparam x = 1\n"})
    imports = "import kubernetes.v1_36 as kubernetes"
    assert "K0359" in [code for code, _ in titles(check("param x = 1", imports))]
    assert titles(check("param x = 1", active=DEFAULT_PLUGINS)) == []


def test_a_broken_rule_package_says_what_is_wrong_with_it(site: Site) -> None:
    site.install("racks", files=files() | {"rules/racks.kdsl": f"{RULES}predicate P {{ require }}\n"})
    (found, *_) = check("param near = racks.NEAR", "import racks").diagnostics
    assert found.code.startswith("K01")
    assert found.span is not None and "kdsl_racks/rules/racks.kdsl" in str(found.span)
    site.install("torn", files={"rules/x.kdsl": "nothing of the sort"})
    assert titles(check("param x = 1")) == []
    assert "K0102" in [code for code, _ in titles(check("param x = 1", "import torn"))]


def test_eval_calls_what_the_plugins_of_a_configuration_bring(racks: Site, tmp_path: Path) -> None:
    config = tmp_path / "kdsl.yaml"
    config.write_text("apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nplugins: [{name: racks}]\n")
    call = "plugins.Racks.distance('7', '3') + 1"
    assert kdsl("eval", "--config", str(config), call) == Ended(0, "5\n", "")
    without = kdsl("eval", call)
    assert (without.exit_code, without.stdout) == (2, "")
    config.write_text(config.read_text().replace("racks", "nobody"))
    assert kdsl("eval", "--config", str(config), call).exit_code == 2


USES = (
    f"{NEAR}\n"
    'score S { value plugins.Racks.distance(node.rack, "1") }\n'
    'predicate Q { require pod.tier == "high" else "x" }\n'
    'param far = plugins.Racks.distance("1", "9")\n'
)


def configured(name: str, rules: str, others: str = "") -> Path:
    """Write a configuration that sorts behind the rules by its path."""
    write(rules)
    path = Path("zone.yaml")
    path.write_text(
        "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [rules]}\n"
        f"plugins:\n- name: default-binder\n- name: {name}\n{others}"
    )
    return path


def findings(*args: str) -> list[str]:
    return [line for line in kdsl(*args, "--format", "concise").stdout.splitlines() if ": " in line]


def test_a_misspelled_plugin_is_one_error_about_its_name(racks: Site) -> None:
    config = configured("rackz", profile(USES))
    result = kdsl("check", "--config", str(config))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "error[K1001]: plugin `rackz` is not installed",
        "  --> zone.yaml:6:9",
    ]
    assert "did you mean `racks`?" in result.stdout
    assert result.stdout.endswith("\n1 error\n")
    # A name that nobody activated runs no code.
    assert not any(name.startswith("kdsl_racks") for name in sys.modules)


def test_the_misspelled_name_comes_before_what_else_is_wrong(racks: Site) -> None:
    config = configured("rackz", f"{USES}predicate W {{ require node.lables.size() == 0 else 'x' }}\n")
    assert [line.split("[")[1][:5] for line in findings("check", "--config", str(config))] == [
        "K1001",
        "K0302",
    ]


def test_a_plugin_that_is_like_no_other_hides_nothing_and_is_said_once(racks: Site) -> None:
    text = (
        'predicate P { require plugins.Quota.f(node.name) < 3 && plugins.Quota.g(1) else "x" }\n'
        'predicate Q { require plugins.Quotas.f(1) else "x" }\n'
        'profile p { scheduler "s" predicates { P plugins.Quota } }\n'
    )
    config = configured("quota", text)
    found = findings("check", "--config", str(config))
    assert [line.split("[")[1][:5] for line in found] == ["K1001", "K0303", "K0407"], found
    assert "plugins.Quotas.f" in found[1]


@pytest.mark.parametrize(
    "args",
    [("show", "p", "--rules", "rules"), ("lint",), ("test", "."), ("eval", "1 + 1"), ("diff", "p", "p")],
)
def test_every_command_refuses_a_plugin_that_is_not_installed(racks: Site, args: tuple[str, ...]) -> None:
    config = configured("rackz", profile('predicate P { require true else "x" }', SCORE))
    Path("a.test.yaml").write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: team.P\nrules: [rules]\n"
        "fixtures: {nodes: {n: {}}, pods: {p: {}}}\ntests: [{name: a, pod: p, expect: {feasible: [n]}}]\n"
    )
    result = kdsl(*args, "--config", str(config))
    assert result.exit_code == 2, result
    assert "plugin `rackz` is not installed" in result.stdout + result.stderr


def test_what_the_meant_plugin_does_not_bring_is_an_error_all_the_same(racks: Site) -> None:
    config = configured("rackz", 'predicate P { require plugins.Racks.distanc("1", "2") < 3 else "x" }\n')
    assert [line.split("[")[1][:5] for line in findings("check", "--config", str(config))] == [
        "K1001",
        "K0303",
    ]


@pytest.mark.parametrize("name", ["plugins.Rackz", "plugins.racks", "racks", "Racks"])
def test_a_misspelled_plugin_in_rules_is_corrected_everywhere(racks: Site, name: str) -> None:
    rules = [f'predicate {rule} {{ require {name}.distance(node.rack, "1") < 3 else "x" }}' for rule in "PQ"]
    text = profile(*rules, SCORE)
    config = configured("racks", text)
    found = check(text).diagnostics
    assert [(each.code, each.span and each.span.text) for each in found] == [
        ("K0303", f"{name}.distance")
    ] * 2
    assert kdsl("check", "--fix", "--config", str(config)).exit_code == 0
    assert Path("rules/team.kdsl").read_text().count("plugins.Racks.distance(node.rack") == 2


def test_the_name_of_no_plugin_is_what_is_marked(racks: Site) -> None:
    (found,) = check('predicate P { require plugins.Nothing.f(1) else "x" }').diagnostics
    assert found.label == "no installed plugin is `plugins.Nothing`"
