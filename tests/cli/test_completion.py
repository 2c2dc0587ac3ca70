"""Completions of the shell: names of profiles, codes and commands, and none after a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.report.code_pages import code_pages

from tests.cli.command_line import Ended, kdsl

ROOT = Path(__file__).parent.parent.parent
TWIN = "apiVersion: kdsl.dev/v1\nkind: Package\nmetadata:\n  name: b.c\n---\napiVersion: kdsl.dev/v1\nkind: Profile\nmetadata:\n  name: two\n"


def completed(monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """Return what bash offers for the last word of a line; that is empty after a space."""
    words = ["kdsl", *line.split(), *([""] if line[-1:] in ("", " ") else [])]
    monkeypatch.setenv("_KDSL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    ended = kdsl()
    assert ended == Ended(0, ended.stdout, "")
    return [offered.partition(",")[2] for offered in ended.stdout.split()]


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files, of which one has an error: completion reads names, it checks nothing."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "a.kdsl").write_text("kdsl 1\npackage a\n\n/// profile x\nprofile one {\n  nonsense\n}\n")
    (folder / "b.kdsl.yaml").write_text(TWIN)
    (tmp_path / "kdsl.yaml").write_text(
        "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [rules]}\n"
    )
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("simulate --rules rules --profile ", ["a.one", "b.c.two", "one", "two"]),
        ("simulate --config kdsl.yaml --profile o", ["one"]),
        ("check --plan --profile b", ["b.c.two"]),
        ("check --profile t", ["two"]),
        ("show --rules rules/a.kdsl ", ["a.one", "one"]),
        ("explain pod --rules rules --profile a", ["a.one"]),
        ("show kubernetes.v1_36.", ["kubernetes.v1_36.default"]),
        ("check --explain K070", [f"K070{last}" for last in range(1, 10)]),
        ("lint --explain K08", ["K0802", "K0803"]),
        ("sim", ["simulate"]),
    ],
)
def test_names_are_completed(
    rules: Path, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    assert completed(monkeypatch, line) == offered


@pytest.mark.parametrize("line", ["show --rules /dev/zero ", "show --rules kdsl.yaml "])
def test_what_is_no_rule_file_completes_nothing(
    rules: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    assert completed(monkeypatch, line) == []


def test_an_exception_completes_nothing(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("kdsl.lang.discovery.read_sources", fail)
    assert completed(monkeypatch, "show ") == []


def test_commands_are_completed_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a command was imported")

    monkeypatch.setattr("kdsl.cli.main.LazyGroup.get_command", fail)
    assert "check" in completed(monkeypatch, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_docs_say_how_it_is_switched_on(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert f"_KDSL_COMPLETE={shell}_source kdsl" in page
    monkeypatch.setattr("click.shell_completion.BashComplete._check_version", staticmethod(lambda: None))
    monkeypatch.setenv("_KDSL_COMPLETE", f"{shell}_source")
    ended = kdsl()
    assert (ended.exit_code, ended.stderr) == (0, "") and "_KDSL_COMPLETE" in ended.stdout


def test_all_codes_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(monkeypatch, "check --explain ") == sorted(code_pages())
