"""`kdsl show` and `kdsl diff` as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from kdsl.base.errors import InvalidInputError
from kdsl.cli.main import cli

ROOT = Path(__file__).parent.parent.parent
TEAMS = "examples/teams"


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def kdsl(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="kdsl")


def _line_of(path: str, text: str) -> str:
    """Return the `file:line` of the only line with this text."""
    (found,) = [at for at, line in enumerate(Path(path).read_text().splitlines(), 1) if text in line]
    return f"{path}:{found}"


def test_every_line_has_its_origin() -> None:
    result = kdsl("show", "teams.ml.ml", "--rules", TEAMS)
    assert result.exit_code == 0, result.output
    shown = dict(line.split("  // ") for line in result.stdout.splitlines() if "  // " in line)
    origins = {text.strip(): site for text, site in shown.items()}
    platform, ml = f"{TEAMS}/platform/profiles.kdsl", f"{TEAMS}/teams/ml/ml.kdsl"
    for text, site in {
        "profile teams.ml.ml {": _line_of(ml, "profile ml"),
        'scheduler "default-scheduler"': _line_of(platform, "  scheduler"),
        "platform.InService": _line_of(platform, "add predicate InService"),
        "teams.ml.BigCards": _line_of(ml, "add predicate BigCards"),
        "teams.ml.SpotLast weight 2": _line_of(ml, "add score SpotLast"),
        "tighten NodeResourcesFit {": _line_of(ml, "tighten"),
        'else "node(s) keep 10% of cpu free for ml daemons"': _line_of(ml, "keep 10%"),
        'set InService.label = "example.com/out-of-service"': _line_of(platform, "param label"),
    }.items():
        assert origins[text] == site
    weight = origins["kubernetes.v1_36.TaintToleration weight 5"]
    assert weight.endswith(f", weight {_line_of(ml, 'reweight')}")


def test_show_as_a_document() -> None:
    document = json.loads(kdsl("show", "ml", "--rules", TEAMS, "-o", "json").stdout)
    assert (document["kind"], document["name"], document["team"]) == ("EffectiveProfile", "teams.ml.ml", "ml")
    names = [each["name"] for each in document["predicates"]]
    assert names[:3] == ["NodeUnschedulable", "InService", "NodeName"]
    fit = document["predicates"][names.index("NodeResourcesFit")]
    assert fit["tightenings"][0]["text"].startswith("tighten NodeResourcesFit {\n  require node.requested")
    assert yaml.safe_load(kdsl("show", "ml", "--rules", TEAMS, "-o", "yaml").stdout) == document


def test_show_of_an_unknown_profile() -> None:
    error = kdsl("show", "binpaking").exception
    assert isinstance(error, InvalidInputError)


def test_a_value_of_several_lines_keeps_its_shape() -> None:
    lines = iter(kdsl("show", "kubernetes.v1_36.default").stdout.splitlines())
    column = next(line.index('"') for line in lines if "set VolumeZone.labels = [" in line)
    items = [next(lines) for _ in range(3)]
    assert [len(item) - len(item.lstrip()) for item in items] == [column] * 3
    assert items[-1].endswith("]")


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The example with a change of every sort."""
    folder = tmp_path / "teams"
    shutil.copytree(TEAMS, folder, ignore=shutil.ignore_patterns("broken"))
    for name, before, after in (
        ("teams/ml/ml.kdsl", "40000", "80000"),
        ("teams/ml/ml.kdsl", "cards smaller than 40 GB", "small cards"),
        ("teams/ml/ml.kdsl", "else unresolvable", "else"),
        ("teams/ml/ml.kdsl", "reweight TaintToleration 5", "reweight TaintToleration 6"),
        ("teams/ml/ml.kdsl", "* 9 / 10", "* 8 / 10"),
        ("teams/ml/ml.kdsl", " before NodeResourcesFit", ""),
        ("teams/web/web.kdsl", "disable score ImageLocality", "disable score NodeAffinity"),
        ("platform/teams.kdsl", "reweight 0 to 10", "reweight 0 to 8"),
        ("platform/profiles.kdsl", 'param label = "example.com/out-of-service"', 'param label = "off"'),
        ("platform/profiles.kdsl", "kdsl 1\n", "// a comment\nkdsl 1\n"),
    ):
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")
    return folder


BEHIND = (
    "VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, "
    "DynamicResources"
)


