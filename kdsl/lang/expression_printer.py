"""Expressions to documents in the canonical style; `printer.py` puts them into statements.

Lines break before operators, with the operands below each other. Parentheses stand where the grammar needs
them and around `&&` inside `||`, whose precedence few people remember. Literals keep the author's spelling.
"""

from __future__ import annotations

from kdsl.lang.expression_tree import (
    Binary,
    Call,
    Conditional,
    Expr,
    Ident,
    Index,
    ListExpr,
    ListItem,
    Literal,
    LiteralKind,
    MapEntry,
    MapExpr,
    Select,
    Unary,
)
from kdsl.lang.layout import Align, Concat, Doc, Fill, Group, Line, Nest, concat, render
from kdsl.lang.literals import spell

_CONDITIONAL, _OR, _AND, _RELATION, _SUM, _PRODUCT, _UNARY, _MEMBER = range(8)
_ONE_LINE = 1 << 30
_LEVELS = (
    {"||": _OR, "&&": _AND}
    | dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), _RELATION)
    | {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
)


def format_expr(expr: Expr) -> str:
    """Return an expression on one line (a string over several lines keeps its lines)."""
    return render(expression_doc(expr), _ONE_LINE)


def expression_doc(expr: Expr, *, hanging: bool = False) -> Doc:
    """Return the document of an expression. If it breaks, operators stand left of the column of their
    operands, and all other parts are indented from the statement.

    With `hanging` the operators of the outermost chain, and of its first operand, are indented instead: the
    expression starts on its own line, so there is no room on the left.
    """
    return Group(_bare(expr, hanging=hanging))


def _at(expr: Expr, level: int, *, hanging: bool = False) -> Doc:
    """Return the document of an operand, for an operator of this precedence."""
    inner = _bare(expr, hanging=hanging)
    return concat("(", Align(inner), ")") if _level(expr) < level else inner


def _level(expr: Expr) -> int:
    match expr:
        case Conditional():
            return _CONDITIONAL
        case Binary(op=op):
            return _LEVELS[op]
        case Unary():
            return _UNARY
        case Literal(kind=LiteralKind.INT | LiteralKind.DOUBLE) if spelling(expr).startswith("-"):
            return _UNARY
    return _MEMBER


def _bare(expr: Expr, *, hanging: bool = False) -> Doc:
    """Return the document of an expression without parentheses around it."""
    match expr:
        case Binary():
            return _chain(expr, hanging=hanging)
        case Conditional():
            return _conditional(expr, hanging=hanging)
        case Unary(op, operand):
            return concat(op, _unary_operand(op, operand, hanging=hanging))
        case Select() | Index() | Call():
            return _member(expr, hanging=hanging)
        case Ident(name, rooted):
            return concat("." if rooted else "", name)
        case Literal():
            return concat(spelling(expr))
        case ListExpr(items):
            return concat("[", Align(Fill(tuple(_item(item) for item in items))), "]")
        case MapExpr(entries):
            return concat("{", Align(Fill(tuple(_entry(entry) for entry in entries))), "}")


def spelling(literal: Literal) -> str:
    """Return the author's spelling of a literal, or the plainest one for a tree made by a program."""
    return literal.raw or spell(literal.kind, literal.value)


def _item(item: ListItem) -> Doc:
    return concat("?" if item.optional else "", Align(Group(_bare(item.value))))


def _entry(entry: MapEntry) -> Doc:
    key, value = _bare(entry.key), Align(Group(_bare(entry.value)))
    return concat("?" if entry.optional else "", key, ": ", value)


def _chain(expr: Binary, *, hanging: bool) -> Doc:
    """Return the document of operators of one precedence in a row, `a + b - c`: all of them break or none."""
    level = _LEVELS[expr.op]
    links: list[tuple[str, Expr]] = []
    first: Expr = expr
    while isinstance(first, Binary) and _LEVELS[first.op] == level:
        links.append((first.op, first.right))
        first = first.left
    parts = [_operand(first, level, level, hanging=hanging)]
    for op, right in reversed(links):
        back = 2 if hanging else -len(op) - 1
        parts.append(concat(Nest(back, Line()), f"{op} ", Align(_operand(right, level, level + 1))))
    return Align(Group(Concat(tuple(parts))))


