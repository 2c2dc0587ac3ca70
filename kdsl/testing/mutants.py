"""Small mistakes put into rules on purpose: each should make a test fail, or a test is missing.

Mutants are made on the syntax tree: a condition dropped or inverted, a comparison shifted by one, a constant
changed. A mutant that the checker rejects could not be shipped, and does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kdsl.base.span import Span
from kdsl.base.visible import visible_lines
from kdsl.lang.choices import RejectionCode
from kdsl.lang.device_tree import AdmissionChange, Annotate, Together
from kdsl.lang.expression_tree import Binary, Conditional, ListExpr, Literal, LiteralKind, Node, Unary
from kdsl.lang.program import Program
from kdsl.lang.tree import (
    AdmitWhen,
    AppliesWhen,
    ChooseBy,
    Declaration,
    Device,
    EligibleWhen,
    File,
    Fn,
    ForEach,
    IgnoreWhen,
    OrderBy,
    Predicate,
    Preemption,
    Profile,
    Queue,
    Require,
    Score,
    SortKey,
    Template,
    VictimWhen,
)
from kdsl.report.decisions import Json
from kdsl.report.tables import plural
from kdsl.testing.cases import PropertyCase, RuleTest
from kdsl.testing.running import Runner
from kdsl.testing.subject import SubjectKind, check_mutant

_OPERATORS: Final = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*",
}  # fmt: skip
_MUTABLE: Final = (Predicate, Score, Queue, Preemption, Device, Fn, Profile)
_DROPPABLE: Final = (Require, AppliesWhen, IgnoreWhen, AdmitWhen, EligibleWhen, Together)
_KINDS: Final = {
    Predicate: SubjectKind.PREDICATE,
    Score: SubjectKind.SCORE,
    Queue: SubjectKind.QUEUE,
}


class Mutation(NamedTuple):
    """A changed node: its place in the text, and the change."""

    span: Span
    what: str
    node: Node


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule file with one mistake in one declaration."""

    span: Span
    what: str
    original: File
    file: File
    declaration: Declaration

    def program(self, program: Program) -> Program | None:
        """Return the program with the mistake; None where it does not hold the file."""
        path = self.original.span.source.path
        if not any(file.span.source.path == path for file in program.files):
            return None

        def swapped(files: Sequence[File]) -> tuple[File, ...]:
            return tuple(self.file if file.span.source.path == path else file for file in files)

        packages = {
            name: replace(package, files=swapped(package.files)) for name, package in program.packages.items()
        }
        return replace(program, files=swapped(program.files), packages=MappingProxyType(packages))


@dataclass(frozen=True, slots=True)
class MutationReport:
    """The number of mutants that a test noticed or the checker rejected, and the mutants that no test
    noticed.
    """

    killed: int
    refused: int
    survivors: tuple[Mutant, ...]

    @property
    def percent(self) -> float:
        """Return the percentage of mutants that were noticed, in 0..100."""
        total = self.killed + len(self.survivors)
        return 100.0 * self.killed / total if total else 100.0


def mutants_of(files: Iterable[File]) -> Iterator[Mutant]:
    """Yield the mutants of rule files, in the order of the text."""
    for file in {file.span.source.path: file for file in files}.values():
        for at, declaration in enumerate(file.declarations):
            if not isinstance(declaration, _MUTABLE):
                continue
            for span, what, node in _mutations(declaration):
                assert isinstance(node, _MUTABLE)
                declarations = (*file.declarations[:at], node, *file.declarations[at + 1 :])
                yield Mutant(span, what, file, replace(file, declarations=declarations), declaration)


def _mutations(node: Node) -> Iterator[Mutation]:
    """Yield the mutations of a node and of its parts. Reasons are not changed."""
    if isinstance(node, Template):
        return
    yield from _own(node)
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            for span, what, part in _mutations(value):
                yield Mutation(span, what, _with(node, field.name, part))
        elif isinstance(value, tuple):
            for at, item in enumerate(value):
                if isinstance(item, Node):
                    for span, what, changed in _of_item(node, item):
                        items = (*value[:at], *changed, *value[at + 1 :])
                        yield Mutation(span, what, _with(node, field.name, items))


def _with(node: Node, name: str, value: Node | tuple[Node, ...]) -> Node:
    """Return a node with another value of a field."""
    # `replace` cannot be typed for a field whose name is not known statically.
    change: dict[str, Any] = {name: value}
    return replace(node, **change)


def _of_item(parent: Node, item: Node) -> Iterator[tuple[Span, str, tuple[Node, ...]]]:
    """Yield the mutations of a list's item: its removal, or a changed item."""
    if isinstance(item, _DROPPABLE) or isinstance(parent, ListExpr | OrderBy | ChooseBy):
        yield item.span, "dropped", ()
    for span, what, changed in _mutations(item):
        yield span, what, (changed,)


