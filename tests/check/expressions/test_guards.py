"""Which map accesses are proven, which are not, and that the offered fixes cure what they are offered for."""

from __future__ import annotations

import pytest
from kdsl.base.diagnostic import Fix
from kdsl.check.model.codes import CheckCode

from tests.check.programs import check, findings

LABELS = "node.labels"
PROVEN = [
    'require "k" in node.labels && node.labels["k"] == "v"',
    'require node.labels["k"] == "v" && "k" in node.labels',
    'require "k" in node.labels && (pod.priority > 0 || node.labels["k"] == "v")',
    'require has(node.labels.k) && node.labels["k"] == "v"',
    'require has(node.labels.k) && node.labels.k == "v"',
    'require node.labels[?"k"].hasValue() && node.labels["k"] == "v"',
    'require node.labels.?k.hasValue() && node.labels["k"] == "v"',
    'require node.labels[?"k"].orValue("") == "v"',
    'require !("k" in node.labels) || node.labels["k"] == "v"',
    'require node.labels["k"] == "v" || !("k" in node.labels)',
    'require "k" in node.labels ? node.labels["k"] == "v" : true',
    'require !("k" in node.labels) ? true : node.labels["k"] == "v"',
    'require !(pod.priority > 0 || !("k" in node.labels)) && node.labels["k"] == "v"',
    "require node.labels.all(k, node.labels[k] != pod.name)",
    "require node.labels.exists(k, v, node.labels[k] == v)",
    "require pod.images.filter(i, i in node.images).map(i, node.images[i].sizeBytes).sum() > 0",
    "require pod.images.map(i, i in node.images, node.images[i].sizeBytes).sum() > 0",
    "require node.labels.transformMap(k, v, v).all(k, node.labels[k] != pod.name)",
    'require {"a": 1, "b": 2}["a"] == 1',
    'require {"a": 1}.a == 1',
    'require cel.bind(m, node.labels, "k" in m && m["k"] == "v")',
    'require cel.bind(m, node.labels, "k" in m && node.labels["k"] == "v")',
    'require pod.requests["cpu"] > node.allocatable["memory"]',
    "require pod.nodeSelector.all(k, k in node.labels && node.labels[k] == pod.nodeSelector[k])",
    'require pod.nodeSelector.all(k, k in node.labels) && pod.nodeSelector.all(k, node.labels[k] != "")',
    'require !pod.labels.exists(k, !(k in node.labels)) && pod.labels.all(k, node.labels[k] != "")',
    'applies when "k" in node.labels require node.labels["k"] == "v"',
    'let m = node.labels require "k" in m && node.labels["k"] == "v"',
    'let known = "k" in node.labels require known && node.labels["k"] == "v"',
    "let known = pod.images.filter(i, i in node.images) require known.all(i, node.images[i].sizeBytes > 0)",
]
UNPROVEN = [
    'require node.labels["k"] == "v"',
    'require node.labels.k == "v"',
    'require "k" in node.labels || node.labels["k"] == "v"',
    'require !("k" in node.labels) && node.labels["k"] == "v"',
    'require "k" in node.labels && node.labels["j"] == "v"',
    'require "k" in pod.labels && node.labels["k"] == "v"',
    'require ("k" in node.labels || pod.priority > 0) && node.labels["k"] == "v"',
    'require "k" in node.labels ? true : node.labels["k"] == "v"',
    'require pod.nodeSelector.all(k, node.labels[k] == "v")',
    'require pod.nodeSelector.all(k, v, k == v && node.labels[v] == "v")',
    "require pod.images.map(i, node.images[i].sizeBytes).sum() > 0",
    'require pod.nodeSelector.exists(k, k in node.labels) && pod.nodeSelector.all(k, node.labels[k] != "")',
    'require {"a": 1, ?"b": optional.of(2)}["b"] == 1',
    'require has(node.labels.k) == true && node.labels["k"] == "v"',
    'let late = node.labels["k"] require "k" in node.labels && late == "v"',
]


def _predicate(body: str) -> str:
    """Return a predicate, its first `require` and the ones after it each with a reason."""
    lines = body.replace(" require ", "\nrequire ").split("\n")
    with_reasons = [f'{line} else "no"' if line.startswith("require") else line for line in lines]
    return "predicate P {\n" + "\n".join(with_reasons) + "\n}\n"


@pytest.mark.parametrize("body", PROVEN)
def test_proven(body: str) -> None:
    assert findings(_predicate(body)) == []


@pytest.mark.parametrize("body", UNPROVEN)
def test_unproven(body: str) -> None:
    assert [code for code, _ in findings(_predicate(body))] == [CheckCode.MAY_BE_MISSING]


def test_an_earlier_require_proves_what_follows() -> None:
    text = """
    predicate P {{
      {report}
      require "k" in node.labels else "none"
      require node.labels["k"] == "" else "no"
    }}
    """
    assert findings(text.format(report="")) == []
    assert findings(text.format(report="report first")) == []
    assert [code for code, _ in findings(text.format(report="report all"))] == [CheckCode.MAY_BE_MISSING]


def test_what_a_loop_item_requires_holds_for_the_rest_of_the_item_only() -> None:
    text = """
    predicate P {
      report all
      for k, v in pod.nodeSelector {
        require k in node.labels else "none"
        require node.labels[k] == v else "${node.labels[k]}"
      }
      require "x" in pod.nodeSelector && node.labels["x"] == "" else "no"
    }
    """
    assert findings(text) == [(CheckCode.MAY_BE_MISSING, 'node.labels["x"]')]


def test_a_where_and_the_keys_of_a_map_prove() -> None:
    text = """
    predicate P {
      for i in pod.images where i in node.images {
        require node.images[i].sizeBytes > 0 else "empty"
      }
      for k in node.labels {
        require node.labels[k] != "" else "${node.labels[k]}"
      }
    }
    """
    assert findings(text) == []


def test_a_reason_knows_that_the_condition_failed() -> None:
    reason = """else "is ${node.labels['k']}" }"""
    assert findings(f'predicate P {{ require !("k" in node.labels) {reason}') == []
    unproven = findings(f'predicate P {{ require "k" in node.labels {reason}')
    assert [code for code, _ in unproven] == [CheckCode.MAY_BE_MISSING]


def test_functions_and_parameters_are_guarded_too() -> None:
    text = 'fn f(m: map(string, int)): int = m["k"]\nparam x = {"a": 1}["b"]\n'
    assert [code for code, _ in findings(text)] == [CheckCode.MAY_BE_MISSING] * 2


@pytest.mark.parametrize(
    "text",
    [
        'predicate P { require node.labels["k"] == "v" else "no" }',
        'predicate P { require pod.priority > 0 || node.labels.k == "v" else "no" }',
        'predicate P { require pod.priority > 0 ? node.labels["k"] == "v" : true else "no" }',
        'predicate P { require !(node.labels["k"] == "v") else "no" }',
        'predicate P { require pod.nodeSelector.all(k, node.labels[k] == pod.nodeSelector[k]) else "no" }',
        'score S { value node.labels["k"] == "v" ? 1 : 0 }',
        'score S { value size(node.labels["k"]) }',
    ],
)
def test_every_fix_cures(text: str) -> None:
    (diagnostic,) = check(text).diagnostics
    assert diagnostic.fixes
    source = diagnostic.span.source.text if diagnostic.span else ""
    for fix in diagnostic.fixes:
        declarations = _apply(fix, source).split("package test\n")[1]
        assert findings(declarations) == [], declarations


def _apply(fix: Fix, text: str) -> str:
    for edit in sorted(fix.edits, key=lambda edit: edit.span.start, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text
