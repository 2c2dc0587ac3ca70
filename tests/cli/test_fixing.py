"""`--fix` and `--diff` of `kdsl check` and `kdsl lint`, text for text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.base.span import Source, Span
from kdsl.cli.fixing import Check, fix
from kdsl.lang.discovery import Drafts

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


def test_a_fix_that_shows_what_its_mistake_hid_is_applied(tmp_path: Path) -> None:
    """Without `lables` the missing key is what is wrong: as many errors, and one mistake less."""
    path = written(tmp_path, "require node.lables['x'] == 'y' else 'x'")
    result = kdsl("check", "--fix", str(path))
    assert body_of(path) == "require node.labels['x'] == 'y' else 'x'"
    assert result.exit_code == 1 and "K0204" in result.stdout and "K0302" not in result.stdout


def test_a_fix_that_would_make_more_wrong_is_left_and_told(tmp_path: Path) -> None:
    """The good fix of the same file is applied all the same."""
    body = "require nodee.name == 'x' else 'x'\n  require badly.x == 1 else 'x'"
    path = written(tmp_path, body)
    wrong = Source(str(path), path.read_text(encoding="utf-8"))

    def check(drafts: Drafts) -> tuple[Diagnostic, ...]:
        text = drafts[path].decode() if path in drafts else wrong.text
        source = Source(str(path), text)
        return tuple(
            finding
            for name, new, more in (("nodee", "node", 0), ("badly", "worse", 2))
            for finding in found(source, name, new)
            + [Diagnostic("K0301", f"{name} {each}") for each in range(more) if new in text]
        )

    fixed = fix(check)
    assert fixed.changes[path].after.decode() == wrong.text.replace("nodee", "node")
    assert [(each.fix.title, each.why) for each in fixed.left] == [
        ("write `worse`", "with it more is reported: 2 errors, not 1 error")
    ]


def found(source: Source, name: str, new: str) -> list[Diagnostic]:
    """Report each place where a name stands, with a certain fix."""
    starts = [match.start() for match in re.finditer(rf"\b{name}\b", source.text)]
    spans = [Span(source, start, start + len(name)) for start in starts]
    return [
        Diagnostic(
            "K0301", name, span, fixes=(Fix(f"write `{new}`", (Edit(span, new),), Applicability.CERTAIN),)
        )
        for span in spans
    ]


def replacing(path: Path, names: dict[str, str]) -> Check:
    """Return a check that wants every name replaced, and finds nothing else."""

    def check(drafts: Drafts) -> tuple[Diagnostic, ...]:
        text = drafts[path] if path in drafts else path.read_bytes()
        source = Source(str(path), text.decode())
        return tuple(each for name, new in names.items() for each in found(source, name, new))

    return check


def test_fixes_that_touch_each_other_are_applied_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("one two one two", encoding="utf-8")

    def check(drafts: Drafts) -> tuple[Diagnostic, ...]:
        source = Source(str(path), (drafts[path] if path in drafts else path.read_bytes()).decode())
        spans = [
            Span(source, match.start(), match.end()) for match in re.finditer("one|two|  +", source.text)
        ]
        return tuple(
            Diagnostic(
                "K0301", "x", span, fixes=(Fix("leave it out", (Edit(span, ""),), Applicability.CERTAIN),)
            )
            for span in spans
        )

    fixed = fix(check)
    assert (fixed.findings, fixed.left) == ((), ())
    assert fixed.changes[path].after.strip() == b""


def test_fixes_that_undo_each_other_end(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("black", encoding="utf-8")
    fixed = fix(replacing(path, {"black": "white", "white": "black"}))
    assert [each.why for each in fixed.left] == ["it would undo another fix"]


def test_fixing_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("n", encoding="utf-8")
    checks = 0

    def check(drafts: Drafts) -> tuple[Diagnostic, ...]:
        nonlocal checks
        checks += 1
        text = (drafts[path] if path in drafts else path.read_bytes()).decode()
        return tuple(found(Source(str(path), text), text, text + "n"))

    fixed = fix(check, tries=5)
    assert checks == 6
    assert [each.why for each in fixed.left] == ["the rules were checked often enough; run it again"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("tighten // no more\n    and  add scores", "tighten, // no more\n    add scores"),
        ("tighten, and add scores", "tighten, add scores"),
    ],
)
def test_rights_joined_by_a_word_keep_their_comments(written: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    text = 'kdsl 1\npackage a\n\nteam t {{\n  owns pod.namespace == "t"\n  may {}\n}}\n'
    path.write_text(text.format(written))
    assert "fixed" in kdsl("check", "--fix", str(path)).stderr
    assert path.read_text() == text.format(expected)


def test_a_configuration_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "kdsl.yaml"
    head = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"
    path.write_text(f"{head}paralellism: 4\n")
    result = kdsl("check", "--fix", "--config", str(path))
    assert (result.exit_code, path.read_text()) == (0, f"{head}parallelism: 4\n")
    assert result.stderr.startswith(f"fixed {path}\n") and "left" not in result.stderr


def test_what_no_file_holds_is_left_and_told(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "gone.kdsl"), "lables")
    fixed = fix(lambda _: tuple(found(source, "lables", "labels")))
    assert (fixed.changes, [each.why for each in fixed.left]) == ({}, ["no file holds this text"])


def test_what_is_left_is_said_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "require node.lables.size() == 0 else 'x'")
    monkeypatch.setattr("kdsl.cli.fixing.MAX_TRIES", 0)
    result = kdsl("check", "--fix", str(path))
    assert result.stderr == (
        f"left {path}:6:16: did you mean `labels`?: the rules were checked often enough; run it again\n"
    )


@pytest.mark.parametrize("name", ["a.test.yaml", "a.json", "a.rego", "README.md"])
def test_a_file_of_another_form_is_not_mended(tmp_path: Path, name: str) -> None:
    """A test that is taken for a rule file has lines such as `profile: a`, whose `:` a rule file does not have."""
    path = tmp_path / name
    path.write_text("kind: RuleTest\nprofile: a\ntests:\n- name: b\n  queue: [c]\n")
    text = path.read_text()
    done = kdsl("check", "--fix", str(path))
    assert (done.exit_code, path.read_text()) == (1, text)
    assert done.stdout.count("error[") == 1 and "rule tests `kdsl test`" in done.stdout
