"""The body of a predicate over columns: the nodes that each `require` rejects.

A statement without a column form runs in the scalar back end, if possible once per distinct combination of
the node facts that it reads. A node for which columns have no answer goes to the scalar back end as a whole,
as does a node whose reason depends on the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedRequire,
    CheckedStatement,
    CheckedTemplate,
)
from kdsl.check.model.traversal import expressions_of
from kdsl.check.model.typed import Macro, TypedExpr
from kdsl.check.model.types import DYN
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.values import EvalError, Value
from kdsl.hooks.status import Code
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import AllBad, Bad, Coded, ColumnsOutOfSteps, Mask, NotColumnar, Same, spread
from kdsl.plan.columns.compiler import Lowering
from kdsl.plan.columns.fallback import Fallback
from kdsl.plan.columns.logic import ColumnClosure, at_rows
from kdsl.plan.columns.node_reads import NodeReadsCompiler, unclear
from kdsl.plan.columns.rejections import Rejections, TracedRejections
from kdsl.plan.columns.scope import RuleColumns, ScalarPart
from kdsl.plan.compile.failures import MAX_FAILURES, Failure, OnError
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.compile.statements import CODES, BlockCompiler, chosen_items
from kdsl.plan.compile.template import compile_template, text_in

BatchStep = Callable[[Batch, Rejections], None]
"""Runs one statement for the open rows of a batch and closes those that it rejects."""


class ColumnBlock:
    """The statements of a block. `on_error` makes failures of errors; `error_parts` are its expressions."""

    def __init__(
        self,
        scope: RuleScope,
        columns: RuleColumns,
        report_all: bool,
        on_error: OnError,
        error_parts: Sequence[TypedExpr],
    ) -> None:
        self._scope = scope
        self._columns = columns
        self._report_all = report_all
        self._on_error = on_error
        self._error_parts = tuple(error_parts)

    def compile(self, statements: Sequence[CheckedStatement]) -> Callable[[Batch], Rejections]:
        """Compile the statements of a rule: with tapes, if its operations allow them."""
        steps, report_all = self._steps(statements, frozenset()), self._report_all

        def evaluate(batch: Batch) -> tuple[list[Mask], list[Failure]]:
            found = _run(steps, batch, TracedRejections(len(batch)), report_all)
            return [rows for _, rows in found.failures], [failure for failure, _ in found.failures]

        reads = (each.reads for each in expressions_of([*statements]))
        tapes = self._columns.tapes.add(frozenset().union(*reads), evaluate)

        def reject(batch: Batch) -> Rejections:
            found = Rejections(len(batch))
            played = None if tapes is None else tapes.play(batch)
            if played is None:
                return _run(steps, batch, found, report_all)
            masks, failures = played
            found.failures += zip(failures, masks, strict=True)
            return found

        return reject

    def _steps(self, statements: Iterable[CheckedStatement], shared: frozenset[int]) -> list[BatchStep]:
        found: list[BatchStep] = []
        for statement in statements:
            match statement:
                case CheckedRequire():
                    found.append(self._require(statement, shared))
                case CheckedForEach():
                    found.append(self._for_each(statement, shared))
                case CheckedLet():
                    pass
        return found

    def _require(self, statement: CheckedRequire, shared: frozenset[int]) -> BatchStep:
        condition = Lowering(self._columns, shared).lower(self._scope.optimised(statement.condition))
        return self._rejecting(condition, statement, shared)

    def _rejecting(
        self, condition: ColumnClosure, statement: CheckedRequire, shared: frozenset[int]
    ) -> BatchStep:
        """Return a step that rejects the rows for which a condition does not hold, as a statement does."""
        code, site = CODES[statement.code], statement.span.site
        reason = self._reason(statement.reason, shared)

        def step(batch: Batch, found: Rejections) -> None:
            among = found.chosen()
            failed: Bad = None
            try:
                value = condition(batch) if among is None else at_rows(condition, batch, among)
            except AllBad:
                found.leave(None)
                return
            if isinstance(value, Same):
                if value.value:
                    return
            else:
                values, bad = spread(value, len(batch), np.bool_)
                failed = ~values
                if bad is not None:
                    found.leave(bad)
                if not found.has(failed):
                    return
            if reason is None:
                found.leave(failed)
            else:
                found.reject(reason(batch, code, site), failed)

        return step

    def _reason(
        self, template: CheckedTemplate, shared: frozenset[int]
    ) -> Callable[[Batch, Code, str], Failure] | None:
        """Return a maker of failures that all rows share; None if the reason depends on the node."""
        if not self._scope.is_lasting(*template.holes, bound=shared):
            return None
        text = compile_template(template, self._scope)

        def failure(batch: Batch, code: Code, site: str) -> Failure:
            shown = text_in(text, batch.frame)
            batch.spend(0)  # without steps, a hole shows another text
            return Failure(code, shown, site)

        return failure

    def _for_each(self, statement: CheckedForEach, shared: frozenset[int]) -> BatchStep:
        scope = self._scope
        inside = shared.union([variable.slot for variable in statement.variables])
        if (
            scope.is_lasting(statement.iterable, bound=shared)
            and scope.is_lasting(statement.where, bound=inside)
            and scope.is_lasting(*self._error_parts, bound=shared)
        ):
            return self._over_shared(statement, inside)
        return self._over_items(statement, shared) or self._by_scalar(statement, shared)

    def _over_shared(self, statement: CheckedForEach, inside: frozenset[int]) -> BatchStep:
        """Return a step for a loop over a list that all rows share. `inside` are the variables that rows
        share in its body, but for its own `let`s.
        """
        scope, on_error, report_all = self._scope, self._on_error, self._report_all
        slots = tuple(variable.slot for variable in statement.variables)
        choose = chosen_items(statement, scope)
        local = [each.variable.slot for each in statement.body if isinstance(each, CheckedLet)]
        columns = self._columns.resetting(local)
        block = ColumnBlock(scope, columns, report_all, on_error, self._error_parts)
        steps = block._steps(statement.body, self._with_shared_lets(statement.body, inside))
        where_span = (statement.where or statement.iterable).span

        def judge(batch: Batch, found: Rejections, item: Value, error: EvalError | None) -> None:
            """Run the body for one item."""
            for slot, value in zip(slots, item if len(slots) > 1 else (item,), strict=True):
                batch.frame[slot] = value
            for slot in local:
                batch.frame[slot] = UNSET
                batch.columns.pop(slot, None)
            if error is not None:
                found.reject(on_error(error, where_span, batch.frame), None)
                return
            for inner in steps:
                inner(batch, found)
                if found.is_over:
                    break

        def step(batch: Batch, found: Rejections) -> None:
            try:
                for item, error in choose(batch.frame):
                    before = found.mark()
                    judge(batch, found, item, error)
                    if report_all:
                        found.reopen(before)
                    if len(found.failures) >= MAX_FAILURES:
                        raise ColumnsOutOfSteps  # the scalar back end finds the rows
                    if found.is_over:
                        return
            except EvalError as error:
                # The list has no value, or the steps ran out, which is no row's own error.
                batch.spend(0)
                failure = on_error(error, statement.iterable.span, batch.frame)
                if report_all:
                    found.add(failure, None)
                else:
                    found.reject(failure, None)

        return step

    def _with_shared_lets(self, body: Iterable[CheckedStatement], shared: frozenset[int]) -> frozenset[int]:
        """Return the `shared` variables, and those `let`s of a body that all rows share."""
        for each in body:
            if isinstance(each, CheckedLet) and self._scope.is_lasting(each.value, bound=shared):
                shared |= {each.variable.slot}
        return shared

    def _over_items(self, statement: CheckedForEach, shared: frozenset[int]) -> BatchStep | None:
        """Return a step for a loop over a list of the node, such as its taints, that evaluates all distinct
        items at once; None if the body is more than one `require` about the item.
        """
        scope, lowering = self._scope, Lowering(self._columns, shared)
        iterable = scope.optimised(statement.iterable)
        match statement.body, statement.variables:
            case [CheckedRequire() as require], [variable] if lowering.at.is_node_list(iterable):
                pass
            case _:
                return None
        if not scope.is_lasting(*require.reason.holes, bound=shared):
            return None
        items, slot = lowering.items_of(iterable), variable.slot
        try:
            if statement.where is not None:
                items = lowering.over_items(Macro.FILTER, items, slot, scope.optimised(statement.where))
            hold = lowering.over_items(Macro.ALL, items, slot, scope.optimised(require.condition))
        except NotColumnar:
            return None
        reject = self._rejecting(hold, require, shared)

        def step(batch: Batch, found: Rejections) -> None:
            try:
                reject(batch, found)
            except ColumnsOutOfSteps:
                raise
            except NotColumnar:
                # The condition fails for an item, which is rare.
                found.leave(None)

        return step

    def _by_scalar(self, statement: CheckedForEach, shared: frozenset[int]) -> BatchStep:
        """Return a step that runs a loop in the scalar back end, for one node of each group."""
        block = BlockCompiler(self._scope, self._report_all, self._on_error)
        block.add(statement)
        reads = NodeReadsCompiler(self._columns, shared)
        collect = reads.of_parts(self._error_parts, [statement], self._scope)
        facts = None if collect is unclear else tuple(reads.facts)
        self._columns.scalar_parts.append(ScalarPart(statement.iterable.span, facts))

        def run(frame: Frame) -> tuple[Failure, ...]:
            failures: list[Failure] = []
            block.run(frame, failures)
            if frame[-1].left < 0:
                raise EvalError("no steps left")  # the scalar back end finds the rows
            return tuple(dict.fromkeys(failures))

        ask = Fallback(run, DYN, {}, self._columns.slots, (collect, collect))

        def step(batch: Batch, found: Rejections) -> None:
            index = found.open_rows()
            try:
                answer = ask(batch.part(index))
            except AllBad:
                found.leave(None)
                return
            assert isinstance(answer, Coded)
            for number, failures in enumerate(answer.values):
                rows = np.zeros(len(batch), dtype=np.bool_)
                rows[index[answer.codes == number]] = True
                if failures is None:
                    found.leave(rows)
                elif failures:
                    for failure in failures:
                        found.add(failure, rows)
                    found.close(rows)

        return step


def _run(steps: Iterable[BatchStep], batch: Batch, found: Rejections, report_all: bool) -> Rejections:
    """Run the steps of a predicate for a batch, and return `found` with the rejections."""
    for step in steps:
        before = found.mark()
        step(batch, found)
        if report_all:
            found.reopen(before)
        if found.is_over:
            break
    return found
