"""The conditions of rules that were true and false in the tests.

The points to cover come from the syntax tree, so rules that no profile uses count too. A probe in compiled
rules records the covered points, and finds its conditions by their place in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from kdsl.base.real_path import real_path
from kdsl.base.span import Span
from kdsl.base.visible import visible_lines
from kdsl.check.model.typed import TypedExpr
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.values import Value as RuntimeValue
from kdsl.lang.device_tree import (
    AdmissionChange,
    Admit,
    Annotate,
    Assign,
    Charge,
    Choose,
    Fit,
    Inventory,
    Request,
    Together,
)
from kdsl.lang.expression_tree import Binary, Call, Conditional, Expr
from kdsl.lang.profile_tree import Tighten
from kdsl.lang.tree import (
    AdmitWhen,
    AppliesWhen,
    Candidates,
    ChooseBy,
    Device,
    EligibleWhen,
    File,
    ForEach,
    IgnoreWhen,
    Narrow,
    OrderBy,
    Predicate,
    Preemption,
    Profile,
    Queue,
    Require,
    Score,
    Statement,
    Value,
    VictimWhen,
)
from kdsl.report.decisions import Json
from kdsl.report.tables import plural

_BOOLEAN = ("&&", "||")
Key = tuple[str, int, int]
"""A place in a text: its path, start and end."""


def key_of(span: Span) -> Key:
    """Return the place of an expression in its text, which identifies it."""
    return span.source.path, span.start, span.end


class Seen(StrEnum):
    """The outcomes of an expression: the two values of a condition, or that a value was computed at all."""

    TRUE = "true"
    FALSE = "false"
    REACHED = "reached"


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """An expression to cover: its rule, and the outcomes to cover."""

    rule: str
    what: str
    expr: Expr
    wanted: tuple[Seen, ...]

    @property
    def span(self) -> Span:
        """Return the place of the expression."""
        return self.expr.span

    @property
    def key(self) -> Key:
        """Return the key of the expression's checked form: `has(x.y)` keeps the place of `x.y` only."""
        match self.expr:
            case Call(function="has", target=None, args=(only,)):
                return key_of(only.span)
        return key_of(self.expr.span)


def points_of(file: File) -> Iterator[CoveragePoint]:
    """Yield the points of a rule file, in the order of the text."""
    for rule, body in _bodies_of(file):
        for statement in body:
            yield from _of_statement(rule, statement)


def _bodies_of(file: File) -> Iterator[tuple[str, Sequence[Statement]]]:
    """Yield the name of each rule of a file, and its statements."""
    for declaration in file.declarations:
        name = declaration.name.text
        if isinstance(declaration, Predicate | Score | Queue | Preemption | Device):
            yield f"{type(declaration).__name__.lower()} {name}", declaration.body
        elif isinstance(declaration, Profile):
            for tightened in declaration.body:
                if isinstance(tightened, Tighten):
                    yield f"profile {name} tighten {tightened.name.text}", tightened.body


def _of_statement(rule: str, statement: Statement) -> Iterator[CoveragePoint]:
    match statement:
        case Require(condition=condition):
            yield from _condition(rule, "require", condition)
        case AppliesWhen(condition=condition):
            yield from _condition(rule, "applies when", condition)
        case IgnoreWhen(condition=condition):
            yield from _condition(rule, "ignore when", condition)
        case AdmitWhen(condition=condition):
            yield from _condition(rule, "admit when", condition)
        case EligibleWhen(condition=condition):
            yield from _condition(rule, "eligible when", condition)
        case VictimWhen(condition=condition):
            yield from _condition(rule, "victim when", condition)
        case Candidates(count=count):
            yield CoveragePoint(rule, "candidates", count, (Seen.REACHED,))
        case ChooseBy(keys=keys):
            yield from (CoveragePoint(rule, "choose by", key.value, (Seen.REACHED,)) for key in keys)
        case ForEach(where=where, body=body):
            if where is not None:
                yield from _condition(rule, "where", where)
            for inner in body:
                yield from _of_statement(rule, inner)
        case Narrow(names=names):
            yield CoveragePoint(rule, "narrow to", names, (Seen.REACHED,))
        case Value(value=value):
            yield CoveragePoint(rule, "value", value, (Seen.REACHED,))
            yield from _choices(rule, value)
        case OrderBy(keys=keys):
            yield from (CoveragePoint(rule, "order by", key.value, (Seen.REACHED,)) for key in keys)
        case _:
            yield from _of_device(rule, statement)


