"""Findings with everything that a format has to get right."""

from __future__ import annotations

from hypothesis import strategies as st
from kdsl.base.diagnostic import Diagnostic, Edit, Fix, Label, Severity
from kdsl.base.span import Source, Span

RULES = Source("teams/ml team/a.kdsl", "kdsl 1\npackage é\nvalue node.x\n")
FULL = Diagnostic(
    "K0204",
    "100% of `a,b:c` may be missing",
    Span(RULES, 23, 29),
    label="a node without it",
    secondary=(Label(Span(RULES, 0, 6), "the version"),),
    notes=("labels are maps",),
    help=("guard it",),
    fixes=(
        Fix("give a default", (Edit(Span(RULES, 23, 29), "node.?x"),)),
        Fix("leave it out"),
    ),
)
LINES = Diagnostic("K0801", "over lines", Span(RULES, 0, 12), severity=Severity.WARNING)
NOWHERE = Diagnostic("K1101", "bad \x1b[2J]]> & <b>", where="pods.yaml#2: spec")
ALL = (FULL, LINES, NOWHERE)

_texts = st.text(max_size=12)
_spans = st.builds(
    lambda path, text, one, two: Span(
        Source(path, text), min(one, two, len(text)), min(max(one, two), len(text))
    ),
    _texts,
    _texts,
    st.integers(0, 12),
    st.integers(0, 12),
)
diagnostics = st.lists(
    st.builds(
        Diagnostic,
        st.sampled_from(["K0101", "K0204", "K1101"]),
        _texts,
        st.one_of(st.none(), _spans),
        label=_texts,
        severity=st.sampled_from(Severity),
        where=_texts,
        secondary=st.lists(st.builds(Label, _spans, _texts), max_size=1).map(tuple),
        help=st.lists(_texts, max_size=2).map(tuple),
        fixes=st.lists(
            st.builds(Fix, _texts, st.lists(st.builds(Edit, _spans, _texts), max_size=1).map(tuple)),
            max_size=1,
        ).map(tuple),
    ),
    max_size=3,
)
