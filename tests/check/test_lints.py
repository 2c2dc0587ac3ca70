"""Lints on a fixture each: everything that is said, text for text, and what is silenced.

`UPDATE_GOLDEN=1 pytest tests/check/test_lints.py` writes the expected texts and `docs/lints.md` anew.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.span import Source
from kdsl.check import lints
from kdsl.check.checker import check_program
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.lints import LINTS, lint, pages
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import BOOL, DOUBLE, INT, STRING, list_of
from kdsl.eval.values import EvalError, Value
from kdsl.lang.loader import load_sources
from kdsl.lang.parser import parse_expression
from kdsl.plan.compile.expression import compile_expression
from kdsl.report.diagnostics import in_order, render

from .programs import ROOT

FIXTURES = Path(__file__).parent / "lints"
FILES = sorted(FIXTURES.glob("*.kdsl"))
PAGE = ROOT / "docs" / "lints.md"
_HEADER = "kdsl 1\npackage test\n"
_PROFILE = 'queue Q { order by pod.priority }\nprofile p {\n  scheduler "test"\n  queue Q\n}\n'


def found(*sources: Source) -> tuple[Diagnostic, ...]:
    """Return what lints find in texts without errors, in the order of the text."""
    loaded = load_sources(sources)
    assert not loaded.diagnostics, [diagnostic.title for diagnostic in loaded.diagnostics]
    result = check_program(loaded.program)
    assert result.rules is not None, [diagnostic.title for diagnostic in result.diagnostics]
    return tuple(in_order(lint(loaded.program, result.rules)))


def in_text(text: str) -> list[tuple[str, str]]:
    """Return the code and the marked text of everything that is found in the declarations."""
    return [
        (each.code, "" if each.span is None else each.span.text)
        for each in found(Source("test.kdsl", _HEADER + text))
    ]


def _fixture(path: Path) -> tuple[Diagnostic, ...]:
    return found(Source(path.name, path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    report = render(_fixture(path)) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("each", LINTS, ids=lambda each: each.name)
def test_every_lint_has_a_fixture_of_its_own_and_warns(each: Lint) -> None:
    findings = _fixture(FIXTURES / f"{each.name.replace('-', '_')}.kdsl")
    assert {finding.code for finding in findings} >= {each.code}
    assert all(finding.severity is Severity.WARNING for finding in findings)
    assert re.search(r"^```\n.+?^```$", each.page, re.MULTILINE | re.DOTALL), "a page shows an example"


def test_every_module_with_a_lint_is_listed_by_code() -> None:
    modules = [
        importlib.import_module(f"{lints.__name__}.{module.name}")
        for module in pkgutil.iter_modules(lints.__path__)
    ]
    assert {module.LINT.code for module in modules if hasattr(module, "LINT")} == {e.code for e in LINTS}
    codes = [each.code for each in LINTS]
    assert codes == sorted(set(codes))


def test_the_pages_are_in_the_docs() -> None:
    head = PAGE.read_text(encoding="utf-8").partition("\n## ")[0] if PAGE.exists() else ""
    text = f"{head.rstrip()}\n\n" + "\n".join(pages().values())
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def test_the_examples_of_the_pages_are_reported() -> None:
    for each in LINTS:
        example = re.findall(r"^```\n(.+?)^```$", each.page, re.MULTILINE | re.DOTALL)[0]
        if example.startswith("require"):
            loop = f"for t in node.taints {{\n{example}}}"
            example = f"predicate P {{\n{loop if 'tolerates(t)' in example else example}}}\n"
        names = re.findall(r"^predicate (\w+)", example, re.MULTILINE)
        profile = _PROFILE.replace("queue Q\n}", f"queue Q\n  predicates {{ {' '.join(names)} }}\n}}")
        assert each.code in {code for code, _ in in_text(example + (profile if names else ""))}, each.code


def test_libraries_may_declare_what_they_do_not_use() -> None:
    library = 'fn half(n: int): int = n / 2\npredicate P {\n  require node.podCount < 1 else "no"\n}\n'
    assert in_text(library) == []
    assert in_text(library + _PROFILE) == [("K0602", "half"), ("K0602", "P")]
    user = Source("user.kdsl", "kdsl 1\npackage user\nimport test\n")
    assert found(Source("test.kdsl", _HEADER + library + _PROFILE), user) == ()


def test_a_name_that_only_a_reason_uses_is_used() -> None:
    assert (
        in_text('predicate P {\n  param most = 1\n  require node.podCount < 1 else "max ${most}"\n}\n') == []
    )


def test_an_ignore_covers_its_statement_only() -> None:
    body = '  require "{0}" in node.labels\n    else "no {0}"\n'
    above = "  // kdsl: ignore[K0701] labels are set late here\n"
    first = f"predicate P {{\n{above}{body.format('a')}{body.format('b')}}}\n"
    assert in_text(first) == [("K0701", '"b" in node.labels')]
    whole = f"// kdsl: ignore[K0701] labels are set late\npredicate P {{\n{body.format('a')}{body.format('b')}}}\n"
    assert in_text(whole) == []


def test_a_chain_of_lets_is_looked_into_once() -> None:
    chain = "".join(f"  let v{at + 1} = v{at} + v{at} > 0 ? v{at} : v{at} + 1\n" for at in range(24))
    assert in_text(f"score S {{\n  let v0 = node.podCount\n{chain}  value v24\n  normalize max\n}}\n") == []


# ---- bounds ------------------------------------------------------------------------------------------------


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["({} + {})", "({} - {})", "({} * {})", "({} / {})"])
    functions = st.sampled_from(["math.least({}, {})", "math.greatest({}, {})", "({} < {} ? 3 : x)"])
    return st.builds(str.format, operators | functions, parts, parts)


_LEAVES = st.integers(-9, 9).map(str) | st.sampled_from(["x", "l.size()", "(-x)"])
_NUMBERS = st.recursive(_LEAVES, _combined, max_leaves=8)
_SIGNS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
_ASKED = st.builds("{} {} {}".format, _NUMBERS, _SIGNS, _NUMBERS)
_TYPES = {"x": INT, "l": list_of(INT), "d": DOUBLE, "s": STRING, "b": BOOL, "y": INT}


def typed(text: str) -> TypedExpr:
    """Check an expression as rule files do."""
    expr, problems = parse_expression(Source("e", text))
    assert expr is not None, problems
    result, found = check_expression(expr, Environment(_TYPES, strict=True))
    assert result is not None, found
    return result


def compile_value(text: str, x: int, items: list[int]) -> Value:
    try:
        return compile_expression(typed(text))((x, items, 0.0, "a", x > 0, 3))
    except EvalError as error:
        return error


@given(_NUMBERS, st.integers(-20, 20), st.lists(st.integers(), max_size=3))
def test_values_lie_within_their_bounds(text: str, x: int, items: list[int]) -> None:
    bounds = Certain({}).bounds(typed(text))
    value = compile_value(text, x, items)
    assert bounds is not None
    assert isinstance(value, EvalError) or bounds[0] <= value <= bounds[1]


@given(_ASKED, _ASKED, st.sampled_from(["({}) && ({})", "({}) || !({})"]), st.integers(-20, 20))
def test_what_is_certain_is_true(one: str, other: str, form: str, x: int) -> None:
    text = form.format(one, other)
    expr = typed(text)
    assert expr.type == BOOL
    truth = Certain({}).truth(expr)
    value = compile_value(text, x, [x])
    assert truth is None or isinstance(value, EvalError) or truth is value


_FACTS = (
    st.builds("{} {} {}".format, st.sampled_from(["x", "y", "(x + 1)"]), _SIGNS, st.integers(-2, 4))
    | st.builds("{} {} {}".format, st.integers(-2, 4), _SIGNS, st.sampled_from(["x", "y"]))
    | st.builds("{} {} {}".format, st.sampled_from(["x", "y"]), _SIGNS, st.sampled_from(["x", "y"]))
    | st.sampled_from(
        ["b", "b == true", "b != true", "s == 'a'", "s != 'b'", "s in ['a', 'c']", "x in [1, 3]"]
    )
)
_LOGIC = st.recursive(
    _FACTS,
    lambda parts: (
        st.builds("({} && {})".format, parts, parts)
        | st.builds("({} || {})".format, parts, parts)
        | st.builds("!({})".format, parts)
        | st.builds("({} ? {} : {})".format, parts, parts, parts)
    ),
    max_leaves=10,
)


@given(_LOGIC, st.integers(-3, 5))
def test_what_follows_from_the_sides_of_a_condition_is_true(text: str, x: int) -> None:
    truth = Certain({}).truth(typed(text))
    assert truth is None or truth is compile_value(text, x, [])


@dataclass(frozen=True)
class _Held:
    condition: TypedExpr


@given(st.lists(_FACTS, max_size=8), st.lists(_FACTS, min_size=1, max_size=2))
def test_reasons_are_enough_and_none_is_too_many(before: list[str], conditions: list[str]) -> None:
    def follow(reasons: list[_Held]) -> bool:
        known = [(each.condition, True) for each in reasons]
        return all(Certain({}).excludes([(each, False), *known]) for each in asked)

    asked, held = [typed(each) for each in conditions], [_Held(typed(each)) for each in before]
    reasons = Certain({}).reasons(asked, held)
    assert follow(reasons) if reasons else follow([]) or not follow(held)
    assert [each for each in held if any(each is reason for reason in reasons)] == reasons
    for left_out in reasons:
        assert not follow([each for each in reasons if each is not left_out])


def test_only_what_was_required_last_is_looked_at() -> None:
    held = [_Held(typed(f"x < {limit}")) for limit in (5, *range(1000, 1100))]
    assert Certain({}).reasons([typed("x < 9")], held) == []
    (reason,) = Certain({}).reasons([typed("x < 2000")], held)
    assert reason is held[-1]


def test_a_name_of_one_condition_says_nothing_of_another() -> None:
    certain = Certain({})
    assert certain.bounds(typed("cel.bind(n, l.size(), n)")) == (0, 2**63 - 1)
    assert certain.bounds(typed("cel.bind(n, x, n)")) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_many_sides_take_no_time(operator: str) -> None:
    pairs = [f"(x > {each} || l.size() < {each + 3})" for each in range(200)]
    assert Certain({}).truth(typed(f" {operator} ".join(pairs))) is None


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("x < x", False),
        ("x <= x", True),
        ("l.size() < 0", False),
        ("x in []", False),
        ("l == l", True),
        ("1.5 < 2.5", True),
        ("d == d", None),
        ("d < d", None),
        ("x < 1 || true", True),
        ("2u > 1u", True),
        ("'a' == 'b'", False),
        ("math.greatest(x, 5) >= 5", True),
        ("9223372036854775807 - l.size() >= 0", True),
        ("x > 10 && x < 5", False),
        ("x > 10 && x < 12", None),
        ("x > 10 && 12 > x && x != 11", False),
        ("x > y && x <= y", False),
        ("x > y || y >= x", True),
        ("x >= y && y >= x", None),
        ("x < y && y < x", False),
        ("x != 1 || x != 2", True),
        ("x == 1 || x == 2", None),
        ("s == 'a' && s == 'b'", False),
        ("s == 'a' && s in ['b', 'c']", False),
        ("s == 'a' && s in ['a', 'c']", None),
        ("s != 'a' || s != 'b'", True),
        ("!(s in ['a', 'b']) || s != 'c'", True),
        ("x in [1, 2] && x > 2", False),
        ("!(x in [1, 2]) && x >= 1 && x <= 2", False),
        ("b && !b", False),
        ("b || !b", True),
        ("b == false && b", False),
        ("d < 1.0 || d >= 1.0", None),
        ("d == 1.0 && d == 2.0", None),
        ("(b ? x > 3 : x > 4) && x < 2", False),
        ("l.size() > 0 || l.size() == 0", True),
        ("s.startsWith('a') && !s.startsWith('a')", False),
    ],
)
def test_truth(text: str, truth: bool | None) -> None:
    assert Certain({}).truth(typed(text)) is truth
