"""The outputs shown in README.md, `docs/` and `examples/` are those of the commands.

`UPDATE_GOLDEN=1 pytest tests/test_examples.py` writes the expected texts of `examples/broken-rules` anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks import Code
from kdsl.hooks.manager import PluginManager

from tests.cli.command_line import kdsl
from tests.rules.devices.desk import Desk, programs_of

ROOT = Path(__file__).parent.parent
BROKEN = sorted((ROOT / "examples" / "broken-rules").glob("*.broken"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/*.md")]
QUICKSTART = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_broken_rules(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = kdsl("check", str(path.relative_to(ROOT)))
    assert (result.exit_code, result.stderr) == (1, "")
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(result.stdout, encoding="utf-8")
    assert result.stdout == golden.read_text(encoding="utf-8")


def test_every_broken_file_is_listed() -> None:
    page = (ROOT / "examples" / "broken-rules" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(.+?)`", page, re.MULTILINE)) == {path.name for path in BROKEN}


def test_all_rules_are_clean_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = kdsl("check", "rules", "examples")
    assert (result.exit_code, result.stdout) == (0, "")
    alone = kdsl("check", "examples/migrate-from-kube-scheduler")
    assert (alone.exit_code, alone.stdout) == (0, "")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the rules and examples of this one, to be changed."""
    for name in ("rules", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_transcripts_of_the_readme(copy: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    # What goes on in the background is run by tests/live/test_readme.py.
    quiet = re.sub(r"^## Run it$.*?(?=^## )", "", page, flags=re.MULTILINE | re.DOTALL)
    shown = list(transcripts(quiet))
    assert len(shown) >= 5
    for command, expected in shown:
        assert_shows(command, run(command, copy), expected)


def test_the_migration(copy: Path) -> None:
    """Sites in the shipped rules move with every edit of them: their lines are not compared."""
    page = (ROOT / "examples" / "migrate-from-kube-scheduler" / "README.md").read_text(encoding="utf-8")
    shown = list(transcripts(page))
    assert len(shown) == 9
    for command, expected in shown:
        output, expected = (
            re.sub(r"(v1_36\.kdsl):\d+", r"\1", text) for text in (run(command, copy), expected)
        )
        assert_shows(command, output, expected)


def test_the_migration_is_what_convert_writes(copy: Path) -> None:
    folder = copy / "examples" / "migrate-from-kube-scheduler"
    written = {name: (folder / name).read_text() for name in ("scheduler.kdsl", "scheduler.config.yaml")}
    for name in written:
        (folder / name).unlink()
    assert kdsl("convert", "--write", str(folder / "scheduler.yaml")).exit_code == 0
    assert {name: (folder / name).read_text() for name in written} == written


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("docs/commands.md", 1),
        ("docs/explain.md", 6),
        ("docs/language.md", 1),
        ("docs/simulate.md", 1),
        ("examples/gpu-sharing/README.md", 1),
    ],
)
def test_the_transcripts_of_the_docs(page: str, count: int, copy: Path) -> None:
    """Lines of the shipped rules move with every edit of them: they are not compared."""
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = [(command, expected) for command, expected in transcripts(text) if "examples/" in command]
    assert len(shown) == count
    for command, expected in shown:
        output, expected = (
            re.sub(r"(rules/.+?\.kdsl):\d+", r"\1", it) for it in (run(command, copy), expected)
        )
        assert_shows(command, output, expected)


