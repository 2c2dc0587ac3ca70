"""The checked form of expressions: names resolved, macros expanded, types inferred. Back ends compile it.

Every expression has its type, its binding time, its reads (the `reads` words of the views file) and its span.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kdsl.base.span import Span
from kdsl.check.model.types import BindingTime, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """The base of checked expressions."""

    type: Type
    time: BindingTime
    reads: frozenset[str]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const(Typed):
    """A constant: a literal, or a type used as a value.

    An uint has type `uint` and a Python int as its value.
    """

    value: bool | int | float | str | bytes | Type | None


UNDECLARED = -1


@dataclass(frozen=True, slots=True)
class Var(Typed):
    """A variable: `pod`, `node`, a `let`, a `param`, a loop or macro variable, an argument of a `fn`, …

    `slot` is unique within the rule (or `fn`): two variables of one name never share a slot. The slot
    `UNDECLARED` marks an undeclared name, whose read is an error; it occurs only where names are resolved at
    run time.
    """

    name: str
    slot: int


@dataclass(frozen=True, slots=True)
class FieldOf(Typed):
    """A field of a view value. It never fails: an absent field reads as its empty value."""

    operand: TypedExpr
    view: str
    field: str


@dataclass(frozen=True, slots=True)
class HasField(Typed):
    """`has(operand.field)` on a view value."""

    operand: TypedExpr
    view: str
    field: str


@dataclass(frozen=True, slots=True)
class KeyOf(Typed):
    """`operand.key` on a map, a `dyn` value or an optional; fails with `no such key` where it is missing.

    `test` makes it `has(operand.key)`; `optional` makes it `operand.?key`.
    """

    operand: TypedExpr
    key: str
    test: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class CallOf(Typed):
    """A call of a library function, operator or view method.

    `function` is CEL's name: operators are `_+_`, `_==_`, `_&&_`, `!_`, `-_`, `_?_:_`, `_[_]`, `_[?_]`,
    `@in`; methods of views are `View.method`. A member call has its target as the first argument, and
    `member` set. `overload` is the only overload that the argument types allow, or empty where run time
    decides.
    """

    function: str
    args: tuple[TypedExpr, ...]
    overload: str
    member: bool = False


@dataclass(frozen=True, slots=True)
class CallFn(Typed):
    """A call of a `fn` of a rule file; `fn` is its qualified name in `RuleSet.fns`."""

    fn: str
    args: tuple[TypedExpr, ...]


@dataclass(frozen=True, slots=True)
class TypedItem:
    value: TypedExpr
    optional: bool


@dataclass(frozen=True, slots=True)
class ListOf(Typed):
    items: tuple[TypedItem, ...]


@dataclass(frozen=True, slots=True)
class TypedEntry:
    key: TypedExpr
    value: TypedExpr
    optional: bool


@dataclass(frozen=True, slots=True)
class MapOf(Typed):
    entries: tuple[TypedEntry, ...]


class Macro(StrEnum):
    """Comprehensions.

    `where` of `map`, `transformList`, `transformMap` and `transformMapEntry` is their optional filter.
    """

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    FILTER = "filter"
    MAP = "map"
    TRANSFORM_LIST = "transformList"
    TRANSFORM_MAP = "transformMap"
    TRANSFORM_MAP_ENTRY = "transformMapEntry"


@dataclass(frozen=True, slots=True)
class Comprehension(Typed):
    """A macro over a list, a map or `resources`; `body` is its condition or its result.

    With one variable it ranges over a list's elements or a map's keys; with two over index and element, or
    key and value.
    """

    macro: Macro
    iterable: TypedExpr
    variables: tuple[Var, ...]
    where: TypedExpr | None
    body: TypedExpr


@dataclass(frozen=True, slots=True)
class Aggregate(Typed):
    """A macro of a view, such as `topology(key).count(p, p.priority > 0)`.

    `view` is the view that declares it; `body` does not depend on the node.
    """

    target: TypedExpr
    view: str
    macro: str
    variable: Var
    body: TypedExpr


@dataclass(frozen=True, slots=True)
class Bind(Typed):
    """`cel.bind(variable, value, body)`; also `optMap` and `optFlatMap`, whose `macro` names them."""

    variable: Var
    value: TypedExpr
    body: TypedExpr
    macro: str = "bind"


TypedExpr = (
    Const
    | Var
    | FieldOf
    | HasField
    | KeyOf
    | CallOf
    | CallFn
    | ListOf
    | MapOf
    | Comprehension
    | Aggregate
    | Bind
)
