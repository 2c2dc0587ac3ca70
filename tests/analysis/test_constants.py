"""Constant texts that always fail are reported once, at their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from kdsl.analysis import constants
from kdsl.analysis.constants import check_constants
from kdsl.app import check_rules
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import TypedExpr
from kdsl.plan.compile.expression import compile_expression

from tests.plan.devices.devices import ORDER, SMALL
from tests.plan.lab import rules

PREDICATE = 'predicate P {\n  require %s else "no"\n}'

PROFILE = """
queue Q { order by pod.name }
profile p {
  scheduler "p"
  queue Q
  devices Small
}
"""


@pytest.mark.parametrize(
    ("text", "title", "help_"),
    [
        ('node.name.matches("a(?=b)")', "this is no regular expression: ", "look-around"),
        ('node.name.find("[a") == ""', "this is no regular expression: ", "look-around"),
        ('node.name.findAll("(", 2).size() == 0', "this is no regular expression: ", "look-around"),
        ('duration("5 minutes") > duration("1s")', "cannot convert '5 minutes' to duration", "`1h30m`"),
        ('timestamp("yesterday") == timestamp("2024-01-31T12:00:00Z")', "cannot convert", "2024"),
        ('int("x") == 1', "cannot convert 'x' to int", ""),
        ('ip("1.2.3") == ip("1.2.3.4")', "not an IP address", ""),
        ('cidr("1.2.3.4") == cidr("1.2.3.4/8")', "not a CIDR range", ""),
        ('bool("maybe")', "cannot convert 'maybe' to bool", ""),
        ('double("x") > double("1.5")', "cannot convert 'x' to double", ""),
        ('uint("-1") > uint("1")', "cannot convert '-1' to uint", ""),
        ('url("../a") == url("https://a/")', "not a URL", ""),
    ],
)
def test_constants_that_always_fail(text: str, title: str, help_: str) -> None:
    (problem,) = check_constants(rules(PREDICATE % text))
    assert problem.code == "K0206" and problem.title.startswith(title)
    assert help_ in "".join(problem.help)
    assert problem.span is not None and problem.span.text.startswith('"')


@pytest.mark.parametrize(
    ("text", "part", "message"),
    [
        ("1 / 0 == 1", "1 / 0 == 1", "division by zero"),
        ("node.podCount > 9223372036854775807 + 1", "9223372036854775807 + 1", "integer overflow"),
        ("node.podCount > lists.range(20000).size()", "lists.range(20000).size()", "at most 10000 numbers"),
        ("node.podCount in [1, 2, 3 % 0]", "[1, 2, 3 % 0]", "modulus by zero"),
        ("[0].all(i, 1 / i == node.podCount) || [[0]].all(l, l[1] == 2)", "[[0]].all(l, l[1] == 2)", "index"),
        ("node.podCount / 0 == 1", "node.podCount / 0", "the divisor is zero"),
        ("1 + node.podCount % 0 == 1", "node.podCount % 0", "the divisor is zero"),
        ("node.requested['cpu'] / 0 > quantity('1')", "node.requested['cpu'] / 0", "the divisor is zero"),
        ('node.name == "%d".format(["x"])', '"%d".format(["x"])', ""),
    ],
)
def test_constant_parts_without_a_value(text: str, part: str, message: str) -> None:
    (problem,) = check_constants(rules(PREDICATE % text))
    assert problem.code == "K0218" and message in problem.title
    assert problem.span is not None and problem.span.text == part


def test_what_a_parameter_or_function_decides_is_no_constant() -> None:
    text = "fn f(n: int): int = 1 / n\n" + PREDICATE % "1 / zero == f(0)"
    text = text.replace("require", "param zero = 0\n  require")
    assert check_constants(rules(text)) == ()


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("sample nodes / 0", "nodes / 0"),
        ("sample nodes * int('many')", "'many'"),
        ("set S.most = int('many')", "'many'"),
        ("set S.most = 1 / 0", "1 / 0"),
    ],
)
def test_what_a_profile_writes(line: str, part: str) -> None:
    text = f"""
      score S {{ param most = 3 value math.least(node.podCount, most) }}
      queue Q {{ order by pod.name }}
      profile p {{ scheduler "p" queue Q scores {{ S weight 1 }} }}
      profile heir extends p {{ scheduler "heir" {line} }}
      profile third extends heir {{ scheduler "third" }}
    """
    (problem,) = check_constants(rules(text))
    assert problem.span is not None and problem.span.text == part


def test_a_parameter_of_a_file_is_reported_at_its_place_only() -> None:
    text = 'param most = int("x")\nscore S { value math.least(node.podCount, most) }'
    (problem,) = check_constants(rules(text))
    assert problem.span is not None and problem.span.text == '"x"'


@pytest.mark.parametrize(
    "value",
    [
        "zero == 0 ? node.podCount : node.podCount / zero",
        "zero != 0 && node.podCount / zero > 1 ? 1 : 0",
        "node.podCount / zero > 1 || zero == 0 ? 1 : 0",
    ],
)
def test_what_a_constant_condition_leaves_out_never_fails(value: str) -> None:
    assert check_constants(rules(f"param zero = 0\nscore S {{ value {value} }}")) == ()


def test_what_a_constant_condition_chooses_fails() -> None:
    text = "param zero = 0\nscore S { value zero == 0 ? node.podCount / zero : 1 }"
    assert [problem.code for problem in check_constants(rules(text))] == ["K0218"]


def test_each_constant_of_a_chain_is_evaluated_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant may take long, and a chain of operators has each as a part of many others."""
    evaluated: list[TypedExpr] = []

    def counted(expr: TypedExpr) -> Callable[[Sequence[Any]], Any]:
        evaluated.append(expr)
        return compile_expression(expr)

    monkeypatch.setattr(constants, "compile_expression", counted)
    chain = " && ".join(f'size("{"x" * at}") == {at}' for at in range(40))
    condition = f'{chain} && duration("soon") > duration("1s") && pod.hostNetwork'
    assert len(check_constants(rules(PREDICATE % condition))) == 1
    assert sum(1 for expr in evaluated for _ in walk(expr)) < 1_000