def test_what_changed_in_words(changed: Path) -> None:
    result = kdsl("diff", TEAMS, str(changed))
    assert result.exit_code == 1, result.output
    lines = [line.rpartition("  (")[0] or line for line in result.stdout.splitlines()]
    assert lines == [
        "profile platform.default",
        '  ~ parameter InService.label: "example.com/out-of-service" → "off"',
        "profile teams.ml.ml",
        "  ~ order of predicates: NodeUnschedulable, InService, NodeName, TaintToleration, NodeAffinity, "
        f"NodePorts, BigCards, NodeResourcesFit, {BEHIND} → NodeUnschedulable, InService, NodeName, "
        f"TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, {BEHIND}, BigCards",
        '  ~ parameter InService.label: "example.com/out-of-service" → "off"',
        '  - tightening of NodeResourcesFit: require node.requested["cpu"] + pod.requests["cpu"] <= '
        'node.allocatable["cpu"] * 9 / 10 else "node(s) keep 10% of cpu free for ml daemons"',
        '  + tightening of NodeResourcesFit: require node.requested["cpu"] + pod.requests["cpu"] <= '
        'node.allocatable["cpu"] * 8 / 10 else "node(s) keep 10% of cpu free for ml daemons"',
        "  ~ weight of TaintToleration: 5 → 6",
        "profile teams.web.web",
        '  ~ parameter InService.label: "example.com/out-of-service" → "off"',
        "  - score kubernetes.v1_36.NodeAffinity: weight 2",
        "  + score kubernetes.v1_36.ImageLocality: weight 1",
        "predicate platform.InService",
        '  ~ param: label = "example.com/out-of-service" → label = "off"',
        "predicate teams.ml.BigCards",
        '  ~ condition: quantity(node.labels[?"nvidia.com/gpu.memory"].orValue("0")) >= quantity("40000") → '
        'quantity(node.labels[?"nvidia.com/gpu.memory"].orValue("0")) >= quantity("80000")',
        "  ~ code: unresolvable → unschedulable",
        '  ~ reason: "node(s) had cards smaller than 40 GB" → "node(s) had small cards"',
        "team platform.ml",
        "  ~ may: tighten, add predicates, add scores, reweight 0 to 10 → "
        "tighten, add predicates, add scores, reweight 0 to 8",
        "2 added, 2 removed, 10 changed",
    ]


def test_equal_rules_differ_in_nothing(tmp_path: Path) -> None:
    shutil.copytree("rules", tmp_path / "rules")
    for path in (tmp_path / "rules").rglob("*.kdsl"):
        path.write_text(path.read_text(encoding="utf-8").replace("  ", " "), encoding="utf-8")
    result = kdsl("diff", "rules", str(tmp_path / "rules"))
    assert (result.exit_code, result.stdout) == (0, "no differences\n")


def test_the_same_rules_in_yaml_differ_in_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "teams"
    shutil.copytree(TEAMS, folder, ignore=shutil.ignore_patterns("broken"))
    for path in folder.rglob("*.kdsl"):
        assert kdsl("convert", "--write", str(path)).exit_code == 0
        path.unlink()
    result = kdsl("diff", TEAMS, str(folder))
    assert (result.exit_code, result.stdout) == (0, "no differences\n")
    shown = json.loads(kdsl("show", "ml", "--rules", str(folder), "-o", "json").stdout)
    assert (
        "* 9 / 10"
        in next(each for each in shown["predicates"] if each["tightenings"])["tightenings"][0]["text"]
    )


