"""Residual rules for tests to read: rules rewritten for a pod, and expressions as text."""

from __future__ import annotations

import re

from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedScore,
    CheckedStatement,
)
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    ListOf,
    MapOf,
    TypedExpr,
    Var,
)
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.nodes import lower_macro
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.residual.rules import (
    prepared_predicate,
    prepared_score,
    residual_predicate,
    residual_score,
)

from tests.plan.lab import DEFAULT_QUEUE, nodes_of, rules

_PROFILE = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q @ }}'
_OPERATOR = re.compile(r"_([^_]+)_")


def checked_predicate(
    body: str, fns: str = "", steps: Steps = DEFAULT_STEPS
) -> tuple[CheckedPredicate, CompiledFunctions]:
    """Check a predicate whose body begins in line 4."""
    profile = _PROFILE.replace("@", "predicates { P }")
    found = rules(f"predicate P {{\n{body.strip()}\n}}\n{fns}\n{profile}")
    functions = CompiledFunctions.of(found.fns, steps=steps, lower=lower_macro)
    return found.profiles["t.p"].predicates[0], functions


def checked_score(
    body: str, fns: str = "", steps: Steps = DEFAULT_STEPS
) -> tuple[CheckedScore, CompiledFunctions]:
    """Check a score whose body begins in line 4."""
    profile = _PROFILE.replace("@", "scores { P weight 1 }")
    found = rules(f"score P {{\n{body.strip()}\n}}\n{fns}\n{profile}")
    functions = CompiledFunctions.of(found.fns, steps=steps, lower=lower_macro)
    return found.profiles["t.p"].scores[0].score, functions


def left_of_predicate(
    rule: CheckedPredicate, functions: CompiledFunctions, pod: PodInfo, snapshot: Snapshot | None = None
) -> CheckedPredicate:
    """Rewrite a predicate for the signature of a pod."""
    filled = {"pod": pod, "cluster": ClusterView(snapshot or nodes_of().snapshot)}
    return residual_predicate(prepared_predicate(rule, functions), filled, functions)


def left_of_score(
    rule: CheckedScore, functions: CompiledFunctions, pod: PodInfo, snapshot: Snapshot | None = None
) -> CheckedScore:
    """Rewrite a score for the signature of a pod."""
    filled = {"pod": pod, "cluster": ClusterView(snapshot or nodes_of().snapshot)}
    return residual_score(prepared_score(rule, functions), filled, functions)


def lines(rule: CheckedPredicate | CheckedScore) -> list[str]:
    """Print a rule, a statement a line; variables without a name are called by their order of appearance."""
    text = _Printer()
    found = [f"applies when {text.of(each)}" for each in rule.applies]
    if isinstance(rule, CheckedPredicate):
        if rule.narrow is not None:
            found.append(f"narrow to {text.of(rule.narrow.names)}")
        return [*found, *(line for each in rule.body for line in _statement(each, text))]
    found += [f"let {text.of(each.variable)} = {text.of(each.value)}" for each in rule.lets]
    found += [f"ignore when {text.of(each)}" for each in rule.ignores]
    found.append(f"value {text.of(rule.value)}")
    return found if rule.normalize.by is None else [*found, f"normalize by {text.of(rule.normalize.by)}"]


def _statement(statement: CheckedStatement, text: _Printer) -> list[str]:
    match statement:
        case CheckedLet(variable=variable, value=value):
            return [f"let {text.of(variable)} = {text.of(value)}"]
        case CheckedForEach(variables=variables, iterable=iterable, where=where, body=body):
            names = ", ".join(map(text.of, variables))
            chosen = "" if where is None else f" where {text.of(where)}"
            inner = [f"  {line}" for each in body for line in _statement(each, text)]
            return [f"for {names} in {text.of(iterable)}{chosen}", *inner]
    reason = "".join(
        part if isinstance(part, str) else f"${{{text.of(part)}}}" for part in statement.reason.parts
    )
    return [f"require {text.of(statement.condition)} else {reason}"]


class _Printer:
    """Prints expressions."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def of(self, expr: TypedExpr) -> str:
        match expr:
            case Const(value=value):
                return repr(value).lower() if value is None or isinstance(value, bool) else repr(value)
            case Var(name=name, slot=slot):
                return name or self._names.setdefault(slot, f"v{len(self._names) + 1}")
            case FieldOf(operand=operand, field=name):
                return f"{self.of(operand)}.{name}"
            case HasField(operand=operand, field=name):
                return f"has({self.of(operand)}.{name})"
            case KeyOf(operand=operand, key=key):
                return f"{self.of(operand)}.{key}"
            case CallFn(fn=fn, args=args):
                return f"{fn}({self._all(args)})"
            case CallOf():
                return self._call(expr)
            case ListOf(items=items):
                return f"[{self._all(tuple(item.value for item in items))}]"
            case MapOf(entries=entries):
                return f"{{{', '.join(f'{self.of(each.key)}: {self.of(each.value)}' for each in entries)}}}"
            case Comprehension(macro=macro, iterable=iterable, variables=variables, where=where, body=body):
                parts = (*variables, *(() if where is None else (where,)), body)
                return f"{self.of(iterable)}.{macro}({self._all(parts)})"
            case Aggregate(target=target, macro=macro, variable=variable, body=body):
                return f"{self.of(target)}.{macro}({self._all((variable, body))})"
            case Bind(variable=variable, value=value, body=body):
                return f"bind({self._all((variable, value, body))})"

    def _all(self, parts: tuple[TypedExpr, ...]) -> str:
        return ", ".join(map(self.of, parts))

    def _call(self, expr: CallOf) -> str:
        match expr.function, tuple(map(self.of, expr.args)):
            case "_?_:_", (condition, yes, no):
                return f"({condition} ? {yes} : {no})"
            case "_[_]", (table, key):
                return f"{table}[{key}]"
            case "_[?_]", (table, key):
                return f"{table}[?{key}]"
            case (("!_" | "-_"), (only,)):
                return f"{expr.function[0]}{only}"
            case function, (left, right) if _OPERATOR.fullmatch(function) or function == "@in":
                return f"({left} {function.strip('_@')} {right})"
            case function, (target, *others) if expr.member:
                return f"{target}.{function.rpartition('.')[2]}({', '.join(others)})"
            case function, args:
                return f"{function}({', '.join(args)})"
