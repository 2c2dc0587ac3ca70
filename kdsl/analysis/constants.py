"""Constants that fail whenever a rule uses them, found before it runs: patterns, calls, those of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kdsl.analysis.codes import AnalysisCode
from kdsl.base.diagnostic import Diagnostic
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.check.model.traversal import children, expressions_of, walk
from kdsl.check.model.typed import CallFn, CallOf, Const, TypedExpr, Var
from kdsl.eval.ir import is_constant
from kdsl.eval.patterns import PatternError, compile_pattern
from kdsl.eval.scalar.searches import constant_pattern
from kdsl.eval.values import EvalError, OutOfSteps
from kdsl.plan.compile.expression import compile_expression
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.device_error import DeviceError
from kdsl.plan.devices.program import DeviceProgram

MAX_PATTERNS = 500
"""The most constant patterns of all rules: they are kept as long as the rules are."""

_CONVERSIONS = frozenset(("bool", "cidr", "double", "duration", "int", "ip", "timestamp", "uint", "url"))
_FORMS = {"duration": "`1h30m`, `90s` or `500ms`", "timestamp": "`2024-01-31T12:00:00Z`"}


def check_constants(rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Report the constant parts of all rules, functions and devices that always fail."""
    of_profiles = [each for profile in rules.profiles.values() for each in _parts_of_profile(profile)]
    exprs = [*expressions_of((rules.written, rules.fns, rules.devices, rules.teams, of_profiles))]
    in_use = _PartsInUse()
    found = [*_problems_of_patterns(part for expr in exprs for part in walk(expr))]
    found += [each for expr in exprs for each in in_use.problems(expr, walk(expr), _problems_of_text)]
    known = {problem.span for problem in found}
    for expr in exprs:
        # A parameter of a file stands elsewhere than its use.
        unknown = (
            part for part in _constant_parts(expr) if known.isdisjoint(each.span for each in walk(part))
        )
        found += in_use.problems(expr, unknown, _problems_of_value)
    used = {id(each): each for of in rules.profiles.values() if of.sharing for each in of.sharing.devices}
    functions = CompiledFunctions(rules.fns)
    found += [problem for each in used.values() for problem in _problems_of_device(each, functions)]
    # An inherited expression is in several rules.
    return tuple({(str(problem.span), problem.title): problem for problem in found}.values())


def _parts_of_profile(profile: CheckedProfile) -> Iterator[object]:
    """Yield what a profile itself writes: its `sample` and the values that it sets."""
    yield profile.sample
    rules = (*profile.predicates, *(each.score for each in profile.scores), profile.queue, profile.preemption)
    yield from (param.value for rule in rules if rule is not None for param in rule.params)


def _problems_of_patterns(parts: Iterable[TypedExpr]) -> Iterator[Diagnostic]:
    places: dict[str, list[Const]] = {}
    for part in parts:
        constant = constant_pattern(part)
        if constant is not None:
            places.setdefault(str(constant.value), []).append(constant)
    for at, (pattern, uses) in enumerate(places.items()):
        if at == MAX_PATTERNS:
            title = f"the rules have more than {MAX_PATTERNS} different patterns"
            help_ = ("compare texts with `==`, `in` or `startsWith` where that is enough",)
            yield Diagnostic(CheckCode.BAD_TEXT, title, uses[0].span, "one too many", help=help_)
            return
        try:
            compile_pattern(pattern)
        except PatternError as error:
            title = f"this is no regular expression: {error}"
            help_ = ("patterns are those of RE2: no look-around, no back-references, and not too large",)
            for use in uses:
                yield Diagnostic(CheckCode.BAD_TEXT, title, use.span, "not a pattern", help=help_)


def _problems_of_text(part: TypedExpr) -> Iterator[Diagnostic]:
    match part:
        case CallOf(function=function, args=(Const(value=str()) as text,)) if function in _CONVERSIONS:
            try:
                compile_expression(part)(())
            except EvalError as error:
                forms = _FORMS.get(function)
                likes = () if forms is None else (f"write it like {forms}",)
                label = f"`{function}` refuses this"
                yield Diagnostic(CheckCode.BAD_TEXT, error.message, text.span, label, help=likes)
        case CallOf(function="_/_" | "_%_", args=(dividend, Const(value=int(0)))) if not is_constant(
            dividend
        ):
            title = "this division has no value: the divisor is zero"
            help_ = ("divide by another number, or by a value of the pod or node",)
            yield Diagnostic(AnalysisCode.NO_VALUE, title, part.span, "it always fails", help=help_)