def test_spellings_of_a_constant_are_the_same(tmp_path: Path) -> None:
    for name, text in (("a", 'param x = 16\nparam y = "q"'), ("b", "param x = 0x10\nparam y = 'q'")):
        (tmp_path / f"{name}.kdsl").write_text(f"kdsl 1\npackage a\n{text}\n", encoding="utf-8")
    assert kdsl("diff", str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl")).exit_code == 0


def test_the_body_of_a_function_changes(tmp_path: Path) -> None:
    for name, body in (("a", "n + 1"), ("b", "n + 2")):
        text = f"kdsl 1\npackage a\nfn f(n: int): int = {body}\n"
        (tmp_path / f"{name}.kdsl").write_text(text, encoding="utf-8")
    shown = kdsl("diff", str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl")).stdout
    assert "~ declaration: fn f(n: int): int = n + 1 → fn f(n: int): int = n + 2" in shown


def test_loops_and_codes_change(tmp_path: Path) -> None:
    predicate = (
        "predicate P {{\n  for t in node.taints {{\n    require t.key == 'a' else {}'no'\n    {}\n  }}\n}}\n"
    )
    for name, parts in (
        ("a", ("", "")),
        ("b", ("pending ", "let x = t.key\n    require x != '' else 'empty'")),
    ):
        (tmp_path / f"{name}.kdsl").write_text(
            "kdsl 1\npackage a\n" + predicate.format(*parts), encoding="utf-8"
        )
    lines = kdsl("diff", str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl")).stdout.splitlines()
    assert [line.rpartition("  (")[0] for line in lines[1:-1]] == [
        "  ~ code: unschedulable → pending",
        "  + let x = t.key",
        "  + require x != '' else \"empty\"",
    ]


def test_additions_and_removals_of_whole_rules(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage a\n\nfn one(): int = 1\n", encoding="utf-8")
    (tmp_path / "b.kdsl").write_text("kdsl 1\npackage a\n\nparam two = 2\n", encoding="utf-8")
    result = kdsl("diff", str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl"))
    assert result.stdout.splitlines() == [
        f"- fn a.one  ({tmp_path}/a.kdsl:4)",
        f"+ param a.two  ({tmp_path}/b.kdsl:4)",
        "1 added, 1 removed",
    ]
    shown = kdsl("diff", str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl"), "-o", "markdown")
    assert f"**fn a.one** removed (`{tmp_path}/a.kdsl:4`)" in shown.stdout


def test_two_profiles_and_markdown() -> None:
    result = kdsl("diff", "default", "binpacking", "-o", "markdown")
    assert result.exit_code == 1
    assert result.stdout.startswith("### Rules: 2 added, 2 removed, 2 changed in 1 declaration\n")
    assert "- added: score policies.binpacking.SpareGpus `weight 10` (`rules/" in result.stdout
    assert kdsl("diff", "default", "default").exit_code == 0


def test_how_many_nodes_are_enough(tmp_path: Path) -> None:
    for name, line in (("a", ""), ("b", "sample math.greatest(nodes /\n      2, 10)")):
        text = (
            f"kdsl 1\npackage a\nqueue Q {{ order by pod.priority }}\n"
            f'profile p {{\n  scheduler "s"\n  {line}\n  queue Q\n}}\n'
        )
        (tmp_path / f"{name}.kdsl").write_text(text, encoding="utf-8")
    old, new = str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl")
    changed = f"  ~ sample: none → math.greatest(nodes / 2, 10)  ({new}:6)"
    assert changed in kdsl("diff", old, new).stdout.splitlines()
    shown = kdsl("show", "a.p", "--rules", new).stdout
    assert shown.count("sample math.greatest(nodes /") == 1 and "      2, 10)" in shown
    document = json.loads(kdsl("show", "a.p", "--rules", new, "-o", "json").stdout)
    assert document["sample"] == {"count": "math.greatest(nodes /\n      2, 10)", "origin": f"{new}:6"}
    assert json.loads(kdsl("show", "a.p", "--rules", old, "-o", "json").stdout)["sample"] is None


def test_whether_all_predicates_are_asked(tmp_path: Path) -> None:
    for name, line in (("a", "check first"), ("b", "check all")):
        text = (
            f"kdsl 1\npackage a\nqueue Q {{ order by pod.priority }}\n"
            f'profile p {{\n  scheduler "s"\n  {line}\n  queue Q\n}}\n'
        )
        (tmp_path / f"{name}.kdsl").write_text(text, encoding="utf-8")
    old, new = str(tmp_path / "a.kdsl"), str(tmp_path / "b.kdsl")
    assert f"  ~ check: first → all  ({new}:6)" in kdsl("diff", old, new).stdout.splitlines()
    shown = kdsl("show", "a.p", "--rules", new)
    assert any(line.split() == ["check", "all", "//", f"{new}:6"] for line in shown.stdout.splitlines())
    document = json.loads(kdsl("show", "a.p", "--rules", new, "-o", "json").stdout)
    assert document["check"] == {"predicates": "all", "origin": f"{new}:6"}


def test_as_a_document(changed: Path) -> None:
    document = json.loads(kdsl("diff", TEAMS, str(changed), "-o", "json").stdout)
    assert (document["kind"], document["old"]) == ("RuleChanges", TEAMS)
    weight = next(each for each in document["changes"] if each["what"] == "weight of TaintToleration")
    assert (weight["kind"], weight["before"], weight["after"]) == ("changed", "5", "6")


@pytest.mark.parametrize("args", [(TEAMS, "default"), (TEAMS, TEAMS, "--rules", TEAMS)])
def test_wrong_usage(args: tuple[str, ...]) -> None:
    assert kdsl("diff", *args).exit_code == 2


def test_a_path_for_a_profile_is_told_where_paths_go() -> None:
    for command in (("show",), ("diff", "default")):
        with pytest.raises(InvalidInputError) as caught:
            CliRunner().invoke(cli, [*command, "some/path"], catch_exceptions=False)
        help_ = caught.value.diagnostics[0].help
        assert help_[0] == "this is a path: write the name of a profile, and the path as `--rules some/path`"
