"""The process around the commands: exit codes, streams that fail, places without UTF-8."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from kdsl.base.errors import KdslError
from kdsl.base.garbage import NEW_OBJECTS
from kdsl.cli.main import LazyGroup
from kdsl.cli.output import emit, print_document, wants_colour

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
SIMULATE = [
    "simulate",
    *("--cluster", "examples/quickstart/cluster.yaml"),
    *("--pods", "examples/quickstart/pods.yaml"),
]


def process(*args: str, **env: str) -> subprocess.Popen[bytes]:
    """Start `kdsl` as a process of its own."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
    return subprocess.Popen(
        [sys.executable, "-m", "kdsl", *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("args", "code"), [(SIMULATE, 0), (["check", "examples/broken-rules/unknown-name.broken"], 1)]
)
def test_a_reader_that_leaves_changes_nothing(args: list[str], code: int) -> None:
    with process(*args) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert (running.stderr.read(), running.wait()) == (b"", code)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("more", [[], ["-o", "json"]])
def test_a_full_disk_is_a_message(more: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "kdsl.cli.main", *SIMULATE, *more],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (2, b"error: cannot write: no space left on device\n")


def test_output_that_the_terminal_cannot_show_is_escaped() -> None:
    with process("check", "nowhere\u2026", PYTHONIOENCODING="latin-1") as running:
        out, err = running.communicate()
        assert running.returncode == 2
    assert b"cannot read `nowhere\\u2026`" in out
    assert err == b""


def test_standard_input_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    rules = tmp_path / "a.kdsl"
    rules.write_text("kdsl 1\npackage a\n\n// é …\n", encoding="utf-8")
    with rules.open("rb") as stdin:
        ended = subprocess.run(
            [sys.executable, "-m", "kdsl.cli.main", "fmt", "-"],
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "LC_ALL": "C"},
            stdin=stdin,
            capture_output=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == rules.read_bytes()


def test_a_process_without_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    from kdsl.cli.main import run

    assert run(["fmt", "-"]) == 2
    assert run(["simulate", "--cluster", "-"]) == 2


def failing(error: BaseException) -> click.Command:
    def fail() -> None:
        raise error

    return click.Command("version", callback=fail)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (KdslError("it is too late"), 2, "error: it is too late\n"),
        (click.UsageError("not so"), 2, "Error: not so\n"),
    ],
)
def test_every_expected_failure_is_a_message(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: failing(error))
    result = kdsl("version")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.endswith(said)


INTERRUPTED = """
import io, signal, sys
from kdsl.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)

class Waiting(io.RawIOBase):
    def readable(self):
        return True

    def readinto(self, buffer):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was not heard")

sys.stdin = io.TextIOWrapper(io.BufferedReader(Waiting()))
sys.argv = ["kdsl", "fmt", "-"]
main()
"""
"""Ctrl-C while the command waits for its input: the signal comes from the read itself, so at no other time. A process
that was started in the background may have been told to ignore the signal: this one listens."""


def test_ctrl_c_ends_a_run_that_waits_for_input() -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.split()) == (130, b"", [b"interrupted"])


def test_a_mistyped_command_is_guessed() -> None:
    result = kdsl("simulat")
    assert result.exit_code == 2
    assert "no such command `simulat`; did you mean `simulate`?" in result.stderr


