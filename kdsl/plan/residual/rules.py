"""Residual predicates and scores for one signature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kdsl.base.span import Span
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedParam,
    CheckedPredicate,
    CheckedRequire,
    CheckedScore,
    CheckedStatement,
    CheckedTemplate,
)
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import Aggregate, Comprehension, Const, ListOf, TypedExpr, TypedItem, Var
from kdsl.check.model.types import BOOL, BindingTime
from kdsl.eval.values import Value
from kdsl.plan.compile.pre_filter import split_body
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.residual.folder import MAX_ITEMS, Folder, prepared
from kdsl.plan.residual.lists import bound, items_of

Filled = Mapping[str, Value]
"""The pod and the cluster, as rules name them."""


def prepared_predicate(rule: CheckedPredicate, functions: CompiledFunctions) -> CheckedPredicate:
    """Return a predicate prepared for rewriting; see `prepared`."""
    scope = RuleScope(rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified))
    change = partial(prepared, scope=scope)
    # In the order of compilation: earlier constants become part of questions.
    lets = [_prepared(each, scope) for each in rule.body if isinstance(each, CheckedLet)]
    others = [_prepared(each, scope) for each in rule.body if not isinstance(each, CheckedLet)]
    return replace(
        _with_narrow_and_error(rule, change, partial(_mapped, change=change)),
        params=_unknown(rule.params, scope),
        applies=tuple(map(change, rule.applies)),
        body=(*lets, *others),
        slots=scope.slots,
    )


def prepared_score(rule: CheckedScore, functions: CompiledFunctions) -> CheckedScore:
    """Return a score prepared for rewriting; see `prepared`."""
    scope = RuleScope(rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified))
    change = partial(prepared, scope=scope)
    lets = tuple([_prepared_let(each, scope) for each in rule.lets])
    by = rule.normalize.by
    return replace(
        rule,
        params=_unknown(rule.params, scope),
        applies=tuple(map(change, rule.applies)),
        lets=lets,
        value=change(rule.value),
        normalize=rule.normalize if by is None else replace(rule.normalize, by=change(by)),
        ignores=tuple(map(change, rule.ignores)),
        slots=scope.slots,
    )


def residual_predicate(
    rule: CheckedPredicate, filled: Filled, functions: CompiledFunctions
) -> CheckedPredicate:
    """Return the residual of a prepared predicate; TooMuch if it is not worth it.

    Its answers in PreFilter and in Filter are the predicate's: conditions decided per node stay there.
    """
    rewriter = _Rewriter(rule, filled, functions)
    early, per_node = split_body(rule)
    # Statements before the first `require` may use `let`s.
    lets = [let for each in rule.body if isinstance(each, CheckedLet) for let in rewriter.let(each)]
    body: list[CheckedStatement] = [*lets]
    for require in early:
        body += rewriter.require(require)
    for statement in per_node:
        body += rewriter.per_node(statement, rule.report_all)
    residual = _with_narrow_and_error(rule, rewriter.fold, rewriter.template)
    return replace(
        residual, applies=rewriter.conditions(rule.applies), body=tuple(body), slots=rewriter.slots
    )


def residual_score(rule: CheckedScore, filled: Filled, functions: CompiledFunctions) -> CheckedScore:
    """Return the residual of a prepared score; TooMuch if it is not worth it."""
    rewriter = _Rewriter(rule, filled, functions)
    lets = [let for each in rule.lets for let in rewriter.let(each)]
    by = rule.normalize.by
    return replace(
        rule,
        applies=rewriter.conditions(rule.applies),
        lets=tuple(lets),
        value=rewriter.fold(rule.value),
        normalize=rule.normalize if by is None else replace(rule.normalize, by=rewriter.fold(by)),
        ignores=tuple(map(rewriter.fold, rule.ignores)),
        slots=rewriter.slots,
    )


def _with_narrow_and_error(
    rule: CheckedPredicate,
    change: Callable[[TypedExpr], TypedExpr],
    change_text: Callable[[CheckedTemplate], CheckedTemplate],
) -> CheckedPredicate:
    """Return a predicate with its `narrow to` and `on error` changed, if it has any."""
    on_error, narrow = rule.on_error, rule.narrow
    if on_error is not None and on_error.reason is not None:
        on_error = replace(on_error, reason=change_text(on_error.reason))
    if narrow is not None:
        narrow = replace(narrow, names=change(narrow.names), reason=change_text(narrow.reason))
    return replace(rule, narrow=narrow, on_error=on_error)


def _unknown(params: Iterable[CheckedParam], scope: RuleScope) -> tuple[CheckedParam, ...]:
    """Return the parameters without a value: reading one fails."""
    return tuple([each for each in params if each.variable.slot not in scope.known])


def _mapped(template: CheckedTemplate, change: Callable[[TypedExpr], TypedExpr]) -> CheckedTemplate:
    return CheckedTemplate(
        tuple([part if isinstance(part, str) else change(part) for part in template.parts])
    )


def _prepared(statement: CheckedStatement, scope: RuleScope) -> CheckedStatement:
    change = partial(prepared, scope=scope)
    match statement:
        case CheckedLet():
            return _prepared_let(statement, scope)
        case CheckedRequire(condition=condition, reason=reason):
            return replace(statement, condition=change(condition), reason=_mapped(reason, change))
        case CheckedForEach(iterable=iterable, where=where, body=body):
            return replace(
                statement,
                iterable=change(iterable),
                where=None if where is None else change(where),
                body=tuple([_prepared(each, scope) for each in body]),
            )


def _prepared_let(let: CheckedLet, scope: RuleScope) -> CheckedLet:
    value = prepared(let.value, scope)
    if isinstance(value, Const):
        scope.known[let.variable.slot] = value.value
    return replace(let, value=value)


class _Rewriter:
    """Rewrites the parts of one rule, in the order in which their variables are declared."""

    def __init__(
        self, rule: CheckedPredicate | CheckedScore, filled: Filled, functions: CompiledFunctions
    ) -> None:
        self._scope = RuleScope(
            rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified)
        )
        slots = {self._scope.slot_of(name): value for name, value in filled.items()}
        self._folder = Folder(self._scope, functions, slots, self._scope.slot_of("node"))
        self._read_once = _read_once(rule) if isinstance(rule, CheckedScore) else frozenset[int]()

    def fold(self, expr: TypedExpr) -> TypedExpr:
        """Return the residual of an expression, with its place for errors."""
        return _placed(self._folder.fold(expr), expr)

    @property
    def slots(self) -> int:
        """The number of slots of a frame so far."""
        return self._scope.slots

    def conditions(self, exprs: Iterable[TypedExpr]) -> tuple[TypedExpr, ...]:
        """Return the residual of conditions that must all hold; none changes its binding time."""
        left = [replace(self.fold(each), time=each.time) for each in exprs]
        # If one condition is evaluated per node, all are.
        return tuple([each for each in left if not (_holds(each) and each.time.is_lasting)])

    def template(self, template: CheckedTemplate) -> CheckedTemplate:
        """Return the residual of a text; no hole changes its binding time."""
        return _mapped(template, lambda part: replace(self.fold(part), time=part.time))

    def let(self, let: CheckedLet) -> list[CheckedLet]:
        """Return the residual of a `let`: nothing if its value is simple."""
        return self._define(let.variable, self.fold(let.value), let.span)

    def require(self, statement: CheckedRequire) -> list[CheckedStatement]:
        """Return the residual of a `require`."""
        return self._required(statement, self.fold(statement.condition))

    def per_node(
        self, statement: CheckedRequire | CheckedForEach, report_all: bool
    ) -> list[CheckedStatement]:
        """Return the residual of a statement that is decided per node; it stays so, whatever it reads."""
        if isinstance(statement, CheckedRequire):
            return self._required_per_node(statement, self.fold(statement.condition))
        loop = replace(statement, iterable=self.fold(statement.iterable))
        # Under `report all` a failing `require` ends the loop's item only.
        unrolled = None if report_all else self._unrolled(loop)
        return [self._rolled(loop)] if unrolled is None else unrolled

    def _define(self, variable: Var, value: TypedExpr, span: Span) -> list[CheckedLet]:
        match value:
            case Const() | Var():
                self._folder.known[variable.slot] = value
                return []
            case ListOf(items=items) if not any(item.optional for item in items):
                lets: list[CheckedLet] = []
                simple: list[TypedItem] = []
                for item in items:
                    one = item.value
                    if not isinstance(one, (Const, Var)):
                        lets.append(CheckedLet(self._folder.variable(one), one, span))
                        one = lets[-1].variable
                    simple.append(TypedItem(one, False))
                self._folder.known[variable.slot] = replace(value, items=tuple(simple))
                return lets
        if variable.slot in self._read_once and not value.time.is_lasting:
            # It can be simplified further at the places that read it.
            self._folder.known[variable.slot] = value
            return []
        return [CheckedLet(variable, value, span)]

    def _required(self, statement: CheckedRequire, condition: TypedExpr) -> list[CheckedStatement]:
        if _holds(condition):
            return []
        return [replace(statement, condition=condition, reason=_mapped(statement.reason, self.fold))]

    def _required_per_node(self, statement: CheckedRequire, condition: TypedExpr) -> list[CheckedStatement]:
        if condition.time.is_lasting and not _holds(condition):
            condition = replace(condition, time=BindingTime.NODE)
        return self._required(statement, condition)

    def _unrolled(self, loop: CheckedForEach) -> list[CheckedStatement] | None:
        """Return a loop over a constant list without the loop; None if there is no such form."""
        items = items_of(loop.iterable)
        is_nested = any(isinstance(inner, CheckedForEach) for inner in loop.body)
        if items is None or len(items) > MAX_ITEMS or is_nested:
            return None
        found: list[CheckedStatement] = []
        for place, item in enumerate(items):
            by = bound(loop.variables, place, item)
            if loop.where is not None:
                chosen = self._folder.fold(self._folder.substituted(loop.where, by))
                if not isinstance(chosen, Const) or chosen.type != BOOL:
                    return None
                if not chosen.value:
                    continue
            found += self._item(loop.body, by)
        self._folder.save(len(items))
        return found

    def _item(self, body: Sequence[CheckedStatement], by: dict[int, TypedExpr]) -> list[CheckedStatement]:
        folder = self._folder
        found: list[CheckedStatement] = []
        for statement in body:
            match statement:
                case CheckedLet(variable=variable, value=value):
                    own = replace(variable, slot=folder.variable(variable).slot)
                    left = folder.fold(folder.substituted(value, by))
                    by[variable.slot] = own
                    found += self._define(own, left, statement.span)
                case CheckedRequire(condition=condition, reason=reason):
                    put = partial(folder.substituted, by=by)
                    one = replace(statement, reason=_mapped(reason, put))
                    found += self._required_per_node(one, _placed(folder.fold(put(condition)), condition))
                case CheckedForEach():
                    raise AssertionError("a loop in a loop is not unrolled")
        return found

    def _rolled(self, loop: CheckedForEach) -> CheckedForEach:
        fold = self.fold
        body: list[CheckedStatement] = []
        with self._folder.loop():
            where = None if loop.where is None else fold(loop.where)
            for statement in loop.body:
                match statement:
                    case CheckedLet():
                        body += self.let(statement)
                    case CheckedRequire(condition=condition):
                        body += self._required_per_node(statement, fold(condition))
                    case CheckedForEach(iterable=iterable):
                        body.append(self._rolled(replace(statement, iterable=fold(iterable))))
        return replace(loop, where=where, body=tuple(body))


def _read_once(rule: CheckedScore) -> frozenset[int]:
    """Return the variables that are read in one place only, and not in a macro."""
    reads: Counter[int] = Counter()

    def count(expr: TypedExpr, times: int) -> None:
        if isinstance(expr, Var):
            reads[expr.slot] += times
        of_macro = (expr.where, expr.body) if isinstance(expr, Comprehension) else ()
        for part in children(expr):
            count(part, 2 if part in of_macro or isinstance(expr, Aggregate) else times)

    by = () if rule.normalize.by is None else (rule.normalize.by,)
    for expr in (*[let.value for let in rule.lets], *rule.applies, *rule.ignores, rule.value, *by):
        count(expr, 1)
    return frozenset([slot for slot, times in reads.items() if times == 1])


def _placed(expr: TypedExpr, written: TypedExpr) -> TypedExpr:
    return expr if expr.span is written.span else replace(expr, span=written.span)


def _holds(expr: TypedExpr) -> bool:
    return isinstance(expr, Const) and expr.value is True
