"""The checked form of `device` blocks; see `kdsl.check.model.rule_set` for the parts that all rules have.

A device is made of sections. Each has names of its own that the engine fills; all share the parameters and
one numbering of slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedLet, CheckedParam, CheckedSortKey, CheckedTemplate
from kdsl.check.model.typed import TypedExpr, Var

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class CheckedSection(Generic[S]):
    """A section that is a list of steps. `scope` maps the names that the engine fills to their slots."""

    scope: Mapping[str, Var]
    steps: tuple[S, ...]


@dataclass(frozen=True, slots=True)
class CheckedFields:
    """A block of fields in its `scope`."""

    scope: Mapping[str, Var]
    lets: tuple[CheckedLet, ...]
    values: Mapping[str, TypedExpr]


@dataclass(frozen=True, slots=True)
class CheckedInventory:
    """One card for each of `rows`, which is computed in the scope of `fields`."""

    rows: TypedExpr
    variable: Var
    fields: CheckedFields


@dataclass(frozen=True, slots=True)
class CheckedTest:
    """A condition, and the reason where it does not hold."""

    condition: TypedExpr
    reason: CheckedTemplate
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedGate:
    """An `applies when` of admission: a container that fails it is not checked further."""

    condition: TypedExpr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedChange:
    """A change of admission: see `forms.TARGETS`."""

    target: str
    key: TypedExpr | None
    value: TypedExpr
    where: TypedExpr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedTogether:
    """Choosing starts anew at a card where `by` has another value than at the card before."""

    by: TypedExpr
    reason: CheckedTemplate
    span: Span = field(compare=False, repr=False)


AdmitStep = CheckedLet | CheckedGate | CheckedTest | CheckedChange
FitStep = CheckedLet | CheckedTest | CheckedTogether


@dataclass(frozen=True, slots=True)
class CheckedChooser:
    """A named way to choose among cards that fit; the first whose `where` holds is taken.

    `where` is computed in the scope of `gates`, the fields in their own.
    """

    name: str
    where: TypedExpr | None
    scope: Mapping[str, Var]
    reason: CheckedTemplate
    fields: CheckedFields
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedValue:
    """The value that the chosen cards of a node add to the node's score."""

    scope: Mapping[str, Var]
    value: TypedExpr


@dataclass(frozen=True, slots=True)
class CheckedAnnotation:
    key: TypedExpr
    value: TypedExpr
    where: TypedExpr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedDevice:
    """A kind of accelerator, with the devices that it extends folded in.

    `kind`, `record` and the fields of `quota`, `lock` and `handshake` are constants. `resources` are the
    names of those parameters that name extended resources.
    """

    name: str
    qualified: str
    params: tuple[CheckedParam, ...]
    resources: tuple[str, ...]
    kind: TypedExpr
    record: TypedExpr
    inventory: CheckedInventory
    admit: CheckedSection[AdmitStep]
    request: CheckedFields
    quota: CheckedFields
    lock: CheckedFields
    handshake: CheckedFields
    charge: CheckedFields
    gates: CheckedSection[CheckedTest]
    fit: CheckedSection[FitStep]
    choosers: tuple[CheckedChooser, ...]
    order: CheckedSection[CheckedSortKey]
    value: CheckedValue | None
    annotations: CheckedSection[CheckedAnnotation]
    slots: int
    doc: tuple[str, ...]
    span: Span = field(compare=False, repr=False)
