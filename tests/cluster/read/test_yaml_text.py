"""YAML: scalars as the API server reads them, duplicate keys, bounded aliases and depth, going on after mistakes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.read import yaml_text
from kdsl.cluster.read.yaml_text import MAX_ALIASED, MAX_DEPTH, MistakeKind, resolve_plain, yaml_documents


def load(text: str) -> list[object]:
    return [document.value for document in yaml_documents(text)]


def mistakes(text: str) -> list[tuple[int, MistakeKind]]:
    return [(one.line, one.kind) for document in yaml_documents(text) for one in document.mistakes]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("22:22", "22:22"),
        ("1_000", 1000),
        ("-12", -12),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("08", 8.0),
        ("0", 0),
        ("0o_", 0),
        ("1e3", 1000.0),
        ("1e400", "1e400"),
        ("-1e400", "-1e400"),
        (".5", 0.5),
        ("1.10", 1.1),
        ("1Gi", "1Gi"),
        ("-", "-"),
        (".", "."),
        ("1.2.3", "1.2.3"),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    resolved = resolve_plain(text)
    assert resolved == value
    assert type(resolved) is type(value)


def test_values() -> None:
    assert load('a: [1, "1", !!str 1, {b: no}]\nyes: 1\n2: x\n') == [
        {"a": [1, "1", "1", {"b": False}], "true": 1, "2": "x"}
    ]


@pytest.mark.parametrize("text", ["a: 1\n<<: 1\nb: 2\n", "a: 1\n<<: [{b: 1}, 1]\nb: 2\n"])
def test_what_cannot_be_merged_is_told_with_its_line(text: str) -> None:
    (document,) = yaml_documents(text)
    (mistake,) = document.mistakes
    assert (mistake.line, mistake.text) == (2, "`<<` merges mappings only")


def test_empty_documents_do_not_count_as_values_but_are_numbered() -> None:
    documents = list(yaml_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n"))
    assert [(one.number, one.value) for one in documents if one.value is not None] == [
        (2, {"a": 1}),
        (4, {"b": 2}),
    ]


def test_anchors_and_merges() -> None:
    text = "base: &b {x: 1, y: 2}\nsame: *b\nmore: {<<: *b, y: 3}\nboth: {<<: [{x: 5}, *b]}\n"
    (value,) = load(text)
    assert value == {
        "base": {"x": 1, "y": 2},
        "same": {"x": 1, "y": 2},
        "more": {"x": 1, "y": 3},
        "both": {"x": 5, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: <<\n", {"a": "<<"}),
        ("[<<, {a: <<}]\n", ["<<", {"a": "<<"}]),
        ("<<\n", "<<"),
        ("'<<': 1\n", {"<<": 1}),
        ("{&key <<: {x: 1}, y: *key}\n", {"<<": {"x": 1}, "y": "<<"}),
        ("{a: 1, <<: {a: 2, b: 3}, b: 4}\n", {"a": 1, "b": 4}),
    ],
)
def test_two_arrows_merge_only_where_they_are_a_key(text: str, value: object) -> None:
    assert load(text) == [value]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: [\n", 3, "did not find expected node content"),
        ("a: 1\nb: \x01\n", 2, "control characters are not allowed"),
        ("a: é\n# ü\nb: x\x00\nc: \x01\n", 3, "control characters are not allowed"),
        ("a: 'b\n", 2, "found unexpected end of stream"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("\ufeffa: 1\n@", 2, "cannot start any token"),
        ("a: 1\rb: 2\r@", 3, "cannot start any token"),
    ],
)
def test_what_is_no_yaml_is_told_in_the_words_of_the_parser(text: str, line: int, problem: str) -> None:
    (mistake,) = [one for document in yaml_documents(text) for one in document.mistakes]
    assert mistake.line == line
    assert mistake.text.startswith("this is not YAML: ")
    assert problem in mistake.text


@pytest.mark.parametrize(
    ("text", "number", "line"),
    [
        ("a: 1\n---\nb: \x01\n", 2, 3),
        ("# of a\n---\na: \x01\n", 1, 3),
        ("---\na: 1\n---\n---\nb: \x01\n", 3, 5),
        ("a: [\n---\nb: 1\n---\nc: \x01\n", 3, 5),
    ],
)
def test_a_forbidden_character_is_in_its_document(text: str, number: int, line: int) -> None:
    document = [*yaml_documents(text)][-1]
    assert (document.number, [each.line for each in document.mistakes]) == (number, [line])


def test_duplicate_keys_are_reported_and_the_last_one_counts() -> None:
    assert mistakes("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n") == [
        (4, MistakeKind.DUPLICATE_KEY),
        (5, MistakeKind.DUPLICATE_KEY),
    ]
    assert load("a: 1\na: 2\n") == [{"a": 2}]


def test_alias_bombs_are_bounded() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    started = time.process_time()
    (document,) = yaml_documents("\n".join(levels))
    assert time.process_time() - started < 5
    assert document.value is None
    assert [one.kind for one in document.mistakes] == [MistakeKind.TOO_LARGE]
    assert str(MAX_ALIASED) in document.mistakes[0].text


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_bounded(opening: str) -> None:
    kinds = [kind for _, kind in mistakes(opening * (MAX_DEPTH + 5) + "\n---\na: 1\n")]
    assert kinds
    assert load("[" * MAX_DEPTH + "]" * MAX_DEPTH)[0] is not None
    assert load("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) == [None]


@pytest.mark.parametrize(
    "text", ["a: *nothing", "a: &a [*a]", "{[1]: 2}", "{~: 2}", "a: !python/object 1", "<<: 1\n"]
)
def test_what_is_not_taken(text: str) -> None:
    (document,) = yaml_documents(text)
    assert document.value is None
    assert document.mistakes


def test_it_goes_on_after_a_syntax_error() -> None:
    text = "a: 1\n---\nb: [\n---\nc: 3\n---\nd: {\n"
    documents = list(yaml_documents(text))
    assert [(one.number, one.value) for one in documents] == [
        (1, {"a": 1}),
        (2, None),
        (3, {"c": 3}),
        (4, None),
    ]
    assert all(one.mistakes for one in documents if one.value is None)
    assert documents[3].mistakes[0].line >= 7


@given(st.text(alphabet="ab:-[]{}&*!|>'\"\n \t#%@`,?<~0123.", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for document in yaml_documents(text):
        assert document.value is None or not document.is_broken


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="abcxyz", min_size=1), inner),
    )
)
def test_json_is_yaml(value: object) -> None:
    import json

    documents = list(yaml_documents(json.dumps(value)))
    assert [one.value for one in documents] == [value]


@pytest.mark.parametrize(("most", "is_read"), [(13, True), (12, False)])
def test_aliases_bring_all_that_is_in_them(monkeypatch: pytest.MonkeyPatch, most: int, is_read: bool) -> None:
    """Three values twice, then all seven of the list that holds them."""
    monkeypatch.setattr(yaml_text, "MAX_ALIASED", most)
    (document,) = yaml_documents("a: &a [1, 2]\nb: &b [*a, *a]\nc: *b\n")
    assert (document.value is not None) is is_read
    assert bool(document.mistakes) is not is_read


@pytest.mark.parametrize(
    ("text", "mistake", "help_"),
    [
        ("a:\n\tb: 1\n", "this is not YAML: a tab cannot indent a line", "indent with spaces"),
        ("ä:\n\tb: 1\n", "this is not YAML: a tab cannot indent a line", "indent with spaces"),
        (
            "a:\n  b: 1\n c: 2\n",
            "this is not YAML: did not find expected key",
            "is this line indented as far as the lines it belongs to?",
        ),
    ],
)
def test_wrong_indentation_has_help(text: str, mistake: str, help_: str) -> None:
    (document,) = yaml_documents(text)
    assert [(each.text, each.help) for each in document.mistakes] == [(mistake, (help_,))]