def _of_device(rule: str, statement: Statement) -> Iterator[CoveragePoint]:
    """Yield the points that only devices have. Constants cannot be covered."""
    match statement:
        case Inventory(rows=rows, body=body):
            yield CoveragePoint(rule, "inventory", rows, (Seen.REACHED,))
            yield from _of_all(rule, body)
        case Admit(body=body) | Fit(body=body) | Request(body=body) | Charge(body=body):
            yield from _of_all(rule, body)
        case Assign(value=value):
            yield from _choices(rule, value)
        case AdmissionChange(where=where, value=value) | Annotate(where=where, value=value):
            if where is not None:
                yield from _condition(rule, "where", where)
            yield CoveragePoint(
                rule, "set" if isinstance(statement, AdmissionChange) else "annotate", value, (Seen.REACHED,)
            )
        case Choose(where=where, body=body):
            if where is not None:
                yield from _condition(rule, "where", where)
            yield from _of_all(rule, body)
        case Together(by=by):
            yield CoveragePoint(rule, "together by", by, (Seen.REACHED,))
        case _:
            pass


def _of_all(rule: str, statements: Iterable[Statement]) -> Iterator[CoveragePoint]:
    for statement in statements:
        yield from _of_statement(rule, statement)


def _condition(rule: str, what: str, condition: Expr) -> Iterator[CoveragePoint]:
    """Yield a condition, and the operands of its `&&` and `||`."""
    both = (Seen.TRUE, Seen.FALSE)
    yield CoveragePoint(rule, what, condition, both)
    operands = list(_operands(condition))
    if len(operands) > 1:
        yield from (CoveragePoint(rule, "operand", operand, both) for operand in operands)


def _operands(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Binary) and expr.op in _BOOLEAN:
        yield from _operands(expr.left)
        yield from _operands(expr.right)
    else:
        yield expr


def _choices(rule: str, value: Expr) -> Iterator[CoveragePoint]:
    """Yield the conditions of `?:` at the top of a value."""
    if isinstance(value, Conditional):
        yield from _condition(rule, "?:", value.condition)
        yield from _choices(rule, value.then)
        yield from _choices(rule, value.otherwise)


class Coverage:
    """A probe that records the outcomes of some points."""

    def __init__(self, files: Iterable[File]) -> None:
        # A file that was loaded twice is the same file: places are compared by path and position.
        distinct = {file.span.source.path: file for file in files}
        self.points = tuple(point for file in distinct.values() for point in points_of(file))
        self._seen: dict[Key, set[Seen]] = {point.key: set() for point in self.points}

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        """Record the values of an expression that is a point."""
        seen = self._seen.get(key_of(expr.span))
        if seen is None:
            return closure

        def watched(frame: Frame) -> RuntimeValue:
            value = closure(frame)
            seen.add(Seen.REACHED)
            if value is True:
                seen.add(Seen.TRUE)
            elif value is False:
                seen.add(Seen.FALSE)
            return value

        return watched

    def missing(self, point: CoveragePoint) -> tuple[Seen, ...]:
        """Return the outcomes of a point that did not occur."""
        return tuple(each for each in point.wanted if each not in self._seen[point.key])

    @property
    def total(self) -> int:
        """Return the number of outcomes to cover."""
        return sum(len(point.wanted) for point in self.points)

    @property
    def covered(self) -> int:
        """Return the number of outcomes that occurred."""
        return self.total - sum(len(self.missing(point)) for point in self.points)

    @property
    def percent(self) -> float:
        """Return the percentage of outcomes that occurred, in 0..100; rules without conditions are
        covered.
        """
        return 100.0 * self.covered / self.total if self.total else 100.0


def files_below(files: Iterable[File], paths: Iterable[Path]) -> Iterator[File]:
    """Yield the files below some paths: the rules under test, without the library they import."""
    roots = [real_path(path) for path in paths]
    for file in files:
        place = real_path(file.span.source.path)
        if any(place == root or root in place.parents for root in roots):
            yield file


def coverage_text(coverage: Coverage) -> str:
    """Return a line for each rule and for each outcome that did not occur, with its place."""
    lines: list[str] = []
    for path, of_file in groupby(coverage.points, key=lambda point: point.span.source.path):
        lines.append(path)
        for rule, of_rule in groupby(of_file, key=lambda point: point.rule):
            points = list(of_rule)
            total = sum(len(point.wanted) for point in points)
            left = [(point, each) for point in points for each in coverage.missing(point)]
            lines.append(f"  {total - len(left)}/{total}  {rule}")
            for point, each in left:
                text = " ".join(point.span.text.split())
                lines.append(f"        never {each}  {point.what}  {point.span}  {text}")
    outcomes = plural(coverage.total, "outcome")
    lines.append(f"coverage {coverage.percent:.1f}%: {coverage.covered} of {outcomes} of conditions seen")
    return visible_lines(lines)


def coverage_document(coverage: Coverage) -> dict[str, Json]:
    """Return the coverage as a document."""
    return {
        "percent": round(coverage.percent, 1),
        "covered": coverage.covered,
        "total": coverage.total,
        "missing": [
            {
                "rule": point.rule,
                "what": point.what,
                "file": point.span.source.path,
                "line": point.span.line,
                "column": point.span.column,
                "condition": point.span.text,
                "never": each.value,
            }
            for point in coverage.points
            for each in coverage.missing(point)
        ],
    }
