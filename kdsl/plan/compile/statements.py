"""The body of a predicate as steps: `require`, `let` and `for`, under `report first` or `report all`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kdsl.check.model.rule_set import CheckedForEach, CheckedLet, CheckedRequire, CheckedStatement
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.comprehensions import elements_of, pairs_of
from kdsl.eval.scalar.meter import spend
from kdsl.eval.values import EvalError, Value
from kdsl.hooks.status import Code
from kdsl.lang.tree import RejectionCode
from kdsl.plan.compile.failures import FURTHER, MAX_FAILURES, Failure, OnError
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.compile.template import compile_template, text_in

StatementStep = Callable[[Frame, list[Failure]], bool]
"""Runs one statement, appends failures, and returns whether there were any."""

CODES = {
    RejectionCode.UNSCHEDULABLE: Code.UNSCHEDULABLE,
    RejectionCode.UNRESOLVABLE: Code.UNRESOLVABLE,
    RejectionCode.PENDING: Code.PENDING,
}

Chosen = tuple[Value, EvalError | None]
"""An item of a loop (one value, or a pair for two variables), and the error of its `where`, if any."""


class BlockCompiler:
    """Compiles the statements of one block in order."""

    def __init__(self, scope: RuleScope, report_all: bool) -> None:
        self._scope = scope
        self._report_all = report_all
        self.resets: list[int] = []
        self.steps: list[StatementStep] = []

    def let(self, statement: CheckedLet) -> None:
        """Declare a `let`."""
        slot = self._scope.let(statement)
        if slot is not None:
            self.resets.append(slot)

    def add(self, statement: CheckedStatement, on_error: OnError) -> None:
        """Compile one more statement; `on_error` makes the failure of an error in it."""
        match statement:
            case CheckedLet():
                self.let(statement)
            case CheckedRequire():
                self.steps.append(self.require(statement, on_error))
            case CheckedForEach():
                self.steps.append(self._for_each(statement, on_error))

    def reset(self, frame: Frame) -> None:
        """Reset the `let`s of the previous node or loop item."""
        for slot in self.resets:
            frame[slot] = UNSET

    def run(self, frame: Frame, failures: list[Failure]) -> bool:
        """Run the block for one node: up to the first failure, or all of it under `report all`."""
        failed = False
        for step in self.steps:
            if step(frame, failures):
                failed = True
                if not self._report_all:
                    break
        return failed

    def run_item(self, frame: Frame, failures: list[Failure]) -> bool:
        """Run the block for one loop item: up to the first failure in any case."""
        self.reset(frame)
        return any(step(frame, failures) for step in self.steps)

    def require(self, statement: CheckedRequire, on_error: OnError) -> StatementStep:
        """Compile a `require`."""
        condition = self._scope.compile(statement.condition)
        reason = compile_template(statement.reason, self._scope)
        code, span = CODES[statement.code], statement.span
        fixed = Failure(code, reason, span.site) if isinstance(reason, str) else None

        def step(frame: Frame, failures: list[Failure]) -> bool:
            try:
                if condition(frame):
                    return False
            except EvalError as error:
                failures.append(on_error(error, statement.condition.span, frame))
                return True
            text = text_in(reason, frame) if len(failures) < MAX_FAILURES else FURTHER
            failures.append(fixed or Failure(code, text, span.site))
            return True

        return step

    def _for_each(self, statement: CheckedForEach, on_error: OnError) -> StatementStep:
        choose = self.chosen_items(statement)
        bind = _binder(tuple(variable.slot for variable in statement.variables))
        block = BlockCompiler(self._scope, self._report_all)
        for inner in statement.body:
            block.add(inner, on_error)
        report_all = self._report_all
        where_span = (statement.where or statement.iterable).span

        def step(frame: Frame, failures: list[Failure]) -> bool:
            failed = False
            try:
                for item, error in choose(frame):
                    bind(frame, item)
                    if error is not None:
                        failures.append(on_error(error, where_span, frame))
                        failed = True
                    elif block.run_item(frame, failures):
                        failed = True
                    if failed and not report_all:
                        break
            except EvalError as error:
                failures.append(on_error(error, statement.iterable.span, frame))
                failed = True
            return failed

        return step

    def chosen_items(self, statement: CheckedForEach) -> Callable[[Frame], Iterable[Chosen]]:
        """Return a closure for the items of a loop that pass its `where`; once per pod if possible."""
        scope, slots = self._scope, tuple(variable.slot for variable in statement.variables)
        is_lasting = scope.is_lasting(statement.iterable) and scope.is_lasting(statement.where, bound=slots)
        scope.ranges(statement.iterable, statement.variables)
        iterable = scope.compile(statement.iterable)
        where = None if statement.where is None else scope.compile(statement.where)
        items_of = (elements_of if len(slots) == 1 else pairs_of)(statement.iterable.type)
        bind = _binder(slots)

        def choose(frame: Frame) -> Iterator[Chosen]:
            items = iterable(frame)
            spend(frame, len(items))
            for item in items_of(items):
                try:
                    if where is not None:
                        bind(frame, item)
                        if not where(frame):
                            continue
                except EvalError as error:
                    yield item, error
                else:
                    yield item, None

        if not is_lasting:
            return choose
        chosen = scope.once(lambda frame: list(choose(frame)), statement.iterable, statement.where)

        def choose_once(frame: Frame) -> list[Chosen]:
            items: list[Chosen] = chosen(frame)
            spend(frame, len(items))
            return items

        return choose_once


def _binder(slots: Sequence[int]) -> Callable[[Frame, Value], None]:
    if len(slots) == 1:
        (slot,) = slots

        def bind_one(frame: Frame, item: Value) -> None:
            frame[slot] = item

        return bind_one
    first, second = slots

    def bind_two(frame: Frame, item: Value) -> None:
        frame[first], frame[second] = item

    return bind_two
