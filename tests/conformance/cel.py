"""Runs the official CEL conformance suite, without its tests on protobuf messages.

    python -m tests.conformance.cel FILE [--tier core] [--lifted]

FILE is `tests.jsonl.gz` of the reference vectors. Prints a line per failure, a table per file and one per
tier, and `N passed, M failed`; exits with 1 if any failed. A test that expects an error of a library counts as
passed only where a test of the same section that expects a value passes too: what does not exist would else
pass by failing. With `--lifted` every test runs over columns, as `lifted.py` says.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.library import TYPE_NAMES, Function, Overload
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import DYN, NULL, Type, list_of, map_of, parameter
from kdsl.eval.values import EvalError, UInt, Value, from_key, kind_of, to_map
from kdsl.lang.parser import parse_expression
from kdsl.plan.compile.expression import compile_expression

from tests.conformance.lifted import PLACE, Way, lift

_TIER_FILES: Mapping[str, tuple[str, ...]] = {
    "core": (
        *("basic", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic"),
        *("macros", "namespace", "parse", "plumbing", "string", "timestamps"),
    ),
    "checker": ("type_deduction",),
    "kubernetes": ("macros2", "network_ext", "optionals", "string_ext"),
    "extras": ("bindings_ext", "encoders_ext", "math_ext"),
    "tool": ("block_ext",),
}
TIERS: Mapping[str, str] = {file: tier for tier, files in _TIER_FILES.items() for file in files}
_PRIMITIVES = {
    "BOOL": "bool",
    "INT64": "int",
    "UINT64": "uint",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
}
_TYPE_NAMES = {"optional_type": "optional"}

MISREAD = frozenset(
    {
        ("bytes_literals", "triple_single_quoted_unescaped_punctuation"),
        ("bytes_literals", "triple_double_quoted_unescaped_punctuation"),
    }
)
"""Tests whose expected bytes are `\\?` in the suite's protobuf text, where that escape is a plain `?`.