def _operand(expr: Expr, chain: int, level: int, *, hanging: bool = False) -> Doc:
    """Return the document of an operand of a chain; `&&` inside `||` gets parentheses that the grammar does
    not need.
    """
    if chain == _OR and isinstance(expr, Binary) and expr.op == "&&":
        level = _MEMBER
    return _at(expr, level, hanging=hanging)


def _conditional(expr: Conditional, *, hanging: bool) -> Doc:
    """Return the document of `a ? b : c`: on one line, or each branch on its own. In a row of them, such as
    `a ? b : c ? d : e`, a condition stays with its value and reads like a case.
    """
    if not isinstance(expr.otherwise, Conditional):
        then = concat(Line(), "? ", Align(_at(expr.then, _OR)))
        otherwise = concat(Line(), ": ", Align(_bare(expr.otherwise)))
        condition = _at(expr.condition, _OR, hanging=hanging)
        return Group(concat(condition, Nest(2, concat(then, otherwise))))
    cases: list[Doc] = []
    last: Expr = expr
    while isinstance(last, Conditional):
        condition = _at(last.condition, _OR, hanging=hanging and not cases)
        case = concat(Align(condition), " ? ", Align(_at(last.then, _OR)))
        cases.append(concat(Line(), ": ", case) if cases else case)
        last = last.otherwise
    cases.append(concat(Line(), ": ", Align(_bare(last))))
    return Group(Nest(2, Concat(tuple(cases))))


def _unary_operand(op: str, operand: Expr, *, hanging: bool) -> Doc:
    if isinstance(operand, Unary) and operand.op == op:
        return _bare(operand, hanging=hanging)
    if op == "-" and _starts_with_number(operand):
        # `-1.f()` would be `(-1).f()`: see the tree builder.
        return concat("(", Align(_bare(operand, hanging=hanging)), ")")
    return _at(operand, _MEMBER, hanging=hanging)


def _starts_with_number(expr: Expr) -> bool:
    if isinstance(expr, Literal):
        return False
    while True:
        match expr:
            case Select(operand=inner) | Index(operand=inner) | Call(target=inner) if inner is not None:
                expr = inner
            case Literal(kind=LiteralKind.INT | LiteralKind.DOUBLE):
                return not spelling(expr).startswith("-")
            case _:
                return False


def _member(expr: Select | Index | Call, *, hanging: bool) -> Doc:
    """Return the document of `a.b[c].f(d).g()`. With two or more method calls, each may stand on its own
    line.
    """
    links: list[Select | Index | Call] = []
    base: Expr = expr
    while isinstance(base, Select | Index) or (isinstance(base, Call) and base.target is not None):
        links.append(base)
        inner = base.target if isinstance(base, Call) else base.operand
        assert inner is not None
        base = inner
    links.reverse()
    if isinstance(base, Call):
        head = concat("." if base.rooted else "", base.function, _arguments(base.args, hanging=hanging))
    else:
        head = concat(_at(base, _MEMBER, hanging=hanging))
    breakable = sum(isinstance(link, Call) for link in links) > 1
    parts: list[Doc] = []
    for link in links:
        if breakable and isinstance(link, Call):
            parts.append(Line(""))
        parts.append(_link(link, hanging=hanging))
    tail = Concat(tuple(parts))
    return Group(Align(concat(head, Nest(2, tail))) if breakable else concat(head, tail))


def _link(link: Select | Index | Call, *, hanging: bool) -> Doc:
    match link:
        case Select(field=field, optional=optional, escaped=escaped):
            return concat(".?" if optional else ".", f"`{field}`" if escaped else field)
        case Index(index=index, optional=optional):
            return concat("[?" if optional else "[", Align(Group(_bare(index))), "]")
        case Call(function=function, args=args):
            return concat(f".{function}", _arguments(args, hanging=hanging))


def _arguments(args: tuple[Expr, ...], *, hanging: bool) -> Doc:
    listed = Fill(tuple(Group(_bare(arg, hanging=hanging)) for arg in args))
    return concat("(", Nest(2, listed), ")")
