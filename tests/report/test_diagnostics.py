from __future__ import annotations

import pytest
from kdsl.base.diagnostic import Diagnostic, Fix, Label, Severity
from kdsl.base.span import Source, Span
from kdsl.report import snippet
from kdsl.report.diagnostics import in_order, render, summary


def span(source: Source, text: str, nth: int = 0) -> Span:
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(text, start + 1)
    return Span(source, start, start + len(text))


def drawn(text: str, marked: str, label: str = "") -> list[str]:
    """Render one diagnostic and return the rows of its drawing."""
    source = Source("f", text)
    place = span(source, marked) if marked else Span(source, len(text), len(text))
    lines = render([Diagnostic("K0000", "title", place, label)]).split("\n")
    return lines[3:-2]


RULES = Source(
    "teams/ml/ml.kdsl",
    "kdsl 1\n\n" * 4
    + '  require quantity(node.labels["gpu"]) >= quantity("4")\n    else "no"\n\nscore X {}\n',
)
FULL = Diagnostic(
    "K0204",
    'label "gpu" may be missing',
    span(RULES, 'node.labels["gpu"]'),
    label="a node without it would be rejected with an error",
    secondary=(Label(span(RULES, "score"), "this is not affected"), Label(span(RULES, '"4"'), "the limit")),
    notes=("labels are maps",),
    help=("guard it",),
    fixes=(Fix("give a default"), Fix("leave it out")),
)


def test_full() -> None:
    assert (
        render([FULL])
        == """\
error[K0204]: label "gpu" may be missing
  --> teams/ml/ml.kdsl:9:20
   |
 9 |   require quantity(node.labels["gpu"]) >= quantity("4")
   |                    ^^^^^^^^^^^^^^^^^^ a node without it would be rejected with an error
   |                                                    --- the limit
 ...
12 | score X {}
   | ----- this is not affected
   = note: labels are maps
   = help: guard it
   = help: give a default [choice 1]
   = help: leave it out [choice 2]

1 error"""
    )


def test_concise() -> None:
    other = Diagnostic("K1101", "cannot read", severity=Severity.WARNING, where="a.yaml#2: spec")
    assert render([FULL, other, Diagnostic("K0001", "nowhere")], "concise").split("\n") == [
        "error[K0001] nowhere",
        "a.yaml#2: spec: warning[K1101] cannot read",
        'teams/ml/ml.kdsl:9:20: error[K0204] label "gpu" may be missing',
        "2 errors, 1 warning",
    ]


def test_sorted_by_file_and_position() -> None:
    first, second = Source("a", "x y"), Source("b", "x y")
    wanted = [span(first, "x"), span(first, "y"), span(second, "x")]
    rendered = render([Diagnostic("K1", "t", place) for place in reversed(wanted)], "concise")
    assert [line.partition(": ")[0] for line in rendered.split("\n")[:-1]] == ["a:1:1", "a:1:3", "b:1:1"]


def test_documents_of_a_file_are_in_order_of_their_numbers() -> None:
    found = [Diagnostic("K1109", "t", where=f"pods.yaml#{number}") for number in (10, 9, 100)]
    assert [each.where for each in in_order(found)] == ["pods.yaml#9", "pods.yaml#10", "pods.yaml#100"]


def test_a_place_in_another_file_is_shown_after() -> None:
    one, two = Source("one", "a\n"), Source("two", "b\n")
    rendered = render([Diagnostic("K1", "t", span(one, "a"), secondary=(Label(span(two, "b"), "there"),))])
    assert rendered.split("\n")[1:-2] == [
        "  --> one:1:1",
        "   |",
        " 1 | a",
        "   | ^",
        "  ::: two:1:1",
        "   |",
        " 1 | b",
        "   | - there",
    ]


def test_an_object_path_stands_for_a_span() -> None:
    rendered = render([Diagnostic("K1101", "bad value", where="pods.yaml#2: spec.priority")])
    assert rendered == "error[K1101]: bad value\n  --> pods.yaml#2: spec.priority\n\n1 error"


