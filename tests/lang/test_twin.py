"""The law of the twin: the same tree in both forms; and every mistake in YAML has its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from kdsl.base.span import Source
from kdsl.lang import device_tree, profile_tree, tree
from kdsl.lang.loader import load_rules
from kdsl.lang.parser import parse_file
from kdsl.lang.printer import format_file
from kdsl.lang.twin import convert, format_twin, is_twin, parse_rules, parse_twin, twin_schema
from kdsl.lang.twin_table import BLOCKS, KINDS
from kdsl.report.diagnostics import render

from tests.lang.strategies import files

ROOT = Path(__file__).parent.parent.parent
SAMPLES = [*sorted((Path(__file__).parent / "samples").glob("*.kdsl")), *sorted(ROOT.glob("rules/**/*.kdsl"))]
VALIDATOR = Draft202012Validator(twin_schema())
HEAD = "apiVersion: kdsl.dev/v1\n"
PREDICATE = f"{HEAD}kind: Predicate\nmetadata: {{name: P}}\nspec:\n  body:\n"
slow = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def fits(text: str) -> bool:
    return all(VALIDATOR.is_valid(document) for document in yaml.safe_load_all(text) if document is not None)


@pytest.mark.parametrize("text", ["\x85", "a\x85b", "\u2028x", "\u2029"])
def test_line_breaks_that_yaml_folds_are_kept(text: str) -> None:
    file = parse_file(Source("a.kdsl", f'kdsl 1\npackage a\n\nparam x: string = "{text}"\n')).file
    assert file is not None
    assert parse_twin(Source("a.kdsl.yaml", format_twin(file))).file == file


@slow
@given(files)
def test_a_tree_reads_back(file: tree.File) -> None:
    text = format_twin(file)
    result = parse_twin(Source("f.kdsl.yaml", text))
    assert result.diagnostics == ()
    assert result.file == file
    assert format_twin(result.file) == text
    assert fits(text)


@slow
@given(files)
def test_there_and_back_is_the_same_text(file: tree.File) -> None:
    text = format_file(file)
    twin, found = convert(Source("f.kdsl", text), to_twin=True)
    assert twin is not None and not found
    back, found = convert(Source("f.kdsl.yaml", twin), to_twin=False)
    assert back is not None and not found
    assert parse_file(Source("f", back)).file == parse_file(Source("f", text)).file


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_real_files_convert(path: Path) -> None:
    source = Source("f.kdsl", path.read_text(encoding="utf-8"))
    text, found = convert(source, to_twin=True)
    assert text is not None and not found
    assert parse_twin(Source("f.kdsl.yaml", text)).file == parse_file(source).file
    assert fits(text)


def test_the_table_has_every_statement_and_kind() -> None:
    made = {shape.make for block in BLOCKS for shape in block.shapes().values()}
    made |= {kind.make for kind in KINDS.values()}
    leaves = {
        kind
        for module in (tree, profile_tree, device_tree)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, tree.Statement) and not kind.__subclasses__()
    }
    # These two have places of their own: the list of a `scores` line, and the document of the package.
    assert leaves - made == {profile_tree.WeightedScore, tree.Import}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(twin_schema())


def test_what_it_looks_like() -> None:
    text = """\
kdsl 1
package teams.ml
import kubernetes.v1_36 as k8s
/// Only big cards.
/// At night.
predicate BigCards {
  for t in node.taints where t.effect == "NoSchedule" {
    require pod.tolerates(t) else unresolvable "untolerated ${t.key}"
  }
}
profile ml extends k8s.default {
  add predicate BigCards after NodeResourcesFit
  set NodeResourcesFit.weights = {"cpu": 1}
}
"""
    assert (
        convert(Source("f.kdsl", text), to_twin=True)[0]
        == """\
apiVersion: kdsl.dev/v1
kind: Package
metadata:
  name: teams.ml
spec:
  imports:
  - package: kubernetes.v1_36
    as: k8s
---
apiVersion: kdsl.dev/v1
kind: Predicate
metadata:
  name: BigCards
  doc: |-
    Only big cards.
    At night.
spec:
  body:
  - forEach:
      as:
      - t
      in: node.taints
      where: t.effect == "NoSchedule"
      do:
      - require:
          that: pod.tolerates(t)
          else:
            code: unresolvable
            reason: untolerated ${t.key}
