from __future__ import annotations

import os
from pathlib import Path

import pytest
from kdsl.base.span import Source
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import MAX_BYTES, find_rule_files
from kdsl.lang.loader import load_rules, load_sources
from kdsl.lang.program import LoadResult, alias_of
from kdsl.report.diagnostics import render


def load(**texts: str) -> LoadResult:
    return load_sources(Source(f"{name}.kdsl", f"kdsl 1\n{text}\n") for name, text in texts.items())


def codes(result: LoadResult) -> list[str]:
    return [diagnostic.code for diagnostic in result.diagnostics]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.kdsl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"kdsl 1\n{text}\n", encoding="utf-8")


def test_packages_come_after_what_they_import() -> None:
    result = load(
        a="package a\nimport c.d\nimport b as x\nscore S { value 1 }",
        b="package b\nimport c.d",
        c="package c.d\nscore S { value 1 }",
        more="package c.d\npredicate S {}",
    )
    assert result.diagnostics == ()
    program = result.program
    assert list(program.packages) == ["c.d", "b", "a"]
    assert [file.span.source.path for file in program.packages["c.d"].files] == ["c.kdsl", "more.kdsl"]
    assert [type(each).__name__ for each in program.packages["c.d"].declarations] == ["Score", "Predicate"]
    assert [alias_of(each) for each in program.files[0].imports] == ["d", "x"]


def test_the_order_does_not_depend_on_the_order_of_files() -> None:
    texts = {
        "a": "package a\nimport c",
        "b": "package b\nimport c",
        "c": "package c",
        "d": "package d\nimport a",
    }
    forward, backward = load(**texts), load(**dict(reversed(texts.items())))
    assert list(forward.program.packages) == list(backward.program.packages)
    assert forward.program.digest == backward.program.digest


def test_an_unknown_package() -> None:
    result = load(a="package kubernetes.v1_36", b="package b\nimport kubernetes.v1_63 as k")
    assert (
        render(result.diagnostics)
        == """\
error[K0350]: there is no package `kubernetes.v1_63`
  --> b.kdsl:3:8
   |
 3 | import kubernetes.v1_63 as k
   |        ^^^^^^^^^^^^^^^^ no loaded file has this package
   = help: did you mean `kubernetes.v1_36`? [fix 1]

1 error"""
    )


def test_an_unknown_package_may_be_near_one_of_a_library() -> None:
    library = [Source("l.kdsl", "kdsl 1\npackage kubernetes.v1_36\n")]
    result = load_sources(
        [Source("a.kdsl", "kdsl 1\npackage a\nimport kubernetes.v1_37\n")], lambda: [library]
    )
    (problem,) = result.diagnostics
    assert [fix.title for fix in problem.fixes] == ["did you mean `kubernetes.v1_36`?"]


def test_a_folder_of_packages_is_none_itself() -> None:
    library = [Source("l.kdsl", "kdsl 1\npackage kubernetes.v1_36\n")]
    files = [Source("a.kdsl", "kdsl 1\npackage a\nimport kubernetes\nimport absent\n")]
    found = load_sources(files, lambda: [library]).diagnostics
    assert [problem.help for problem in found] == [
        ("write one of its packages: `kubernetes.v1_36`",),
        ("only named folders and files and rules of `kdsl plugins list` are read: name it too",),
    ]


def test_the_packages_beside_an_unknown_one_are_listed() -> None:
    library = [Source(name, f"kdsl 1\npackage policies.{name}\n") for name in ("fgd", "room")]
    team = Source("t.kdsl", "kdsl 1\npackage policies.team\n")
    files = [Source("a.kdsl", "kdsl 1\npackage a\nimport policies.other\nimport policies.room\n"), team]
    (problem,) = load_sources(files, lambda: [library]).diagnostics
    assert problem.help == (
        "packages of `policies`: `policies.fgd`, `policies.room`",
        "only named folders and files and rules of `kdsl plugins list` are read: name it too",
    )


def test_a_broken_file_does_not_make_its_package_unknown() -> None:
    result = load(a="package a\nscore {}", b="package b\nimport a")
    assert codes(result) == [LangCode.UNEXPECTED]
    result = load_sources([Source("a", "kdsl 2\npackage a"), Source("b", "kdsl 1\npackage b\nimport a")])
    assert codes(result) == [LangCode.HEADER]


def test_an_import_cycle_is_shown() -> None:
    result = load(
        a="package a\nimport b", b="package b\nimport c", c="package c\nimport a", d="package d\nimport a"
    )
    assert codes(result) == [LangCode.IMPORT_CYCLE]
    (diagnostic,) = result.diagnostics
    names = diagnostic.title.partition(": ")[2].split(" → ")
    assert names[0] == names[-1]
    assert set(names) == {"`a`", "`b`", "`c`"}
    assert diagnostic.span is not None
    imported = {f"`{diagnostic.span.source.path[0]}`": diagnostic.span.text[-1]}
    imported |= {f"`{label.span.source.path[0]}`": label.span.text[-1] for label in diagnostic.secondary}
    assert [f"`{imported[name]}`" for name in names[:-1]] == names[1:]
    assert set(result.program.packages) == {"a", "b", "c", "d"}