def test_the_quickstart_of_the_readme(copy: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(block for block in blocks(page) if block.startswith("PLACED"))
    assert_shows("make quickstart", kdsl("simulate", *QUICKSTART).stdout, block)


def test_the_walk_of_the_guide(copy: Path) -> None:
    """Its files are written and its commands run, from top to bottom."""
    page = (ROOT / "docs" / "write-rules.md").read_text(encoding="utf-8")
    steps = list(
        re.finditer(r"(?:^`(my-rules/\S+)`:\n\n)?^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )
    assert len([step for step in steps if step[1]]) == 2
    count = 0
    for step in steps:
        if step[1]:
            (copy / step[1]).write_text(step[2], encoding="utf-8")
        for command, expected in transcripts(step[0][step[0].index("```") :]):
            output, wanted = (
                re.sub(r"(v1_36\.kdsl):\d+", r"\1", it) for it in (run(command, copy), expected)
            )
            assert_shows(command, output, wanted)
            count += 1
    assert count == 14


def test_the_rule_file_of_the_reference(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    text = next(block for block in blocks(page) if block.startswith("kdsl 1"))
    (tmp_path / "ml.kdsl").write_text(text, encoding="utf-8")
    checked = kdsl("check", str(tmp_path))
    assert (checked.exit_code, checked.stdout) == (0, "")
    assert kdsl("fmt", "--check", str(tmp_path)).exit_code == 0


def test_the_rule_test_of_the_guide(tmp_path: Path) -> None:
    """It tests the rules that open the page on the language."""
    rules, test = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("language.md", "test-rules.md")
    )
    text = next(block for block in blocks(rules) if block.startswith("kdsl 1"))
    found = re.search(r"^```yaml\n(apiVersion: .*?)^```$", test, re.MULTILINE | re.DOTALL)
    assert found is not None
    for name, content in (("rules/ml.kdsl", text), ("tests/ml.test.yaml", found[1])):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content, encoding="utf-8")
    tested = kdsl("test", str(tmp_path))
    assert (tested.exit_code, tested.stdout) == (0, "1 passed in 1 file\n")


def test_the_snippets_of_the_language_are_rules_in_the_house_style(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    starts = ("predicate ", "queue ", "///")
    snippets = [block for block in blocks(page) if block.startswith(starts)]
    assert len(snippets) >= 3
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage a\n\n" + "\n".join(snippets), encoding="utf-8")
    checked = kdsl("check", str(tmp_path))
    assert (checked.exit_code, checked.stdout) == (0, "")
    assert kdsl("fmt", "--check", str(tmp_path)).exit_code == 0


def test_the_plugin_of_the_guide() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, type] = {}
    exec(compile(found[1], "docs/plugins.md", "exec"), names)
    quota = names["Quota"]({"podsPerNamespace": 1}, None)
    assert PluginManager().register(quota, "quota") == ()
    first, second = (PodInfo(name=name, namespace="shop", uid=name) for name in ("a", "b"))
    assert quota.reserve(None, first, "n1") is None
    assert quota.reserve(None, second, "n1").code is Code.UNSCHEDULABLE
    quota.unreserve(None, second, "n1")
    assert quota.reserve(None, second, "n1").code is Code.UNSCHEDULABLE
    quota.unreserve(None, first, "n1")
    assert quota.reserve(None, second, "n1") is None


def test_the_new_vendor(copy: Path) -> None:
    page = (copy / "examples" / "new-vendor" / "README.md").read_text(encoding="utf-8")
    shown = list(transcripts(page))
    assert len(shown) == 5
    for command, expected in shown:
        assert_shows(command, run(command, copy), expected)
    folder = copy / "examples" / "new-vendor"
    lines = len((folder / "nimbus.kdsl").read_text(encoding="utf-8").splitlines())
    assert f"| `nimbus.kdsl` | the vendor, in {lines} lines |" in page
    nodes, pods = (
        [*yaml.safe_load_all((folder / name).read_text(encoding="utf-8"))]
        for name in ("cluster.yaml", "pods.yaml")
    )
    desk = Desk.of(programs_of(folder), nodes)
    said = {pod["metadata"]["name"]: desk.serve(pod) for pod in pods}
    files = ("--cluster", str(folder / "cluster.yaml"), "--pods", str(folder / "pods.yaml"))
    simulated = kdsl("simulate", *files, "--rules", str(folder), "--profile", "npus", "-o", "json")
    decisions = json.loads(simulated.stdout)["decisions"]
    placed = {each["pod"].removeprefix("default/"): each["node"] for each in decisions}
    assert placed == {name: each.get("node", "") for name, each in said.items()}
    assert f"`{said['training']['cards']}` of `training`" in page
    assert said["mistaken"]["refused"] in " ".join(page.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def blocks(page: str) -> list[str]:
    """Return the blocks of code of a page that name no language."""
    return re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def transcripts(page: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a page that stand after `$ `, each with the output below it."""
    for block in blocks(page):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield command, output


def run(command: str, folder: Path) -> str:
    """Run a line of a transcript and return all that it prints."""
    name, *args = command.split()
    if name == "kdsl":
        result = kdsl(*args)
        return result.stdout + result.stderr
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def assert_shows(command: str, output: str, expected: str) -> None:
    """Compare an output with what a page shows: a line `…` stands for any number of lines, the rules' digest for any."""
    output, expected = (re.sub(r"rules [0-9a-f]{12}", "rules DIGEST", text) for text in (output, expected))
    output = f"{output.replace(f'{ROOT}/', '').rstrip()}\n"
    first, *others = re.split(r"^…\n", f"{expected.rstrip()}\n", flags=re.MULTILINE)
    assert output.startswith(first), command
    place = len(first)
    for part in others:
        found = output.find(part, place)
        assert found >= 0, f"`{command}` does not print\n{part}"
        place = found + len(part)
    assert place == len(output) or expected.rstrip().endswith("\n…"), (
        f"`{command}` goes on with\n{output[place:]}"
    )
