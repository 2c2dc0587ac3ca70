"""Small changes to Python source that a test should notice: `mutants_of` lists those of a module.

Text that people read, type annotations, decorators and assertions are left alone: they are not behaviour.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, ...]]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_ARITHMETIC: Final[dict[type[ast.operator], ast.operator]] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.FloorDiv: ast.Mult(),
    ast.Div: ast.Mult(),
    ast.Mod: ast.FloorDiv(),
    ast.LShift: ast.RShift(),
    ast.RShift: ast.LShift(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
}
_OPPOSITES: Final = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "minimum": "maximum",
    "maximum": "minimum",
    "union": "intersection",
    "intersection": "union",
}
_DECLARING: Final = frozenset(
    {"TypeVar", "ParamSpec", "NewType", "cast", "dtype", "isinstance", "issubclass"}
)
"""Calls whose arguments are types or names of types."""
_TEXTS: Final = frozenset({"strict", "title", "help", "label", "message", "summary", "text", "note", "why"})
"""Arguments that people read, and what only says what holds anyway."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the bytes from `start` to `end` of the file become `after`.

    `function` is the qualified name of the function that it is in, empty outside of all.
    """

    path: str
    line: int
    start: int
    end: int
    kind: str
    before: str
    after: str
    function: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


@dataclass(frozen=True)
class _Source:
    """The bytes of a module and where its lines begin."""

    path: str
    data: bytes

    @cached_property
    def lines(self) -> list[int]:
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.lines[node.lineno - 1] + node.col_offset
        return start, self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()


def mutants_of(path: str, data: bytes) -> tuple[Mutant, ...]:
    """Return the mutants of a module in the order of its text, those that do not parse left out."""
    finder = _Finder(_Source(path, data))
    finder.visit(ast.parse(data))
    unique = {(one.start, one.end, one.after): one for one in finder.found if one.before != one.after}
    return tuple(one for one in sorted(unique.values(), key=lambda one: (one.start, one.end, one.after)))


class _Finder(ast.NodeVisitor):
    """Walks through what a module does and notes how it can be changed."""

    def __init__(self, source: _Source) -> None:
        self.found: list[Mutant] = []
        self._source = source
        self._scopes: list[str] = []
        self._depth = 0

    # ---- noting ------------------------------------------------------------------------------------------

    def _note(self, kind: str, node: ast.expr | ast.stmt, *afters: str) -> None:
        start, end = self._source.span(node)
        before = self._source.text(node)
        function = ".".join(self._scopes) if self._depth else ""
        for after in afters:
            self.found.append(
                Mutant(self._source.path, node.lineno, start, end, kind, before, after, function)
            )

    def _in(self, node: ast.expr) -> str:
        """Return an expression as it stands, so that it can be an operand."""
        return f"({self._source.text(node)})"

    # ---- scopes ------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            return
        self._scopes.append(node.name)
        self._visit_body(node.body)
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        inner = (node.name,) if not self._depth else ("<locals>", node.name)
        self._scopes += inner
        self._depth += 1
        self._visit_body(node.body)
        self._depth -= 1
        del self._scopes[-len(inner) :]

    def _visit_body(self, body: list[ast.stmt]) -> None:
        for number, statement in enumerate(body):
            if number == 0 and _is_text(statement):
                continue
            self.visit(statement)

    # ---- what is no behaviour ----------------------------------------------------------------------------

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave out: an assertion says what holds anyway."""

    def visit_Import(self, node: ast.Import) -> None:
        """Leave out."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Leave out."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out: nearly always a message."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not _is_alias(node):
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._note("dropped raise", node, "pass")

    # ---- statements --------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> None:
        if _is_text(node) or (isinstance(node.value, ast.Constant) and node.value.value is ...):
            return
        if isinstance(node.value, ast.Call):
            self._note("dropped statement", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "__all__" in names or (not self._depth and _is_declaring(node.value)):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._note("dropped statement", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._note("dropped statement", node, "pass")
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            changed = ast.AugAssign(node.target, other, node.value)
            self._note("arithmetic", node, ast.unparse(changed))
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._note("dropped statement", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._note("loop", node, "break", "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._note("loop", node, "continue", "pass")

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            self._note("dropped return", node, "pass")
            return
        # None is as false as False, and the other constants are changed as constants.
        if not isinstance(value, ast.Constant):
            self._note("return value", node, "return None")
        self.visit(value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        if len(node.body) > 1 or not isinstance(node.body[0], ast.Pass | ast.Raise | ast.Return | ast.Expr):
            self._drop_body(node.body)
        if node.orelse and not isinstance(node.orelse[0], ast.If):
            self._drop_body(node.orelse)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return
        self._note("negation", test, f"not {self._in(test)}")

    def _drop_body(self, body: list[ast.stmt]) -> None:
        start, _ = self._source.span(body[0])
        _, end = self._source.span(body[-1])
        before = self._source.data[start:end].decode()
        function = ".".join(self._scopes) if self._depth else ""
        self.found.append(
            Mutant(self._source.path, body[0].lineno, start, end, "dropped branch", before, "pass", function)
        )

    # ---- expressions -------------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            left, right = self._source.text(node.left), self._source.text(node.comparators[0])
            swaps = _COMPARISONS[type(node.ops[0])]
            self._note("comparison", node, *(f"{left} {swap} {right}" for swap in swaps))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = "and" if isinstance(node.op, ast.And) else "or"
        other = "or" if word == "and" else "and"
        operands = [self._in(value) for value in node.values]
        self._note("and/or", node, f"({f' {other} '.join(operands)})")
        for number in range(len(operands)):
            left = operands[:number] + operands[number + 1 :]
            self._note("dropped condition", node, f"({f' {word} '.join(left)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert):
            self._note("removed not", node, self._in(node.operand))
        elif isinstance(node.op, ast.USub):
            self._note("removed minus", node, self._in(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            changed = ast.BinOp(node.left, other, node.right)
            self._note("arithmetic", node, f"({ast.unparse(changed)})")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        if name in _DECLARING:
            return
        if name in _OPPOSITES:
            function = ast.unparse(node.func)
            end, function_end = self._source.span(node)[1], self._source.span(node.func)[1]
            rest = self._source.data[function_end:end].decode()
            changed = function.removesuffix(name) + _OPPOSITES[name] + rest
            if not (name == "sorted" and node.keywords):
                self._note("opposite function", node, changed)
        if len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2]):
            self._swap(node)
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in _TEXTS:
                self.visit(keyword.value)

    def _swap(self, node: ast.Call) -> None:
        """Swap the first two arguments of a call, where they are no plain values."""
        first, second = node.args[:2]
        if isinstance(first, ast.Constant) or isinstance(second, ast.Constant):
            return
        whole, end = self._source.span(node)
        (a, b), (c, d) = self._source.span(first), self._source.span(second)
        data = self._source.data
        after = data[whole:a] + data[c:d] + data[b:c] + data[a:b] + data[d:end]
        self._note("swapped arguments", node, after.decode())

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._note("constant", node, str(not value))
        elif isinstance(value, int):
            # Before a dot a number needs parentheses; everywhere else they do no harm.
            self._note("boundary", node, f"({value + 1})", f"({value - 1})")
        elif isinstance(value, float):
            self._note("boundary", node, f"({value + 1.0})")
        elif isinstance(value, str) and " " not in value and "\n" not in value:
            self._note("constant", node, '"mutated"' if value != "mutated" else '""')

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not self._depth and isinstance(node.value, ast.Name) and node.value.id[0].isupper():
            return
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        """Leave out annotations."""


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_alias(node: ast.AnnAssign) -> bool:
    return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"


def _is_declaring(value: ast.expr) -> bool:
    """Return whether a module-level value is a type: an alias or a type variable."""
    if isinstance(value, ast.Call):
        return _called(value) in _DECLARING
    if isinstance(value, ast.Subscript):
        return True
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)


def _called(node: ast.Call) -> str:
    """Return the last word of what is called."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def all_parse(mutants: tuple[Mutant, ...], data: bytes) -> Iterator[Mutant]:
    """Yield the mutants of which the text still is Python."""
    for mutant in mutants:
        try:
            compile(mutant.apply(data), mutant.path, "exec")
        except SyntaxError:
            continue
        yield mutant