---
apiVersion: kdsl.dev/v1
kind: Profile
metadata:
  name: ml
spec:
  extends: k8s.default
  body:
  - addPredicate:
      name: BigCards
      after: NodeResourcesFit
  - set:
      rule: NodeResourcesFit
      param: weights
      value: '{"cpu": 1}'
"""
    )


def test_mistakes_are_shown_where_they_stand() -> None:
    source = Source(
        "a.kdsl.yaml",
        PREDICATE
        + "  - require: {that: 'node.x = 1', else: {reason: 'no ${'}}\n  - requre: {}\n  - value: 1\n",
    )
    assert (
        render(parse_twin(source).diagnostics)
        == """\
error[K0107]: `=` is not an operator
  --> a.kdsl.yaml:6:29
   |
 6 |   - require: {that: 'node.x = 1', else: {reason: 'no ${'}}
   |                             ^
   = help: `=` gives a name its value, `==` compares
   = help: write `==` [fix 1]

error[K0113]: the hole `${` of the reason has no closing brace
  --> a.kdsl.yaml:6:54
   |
 6 |   - require: {that: 'node.x = 1', else: {reason: 'no ${'}}
   |                                                      ^^
   = help: quotes inside a hole must be of another kind than those around it: "${m['key']}"
   = help: write `$$` for a dollar sign that opens no hole

error[K0131]: there is no statement `requre` here
  --> a.kdsl.yaml:7:5
   |
 7 |   - requre: {}
   |     ^^^^^^
   = help: did you mean `require`?

error[K0131]: there is no statement `value` here
  --> a.kdsl.yaml:8:5
   |
 8 |   - value: 1
   |     ^^^^^
   = help: statements: appliesWhen, let, require, narrow, forEach, report, onError, param