def test_every_cycle_is_reported() -> None:
    result = load(a="package a\nimport a", b="package b\nimport c", c="package c\nimport b")
    assert codes(result) == [LangCode.IMPORT_CYCLE] * 2
    assert "package `a` imports itself" in {diagnostic.title for diagnostic in result.diagnostics}


def test_two_imports_under_one_name() -> None:
    result = load(a="package x.a", b="package y.a", c="package c\nimport x.a\nimport y.a\nimport x.a as z")
    (diagnostic,) = result.diagnostics
    assert diagnostic.code == LangCode.DUPLICATE_ALIAS
    assert diagnostic.span is not None
    assert (diagnostic.span.line, diagnostic.secondary[0].span.line) == (4, 3)


def test_a_declaration_is_declared_once() -> None:
    result = load(
        a="package a\nscore S { value 1 }\npredicate S {}\nparam p = 1",
        b="package a\nscore S { value 2 }\nfn S(): int = 1\nparam p = 2",
        c="package c\nscore S { value 2 }",
    )
    assert [diagnostic.title for diagnostic in result.diagnostics] == [
        "score `S` is declared twice",
        "param `p` is declared twice",
    ]
    again, first = result.diagnostics[0].span, result.diagnostics[0].secondary[0].span
    assert again is not None
    assert (again.site, first.site) == ("b.kdsl:3", "a.kdsl:3")


def test_a_file_needs_a_package() -> None:
    result = load(a="score S { value 1 }")
    assert codes(result) == [LangCode.NO_PACKAGE]
    assert result.diagnostics[0].where == "a.kdsl"


def test_a_file_in_yaml_without_a_package_is_told_how_yaml_names_it() -> None:
    (found,) = load_sources([Source("a.kdsl.yaml", "")]).diagnostics
    assert (found.code, found.title) == (
        LangCode.NO_PACKAGE,
        "`a.kdsl.yaml` has no document `kind: Package`",
    )
    (help_,) = found.help
    written = help_.split("`")[1]
    # A file with the text of the help loads.
    result = load_sources([Source("a.kdsl.yaml", f"{written}\n")])
    assert not result.diagnostics and [*result.program.packages] == ["some.name"]


def test_the_digest_is_of_the_rules_not_of_the_place(tmp_path: Path) -> None:
    write(tmp_path / "one", a="package a", sub__b="package b")
    write(tmp_path / "two", other__a="package a", b="package b")
    one, two = load_rules([tmp_path / "one"]), load_rules([tmp_path / "two"])
    assert one.program.digest == two.program.digest
    write(tmp_path / "two", b="package b // changed")
    assert load_rules([tmp_path / "two"]).program.digest != one.program.digest
    assert len(one.program.digest) == 64


# ---- files -----------------------------------------------------------------------------------------------


def test_files_are_found_once_and_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, b="package b", a="package a", sub__c="package c", **{".git__x": "package x"})
    (tmp_path / "notes.txt").write_text("kdsl 1\npackage n\n")
    monkeypatch.chdir(tmp_path)
    files, diagnostics = find_rule_files(["sub/c.kdsl", ".", Path("a.kdsl")])
    assert [str(file.path) for file in files] == ["sub/c.kdsl", "a.kdsl", "b.kdsl"]
    assert diagnostics == ()
    result = load_rules(["sub", "notes.txt"])
    assert [str(file.span.source.path) for file in result.program.files] == ["sub/c.kdsl", "notes.txt"]


def test_a_mounted_config_map_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "..2024_01_01", rules="package a\nscore S { value 1 }")
    (tmp_path / "..data").symlink_to("..2024_01_01")
    (tmp_path / "rules.kdsl").symlink_to("..data/rules.kdsl")
    result = load_rules([tmp_path])
    assert result.diagnostics == ()
    assert len(result.program.files) == 1