The reader that made the data (protobuf's for Python) leaves the backslash of this one escape in place, so the
data asks for a backslash that the expression does not have; `read_tests` takes it away. Where an expression
has the escape too, both were misread alike, and still say the same.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test went; `difference` is empty where it passed. `way` tells how much of it ran over columns."""

    test: dict[str, Any]
    difference: str
    way: Way | None = None

    @property
    def section(self) -> tuple[str, str]:
        return self.test["file"], self.test["section"]

    @property
    def expects_error(self) -> bool:
        return "evalError" in self.test


def read_tests(path: Path) -> list[dict[str, Any]]:
    """Return the tests of the suite."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_corrected(json.loads(line)) for line in lines]


def _corrected(test: dict[str, Any]) -> dict[str, Any]:
    if (test["section"], test["name"]) not in MISREAD:
        return test
    expected = base64.b64decode(test["value"]["bytesValue"]).replace(rb"\?", b"?")
    return test | {"value": {"bytesValue": base64.b64encode(expected).decode()}}


def run_all(tests: list[dict[str, Any]], is_lifted: bool = False) -> list[Outcome]:
    """Run the tests, then take back the passes that only show that a library is missing."""
    outcomes = [_survived(test, is_lifted) for test in tests]
    has_values = {outcome.section for outcome in outcomes if not outcome.expects_error}
    works = {outcome.section for outcome in outcomes if not outcome.expects_error and not outcome.difference}
    return [
        replace(outcome, difference="expects an error, but nothing else of its section works")
        if outcome.expects_error and outcome.section in has_values - works and not outcome.difference
        else outcome
        for outcome in outcomes
    ]


def _survived(test: dict[str, Any], is_lifted: bool) -> Outcome:
    """Run one test; one that raises is a failure and does not hide the others."""
    try:
        return run(test, is_lifted)
    except Exception as cause:  # noqa: BLE001 - whatever it is, the run goes on
        return Outcome(test, f"raised {type(cause).__name__}: {cause}")


def run(test: dict[str, Any], is_lifted: bool = False) -> Outcome:
    """Run one test, over columns if it `is_lifted`."""
    expr, problems = parse_expression(Source(test["name"], test["expr"]))
    if expr is None or problems:
        return Outcome(test, "" if "evalError" in test else f"does not parse: {problems[0].title}")
    typed, found = check_expression(expr, environment(test))
    if typed is None:
        return Outcome(test, "" if "evalError" in test else f"does not check: {found[0].title}")
    typed_result = test.get("typedResult")
    if typed_result is not None:
        expected_type = read_type(typed_result["deducedType"])
        if typed.type != expected_type:
            return Outcome(test, f"type {typed.type}, expected {expected_type}")
    if test.get("checkOnly"):
        return Outcome(test, "")
    bindings = test.get("bindings", {})
    values = [read_value(bindings[name]["value"]) if name in bindings else None for name in variables(test)]
    if not is_lifted:
        return Outcome(test, _difference(test, _evaluated(typed, values)))
    lifted = lift(typed, values)
    difference = _difference(test, lifted.columns[PLACE]) or _between(lifted.columns, lifted.scalar)
    return Outcome(test, difference, lifted.way)


def _evaluated(typed: TypedExpr, values: list[Value]) -> Value:
    """Return the value of an expression; an EvalError stands for one that fails."""
    try:
        return compile_expression(typed)(values)
    except EvalError as error:
        return error


def _difference(test: dict[str, Any], result: Value) -> str:
    """Return the difference between a result and what the suite expects, or nothing where there is none."""
    if isinstance(result, EvalError):
        return "" if "evalError" in test else f"error: {result.message}"
    if "evalError" in test:
        return f"{show(result)}, expected an error: {test['evalError']['errors'][0]['message']}"
    typed_result = test.get("typedResult") or {}
    expected = read_value(typed_result.get("result") or test.get("value", {"boolValue": True}))
    return "" if is_same(result, expected) else f"{show(result)}, expected {show(expected)}"


def _between(columns: list[Value], scalar: list[Value]) -> str:
    """Return in which row two back ends differ, or nothing where they agree."""
    for row, (one, other) in enumerate(zip(columns, scalar, strict=True)):
        is_error = isinstance(one, EvalError)
        if is_error != isinstance(other, EvalError) or not (is_error or is_same(one, other)):
            return f"row {row}: {one!r}, the scalar back end gives {other!r}"
    return ""


def variables(test: dict[str, Any]) -> dict[str, Type]:
    """Return the variables of a test with their types; a value without a declared type is `dyn`."""
    declared = {
        entry["name"]: read_type(entry["ident"]["type"])
        for entry in test.get("typeEnv", [])
        if "ident" in entry
    }
    bound = dict.fromkeys(test.get("bindings", {}), DYN)
    return bound | declared


def environment(test: dict[str, Any]) -> Environment:
    functions = {
        entry["name"]: Function(entry["name"], "", tuple(map(read_overload, entry["function"]["overloads"])))
        for entry in test.get("typeEnv", [])
        if "function" in entry
    }
    return Environment(variables(test), test.get("container", ""), strict=False, functions=functions)


def read_overload(entry: dict[str, Any]) -> Overload:
    args = tuple(map(read_type, entry.get("params", [])))
    member = entry.get("isInstanceFunction", False)
    return Overload(entry["overloadId"], args, read_type(entry["resultType"]), member, variadic=False)


def read_type(entry: dict[str, Any]) -> Type:
    """Read a type as the suite writes it."""
    ((kind, body),) = entry.items()
    match kind:
        case "primitive":
            return Type(_PRIMITIVES[body])
        case "null":
            return NULL
        case "dyn":
            return DYN
        case "typeParam":
            return parameter(body)
        case "listType":
            return list_of(read_type(body["elemType"]))
        case "mapType":
            return map_of(read_type(body["keyType"]), read_type(body["valueType"]))
        case "abstractType":
            args = tuple(map(read_type, body.get("parameterTypes", [])))
            return Type(_TYPE_NAMES.get(body["name"], body["name"]), args)
        case "type":
            return Type("type")
        case "wellKnown":
            return Type(body.lower())
    raise ValueError(f"unknown type {entry}")


def read_value(entry: dict[str, Any]) -> Value:
    """Read a value as the suite writes it."""
    ((kind, body),) = entry.items()
    match kind:
        case "nullValue":
            return None
        case "int64Value":
            return int(body)
        case "uint64Value":
            return UInt(int(body))
        case "doubleValue":
            return float(body)
        case "bytesValue":
            return base64.b64decode(body)
        case "typeValue":
            return TYPE_NAMES.get(body, Type(body))
        case "listValue":
            return tuple(map(read_value, body.get("values", [])))
        case "mapValue":
            return to_map(
                (read_value(item["key"]), read_value(item["value"])) for item in body.get("entries", [])
            )
    return body


def is_same(result: Value, expected: Value) -> bool:
    """Return whether two values are the same, types included; NaN is the same as NaN."""
    if kind_of(result) != kind_of(expected):
        return False
    match kind_of(expected):
        case "list":
            return len(result) == len(expected) and all(map(is_same, result, expected))
        case "map":
            return result.keys() == expected.keys() and all(
                is_same(result[key], expected[key]) for key in expected
            )
        case "double" if math.isnan(expected):
            return math.isnan(result)
    return bool(result == expected)


def show(value: Value) -> str:
    """Return a value for the eye: with its type, as values of different types may print alike."""
    match kind_of(value):
        case "list":
            return f"[{', '.join(map(show, value))}]"
        case "map":
            return f"{{{', '.join(f'{show(from_key(key))}: {show(item)}' for key, item in value.items())}}}"
        case kind:
            return f"{kind} {value!r}"


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the passes per file, then per tier."""
    passed: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    tiers: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for outcome in outcomes:
        key = (TIERS[outcome.test["file"]], outcome.test["file"])
        total[key] += 1
        passed[key] += not outcome.difference
    order = list(_TIER_FILES)
    for tier, file in sorted(total, key=lambda key: (order.index(key[0]), key[1])):
        key = (tier, file)
        yield f"{tier:<12}{file:<18}{passed[key]:>5} / {total[key]}"
        tiers[tier] = (tiers[tier][0] + passed[key], tiers[tier][1] + total[key])
    yield ""
    for tier, (good, count) in tiers.items():
        yield f"{tier:<12}{good}/{count}"
    yield f"{'all':<12}{passed.total()}/{total.total()}"
    ways = Counter(outcome.way for outcome in outcomes if outcome.way is not None)
    if ways:
        yield ""
        yield from (f"{ways[way]:>5} {way}" for way in Way)
        yield f"{total.total() - ways.total():>5} settled before anything is evaluated"


def main(arguments: list[str]) -> int:
    """Run the suite as a command."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.cel", description="CEL conformance")
    parser.add_argument("file", type=Path)
    parser.add_argument("--tier", choices=list(_TIER_FILES))
    parser.add_argument("--lifted", action="store_true", help="evaluate over columns, among other rows")
    options = parser.parse_args(arguments)
    tests = [test for test in read_tests(options.file) if options.tier in (None, TIERS[test["file"]])]
    outcomes = run_all(tests, options.lifted)
    failed = [outcome for outcome in outcomes if outcome.difference]
    for outcome in failed:
        test = outcome.test
        print(f"{test['file']}/{test['section']}/{test['name']}: {test['expr']}: {outcome.difference}")
    for line in table(outcomes):
        print(line)
    print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
