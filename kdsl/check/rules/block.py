"""The common parts of checking predicates, scores and queues: scope, parameters, `let`s, conditions, reasons.

A `BlockCheck` checks one rule. It carries the facts of earlier statements and collects the rule's reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Span
from kdsl.check.expressions.extent import too_deep
from kdsl.check.expressions.guards import NO_FACTS, Guards, KeyFacts
from kdsl.check.expressions.infer import Inference
from kdsl.check.expressions.macros import declare_variable
from kdsl.check.expressions.scope import Scope, SlotFrame
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedLet, CheckedOnError, CheckedParam, CheckedTemplate
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.model.types import (
    BOOL,
    CIDR,
    DOUBLE,
    DURATION,
    ERROR,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    BindingTime,
    Type,
)
from kdsl.check.names.declarations import Home
from kdsl.check.names.file_names import Construct
from kdsl.check.names.functions import Functions
from kdsl.check.views.view import Views, scope_reads, scope_time
from kdsl.lang.expression_tree import Expr
from kdsl.lang.parser import MAX_DEPTH
from kdsl.lang.tree import AppliesWhen, IgnoreWhen, Let, OnError, Param, Statement, Template

_PRINTABLE = frozenset(
    {STRING, BOOL, INT, UINT, DOUBLE, QUANTITY, TIMESTAMP, DURATION, SEMVER, IP, CIDR, ERROR}
)
_TIMES = {
    BindingTime.NODE: "the node",
    BindingTime.USAGE: "the pods on the node",
    BindingTime.QUEUE: "the queue",
    BindingTime.SCORES: "the scores of all nodes",
}


class BlockCheck:
    """The state of checking one rule, from its first statement to its last."""

    def __init__(
        self,
        functions: Functions,
        views: Views,
        diagnostics: list[Diagnostic],
        home: Home,
        construct: Construct,
        span: Span,
    ) -> None:
        self.frame = SlotFrame()
        self.scope: dict[str, Var] = {}
        self.params: list[CheckedParam] = []
        self.facts: KeyFacts = NO_FACTS
        self.reads: frozenset[str] = frozenset()
        self.guards = Guards(diagnostics)
        self._extents = functions.extents()
        self.diagnostics = diagnostics
        self._functions = functions
        self._home = home
        self._construct = construct
        scope = Scope(self.frame)
        for name, type_ in views.scopes[construct.name.lower()].items():
            self.scope[name] = scope.add(name, type_, scope_time(name), scope_reads(name), span)
        self.inference = functions.inference(home, construct, scope)

    @contextmanager
    def inside(self, home: Home) -> Iterator[None]:
        """Resolve names of other files as a statement in `home` does; names in scope stay."""
        outer = self.inference
        self.inference = self._functions.inference(home, self._construct, outer.scope)
        try:
            yield
        finally:
            self.inference = outer

    # ---- statements --------------------------------------------------------------------------------------

    def param(self, statement: Param) -> None:
        """Check a parameter and add its variable to the scope."""
        value = self._functions.param_value(statement, self._home, self.frame)
        name = statement.name
        variable = declare_variable(
            self.inference, self.inference.scope, name.text, name.span, value.type, value
        )
        self.params.append(CheckedParam(variable, value))

    def let(self, statement: Let) -> CheckedLet:
        """Check a `let` and add its variable to the scope."""
        value = self.expression(statement.value)
        name = statement.name
        variable = declare_variable(
            self.inference, self.inference.scope, name.text, name.span, value.type, value
        )
        self._extents.name(variable, self._extents.depth(value))
        self.guards.lets[variable.slot] = value
        return CheckedLet(variable, value, statement.span)

    def applies(self, statement: AppliesWhen, latest: BindingTime, *help_: str) -> TypedExpr:
        """Check an `applies when`; its condition is a proof for all statements after it."""
        condition = self.condition(statement.condition, "the condition of `applies when`")
        self.known_by(condition, latest, "`applies when`", *help_)
        self.facts |= self.guards.when(condition, True)
        return condition

    def ignores(self, statement: IgnoreWhen) -> TypedExpr:
        """Check an `ignore when`; the negation of its condition is a proof for all statements after it."""
        condition = self.condition(statement.condition, "the condition of `ignore when`")
        self.facts |= self.guards.when(condition, False)
        return condition

    def on_error(self, statement: OnError) -> CheckedOnError:
        """Check an `on error`."""
        reason = None if statement.reason is None else self.template(statement.reason, NO_FACTS)
        return CheckedOnError(statement.action, reason)

    # ---- expressions -------------------------------------------------------------------------------------

    def expression(self, expr: Expr, wanted: Type | None = None, what: str = "") -> TypedExpr:
        """Check an expression of the rule; with `wanted` it must have that type."""
        typed = self._infer(expr)
        self.guards.check(typed, self.facts)
        if wanted is not None:
            typed = self.inference.expect(typed, wanted, what)
        self.reads |= typed.reads
        return typed

    def _infer(self, expr: Expr) -> TypedExpr:
        typed = self.inference.whole(expr)
        if self._extents.depth(typed) <= MAX_DEPTH:
            return typed
        return self.inference.fail(too_deep("this", expr.span))

    def condition(self, expr: Expr, what: str) -> TypedExpr:
        """Check an expression that must be a bool."""
        return self.expression(expr, BOOL, what)

    def template(self, template: Template, facts: KeyFacts) -> CheckedTemplate:
        """Check a reason; `facts` hold where it is printed."""
        return CheckedTemplate(
            tuple(part if isinstance(part, str) else self._hole(part, facts) for part in template.parts)
        )

    def _hole(self, expr: Expr, facts: KeyFacts) -> TypedExpr:
        typed = self._infer(expr)
        if typed.type not in _PRINTABLE:
            self.diagnostics.append(_not_printable(typed))
        self.guards.check(typed, self.facts | facts)
        self.reads |= typed.reads
        return typed

    def known_by(self, expr: TypedExpr, latest: BindingTime, what: str, *help_: str) -> None:
        """Report an expression whose value is known only after `latest`."""
        if expr.time <= latest or expr.type == ERROR:
            return
        self.diagnostics.append(
            Diagnostic(
                CheckCode.TOO_LATE,
                f"{what} must be known before any node is evaluated",
                expr.span,
                f"this depends on {_TIMES[expr.time]}",
                help=help_,
            )
        )

    def within(self, scope: Scope) -> Inference:
        """Continue in another scope and return the inference that was current."""
        outer = self.inference
        self.inference = outer.within(scope)
        return outer


def once(diagnostics: list[Diagnostic], statements: Sequence[Statement], what: str) -> None:
    """Report every statement after the first, of a kind that may occur once."""
    for statement in statements[1:]:
        diagnostics.append(
            Diagnostic(
                CheckCode.WRITTEN_TWICE,
                f"`{what}` is written twice",
                statement.span,
                "only one can hold",
                secondary=(Label(statements[0].span, "the first is here"),),
            )
        )


_EXAMPLES = {
    ("predicate", "require"): 'require !node.unschedulable else "node(s) were unschedulable"',
    ("score", "value"): "value node.pods.size()",
    ("queue", "order by"): "order by pod.priority desc, pod.queuedAt",
    ("preemption", "victim when"): "victim when victim.priority < pod.priority",
    ("team", "owns"): 'owns pod.namespace.startsWith("ml-")',
    ("device", "inventory"): "inventory for number in lists.range(2) { … }",
    ("device", "kind"): 'kind "NPU"',
    ("device", "request"): "request { … }",
    ("device", "record"): 'record "example.com/cards-allocated"',
    ("device", "choose"): 'choose first else "too few cards"',
}


def incomplete(
    diagnostics: list[Diagnostic], kind: str, name: str, span: Span, missing: str, why: str
) -> None:
    """Report a rule without its required statement."""
    title = f"{kind} `{name}` has no `{missing}`"
    example = _EXAMPLES.get((kind, missing))
    help_ = () if example is None else (f"add a line such as `{example}`",)
    diagnostics.append(Diagnostic(CheckCode.INCOMPLETE, title, span, why, help=help_))


def _not_printable(expr: TypedExpr) -> Diagnostic:
    help_: tuple[str, ...] = ()
    if expr.type.name == "list" and expr.type.args[0] == STRING:
        help_ = (f"write `{expr.span.text}.join(', ')`",)
    title = f"a reason cannot show a value of type `{expr.type}`"
    return Diagnostic(CheckCode.WRONG_TYPE, title, expr.span, f"this is `{expr.type}`", help=help_)
