"""The body of a predicate as one generated function: `require`, `let` and `for`, under `report first` or
`report all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import itemgetter
from typing import Final

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedForEach, CheckedLet, CheckedRequire, CheckedStatement
from kdsl.eval.scalar import Compiler, Frame
from kdsl.eval.scalar.comprehensions import each_of, loop_lines, slots_text
from kdsl.eval.scalar.logic import truth
from kdsl.eval.scalar.meter import spend
from kdsl.eval.values import EvalError, Value
from kdsl.hooks.status import Code
from kdsl.lang.choices import RejectionCode
from kdsl.plan.compile.failures import FURTHER, MAX_FAILURES, Failure, OnError
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.compile.template import compile_template, text_in

Run = Callable[[Frame, list[Failure] | None], bool]
"""Runs a block for the node or loop item in the frame, appends failures to a list, if one is given, and
returns if there were any.
"""

CODES: Final = {
    RejectionCode.UNSCHEDULABLE: Code.UNSCHEDULABLE,
    RejectionCode.UNRESOLVABLE: Code.UNRESOLVABLE,
    RejectionCode.PENDING: Code.PENDING,
}

Chosen = tuple[Value, EvalError | None]
"""An item of a loop (one value, or a pair for two variables), and the error of its `where`, if any."""

_Lines = Callable[[Compiler], list[str]]
"""Writes the lines of a statement. In them `f` is the frame, `r` the failures or None, `s` the place of the
running expression, and `w` whether anything failed.
"""


class BlockCompiler:
    """The compiler of the statements of a block, in order. `on_error` makes the failure of an error in them.

    The first failure ends a block, except that of a whole rule under `report all`.
    """

    def __init__(
        self, scope: RuleScope, report_all: bool, on_error: OnError, is_of_item: bool = False
    ) -> None:
        self._scope = scope
        self._report_all = report_all
        self._on_error = on_error
        self._ends_early = is_of_item or not report_all
        self._resets: list[int] = []
        self._statements: list[_Lines] = []

    @cached_property
    def run(self) -> Run:
        """The block as a function; call it after compiling everything."""
        return self._scope.block(self._lines)

    def add(self, statement: CheckedStatement) -> None:
        """Compile one more statement."""
        match statement:
            case CheckedLet():
                slot = self._scope.let(statement)
                if slot is not None:
                    self._resets.append(slot)
            case CheckedRequire():
                self._statements.append(self._require(statement))
            case CheckedForEach():
                self._statements.append(self._for_each(statement))

    def add_step(self, step: Run) -> None:
        """Add a step that is no statement."""
        self._statements.append(lambda out: [f"if {out.name(step)}(f, r): {self._failed}"])

    @property
    def _failed(self) -> str:
        """The line after a failure."""
        return "return True" if self._ends_early else "w = True"

    def _lines(self, out: Compiler) -> list[str]:
        found = [f"f[{slot}] = UNSET" for slot in self._resets]
        statements = [statement(out) for statement in self._statements]
        if self._ends_early:
            statements = [[line for lines in statements for line in lines]]
        found.append("w = False")
        handler = f"except EvalError as x: {out.name(self._fail)}(f, r, x, s); {self._failed}"
        for lines in filter(None, statements):
            found += ["try:", *[f"  {line}" for line in lines], handler]
        return [*found, "return w"]

    def _fail(self, frame: Frame, failures: list[Failure] | None, error: EvalError, span: Span) -> bool:
        if failures is not None:
            failures.append(self._on_error(error, span, frame))
        return True

    def _require(self, statement: CheckedRequire) -> _Lines:
        condition = self._scope.optimised(statement.condition)
        reason = compile_template(statement.reason, self._scope)
        code, site = CODES[statement.code], statement.span.site
        fixed = Failure(code, reason, site) if isinstance(reason, str) else None

        def reject(frame: Frame, failures: list[Failure]) -> None:
            text = text_in(reason, frame) if len(failures) < MAX_FAILURES else FURTHER
            failures.append(fixed or Failure(code, text, site))

        def lines(out: Compiler) -> list[str]:
            return [
                f"s = {out.name(statement.condition.span)}",
                f"if not {truth(condition, out)}:",
                f"  if r is not None: {out.name(reject)}(f, r)",
                f"  {self._failed}",
            ]

        return lines

    def _for_each(self, statement: CheckedForEach) -> _Lines:
        place, where = statement.iterable.span, statement.where
        choose = None if where is None else chosen_items(statement, self._scope)
        self._scope.ranges(statement.iterable, statement.variables)
        iterable = self._scope.optimised(statement.iterable)
        block = BlockCompiler(self._scope, self._report_all, self._on_error, is_of_item=True)
        for inner in statement.body:
            block.add(inner)

        def lines(out: Compiler) -> list[str]:
            run = f"{out.name(block.run)}(f, r)"
            if where is None:
                loop = loop_lines(iterable, statement.variables, out)
            else:
                loop = [f"for i, e in {out.name(choose)}(f):", f"  {slots_text(statement.variables)} = i"]
                fail = f"{out.name(self._fail)}(f, r, e, {out.name(where.span)})"
                run = f"({run} if e is None else {fail})"
            # Under `report all`, all items report, also those of a loop in a loop.
            loop.append(f"  if {run}: {'w = True' if self._report_all else 'return True'}")
            ending = ["if w: return True"] if self._report_all and self._ends_early else []
            return [f"s = {out.name(place)}", *loop, *ending]

        return lines


def chosen_items(statement: CheckedForEach, scope: RuleScope) -> Callable[[Frame], Iterable[Chosen]]:
    """Return a closure for the items of a loop that pass its `where`; once per pod if possible."""
    slots = tuple(variable.slot for variable in statement.variables)
    is_lasting = scope.is_lasting(statement.iterable) and scope.is_lasting(statement.where, bound=slots)
    scope.ranges(statement.iterable, statement.variables)
    iterable = scope.compile(statement.iterable)
    where = None if statement.where is None else scope.compile(statement.where)
    # With two variables the item is a pair.
    each, item_of = each_of(statement.iterable.type, iterable, slots), itemgetter(*slots)

    def choose(frame: Frame) -> Iterator[Chosen]:
        for _ in each(frame):
            item = item_of(frame)
            try:
                if where is not None and not where(frame):
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
