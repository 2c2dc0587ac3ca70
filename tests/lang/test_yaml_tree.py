from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.span import Source
from kdsl.lang.yaml_tree import (
    MAX_DEPTH,
    MAX_LENGTH,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    read_yaml,
    resolve_plain,
    to_plain,
)


def read(text: str) -> object:
    result = read_yaml(Source("f.yaml", text))
    assert result.diagnostics == ()
    return [to_plain(document) for document in result.documents]


def problems(text: str) -> list[tuple[str, str, str]]:
    result = read_yaml(Source("f.yaml", text))
    return [(each.code, each.title, str(each.span)) for each in result.diagnostics]


def scalar(text: str) -> YamlScalar:
    (document,) = read_yaml(Source("f.yaml", text)).documents
    assert isinstance(document, YamlMapping)
    found = document.get("a")
    assert isinstance(found, YamlScalar)
    return found


def test_documents() -> None:
    assert read("a: {b: [1, two, 3.5, ~]}\n---\n---\n- true\n") == [
        {"a": {"b": [1, "two", 3.5, None]}},
        [True],
    ]
    assert read("") == read("# nothing\n") == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("22:22", "22:22"),
        ("2001-12-14", "2001-12-14"),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("TRUE", True),
        ("", None),
        ("-.inf", float("-inf")),
        ("1" * 80, "1" * 80),
        ("1e999999999", "1e999999999"),
        ("-1e309", "-1e309"),
    ],
)
def test_plain_scalars_are_those_of_the_core_schema(text: str, value: object) -> None:
    assert resolve_plain(text) == value
    assert type(resolve_plain(text)) is type(value)


def test_aliases_repeat_values_within_bounds() -> None:
    assert read("a: &x [1]\nb: *x\n") == [{"a": [1], "b": [1]}]
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert [code for code, _, _ in problems("\n".join(lines))] == ["K0122"]
    assert problems("a: *b\n") == [
        ("K0123", "the alias `*b` names nothing that is complete here", "f.yaml:1:4")
    ]
    assert [code for code, _, _ in problems("a: &a [*a]\n")] == ["K0123"]


def test_all_mistakes_at_once() -> None:
    assert problems("a: 1\nb: !x 2\na: 3\n? [c]\n: 4\n") == [
        ("K0123", "the tag `!x` means nothing here", "f.yaml:2:4"),
        ("K0121", "the key `a` is there twice", "f.yaml:3:1"),
        ("K0123", "a key must be text", "f.yaml:4:3"),
    ]
    ((code, title, place),) = problems("a: [1\nb: 2\n")
    assert (code, place) == ("K0120", "f.yaml:2:2") and title.startswith("this is not YAML: ")
    assert [code for code, _, _ in problems("a: \x01")] == ["K0120"]
    # The place counts characters, not bytes.
    (found,) = read_yaml(Source("a.yaml", "a: é\nb: \x01")).diagnostics
    assert str(found.span) == "a.yaml:2:4"


def test_bounds() -> None:
    assert [code for code, _, _ in problems("[" * (MAX_DEPTH + 1))] == ["K0122"]
    result = read_yaml(Source("f.yaml", "#" * (MAX_LENGTH + 1)))
    assert [each.code for each in result.diagnostics] == ["K0122"]


def test_blocks_end_with_their_last_value() -> None:
    source = Source("f.yaml", "a:\n  b: 1\n  c: |-\n    x\n\n\nd: [1, 2 ]\n")
    (document,) = read_yaml(source).documents
    assert isinstance(document, YamlMapping)
    inner, items = document.get("a"), document.get("d")
    assert isinstance(inner, YamlMapping) and isinstance(items, YamlSequence)
    assert inner.span.text == "b: 1\n  c: |-\n    x"
    assert items.span.text == "[1, 2 ]"


@pytest.mark.parametrize(
    "written",
    [
        "one  two three",
        "one\n  two\n\n  three",
        "'it''s one two three'",
        '"one \\u00e9\\x41\\n two three"',
        '"one \\\n   two three"',
        "|\n  one\n    two\n  three\n",
        ">-\n  one\n  two\n\n  three",
        "|-\r\n  one\r\n  two\r\n  three\r\n",
    ],
)
def test_words_inside_a_scalar_are_found_where_they_stand(written: str) -> None:
    found = scalar(f"a: {written}\nb: 1\n")
    locate = found.locator()
    for word in ("one", "two", "three"):
        start = found.text.index(word)
        assert locate(start, start + len(word)).text == word
    end = locate(len(found.text), len(found.text))
    assert found.span.start < end.start <= found.span.end + 1


texts = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cn", "Co", "Cs"]), max_size=8)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(json_values.filter(lambda value: value is not None))
def test_json_reads_as_itself(value: object) -> None:
    assert read(json.dumps(value, ensure_ascii=False)) == [value]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}'\"|>#&*!,? \n\t\\"), max_size=30))
def test_no_text_raises(text: str) -> None:
    result = read_yaml(Source("f.yaml", text))
    for document in result.documents:
        to_plain(document)
        if isinstance(document, YamlScalar):
            document.locator()(0, len(document.text))
