from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.base.span import Source, Span
from kdsl.cli.fixing import apply, certain_fixes

SOURCE = Source("f", "one two three")


def fix(*edits: tuple[int, int, str]) -> Fix:
    return Fix("x", tuple(Edit(Span(SOURCE, a, b), text) for a, b, text in edits), Applicability.CERTAIN)


def edited(*fixes: Fix) -> str:
    return apply(fixes).get(SOURCE, SOURCE.text)


def test_edits_are_those_of_the_old_text() -> None:
    assert edited(fix((0, 3, "1")), fix((8, 13, "3"), (4, 7, "2"))) == "1 2 3"


def test_of_fixes_that_touch_the_first_wins_and_none_is_done_by_half() -> None:
    assert edited(fix((4, 7, "2")), fix((0, 3, "1"), (6, 8, "!"))) == "one 2 three"
    assert edited(fix((3, 3, "a")), fix((3, 3, "b"))) == "onea two three"


def test_only_the_first_certain_fix_of_a_finding_counts_and_each_once() -> None:
    sure, unsure, empty = (
        fix((0, 3, "1")),
        Fix("y", fix((0, 3, "2")).edits),
        Fix("z", (), Applicability.CERTAIN),
    )
    findings = [
        Diagnostic("K0000", "a", fixes=(unsure, empty, sure, fix((4, 7, "2")))),
        Diagnostic("K0000", "b", fixes=(sure,)),
    ]
    assert certain_fixes(findings) == (sure,)


SPANS = st.tuples(st.integers(0, 13), st.integers(0, 13)).map(sorted)


@given(st.lists(st.tuples(SPANS, st.text("xyz", max_size=3)), max_size=6))
def test_what_no_edit_covers_stays(edits: list[tuple[list[int], str]]) -> None:
    fixes = [fix((span[0], span[1], text)) for span, text in edits]
    covered = {at for span, _ in edits for at in range(*span)}
    kept = [char for at, char in enumerate(SOURCE.text) if at not in covered]
    left = iter(edited(*fixes))
    assert all(char in left for char in kept)
