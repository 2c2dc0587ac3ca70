"""The formatter on whole files, and comments, which only it can show to be kept."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kdsl.base.span import Source
from kdsl.lang import formatter
from kdsl.lang.codes import LangCode
from kdsl.lang.formatter import format_source
from kdsl.lang.grammar import grammar
from kdsl.lang.parser import parse_file
from kdsl.lang.printer import format_file
from kdsl.lang.tree import Comment, File, Predicate, Score

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SAMPLES = sorted(
    [*FOLDER.glob("samples/*.kdsl"), *ROOT.glob("rules/**/*.kdsl"), *ROOT.glob("examples/**/*.kdsl")]
)
NOISE = [
    "\n",
    "\n\n\n",
    " // c\n",
    "\n// c\n",
    "\n\n  /// c\n\n",
    "// c\n//c\n",
    "  ",
    "\r\n",
    "\t// \n",
    "//\n",
    "////// c\n",
]


def formatted(text: str) -> str:
    result = format_source(Source("f", text))
    assert result.text is not None, result.diagnostics
    return result.text


def tokens(text: str) -> list[tuple[int, int]]:
    run = grammar().parse_interactive(text, start="file")
    return [(token.start_pos or 0, token.end_pos or 0) for token in run.iter_parse()]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_formatting_is_stable(path: Path) -> None:
    result = format_source(Source(str(path), path.read_text(encoding="utf-8")))
    if result.text is not None:
        assert formatted(result.text) == result.text
    else:
        assert LangCode.FORMAT_REFUSED not in {diagnostic.code for diagnostic in result.diagnostics}


@pytest.mark.parametrize("name", ["everything", "defaults", "nvidia", "teams", "ml"])
@pytest.mark.parametrize("share", [0.02, 0.2, 1.0])
def test_no_comment_is_lost_wherever_it_stands(name: str, share: float) -> None:
    text = (FOLDER / f"samples/{name}.kdsl").read_text(encoding="utf-8")
    dice = random.Random(f"{name}{share}")
    noisy, last, count = "", 0, text.count("//")
    for start, end in tokens(text):
        noisy += text[last:start]
        if dice.random() < share:
            noise = dice.choice(NOISE)
            noisy += noise
            count += sum(line.lstrip().startswith("//") for line in noise.split("\n"))
        noisy, last = noisy + text[start:end], end
    noisy += text[last:]
    once = formatted(noisy)
    assert formatted(once) == once
    assert sum("//" in line for line in once.split("\n")) >= count * 0.99


def comments(text: str) -> File:
    result = parse_file(Source("f", text))
    assert result.diagnostics == ()
    assert result.file is not None
    return result.file


def texts(found: tuple[Comment, ...]) -> list[str]:
    return [comment.text.strip() for comment in found]


def test_where_comments_belong() -> None:
    file = comments(
        "// 0\nkdsl 1 // 1\n// 2\npackage a // 3\n// 4\nimport b // 5\n\n// 6\n\n/// 7\n/// 8\n// 9\n"
        "predicate X { // 10\n  require a // 11\n    else 'b' // 12\n\n  // 13\n} // 14\n// 15\n"
    )
    assert texts(file.leading) == ["0"]
    assert texts(file.header) == ["1", "2"]
    assert file.trailing is not None
    assert file.trailing.text == " 3"
    (imported,) = file.imports
    assert texts(imported.leading) == ["4"]
    assert imported.trailing is not None
    assert imported.trailing.text == " 5"
    (predicate,) = file.declarations
    assert isinstance(predicate, Predicate)
    assert predicate.doc == ("7", "8")
    assert texts(predicate.leading) == ["6", "9"]
    assert predicate.trailing is not None
    assert not predicate.trailing.own_line
    assert texts(predicate.body[0].leading) == ["10", "11"]
    assert predicate.body[0].trailing is not None
    assert predicate.body[0].trailing.text == " 12"
    assert texts(predicate.dangling) == ["13"]
    assert predicate.dangling[0].blank_before
    assert texts(file.dangling) == ["15"]


@pytest.mark.parametrize(
    "text",
    [
        "// top\nkdsl 1  // one\n// two\n\n// three\npackage a  // four\n// five\nimport b\n",
        "kdsl 1\n// whose it is\npackage a\n",
        "kdsl 1  // one\n",
    ],
)
def test_comments_of_the_first_lines_stay_where_they_are(text: str) -> None:
    assert formatted(text) == text


def test_slashes_in_strings_are_no_comments() -> None:
    file = comments("kdsl 1\nparam a = 'http://x' // real\n")
    assert texts((file.declarations[0].trailing,)) == ["real"]  # type: ignore[arg-type]  # None fails the test


def test_a_doc_comment_is_the_last_run_of_lines() -> None:
    file = comments("kdsl 1\n/// a\n\n/// b\n///  c\n///\nscore X { value 1 }\n")
    (score,) = file.declarations
    assert isinstance(score, Score)
    assert score.doc == ("b", " c", "")
    assert texts(score.leading) == ["/ a"]
    assert "/// b\n///  c\n///\nscore" in format_file(file)


def test_windows_line_ends_become_plain_ones() -> None:
    assert formatted("kdsl 1\r\npackage a // c\r\n") == "kdsl 1\npackage a  // c\n"


def test_a_broken_file_is_not_formatted() -> None:
    result = format_source(Source("f", "kdsl 1\nscore {\n"))
    assert result.text is None
    assert len(result.diagnostics) == 1


@pytest.mark.parametrize(
    "printed, difference",
    [
        ("kdsl 1\nscore X {\n  value 2\n}\n// c\n", "another meaning"),
        ("kdsl 1\nscore X {\n  value 1\n}\n", "other comments"),
        ("kdsl 1\nscore X {\n", "another meaning"),
    ],
)
def test_a_wrong_rewrite_is_refused(monkeypatch: pytest.MonkeyPatch, printed: str, difference: str) -> None:
    monkeypatch.setattr(formatter, "format_file", lambda file: printed)
    result = format_source(Source("f", "kdsl 1 score X { value 1 } // c\n"))
    assert result.text is None
    (diagnostic,) = result.diagnostics
    assert diagnostic.code == LangCode.FORMAT_REFUSED
    assert difference in diagnostic.title
