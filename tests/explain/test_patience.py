"""An explanation of rules that are dear to ask is given up, and says so. Here each look at the watch takes time."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.explain.cures import CureFinder
from kdsl.explain.failed_requires import ExplainedPredicates
from kdsl.explain.inspection import SHOWN, Inspection
from kdsl.explain.judgement import FilterHooks
from kdsl.explain.patience import SECONDS, Patience
from kdsl.report.explanation import explanation_text, wide_text
from kdsl.report.explanation_document import explanation_envelope
from kdsl.report.schemas import output_schema

from tests.explain.cases import Case, case, node, pod

TOLD = f"given up after {SECONDS} s: not all nodes were compared, or not all changes were tried"


def looking(seconds: int) -> Inspection:
    """Return an inspection for which so many seconds go by between two looks at the watch."""
    return Inspection(begin=lambda: Patience(count(step=seconds * 10**9).__next__))


def farm(folder: Path, nodes: int) -> Case:
    """Return nodes that miss twenty labels, which twenty rules want."""
    rules = "".join(
        f'predicate L{at} {{\n  require node.labels[?"l{at}"].orValue("") == "y" else "l{at}"\n}}\n'
        for at in range(20)
    )
    return case(folder, rules, [node(f"n{at}") for at in range(nodes)], pod("p"))


def counting(monkeypatch: pytest.MonkeyPatch, of: type, name: str) -> list[object]:
    """List the calls of a method."""
    calls: list[object] = []
    method = getattr(of, name)

    def counted(self: object, *args: object) -> object:
        calls.append(args)
        return method(self, *args)

    monkeypatch.setattr(of, name, counted)
    return calls


def test_with_patience_nothing_is_given_up(tmp_path: Path) -> None:
    explanation = farm(tmp_path, 5).explain()
    assert explanation.findings is not None and not explanation.findings.unfinished
    assert len(explanation.findings.cures) == 20
    assert "given up" not in explanation_text(explanation, 200)


def test_without_it_few_nodes_are_compared_and_no_change_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = counting(monkeypatch, ExplainedPredicates, "failures")
    asked = counting(monkeypatch, CureFinder, "passes")
    where = farm(tmp_path, 100)
    explanation = where.explain(looking(5))
    findings = explanation.findings
    assert findings is not None and findings.unfinished
    # Two looks end before the time has come, the third does not: one node more than these, each by all rules.
    assert len(findings.nodes) == SECONDS // 5 < SHOWN
    assert (len(traced), len(asked)) == (20 * len(findings.nodes), 0)
    # What all rules say of all nodes is told in any case.
    assert [(group.rule, group.nodes) for group in findings.groups] == [(f"L{at}", 100) for at in range(20)]
    for text in (explanation_text(explanation, 200), wide_text(explanation)):
        assert TOLD in text.replace("\n", " ")
    document = explanation_envelope(explanation)
    Draft202012Validator(output_schema("Explanation")).validate(document)
    assert document["findings"]["unfinished"] is True  # type: ignore[index,call-overload]


def test_of_a_node_that_is_asked_for_all_is_told(tmp_path: Path) -> None:
    where = farm(tmp_path, 9)
    findings = where.findings(Inspection("n8", begin=looking(1000).begin))
    assert findings.unfinished and findings.asked is not None
    assert [len(each.failed) for each in findings.asked.rejected] == [1] * 20


@pytest.mark.parametrize("everything", [False, True])
def test_a_search_for_changes_ends_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    """Of pods that have to go each is a question: whoever looks at the watch at each of them asks few."""
    asked = counting(monkeypatch, FilterHooks, "judge")
    rule = 'predicate Alone {\n  require node.podCount < 1 else "not alone"\n}\n'
    placed = [pod(f"q{at}").on("n") for at in range(200)]
    where = case(tmp_path, rule, [node("n")], pod("p"), *placed)
    inspect = partial(Inspection, everything=everything)
    findings = where.findings(inspect(begin=looking(1).begin))
    assert findings.unfinished and not findings.fits
    few = len(asked)
    assert few < 2 * SECONDS
    assert not where.findings(inspect()).unfinished
    assert len(asked) - few > 10 * few