@pytest.mark.parametrize(
    "text, marked, rows",
    [
        pytest.param("\ta\tbc", "bc", [" 1 |     a    bc", "   |          ^^ L"], id="tabs"),
        pytest.param("漢字 = bc", "bc", [" 1 | 漢字 = bc", "   |        ^^ L"], id="wide"),
        pytest.param("漢字", "字", [" 1 | 漢字", "   |   ^^ L"], id="wide marker"),
        pytest.param("e\u0301 x", "x", [" 1 | e\u0301 x", "   |   ^ L"], id="combining"),
        pytest.param("a\x1b[31m x", "x", [" 1 | a\ufffd[31m x", "   |        ^ L"], id="control"),
        pytest.param("ab\r\nc", "ab", [" 1 | ab", "   | ^^ L"], id="windows"),
        pytest.param("a\n", "", [" 2 |", "   | ^ L"], id="end of file"),
        pytest.param("ab", "", [" 1 | ab", "   |   ^ L"], id="end of last line"),
        pytest.param("", "", [" 1 |", "   | ^ L"], id="empty file"),
        pytest.param(
            "a {\n  b\n}", "{\n  b\n}", [" 1 | a {", "   |   ^", " ...", " 3 | }", "   | ^ L"], id="lines"
        ),
        pytest.param(
            "a(\n  b)", "(\n  b)", [" 1 | a(", "   |  ^", " 2 |   b)", "   |   ^^ L"], id="two lines"
        ),
        pytest.param("ab\ncd", "ab\n", [" 1 | ab", "   | ^^ L"], id="line break at the end"),
    ],
)
def test_drawing(text: str, marked: str, rows: list[str]) -> None:
    assert drawn(text, marked, "L") == rows


def test_long_lines_are_cut_around_the_mark() -> None:
    text = "x" * 500 + "MARK" + "y" * 500
    line, marker = drawn(text, "MARK")
    assert line.startswith(" 1 | …xxx")
    assert line.endswith("yyy…")
    assert len(line) < 130
    assert line[marker.index("^") : marker.index("^") + 4] == "MARK"
    assert marker.count("^") == 4


def test_a_long_line_is_drawn_again_for_a_mark_that_its_part_does_not_reach() -> None:
    source = Source("f", "FIRST" + "x" * 500 + "MARK")
    secondary = (Label(span(source, "FIRST"), "the first one"),)
    _, _, _, *rows = render([Diagnostic("K1", "t", span(source, "MARK"), secondary=secondary)]).split("\n")
    assert rows[0].startswith(" 1 | FIRSTxxx") and rows[1] == "   | ----- the first one"
    assert rows[2].startswith(" 1 | …xxx") and rows[2][rows[3].index("^") :] == "MARK"


def test_a_mark_longer_than_the_screen_stays_on_it() -> None:
    line, marker = drawn("a " + "x" * 1000, "x" * 1000)
    assert len(marker) <= len(line) <= 130


def test_line_numbers_widen_the_gutter() -> None:
    rendered = render([Diagnostic("K1", "t", span(Source("f", "\n" * 1233 + "x"), "x"))]).split("\n")
    assert rendered[1:5] == ["    --> f:1234:1", "     |", "1234 | x", "     | ^"]


def test_a_long_line_is_measured_once_for_all_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    cell = snippet._cell
    monkeypatch.setattr(snippet, "_cell", lambda each: measured.append(each) or cell(each))
    source = Source("f", ", ".join(f"a{at}" for at in range(500)))
    found = [Diagnostic("K1", "t", Span(source, at, at + 1)) for at in range(0, 1000, 4)]
    assert render(found).count("^") == len(found)
    assert len(measured) == len(source.text)


def test_texts_cannot_steer_the_terminal() -> None:
    rendered = render([Diagnostic("K1", "bad `\x1b[2J`\n", where="a\x07", help=("\u202e",))])
    assert "\x1b" not in rendered
    assert "\x07" not in rendered
    assert "\\x1b[2J" in rendered


def test_colours_only_add_escapes() -> None:
    coloured = render([FULL], colour=True)
    assert coloured.startswith("\x1b[1;31merror[K0204]\x1b[0m")
    plain = coloured
    for code in ("\x1b[1;31m", "\x1b[1;34m", "\x1b[1;36m", "\x1b[1m", "\x1b[0m"):
        assert code in plain
        plain = plain.replace(code, "")
    assert plain == render([FULL])


def test_nothing_to_say() -> None:
    assert render([]) == ""
    assert summary([]) == ""


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown format"):
        render([FULL], "fancy")
