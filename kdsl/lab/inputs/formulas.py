"""Expressions of a mapping: checked in the rule language, with their places in the YAML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.traversal import children, walk
from kdsl.check.model.typed import FieldOf, HasField, TypedExpr, Var
from kdsl.check.model.types import DYN, Type, optional_of
from kdsl.check.views.view import Field, View, Views
from kdsl.eval.values import EvalError, Optional, Value
from kdsl.eval.views import attribute_of
from kdsl.lab.inputs.cells import RowError
from kdsl.lang.parser import parse_embedded
from kdsl.lang.yaml_tree import YamlNode, YamlScalar
from kdsl.plan.compile.expression import compile_expression

OPTIONAL: Final = "optional"
_NO_READS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that expressions read: each is an object with fields of these types."""

    names: Mapping[str, Mapping[str, Type]]

    def views(self) -> Views:
        types = {
            view_of(name): View(view_of(name), None, False, _fields(view_of(name), members), {})
            for name, members in self.names.items()
        }
        return Views("", {}, types, {})

    def environment(self) -> Environment:
        return Environment({name: Type(view_of(name)) for name in self.names}, strict=True)


def view_of(name: str) -> str:
    """Return the name of the view type of a name in scope: `Row` for `row`."""
    return name[:1].upper() + name[1:]


def _fields(view: str, members: Mapping[str, Type]) -> dict[str, Field]:
    return {name: Field(name, view, type_, _NO_READS, False, "") for name, type_ in members.items()}


def holder(names: Iterable[str]) -> Callable[[Sequence[Value]], Any]:
    """Return the function from the values of fields to an object that expressions read."""
    attributes = tuple(map(attribute_of, names))
    return lambda values: SimpleNamespace(**dict(zip(attributes, values, strict=True)))


@dataclass(frozen=True, slots=True)
class Formula:
    """A compiled expression. `place` is the key of the mapping that it belongs to.

    `reads` are the fields that it reads, by the name in scope.
    """

    place: str
    type: Type
    reads: Mapping[str, frozenset[str]]
    _compiled: Callable[[Sequence[Value]], Value]

    def value(self, objects: Sequence[Value]) -> Value:
        """Evaluate the expression; an optional without a value is None. Raises RowError."""
        try:
            value = self._compiled(objects)
        except EvalError as error:
            title = f"the expression has no value: {error.message}"
            raise RowError(self.place, title, "the expression has no value") from None
        return value.value if value.__class__ is Optional else value

    @property
    def item_type(self) -> Type:
        """The type of the value, without `optional`."""
        return self.type.args[0] if self.type.name == OPTIONAL else self.type


@dataclass(slots=True)
class Formulas:
    """Reads the expressions of one scope; mistakes are added to `found`."""

    scope: Scope
    found: list[Diagnostic]
    _views: Views | None = None

    def read(self, node: YamlNode, place: str, expected: str, types: frozenset[str]) -> Formula | None:
        """Return an expression of one of these types, or an optional of it; `expected` are they in words."""
        if not isinstance(node, YamlScalar):
            title = f"`{place}` is an expression"
            self.found.append(Diagnostic(CheckCode.WRONG_TYPE, title, node.span))
            return None
        expr, problems = parse_embedded(node.text, node.locator())
        self.found.extend(problems)
        if expr is None:
            return None
        self._views = self._views or self.scope.views()
        typed, problems_of_types = check_expression(expr, self.scope.environment(), self._views)
        self.found.extend(problems_of_types)
        if typed is None:
            return None
        formula = Formula(place, typed.type, _reads(typed, self.scope), compile_expression(typed))
        # `optional.none()` is an optional of any type.
        if types and formula.item_type.name not in types and typed.type != optional_of(DYN):
            title = f"`{place}` must be {expected}, and this is `{typed.type}`"
            self.found.append(Diagnostic(CheckCode.WRONG_TYPE, title, node.span, help=_conversion(types)))
            return None
        return formula


def _conversion(types: frozenset[str]) -> tuple[str, ...]:
    return ("`string(x)` makes it text",) if types == {"string"} else ()


def _reads(expr: TypedExpr, scope: Scope) -> dict[str, frozenset[str]]:
    """Return the fields that an expression reads; all of them where an object is used as a whole."""
    found: dict[str, set[str]] = {}
    for part in walk(expr):
        match part:
            case FieldOf(operand=Var(name=name), field=field) | HasField(operand=Var(name=name), field=field):
                found.setdefault(name, set()).add(field)
            case _:
                whole = [each.name for each in children(part) if isinstance(each, Var)]
                for name in (*whole, *([part.name] if part is expr and isinstance(part, Var) else ())):
                    found.setdefault(name, set()).update(scope.names.get(name, ()))
    return {name: frozenset(read) for name, read in found.items() if name in scope.names}
