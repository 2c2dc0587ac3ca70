from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kdsl.base.disk_cache import DiskCache
from kdsl.base.record_codec import RecordCodec
from kdsl.lang import words
from kdsl.lang.file_builder import BLOCKS, DECLARED, LISTS, PLAIN, WEIGHTED, FileBuilder
from kdsl.lang.grammar import build_grammar, grammar, grammar_text, load_grammar
from kdsl.lang.slips import RESERVED
from lark.exceptions import GrammarError, LexError

SOUND = 'predicate X { require order in ["a"] else "b" }'


def kept(disk: DiskCache) -> list[Path]:
    return sorted(disk.folder.iterdir()) if disk.folder.exists() else []


def test_the_grammar_has_no_conflicts_and_no_collisions() -> None:
    build_grammar(grammar_text(), strict=True)


def test_each_rule_has_a_method_or_is_in_one_table() -> None:
    rules = build_grammar(grammar_text()).rules
    named = {str(rule.alias or rule.origin.name) for rule in rules if rule.alias or not rule.options.expand1}
    listed = [name for table in (PLAIN, LISTS, WEIGHTED, BLOCKS, DECLARED) for name in table]
    built = {name for name in named if not name.startswith("_")}
    assert built == {name for name in built if hasattr(FileBuilder, name)} | {*listed}
    assert len(listed) == len({*listed}) and not any(hasattr(FileBuilder, name) for name in listed)


@pytest.mark.parametrize(
    "rule, broken",
    [
        pytest.param(
            "let: _LET name _ASSIGN expr", "let: _LET name _ASSIGN expr expr", id="juxtaposed operands"
        ),
        pytest.param(
            "| IDENT arguments -> call", '| IDENT arguments -> call | IDENT "{" "}" -> call', id="messages"
        ),
        pytest.param(
            "| IDENT -> ident", "| IDENT -> ident | SHORT -> ident\nSHORT: /[a-c]+/", id="collision"
        ),
    ],
)
def test_strict_mode_does_find_conflicts(rule: str, broken: str) -> None:
    text = grammar_text()
    assert rule in text
    with pytest.raises((GrammarError, LexError)):
        build_grammar(text.replace(rule, broken), strict=True)


def test_every_terminal_has_words() -> None:
    for terminal in grammar().terminals:
        if terminal.name in ("COMMENT", "SPACE") or terminal.name in words.KINDS:
            continue
        word = words.word_of(terminal.name)
        if terminal.name in words.SYMBOLS:
            assert terminal.pattern.value == word
        else:
            assert terminal.pattern.value == rf"{word}\b", "a keyword is its terminal in small letters"
    assert set(words.KINDS) | set(words.SYMBOLS) <= {terminal.name for terminal in grammar().terminals}


def test_every_starter_is_in_the_table() -> None:
    names = {terminal.name for terminal in grammar().terminals}
    assert names >= words.STARTERS
    rules = dict(
        re.findall(r"^\??(\w+_statement|declaration): (.+(?:\n +\|.+)*)", grammar_text(), re.MULTILINE)
    )
    assert {rule.removesuffix("_statement") for rule in rules} == {
        *(words.STATEMENTS.keys() - {"predicate", "for", "tighten", *words.FIELD_BLOCKS}),
        "rule",
        "field",
        "declaration",
    }


def test_reserved_words_are_those_of_the_grammar() -> None:
    pattern = next(terminal.pattern.value for terminal in grammar().terminals if terminal.name == "IDENT")
    listed = re.search(r"\(\?:([a-z|]+)\)", pattern)
    assert listed is not None
    assert set(listed[1].split("|")) == RESERVED


@pytest.mark.parametrize(
    "accepts, text",
    [
        ({"_ELSE", *words._OPERATORS}, "`else` or an operator"),
        ({*words._EXPRESSION, "QUESTION"}, "an expression"),
        ({"IDENT"}, "a name"),
        ({"_RBRACE", *words.STATEMENTS["score"]}, "`}` or a statement"),
        ({words.END, *words.DECLARATIONS}, "the end of the file or a declaration"),
        (
            {"STRING", "UNSCHEDULABLE", "UNRESOLVABLE", "PENDING"},
            "a string in quotes or a code (`unschedulable`, `unresolvable` or `pending`)",
        ),
        (set(), "nothing"),
    ],
)
def test_expectations_are_summed_up(accepts: set[str], text: str) -> None:
    assert words.describe_expected(accepts, "file") == text


def test_the_kept_copy_parses_alike(disk: DiskCache) -> None:
    built, read = load_grammar(disk), load_grammar(disk)
    assert len(kept(disk)) == 1
    text = f"kdsl 1 {SOUND}"
    assert built.parse(text, start="file") == read.parse(text, start="file")
    assert load_grammar(None).parse(text, start="file") == built.parse(text, start="file")


@pytest.mark.parametrize("content", [b"", b"junk", bytes(32) + b"cos\nsystem\n(S'false'\ntR."])
def test_a_corrupt_copy_is_replaced(disk: DiskCache, content: bytes) -> None:
    load_grammar(disk)
    (path,) = kept(disk)
    sound = path.read_bytes()
    path.write_bytes(content)
    load_grammar(disk).parse("1", start="expression")
    assert len(path.read_bytes()) > len(sound) // 2


def test_a_torn_copy_is_replaced(disk: DiskCache) -> None:
    load_grammar(disk)
    (path,) = kept(disk)
    path.write_bytes(path.read_bytes()[:-1])
    load_grammar(disk).parse("1", start="expression")


def test_tables_of_another_shape_are_built_anew(disk: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    load_grammar(disk)
    (path,) = kept(disk)
    for value in ({}, {"data": {}, "memo": {}}, {"data": {}, "memo": {"0": {}}}, [1], None, "text"):
        disk.write(path.name, RecordCodec(()).encode(value))
        assert disk.read(path.name) is not None
        load_grammar(disk).parse("1", start="expression")


def test_an_unwritable_folder_is_no_problem(disk: DiskCache) -> None:
    disk.folder.write_text("in the way")
    load_grammar(disk).parse("1", start="expression")


def test_many_may_write_at_once(disk: DiskCache) -> None:
    with ThreadPoolExecutor(4) as pool:
        for loaded in pool.map(lambda _: load_grammar(disk), range(4)):
            loaded.parse("1", start="expression")
    assert len(kept(disk)) == 1


def test_one_thread_builds_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    building, most = 0, 0

    def slow_lark(*_: object, **__: object) -> None:
        nonlocal building, most
        building += 1
        most = max(most, building)
        time.sleep(0.01)
        building -= 1

    monkeypatch.setattr("kdsl.lang.grammar.Lark", slow_lark)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: build_grammar(""), range(4)))
    assert most == 1