def _own(node: Node) -> Iterator[Mutation]:
    match node:
        case Require(condition=condition, code=code):
            negated = Unary(span=condition.span, op="!", operand=condition)
            yield Mutation(condition.span, "negated", replace(node, condition=negated))
            if code in (None, RejectionCode.UNSCHEDULABLE):
                yield Mutation(node.span, "made unresolvable", replace(node, code=RejectionCode.UNRESOLVABLE))
            else:
                yield Mutation(
                    node.span, "made unschedulable", replace(node, code=RejectionCode.UNSCHEDULABLE)
                )
        case (
            AppliesWhen(condition=condition)
            | IgnoreWhen(condition=condition)
            | AdmitWhen(condition=condition)
            | EligibleWhen(condition=condition)
            | VictimWhen(condition=condition)
        ):
            negated = Unary(span=condition.span, op="!", operand=condition)
            yield Mutation(condition.span, "negated", replace(node, condition=negated))
        case ForEach(where=where) | AdmissionChange(where=where) | Annotate(where=where) if where is not None:
            yield Mutation(where.span, "`where` dropped", replace(node, where=None))
        case SortKey(descending=descending):
            yield Mutation(node.span, "order reversed", replace(node, descending=not descending))
        case Binary(op="&&" | "||", left=left, right=right):
            yield Mutation(left.span, f"dropped from `{node.op}`", right)
            yield Mutation(right.span, f"dropped from `{node.op}`", left)
        case Binary(op=op) if op in _OPERATORS:
            yield Mutation(node.span, f"`{op}` became `{_OPERATORS[op]}`", replace(node, op=_OPERATORS[op]))
        case Unary(op="!", operand=operand):
            yield Mutation(node.span, "`!` dropped", operand)
        case Conditional(then=then, otherwise=otherwise):
            swapped = replace(node, then=otherwise, otherwise=then)
            yield Mutation(node.condition.span, "branches swapped", swapped)
        case Literal(kind=LiteralKind.BOOL, value=value):
            yield Mutation(node.span, "turned round", replace(node, value=not value))
        case Literal(kind=LiteralKind.INT, value=int(value)) if value < 2**62:
            yield Mutation(node.span, f"`{value}` became `{value + 1}`", replace(node, value=value + 1))
        case _:
            pass


def run_mutants(
    tests: Sequence[RuleTest],
    files: Iterable[File],
    seed: int = 0,
    on_mutant: Callable[[], None] = lambda: None,
) -> MutationReport:
    """Run the tests on every mutant of the files until one fails; on the unchanged files they must pass."""
    killed, refused = 0, 0
    survivors: list[Mutant] = []
    for mutant in mutants_of(files):
        fate = is_noticed(mutant, tests, seed)
        if fate is None:
            refused += 1
        elif fate:
            killed += 1
        else:
            survivors.append(mutant)
        on_mutant()
    return MutationReport(killed, refused, tuple(survivors))


def is_noticed(mutant: Mutant, tests: Sequence[RuleTest], seed: int) -> bool | None:
    """Return whether a case notices the mutant; None where the checker rejects it."""
    mutated: list[RuleTest] = []
    for test in tests:
        program = mutant.program(test.loaded.program) if _concerns(mutant, test) else None
        if program is not None:
            rules = check_mutant(program, test.subject, test.checked.plugins)
            if rules is None:
                return None
            mutated.append(replace(test, checked=replace(test.checked, rules=rules)))
    runner = Runner(seed)
    # Properties are left out, as in coverage: they notice mutants by chance, and slowly.
    cases = ((test, case) for test in mutated for case in test.cases if not isinstance(case, PropertyCase))
    return any(not runner.run(test, case).passed for test, case in cases)


def _concerns(mutant: Mutant, test: RuleTest) -> bool:
    """Return whether a test can notice the mutant: a test of a single rule does not run the other rules."""
    if isinstance(mutant.declaration, Device):
        # A device has the statements of the device that it extends.
        return test.subject.kind in (SubjectKind.PROFILE, SubjectKind.DEVICE)
    kind = _KINDS.get(type(mutant.declaration))
    if kind is None or test.subject.kind is SubjectKind.PROFILE:
        return True
    return test.subject.kind is kind and test.subject.name == mutant.declaration.name.text


def mutants_text(report: MutationReport) -> str:
    """Return the mutants that survived, with their places, and the count."""
    lines = [
        f"survived  {mutant.span}  {mutant.what}: {' '.join(mutant.span.text.split())}"
        for mutant in report.survivors
    ]
    made = plural(report.killed + len(report.survivors), "mutant")
    refused = f", {report.refused} more refused by the checker" if report.refused else ""
    lines.append(f"mutation {report.percent:.1f}%: {report.killed} of {made} noticed{refused}")
    return visible_lines(lines)


def mutants_document(report: MutationReport) -> dict[str, Json]:
    """Return the report as a document."""
    return {
        "percent": round(report.percent, 1),
        "killed": report.killed,
        "refused": report.refused,
        "survivors": [
            {
                "file": mutant.span.source.path,
                "line": mutant.span.line,
                "column": mutant.span.column,
                "what": mutant.what,
                "text": mutant.span.text,
            }
            for mutant in report.survivors
        ],
    }