def _constant_parts(expr: TypedExpr) -> Iterator[TypedExpr]:
    """Yield the largest parts that read nothing."""
    if isinstance(expr, (Const, Var)):
        return
    if _is_evident(expr):
        yield expr
        return
    for child in children(expr):
        yield from _constant_parts(child)


class _PartsInUse:
    """Finds the parts of expressions that are in use: a parameter of a file may be 0, and be divided by where
    a constant condition leaves it out.
    """

    def __init__(self) -> None:
        # A constant may take long, and is a part of many: each is evaluated once.
        self._truths: dict[int, bool | None] = {}

    def problems(
        self,
        expr: TypedExpr,
        parts: Iterable[TypedExpr],
        problems_of: Callable[[TypedExpr], Iterator[Diagnostic]],
    ) -> list[Diagnostic]:
        """Return the problems of parts of an expression that are in use."""
        found = [(part, problem) for part in parts for problem in problems_of(part)]
        used = {id(each) for each in self._reached(expr)} if found else ()
        return [problem for part, problem in found if id(part) in used]

    def _reached(self, expr: TypedExpr) -> Iterator[TypedExpr]:
        yield expr
        for part in self._in_use(expr):
            yield from self._reached(part)

    def _in_use(self, expr: TypedExpr) -> tuple[TypedExpr, ...]:
        """Return the direct parts, except for those that a constant condition leaves out."""
        match expr:
            case CallOf(function="_?_:_", args=(condition, then, otherwise)):
                truth = self._truth(condition)
                if truth is not None:
                    return (then,) if truth else (otherwise,)
            case CallOf(function="_&&_" | "_||_"):
                if self._truth(expr) is (expr.function == "_||_"):
                    return ()
        return children(expr)

    def _truth(self, condition: TypedExpr) -> bool | None:
        """Return the value of a condition whose constants decide it; None for others, and without a value."""
        key = id(condition)
        if key not in self._truths:
            self._truths[key] = self._decided(condition)
        return self._truths[key]

    def _decided(self, condition: TypedExpr) -> bool | None:
        match condition:
            case CallOf(function="_&&_" | "_||_" as function, args=args):
                # One operand decides, whatever the other one is.
                decisive = function == "_||_"
                truths = {self._truth(arg) for arg in args}
                if decisive in truths:
                    return decisive
                return None if None in truths else not decisive
        if not _is_evident(condition):
            return None
        try:
            found = compile_expression(condition)(())
        except EvalError:
            return None
        return found if isinstance(found, bool) else None


def _is_evident(expr: TypedExpr) -> bool:
    """Return whether an expression reads nothing: no pod, node, parameter, variable or function of a file."""
    return is_constant(expr) and not any(isinstance(part, CallFn) for part in walk(expr))


def _problems_of_value(part: TypedExpr) -> Iterator[Diagnostic]:
    try:
        compile_expression(part)(())
    except OutOfSteps:
        # A configuration may allow more steps.
        return
    except EvalError as error:
        help_ = ("write a value, or read what decides from the pod or node",)
        title = f"this constant has no value: {error.message}"
        yield Diagnostic(AnalysisCode.NO_VALUE, title, part.span, "it always fails", help=help_)


def _problems_of_device(device: CheckedDevice, functions: CompiledFunctions) -> Iterator[Diagnostic]:
    """Report the first of the constants of a device that has no value, or one of a wrong kind, for its
    parameters.
    """
    blocks = (device.quota, device.lock, device.handshake)
    spans = [device.kind.span, device.record.span, *(e.span for each in blocks for e in each.values.values())]
    try:
        program = DeviceProgram(device, functions)
        _ = program.quota_names, program.lock, program.handshake
    except DeviceError as error:
        title = f"this constant of device `{device.name}` has no value: {error.message}"
        help_ = ("look at the parameters that it reads",)
        span = next((span for span in spans if str(span) == error.site), device.span)
        yield Diagnostic(AnalysisCode.NO_VALUE, title, span, "no pod gets a card", help=help_)