def test_a_double_may_be_divided_by_zero() -> None:
    assert check_constants(rules(PREDICATE % "double(node.podCount) / 0.0 > 1.0")) == ()


@pytest.mark.parametrize(
    ("section", "part", "message"),
    [
        ("", "", ""),
        (
            'lock { set key = ["v.com/lock"][most] }',
            '["v.com/lock"][most]',
            "index out of range: 2 in a list of 1",
        ),
        ('handshake { set key = "v.com/h" set resource = ["v.com/r"][most] }', '["v.com/r"][most]', "index"),
        (
            "quota { set memory = memory set factor = most / (most - 2) }",
            "most / (most - 2)",
            "division by zero",
        ),
        (
            'lock { set key = "v.com/lock" set seconds = most * 4000000000 }',
            "most * 4000000000",
            "is beyond 32 bits",
        ),
    ],
)
def test_what_the_parameters_of_a_device_decide(section: str, part: str, message: str) -> None:
    text = SMALL.removeprefix("\nkdsl 1\npackage small\n").replace("ROWS", "[]").replace("QUOTA", section)
    for word in ("MORE", "ADMIT", "TOGETHER"):
        text = text.replace(word, "")
    text = text.replace("ORDER", ORDER).replace("CHOOSE", "choose first") + PROFILE
    problems = check_constants(rules(text))
    assert [(each.span and each.span.text, message in each.title) for each in problems] == (
        [(part, True)] if part else []
    )


@pytest.mark.parametrize(
    "text",
    [
        "true || 1 / 0 == 1",
        "[1, 2].map(i, i * 2).size() == node.podCount",
        'node.name.matches("^a+$")',
        'duration("1h30m") > duration("-1s")',
        "node.name.matches(node.name)",
    ],
)
def test_valid_texts_and_variables(text: str) -> None:
    assert check_constants(rules(PREDICATE % text)) == ()


def test_a_rule_file_with_one_is_broken(tmp_path: Path) -> None:
    text = "fn f(text: string): bool = text.matches('(')\nscore S { value int('x') }\n"
    (tmp_path / "a.kdsl").write_text(f"kdsl 1\npackage a\n{text}")
    checked = check_rules([tmp_path])
    assert checked.rules is None and [each.code for each in checked.diagnostics] == ["K0206", "K0206"]
