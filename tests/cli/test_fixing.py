"""`--fix` and `--diff` of `kdsl check` and `kdsl lint`, text for text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl

HEAD = "kdsl 1\npackage a\nimport kubernetes.v1_36 as kubernetes\n\n"
TAIL = '\nprofile one {\n  scheduler "one"\n  predicates { P }\n  queue kubernetes.PrioritySort\n}\n'

CHECKED = [
    # one candidate
    ("require node.lables.size() == 0 else 'x'", "require node.labels.size() == 0 else 'x'"),
    ("require nodee.unschedulable else 'x'", "require node.unschedulable else 'x'"),
    ("require node.name.startWith('a') else 'x'", "require node.name.startsWith('a') else 'x'"),
    ("requires node.unschedulable else 'x'", "require node.unschedulable else 'x'"),
    # literals of another type
    ("require node.podCount * 1.5 < 3 else 'x'", None),
    ("require double(node.podCount) * 2 < 3.5 else 'x'", "require double(node.podCount) * 2.0 < 3.5 else 'x'"),
    ('require pod.requests["cpu"] < "500m" else "x"', 'require pod.requests["cpu"] < quantity("500m") else "x"'),
    # slips
    ("require node.name = 'x' else 'x'", "require node.name == 'x' else 'x'"),
    ("require node.unschedulable 'x'", "require node.unschedulable else 'x'"),
    # a choice is left to the user
    ("require node.labels['x'] == 'y' else 'x'", None),
]  # fmt: skip

LINTED = [
    ("require node.labels.size() > 0 else 'x'", None),
    ('require node.labels.size() > 0 else "x"', 'require node.labels.size() > 0 else unresolvable "x"'),
    ('let n = 1 // never\n  require node.podCount > 0 else "x"', 'require node.podCount > 0 else "x"'),
    (
        '// kdsl: ignore[K0701] it was needed once\n  require node.podCount > 0 else "x"',
        'require node.podCount > 0 else "x"',
    ),
]  # fmt: skip


def written(folder: Path, body: str) -> Path:
    path = folder / "a.kdsl"
    path.write_text(f"{HEAD}predicate P {{\n  {body}\n}}\n{TAIL}", encoding="utf-8")
    return path


def body_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return text.removeprefix(f"{HEAD}predicate P {{\n  ").removesuffix(f"\n}}\n{TAIL}")


@pytest.mark.parametrize(
    ("command", "body", "expected"),
    [*(("check", *each) for each in CHECKED), *(("lint", *each) for each in LINTED)],
)
def test_what_is_certain_is_fixed(command: str, body: str, expected: str | None, tmp_path: Path) -> None:
    path = written(tmp_path, body)
    before = path.read_bytes()
    preview = kdsl(command, "--diff", str(path))
    assert path.read_bytes() == before
    fixed = kdsl(command, "--fix", str(path))
    assert body_of(path) == (body if expected is None else expected)
    assert (f"fixed {path}" in fixed.stderr) == (expected is not None)
    assert preview.exit_code == (0 if expected is None else 1)
    assert (preview.stdout != "") == (expected is not None)
    again = path.read_bytes()
    kdsl(command, "--fix", str(path))
    assert path.read_bytes() == again


def test_a_name_in_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    rule = 'predicate Small {\n  require node.podCount < 3 else "x"\n}\n'
    path.write_text(HEAD + rule + TAIL.replace("{ P }", "{ Smal }"), encoding="utf-8")
    assert kdsl("check", "--fix", str(path)).exit_code == 0
    assert "predicates { Small }" in path.read_text(encoding="utf-8")


def test_a_diff_shows_the_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "require node.lables.size() == 0 else 'x'")
    lines = kdsl("check", "--diff", str(path)).stdout.splitlines()
    assert lines[:2] == [f"--- {path}", f"+++ {path} (fixed)"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "-  require node.lables.size() == 0 else 'x'",
        "+  require node.labels.size() == 0 else 'x'",
    ]


def test_a_fix_that_makes_nothing_better_is_not_applied(tmp_path: Path) -> None:
    """`y` is near to `x` alone, but `let y = x` would then say what is reported as well."""
    body = "let labelz = node.labelz\n  require labelz else 'x'"
    path = written(tmp_path, body)
    kdsl("check", "--fix", str(path))
    after = body_of(path)
    assert after in (body, body.replace("node.labelz", "node.labels"))


def test_line_ends_byte_order_mark_and_mode_stay(tmp_path: Path) -> None:
    path = written(tmp_path, "require node.lables.size() == 0 else 'x'")
    text = b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(text)
    path.chmod(0o640)
    assert kdsl("check", "--fix", str(path)).exit_code == 0
    assert path.read_bytes() == text.replace(b"lables", b"labels")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["a.kdsl"]


def test_only_files_that_get_better_are_written(tmp_path: Path) -> None:
    good = written(tmp_path, "require node.lables.size() == 0 else 'x'")
    other = tmp_path / "b.kdsl"
    other.write_text("kdsl 1\npackage b\n\nscore S {\n  value node.labels['x'].size()\n}\n", encoding="utf-8")
    before = other.read_bytes()
    result = kdsl("check", "--fix", str(tmp_path))
    assert result.exit_code == 1 and "K0204" in result.stdout
    assert "labels" in good.read_text(encoding="utf-8") and other.read_bytes() == before
