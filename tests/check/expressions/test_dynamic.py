"""Where rules may work with values whose type is known only when they run."""

from __future__ import annotations

import pytest
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.types import DYN, INT, list_of

from tests.check.programs import check, check_predicate, findings, rules_of

FNS = """
dyn fn read(text: string): dyn = json.decode(text)
dyn fn rows(it: dyn): list(dyn) = it == null ? [] : [it, dyn(1)]
dyn fn weight(it: dyn): int = type(it) == int ? int(it) + 1 : it[?"weight"].hasValue() ? int(it.weight) : 0
fn half(n: int): int = n / 2
"""


def test_a_marked_function_takes_and_returns_it() -> None:
    fns = rules_of(check(FNS)).fns
    rows, weight = fns["test.rows"], fns["test.weight"]
    assert isinstance(rows, CheckedFn) and isinstance(weight, CheckedFn)
    assert rows.params[0].type == DYN
    assert rows.body.type == list_of(DYN)
    assert weight.body.type == INT


@pytest.mark.parametrize(
    "condition",
    [
        "int(read(pod.name)) == 1",
        "string(read(pod.name).a.b[0]) == 'x'",
        "int(json.decode(pod.name)[?'a'].orValue(0)) == 1",
        "has(read(pod.name).a) && read(pod.name)[?'a'].hasValue() && type(read(pod.name)) == string",
        "weight(read(pod.name).a) == 1",
        "weight(weight(1)) == 1",
        "rows(read(pod.name)).size() == 2",
        "rows(1).exists(each, weight(each) == 1 || int(each) == 2)",
    ],
)
def test_elsewhere_it_is_read_and_converted_or_passed_on(condition: str) -> None:
    check_predicate(f"require {condition} else 'no'", FNS)


@pytest.mark.parametrize(
    "condition, marked",
    [
        ("read(pod.name) == 1", "read(pod.name)"),
        ("read(pod.name).a > 1", "read(pod.name).a"),
        ("read(pod.name)", "read(pod.name)"),
        ("int(read('a') + 1) == 1", "read('a')"),
        ("read('a').all(each, true)", "read('a')"),
        ("int(read('a').a + read('b')) == 1", "read('a').a"),
        ("rows(1).exists(each, each == 1)", "each"),
        ("rows(1)[0] == 1", "rows(1)[0]"),
        ("int(rows(1)[int(read('b')) + read('c')]) == 1", "read('c')"),
        ("cel.bind(x, read('a'), int(x) == 1)", "read('a')"),
        ("(true ? read('a') : 1) == 1", "true ? read('a') : 1"),
        ("dyn(1) == 1", "dyn"),
        ("pod.name == null", "null"),
    ],
)
def test_anything_else_is_refused(condition: str, marked: str) -> None:
    found = findings(f"{FNS} predicate P {{ require {condition} else 'no' }}")
    assert found[0] == (CheckCode.NOT_IN_RULES, marked)


@pytest.mark.parametrize(
    "declaration, expected",
    [
        ("fn f(x: dyn): int = 1", [(CheckCode.NOT_IN_RULES, "dyn")]),
        ("fn f(x: map(string, dyn), y: dyn): dyn = 1", [(CheckCode.NOT_IN_RULES, "dyn")]),
        ("param p: list(dyn) = []", [(CheckCode.NOT_IN_RULES, "dyn")]),
        ("param p = read('1')", [(CheckCode.NOT_IN_RULES, "read('1')")]),
        ("fn f(x: string): int = read(x).n + 1", [(CheckCode.NOT_IN_RULES, "read(x).n")]),
        # Nothing looks at these again, so they are converted by hand.
        ("dyn fn f(x: dyn): int = x.n", [(CheckCode.WRONG_TYPE, "x.n")]),
        ("dyn fn f(x: dyn): list(int) = [x.n]", [(CheckCode.WRONG_TYPE, "[x.n]")]),
        ("dyn fn f(x: dyn): int = half(x)", [(CheckCode.WRONG_TYPE, "x")]),
    ],
)
def test_declarations(declaration: str, expected: list[tuple[str, str]]) -> None:
    assert findings(f"{FNS} {declaration}") == expected


def test_the_mark_is_a_fix() -> None:
    (problem,) = check("fn f(x: dyn): int = int(x)").diagnostics
    (fix,) = problem.fixes
    assert fix.is_certain and [edit.text for edit in fix.edits] == ["dyn "]
    assert fix.edits[0].span.start == len("kdsl 1\npackage test\n")


def test_a_device_works_with_it() -> None:
    text = """
    device D {
      kind "D"
      record "d"
      resource card = "d/card"
      inventory for row in json.decode(node.annotations[?"d"].orValue("[]")) {
        set id = row.id
        set slots = row.count + 1
        set healthy = row.state != null
      }
      request { set count = 1 }
    }
    """
    assert CheckCode.NOT_IN_RULES not in {code for code, _ in findings(text)}