@pytest.mark.parametrize(
    ("env", "wanted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour(monkeypatch: pytest.MonkeyPatch, env: dict[str, str], wanted: bool) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(Terminal()) == wanted
    assert not wants_colour(object())


def shell(command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of the shell in which `kdsl` is the program."""
    return subprocess.run(
        ["/bin/sh", "-c", f'kdsl() {{ "{sys.executable}" -m kdsl.cli.main "$@"; }}; {command}'],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize(
    "args", [" ".join(SIMULATE), "version", "--help", "--version", "rules", "plugins list -o json"]
)
def test_an_answer_that_nobody_gets_is_a_failure(args: str) -> None:
    ended = shell(f"kdsl {args} >&-")
    assert (ended.returncode, ended.stderr) == (2, b"error: cannot write: bad file descriptor\n")


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2</dev/null"])
def test_what_nobody_can_be_told_changes_no_exit_code(closed: str, tmp_path: Path) -> None:
    rules = tmp_path / "a.kdsl"
    rules.write_text("kdsl 1\npackage a\n")
    ended = shell(f"kdsl check {rules} {closed}")
    assert (ended.returncode, ended.stderr) == (0, b"")
    ended = shell(f"kdsl simulate --cluster nowhere {closed}")
    assert (ended.returncode, ended.stderr) == (2, b"")
    assert shell(f"kdsl version >/dev/full {closed}").returncode == 2


def test_help_whose_reader_left_is_no_failure() -> None:
    with process("--help") as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert (running.stderr.read(), running.wait()) == (b"", 0)


def test_placements_go_where_they_are_asked_to(tmp_path: Path) -> None:
    file = tmp_path / "placements.txt"
    assert kdsl(*SIMULATE, "--placements", str(file)).exit_code == 0
    lines = file.read_text().splitlines()
    printed = kdsl(*SIMULATE, "--placements", "-")
    assert printed.exit_code == 0 and printed.stdout.splitlines()[-len(lines) :] == lines
    ended = shell(f"kdsl {' '.join(SIMULATE)} --placements /dev/full")
    assert (ended.returncode, ended.stderr) == (2, b"error: cannot write: no space left on device\n")


@pytest.mark.parametrize("what", ["\x1b[2J", "\u202e", "\x9b31m"])
def test_what_was_typed_is_not_obeyed_either(what: str) -> None:
    for args in (
        (f"simulate{what}",),
        ("check", f"nowhere{what}"),
        ("check", f"--{what}"),
        ("show", f"p{what}"),
        ("eval", f"'{what}'"),
        ("eval", "-o", "json", f"'{what}'"),
        ("simulate", "--cluster", f"nowhere{what}"),
    ):
        ended = kdsl(*args)
        assert what not in ended.stdout + ended.stderr, args


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_is_exact_but_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    emit("// \u202e\x1b[2J\n\tx\n", nl=False, is_exact=True)
    assert screen.getvalue() == "// \\u202e\\x1b[2J\n\tx\n"
    emit("[a](b)", is_painted=True)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    emit("// \u202e\x1b[2J\n", nl=False, is_exact=True)
    assert file.getvalue() == "// \u202e\x1b[2J\n"


def test_a_document_is_the_same_value_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"a\u202e": ["\x1b[2J", "\x9b", "\u2028", "é"]}
    for style in ("json", "yaml"):
        print_document(document, style)
        printed = capsys.readouterr().out
        assert all(line.isprintable() for line in printed.split("\n"))
        assert yaml.safe_load(printed) == document


def test_all_mistakes_in_options_are_told() -> None:
    ended = kdsl("simulate", "--profil", "p", "--tie-break", "heep", "--parallelism", "0", "--seed", "x")
    assert ended.exit_code == 2
    errors = [line for line in ended.stderr.splitlines() if line.startswith("Error: ")]
    options = ("--profil", "--cluster", "--seed", "--tie-break", "--parallelism")
    assert len(errors) == len(options)
    assert all(any(f"'{option}'" in error for error in errors) for option in options)
    nested = kdsl("lab", "run", "--processes", "0", "--onn", "x").stderr
    assert [word in nested for word in ("'--onn'", "'--processes'")] == [True, True]


def test_one_mistake_in_the_use_of_options_is_told_once() -> None:
    assert kdsl("check", "rules", "--profile", "p").stderr.count("Error: ") == 1
    assert kdsl("check", "--format", "yaml").stderr.count("Error: ") == 1
    assert kdsl("chekc").stderr.count("Error: ") == 1


@pytest.mark.parametrize(
    "command",
    [
        "test {}",
        "test --rules rules {}",
        "explain a --cluster {}",
        "eval pod --pod {}",
        "diff {} {}",
        "check {}",
    ],
)
def test_a_path_that_cannot_be_looked_at_is_not_written(command: str) -> None:
    """A name that is too long fails even for root, as a folder without rights does for others."""
    ended = kdsl(*command.format(*2 * ["x" * 300]).split())
    assert ended.exit_code == 2
    said = ended.stdout + ended.stderr
    assert "cannot read" in said and "cannot write" not in said, said


def test_a_current_folder_that_is_gone_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ended = kdsl("simulate", "--cluster", str(ROOT / "examples/quickstart/cluster.yaml"))
    assert (ended.exit_code, ended.stderr) == (2, "error: the current folder does not exist any more\n")


def test_a_file_whose_name_has_two_lines_takes_one(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.kdsl"
    path.write_text("kdsl 1 package a")
    shown = f"{tmp_path}/a\\nb.kdsl"
    assert kdsl("fmt", "--check", str(path)).stdout == f"would format {shown}\n"
    assert kdsl("fmt", str(path)).stderr == f"formatted {shown}\n"
    assert kdsl("convert", "--write", str(path)).stderr == f"wrote {shown}.yaml\n"
    path.write_text("package a\n")
    assert f"fixed {shown}\n" in kdsl("check", "--fix", str(path)).stderr


def test_a_simulation_imports_no_explanations_and_collects_seldom() -> None:
    cluster = str(ROOT / "examples" / "quickstart" / "cluster.yaml")
    code = f"""
import gc, sys
from kdsl.cli.main import main
sys.argv = ["kdsl", "simulate", "--cluster", {cluster!r}]
try:
    main()
finally:
    print(gc.get_threshold()[0], [each for each in sys.modules if each.startswith("kdsl.explain")])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == f"{NEW_OBJECTS} []"


def test_the_module_of_the_commands_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "kdsl.cli.main", "run", "--nope"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and ended.stderr.endswith("Error: No such option '--nope'.\n")
