"""Folders that hold what a command would wait for, read without end or print: pipes, devices, huge files, links
to secrets, and links that lead to themselves.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from kdsl.lang.discovery import find_rule_files
from kdsl.testing.patterns import files_matching

from .layouts import GOOD, UNTIDY, ended, write

SECRET = "root:$6$not-for-you"
PODS = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: d}\nspec: {containers: [{name: c, image: i}]}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n"
TEST = """apiVersion: kdsl.dev/v1
kind: RuleTest
rules: [RULES]
profile: default_1_34
fixtures: {from: [FROM]}
tests: [{name: t, pod: p, expect: {placed: true}}]
"""

Make = Callable[[Path], None]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path has a hundred characters at most
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def _pipe_beside(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


SPECIAL: dict[str, Make] = {
    "pipe": _pipe,
    "link to a pipe": _pipe_beside,
    "socket": _socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "hidden pipe": lambda path: (os.mkfifo(path.with_name(".p")), path.symlink_to(".p"))[1],
    "huge": _huge,
}

IN_FOLDERS = {
    "check": ("x.kdsl", ["check", "."]),
    "lint": ("x.kdsl", ["lint", "."]),
    "fix": ("x.kdsl", ["check", "--fix", "."]),
    "ignored": (".kdslignore", ["check", "."]),
    "twin": ("x.kdsl.yaml", ["check", "."]),
    "fmt": ("x.kdsl", ["fmt", "."]),
    "show": ("x.kdsl", ["show", "p", "--rules", "."]),
    "diff": ("x.kdsl", ["diff", ".", "."]),
    "test": ("x.test.yaml", ["test", "."]),
    "cluster": ("x.yaml", ["simulate", "--cluster", "."]),
    "pods": ("x.json", ["simulate", "--cluster", "node.yml", "--pods", "."]),
    "explain": ("x.yaml.gz", ["explain", "p", "--cluster", "."]),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("command", IN_FOLDERS)
def test_what_is_no_file_is_refused_in_folders(command: str, kind: str) -> None:
    name, args = IN_FOLDERS[command]
    write(Path("node.yml"), NODE)
    write(Path("a.kdsl"), GOOD)
    SPECIAL[kind](Path(name))
    result = ended(*args)
    said = result.stdout + result.stderr
    assert result.exit_code != 0
    assert name in said
    assert any(
        words in said
        for words in ("it is no regular file", "leads out of the folder", "large", "no such device")
    )


AS_NAMED = {
    "check": ["check", "PATH"],
    "lint": ["lint", "PATH"],
    "fmt": ["fmt", "PATH"],
    "convert": ["convert", "PATH"],
    "config": ["check", "--config", "PATH"],
    "test": ["test", "PATH"],
    "test config": ["test", "--config", "PATH"],
    "cluster": ["simulate", "--cluster", "PATH"],
    "openb": ["simulate", "--format", "openb", "--cluster", "PATH", "--pods", "PATH"],
    "eval": ["eval", "pod.name", "--pod", "PATH"],
    "node": ["eval", "node.name", "--node", "PATH"],
    "rules": ["simulate", "--cluster", "node.yml", "--rules", "PATH"],
}


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "/dev/null", "huge", "link"])
@pytest.mark.parametrize("command", AS_NAMED)
def test_what_is_no_file_is_refused_by_name(command: str, path: str) -> None:
    write(Path("node.yml"), NODE)
    _pipe(Path("pipe"))
    _huge(Path("huge"))
    Path("link").symlink_to("/dev/zero")
    result = ended(*(path if arg == "PATH" else arg for arg in AS_NAMED[command]))
    said = result.stdout + result.stderr
    assert result.exit_code != 0
    assert any(
        words in said for words in ("no regular file", "nothing was written to", "large", "it is no regular")
    )


@pytest.mark.parametrize("command", ["check", "cluster", "test", "config"])
def test_a_file_beyond_the_limit_is_not_read_beyond_its_beginning(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _huge(Path("huge"))
    args = ["huge" if arg == "PATH" else arg for arg in AS_NAMED[command]]
    sizes: list[int] = []
    real_read = os.read

    def counted(descriptor: int, most: int) -> bytes:
        piece = real_read(descriptor, most)
        sizes.append(piece.count(0))
        return piece

    monkeypatch.setattr(os, "read", counted)
    result = ended(*args)
    assert result.exit_code == 2 or "K0360" in result.stdout
    # Its beginning shows whether it is a text at all.
    assert sum(sizes) <= 4096


@pytest.mark.parametrize("how", ["absolute", "up", "by a link", "by a folder"])
@pytest.mark.parametrize("command", [each for each in IN_FOLDERS if each not in ("ignored", "explain")])
def test_nobody_prints_a_secret(command: str, how: str, tmp_path: Path) -> None:
    name, args = IN_FOLDERS[command]
    write(tmp_path / "shadow", SECRET)
    write(tmp_path / "etc" / name, SECRET)
    write(Path("node.yml"), NODE)
    write(Path("a.kdsl"), GOOD)
    if how == "by a folder":
        Path("folder").symlink_to(tmp_path / "etc")
    elif how == "by a link":
        Path(".between").symlink_to("../shadow")
        Path(name).symlink_to(".between")
    else:
        Path(name).symlink_to(tmp_path / "shadow" if how == "absolute" else "../shadow")
    result = ended(*args)
    said = result.stdout + result.stderr
    assert SECRET not in said
    assert "leads out of the folder" in said
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "pattern", ["x.yaml", "*.yaml", "**/*.yaml", "d/x.yaml", "*/x.yaml", "x.yaml#cycle=0"]
)
def test_a_fixture_prints_no_secret(pattern: str, tmp_path: Path) -> None:
    write(tmp_path / "x.yaml", SECRET)
    Path("x.yaml").symlink_to("../x.yaml")
    write(tmp_path / "beside" / "x.yaml", SECRET)
    Path("d").symlink_to("../beside")
    Path("a.test.yaml").write_text(TEST.replace("rules: [RULES]\n", "").replace("FROM", f"'{pattern}'"))
    result = ended("test", "a.test.yaml")
    assert SECRET not in result.stdout + result.stderr
    assert "leads out of the folder" in result.stderr
    assert result.exit_code == 2


def test_rules_that_are_refused_are_not_those_that_ship(tmp_path: Path) -> None:
    """A test without `rules` is about those beside it: a link among them must not make it one of others."""
    write(tmp_path / "x.kdsl", GOOD)
    Path("x.kdsl").symlink_to("../x.kdsl")
    write(Path("c.yaml"), f"{NODE}---\n{PODS}")
    Path("a.test.yaml").write_text(TEST.replace("rules: [RULES]\n", "").replace("FROM", "c.yaml"))
    result = ended("test", "a.test.yaml")
    assert (result.exit_code, "error[K0361]" in result.stderr) == (2, True)


def test_a_test_reaches_no_rules_by_a_link(tmp_path: Path) -> None:
    write(tmp_path / "secret.kdsl", SECRET)
    Path("s.kdsl").symlink_to("../secret.kdsl")
    Path("a.test.yaml").write_text(TEST.replace("RULES", "s.kdsl").replace("FROM", "none.yaml"))
    result = ended("test", "a.test.yaml")
    assert SECRET not in result.stdout + result.stderr
    assert "leads out of the folder" in result.stderr


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "socket", "huge"])
def test_a_fixture_that_is_no_file_is_refused(kind: str) -> None:
    SPECIAL[kind](Path("x.yaml"))
    Path("a.test.yaml").write_text(TEST.replace("rules: [RULES]\n", "").replace("FROM", "'*.yaml'"))
    result = ended("test", "a.test.yaml")
    assert result.exit_code == 2
    assert "cannot read `x.yaml`" in result.stderr


@pytest.mark.parametrize("args", [["fmt", "."], ["check", "--fix", "."], ["lint", "--fix", "."]])
@pytest.mark.parametrize("how", ["link", "folder", "hard link"])
def test_nothing_is_written_outside_the_folder(args: list[str], how: str, tmp_path: Path) -> None:
    text = UNTIDY + 'predicate P { require node.podCont < 3 else "full" }\n'
    write(tmp_path / "out" / "o.kdsl", text)
    if how == "hard link":
        os.link(tmp_path / "out" / "o.kdsl", "o.kdsl")
    elif how == "link":
        Path("o.kdsl").symlink_to("../out/o.kdsl")
    else:
        Path("o").symlink_to("../out")
    ended(*args)
    assert (tmp_path / "out" / "o.kdsl").read_text() == text


def test_fmt_writes_through_a_config_map() -> None:
    write(Path("..data") / "a.kdsl", UNTIDY)
    Path("a.kdsl").symlink_to("..data/a.kdsl")
    assert ended("fmt", ".").exit_code == 0
    assert Path("a.kdsl").is_symlink()
    assert Path("..data/a.kdsl").read_text() == GOOD


# ---- many ways to one place ------------------------------------------------------------------------------

DEPTH = 24
"""Of folders with two links each: so many that following each way takes hours."""


def _doubled_up(folder: Path) -> None:
    """Two links to the folder itself, so that each name is there without end."""
    for name in "ab":
        (folder / name).symlink_to(".")


def _doubled_beside(folder: Path) -> None:
    for number in range(DEPTH):
        (folder / f"l{number:02}").mkdir()
        for name in "ab":
            (folder / f"l{number:02}" / name).symlink_to(f"../l{number + 1:02}")
    write(folder / f"l{DEPTH:02}" / "deep.kdsl", "kdsl 1\npackage deep\n")


def _doubled_below(folder: Path, name: str = "h") -> None:
    """Folders inside one another with two links from each into the next, which all stay inside."""
    here = folder
    for _ in range(DEPTH):
        (here / name).mkdir()
        for link in "ab":
            (here / link).symlink_to(name)
        here = here / name
    write(here / "deep.kdsl", "kdsl 1\npackage deep\n")


DOUBLED: dict[str, Make] = {
    "up": _doubled_up,
    "beside": _doubled_beside,
    "below": _doubled_below,
    "hidden": lambda folder: _doubled_below(folder, ".h"),
}


@pytest.mark.parametrize("how", DOUBLED)
@pytest.mark.parametrize("args", [["check", "."], ["fmt", "."], ["lint", "."]])
def test_a_folder_is_looked_through_once_whatever_leads_there(how: str, args: list[str]) -> None:
    write(Path("a.kdsl"), UNTIDY)
    DOUBLED[how](Path())
    result = ended(*args)
    assert result.exit_code in (0, 2)
    found = [file.path.name for file in find_rule_files([Path()])[0]]
    assert sorted(found) == (["a.kdsl"] if how == "up" else ["a.kdsl", "deep.kdsl"])


@pytest.mark.parametrize("how", DOUBLED)
@pytest.mark.parametrize("pattern", ["*/" * DEPTH + "*.kdsl", "**/" * 9 + "*.kdsl", "**/*.kdsl"])
def test_a_pattern_looks_through_a_folder_once(how: str, pattern: str) -> None:
    DOUBLED[how](Path())
    write(Path("a.kdsl"), GOOD)
    problems: list[OSError] = []
    found = files_matching(Path(), pattern, problems)
    assert len(found) <= 2
    assert len(problems) <= 2 * DEPTH * DEPTH


@pytest.mark.parametrize(
    ("links", "code"),
    [
        ({"b.kdsl": "c.kdsl", "c.kdsl": "b.kdsl"}, "K0355"),
        ({"b.kdsl": "b.kdsl"}, "K0355"),
        ({"b.kdsl": "nowhere"}, "K0355"),
        ({"sub": "."}, "K0357"),
        ({"sub": ".."}, "K0357"),
        ({"sub": "/"}, "K0357"),
        ({"sub": "../beside"}, "K0361"),
        ({"sub": "../here-too"}, "K0361"),
        ({"b.kdsl": "../here-too/x.kdsl"}, "K0361"),
        ({"notes": "../here-too/x.kdsl"}, None),
        ({"notes.txt": "nowhere"}, None),
        ({"b.kdsl": "a.kdsl"}, None),
    ],
)
def test_links(links: dict[str, str], code: str | None, tmp_path: Path) -> None:
    write(Path("a.kdsl"), GOOD)
    write(tmp_path / "here-too" / "x.kdsl", GOOD)
    (tmp_path / "beside").mkdir()
    for name, target in links.items():
        Path(name).symlink_to(target)
    found, problems = find_rule_files([Path()])
    assert [str(file.path) for file in found] == ["a.kdsl"]
    assert {str(each.code) for each in problems} == ({code} if code else set())


# ---- what people need ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_a_cluster_from_a_command(place: str) -> None:
    """The shell makes such a path of `<(kubectl get nodes -o yaml)`."""
    reader, writer = os.pipe()
    os.write(writer, f"{NODE}---\n{PODS}".encode())
    os.close(writer)
    try:
        result = ended("simulate", "--cluster", place.format(reader))
    finally:
        os.close(reader)
    assert result.exit_code == 0
    assert "d/p" in result.stdout


def test_a_named_pipe_with_a_writer_is_read_to_its_end() -> None:
    _pipe(Path("pipe"))
    descriptor = os.open("pipe", os.O_RDWR)
    os.write(descriptor, f"{NODE}---\n{PODS}".encode())
    reader = os.open("pipe", os.O_RDONLY)
    os.close(descriptor)
    try:
        assert ended("simulate", "--cluster", f"/dev/fd/{reader}").exit_code == 0
    finally:
        os.close(reader)


def test_links_that_the_user_names(tmp_path: Path) -> None:
    write(tmp_path / "data" / "cluster.yaml", f"{NODE}---\n{PODS}")
    write(tmp_path / "data" / "a.kdsl", UNTIDY)
    Path("c.yaml").symlink_to("../data/cluster.yaml")
    Path("d").symlink_to("../data")
    Path("b.kdsl").symlink_to("../data/a.kdsl")
    for path in ("c.yaml", "d"):
        assert ended("simulate", "--cluster", path).exit_code == 0
    assert ended("check", "b.kdsl").exit_code == 0
    assert ended("fmt", "b.kdsl").exit_code == 0
    assert Path("b.kdsl").is_symlink()
    assert (tmp_path / "data" / "a.kdsl").read_text() == GOOD


def test_a_mounted_folder_of_manifests_and_tests() -> None:
    write(Path("..2026") / "cluster.yaml", f"{NODE}---\n{PODS}")
    text = TEST.replace("rules: [RULES]\n", "").replace("FROM", "'cluster.yaml'")
    write(Path("..2026") / "a.test.yaml", text)
    Path("..data").symlink_to("..2026")
    for name in ("cluster.yaml", "a.test.yaml"):
        Path(name).symlink_to(f"..data/{name}")
    result = ended("test", ".")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "1 passed" in result.stdout
