"""`cel.block` and its companions: the notation of CEL's optimisers for common subexpressions.

    cel.block([a, f(cel.index(0))], g(cel.index(1)))    is    cel.bind(x, a, cel.bind(y, f(x), g(y)))

`cel.iterVar(d, n)` and `cel.accuVar(d, n)` name the variables of macros. Tools write this notation: loose
expressions may use it, rule files have `let`.
"""

from __future__ import annotations

from kdsl.lang.expression_tree import Call, Expr, Ident, ListExpr, Literal, LiteralKind

_CEL = "cel"
_VARIABLES = {"index": 1, "iterVar": 2, "accuVar": 2}


def desugar(expr: Call) -> Expr | None:
    """Return the expression that a call of this notation stands for, or None for any other call."""
    if expr.target is None or expr.target != Ident(_CEL, span=expr.target.span):
        return None
    if expr.function in _VARIABLES:
        return _variable(expr)
    match expr.function, expr.args:
        case "block", (ListExpr(items=items), body) if not any(item.optional for item in items):
            for number in reversed(range(len(items))):
                item = items[number].value
                name = Ident(f"@index:{number}", span=item.span)
                body = Call("bind", expr.target, (name, item, body), span=expr.span)
            return body
    return None


def macro_variable(expr: Expr) -> Expr:
    """Return the name that `cel.iterVar(…)` stands for where a macro declares a variable."""
    return (desugar(expr) if isinstance(expr, Call) else None) or expr


def _variable(expr: Call) -> Ident | None:
    """Return the variable's name; source text cannot spell it, so it clashes with no other name."""
    numbers = [arg.value for arg in expr.args if isinstance(arg, Literal) and arg.kind is LiteralKind.INT]
    if not len(numbers) == len(expr.args) == _VARIABLES[expr.function]:
        return None
    return Ident(":".join(("@" + expr.function, *map(str, numbers))), span=expr.span)