4 errors"""
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 1\n", "K0130 1:1"),
        ("kind: Score\n", "K0132 1:1"),
        ("apiVersion: kdsl.dev/v2\nkind: Score\n", "K0133 1:13"),
        (f"{HEAD}kind: Scor\n", "K0131 2:7"),
        (f"{HEAD}kind: Score\n", "K0132 1:1 K0132 1:1"),
        (f"{HEAD}kind: Score\nmetadata: {{name: in}}\nspec: {{body: []}}\n", "K0133 3:18"),
        (f"{HEAD}kind: Score\nmetadata: {{name: S}}\nspec: {{body: {{}}}}\n", "K0130 4:14"),
        (f"{HEAD}kind: Score\nmetadata: {{name: S}}\nspec: {{body: [{{value: 1}}]}}\n", "K0130 4:23"),
        (f"{HEAD}kind: Score\nmetadata: {{name: S}}\nspec: {{body: [{{value: ~}}]}}\n", "K0130 4:23"),
        (f"{HEAD}kind: Score\nmetadata: {{name: S}}\nspec: {{body: [{{normalize: mx}}]}}\n", "K0133 4:27"),
        (f"{HEAD}kind: Score\nmetadata: {{name: S}}\nspec: {{body: []}}\nx: 1\n", "K0131 5:1"),
        (f"{HEAD}kind: Param\nmetadata: {{name: p}}\nspec: {{value: '1', type: '1'}}\n", "K0133 4:26"),
        (f"{HEAD}kind: Param\nmetadata: {{name: p}}\nspec: {{value: '1', final: no}}\n", "K0133 4:27"),
        (f"{HEAD}kind: Package\n---\n{HEAD}kind: Package\n", "K0131 4:1"),
        (f"{HEAD}kind: Package\nkind: Score\n", "K0121 3:1"),
        (PREDICATE + "  - {report: all, let: {}}\n", "K0130 6:5"),
        (PREDICATE + "  - forEach: {as: [], in: x, do: []}\n", "K0133 6:19"),
        (
            f"{HEAD}kind: Profile\nmetadata: {{name: p}}\nspec: {{body: [{{addPredicate: {{name: a, before: b, after: c}}}}]}}\n",
            "K0131 4:51",
        ),
        (
            f"{HEAD}kind: Profile\nmetadata: {{name: p}}\nspec: {{body: [{{reweight: {{name: a, weight: -1}}}}]}}\n",
            "K0133 4:44",
        ),
        (PREDICATE + "  - require: {that: 'a'}\n", "K0132 6:15"),
    ],
)
def test_mistakes(text: str, expected: str) -> None:
    result = parse_twin(Source("f.kdsl.yaml", text))
    found = [f"{each.code} {each.span.line}:{each.span.column}" for each in result.diagnostics if each.span]
    assert " ".join(found) == expected


@pytest.mark.parametrize(
    "body",
    [
        "value: 1",
        "value: ~",
        "normalize: mx",
        "normalize: {}",
        "let: {name: in, value: a}",
        "let: {name: a.b, value: a}",
        "let: {name: a}",
        "let: {name: a, value: a, x: a}",
        "orderBy: []",
        "value: a, let: {name: a, value: a}",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(body: str) -> None:
    text = f"{HEAD}kind: Score\nmetadata: {{name: S}}\nspec: {{body: [{{{body}}}]}}\n"
    assert parse_twin(Source("f.kdsl.yaml", text)).diagnostics
    assert not fits(text)


def test_the_loader_reads_both_forms(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage a\nimport b\nscore S { value b.x }\n")
    (tmp_path / "b.kdsl.yaml").write_text(
        f"{HEAD}kind: Package\nmetadata: {{name: b}}\n---\n{HEAD}kind: Param\nmetadata: {{name: x}}\nspec: {{value: '1'}}\n"
    )
    result = load_rules([tmp_path])
    assert result.diagnostics == ()
    assert sorted(result.program.packages) == ["a", "b"]


def test_a_file_without_a_package_may_be_empty() -> None:
    assert parse_twin(Source("f.kdsl.yaml", "")).file == parse_file(Source("f", "kdsl 1\n")).file


def test_what_the_other_form_cannot_hold_is_refused() -> None:
    nested = "for a in b { " * 60 + "}" * 60
    text, found = convert(Source("f.kdsl", f"kdsl 1\npredicate P {{ {nested} }}\n"), to_twin=True)
    assert text is None
    assert [each.code for each in found] == ["K0124"]


fragments = st.sampled_from(
    [
        "apiVersion: kdsl.dev/v1\n",
        "kind: Score\n",
        "kind: Package\n",
        "metadata: {name: a}\n",
        "spec:\n",
        "  body:\n",
        "  - let:\n",
        "  - value: a +\n",
        "      name: x\n",
        "      value: '${'\n",
        "---\n",
        "- 1\n",
        "x",
        ": ",
        "[",
        "\t",
        "*a ",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(fragments, max_size=12).map("".join))
def test_no_text_raises(text: str) -> None:
    result = parse_rules(Source("f.kdsl.yaml", text))
    assert result.file is not None or result.diagnostics
    assert is_twin("f.kdsl.yaml")


TWIN = """apiVersion: kdsl.dev/v1
kind: Predicate
metadata:
  name: P
  doc: harmless{hidden}
spec:
  body:
  - require:
      that: 'true'
      else:
        reason: no
"""


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u2028", "\x85"])
def test_characters_that_hide_text_are_mistakes(hidden: str) -> None:
    (found,) = parse_twin(Source("a.kdsl.yaml", TWIN.replace("{hidden}", hidden))).diagnostics
    assert (found.code, str(found.span)) == ("K0106", "a.kdsl.yaml:5:16")
    assert f"\\u{ord(hidden):04X}" in found.help[0]
    # A comment shows a reviewer another text just as well.
    (found,) = parse_twin(Source("a.kdsl.yaml", f"# a{hidden}b\n{TWIN}")).diagnostics
    assert (found.code, str(found.span)) == ("K0106", "a.kdsl.yaml:1:4")


def test_escapes_of_such_characters_are_converted_to_escapes() -> None:
    source = Source(
        "a.kdsl", 'kdsl 1\npackage a\npredicate P { require true else "a\\u202e\\u2028\\u0085b" }\n'
    )
    text, found = convert(source, to_twin=True)
    assert text is not None and not found
    assert "\\u202E" in text and "\u202e" not in text
    assert parse_twin(Source("a.kdsl.yaml", text)).file == parse_file(source).file