def test_a_link_loop_ends(tmp_path: Path) -> None:
    write(tmp_path, sub__a="package a")
    (tmp_path / "sub/up").symlink_to(tmp_path)
    result = load_rules([tmp_path])
    assert codes(result) == [LangCode.LINK_LOOP]
    assert len(result.program.files) == 1


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a="package a", b="package b")
    (tmp_path / "c.kdsl").write_bytes(b"kdsl 1\npackage c // \xff\n")
    (tmp_path / "d.kdsl").symlink_to("nowhere")
    (tmp_path / "empty").mkdir()

    real_open = os.open

    def refuse(path: Path, *args: int) -> int:
        if Path(path).name == "b.kdsl":
            raise PermissionError(13, "Permission denied")
        return real_open(path, *args)

    monkeypatch.setattr(os, "open", refuse)
    result = load_rules([tmp_path, tmp_path / "missing", tmp_path / "empty"])
    titles = [
        f"{diagnostic.code} {diagnostic.title.replace(f'{tmp_path}/', '')}"
        for diagnostic in result.diagnostics
    ]
    assert titles == [
        "K0355 cannot read `d.kdsl`: no such file or directory",
        "K0358 no `*.kdsl` file below `empty`",
        "K0355 cannot read `b.kdsl`: permission denied",
        "K0356 `c.kdsl` is not UTF-8 text",
        "K0355 cannot read `missing`: no such file or directory",
    ]
    assert list(result.program.packages) == ["a"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_bytes(b"\xef\xbb\xbfkdsl 1\npackage a\n")
    result = load_rules([tmp_path / "a.kdsl"])
    assert result.diagnostics == ()
    assert result.program.files[0].span.source.text.startswith("kdsl")


def test_the_shipped_rules_load() -> None:
    result = load_rules([Path(__file__).parents[2] / "rules"])
    assert result.diagnostics == ()
    assert result.program.packages


def test_what_an_ignore_file_names_is_passed_by(tmp_path: Path) -> None:
    write(tmp_path, a="package a", old__a="package b", lib__old__a="package c", lib__b="package d")
    (tmp_path / ".kdslignore").write_text("# not ours\nold/\n\n**/b.kdsl\n", encoding="utf-8")
    found, problems = find_rule_files([tmp_path])
    assert problems == ()
    assert [file.path.relative_to(tmp_path).as_posix() for file in found] == ["a.kdsl", "lib/old/a.kdsl"]
    named, _ = find_rule_files([tmp_path / "old", tmp_path / "lib" / "b.kdsl"])
    assert len(named) == 2
    (tmp_path / "lib" / ".kdslignore").write_text("old\n", encoding="utf-8")
    assert len(find_rule_files([tmp_path])[0]) == 1


def test_an_ignore_file_that_leaves_out_everything_is_named(tmp_path: Path) -> None:
    write(tmp_path, a="package a", lib__b="package b")
    (tmp_path / ".kdslignore").write_text("*.kdsl\n", encoding="utf-8")
    (tmp_path / "lib" / ".kdslignore").write_text("b.*\n", encoding="utf-8")
    found, (problem,) = find_rule_files([tmp_path])
    assert (found, problem.code) == ((), LangCode.NO_RULES)
    assert problem.notes == tuple(
        f"`{folder / '.kdslignore'}` leaves out names" for folder in (tmp_path, tmp_path / "lib")
    )


@pytest.mark.parametrize("start", ["!", "/", "./", "../"])
def test_a_pattern_of_git_that_fits_no_name_is_reported(tmp_path: Path, start: str) -> None:
    write(tmp_path, a="package a", b="package b")
    (tmp_path / ".kdslignore").write_text(f"# here\n  {start}b.kdsl \na.*\n", encoding="utf-8")
    (found,), (problem,) = find_rule_files([tmp_path])
    assert (found.path.name, problem.code) == ("b.kdsl", LangCode.IDLE_PATTERN)
    assert problem.span is not None
    assert (problem.span.text, problem.span.line, problem.span.column) == (f"{start}b.kdsl", 2, 3)
    assert ("the other folder" in problem.help[0]) == (start == "../")


def test_an_ignore_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, a="package a")
    (tmp_path / ".kdslignore").write_bytes(b"caf\xe9\n")
    found, (problem,) = find_rule_files([tmp_path])
    assert (len(found), problem.code) == (1, LangCode.NOT_UTF8)


def test_a_file_that_would_take_long_is_refused_unread(tmp_path: Path) -> None:
    start = "kdsl 1\npackage a\n"
    path = tmp_path / "a.kdsl"
    path.write_text(start + "\n" * (MAX_BYTES - len(start)))
    assert not load_rules([path]).diagnostics
    path.write_text(start + "\n" * (MAX_BYTES - len(start) + 1))
    (problem,) = load_rules([path]).diagnostics
    assert (problem.code, problem.where) == (LangCode.FILE_TOO_LARGE, str(path))


def test_a_file_and_its_yaml_form_are_told_apart_from_two_rules_of_one_name(tmp_path: Path) -> None:
    write(tmp_path, a="package a\nscore S { value 1 }")
    twin = "apiVersion: kdsl.dev/v1\nkind: Package\nmetadata: {name: a}\n---\napiVersion: kdsl.dev/v1\nkind: Score\n"
    (tmp_path / "a.kdsl.yaml").write_text(f"{twin}metadata: {{name: S}}\nspec: {{body: [{{value: '1'}}]}}\n")
    (found,) = load_rules([tmp_path]).diagnostics
    place = tmp_path / "a.kdsl"
    assert found.help == (f"`{place}.yaml` is the YAML form of `{place}`: remove one of the two files",)
