"""The statements of `device` blocks in the syntax tree; see `tree.py` for the fields that all nodes share."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.lang.expression_tree import Expr
from kdsl.lang.tree import AppliesWhen, Let, Name, OrderBy, Param, Require, Statement, Template, Value


@dataclass(frozen=True, slots=True)
class DeviceKind(Statement):
    """`kind expr`: the word that names cards of this kind in requests and records."""

    word: Expr


@dataclass(frozen=True, slots=True)
class Record(Statement):
    """`record expr`: the annotation of pods that records their cards."""

    key: Expr


@dataclass(frozen=True, slots=True)
class Resource(Statement):
    """`resource name = "resource/name"`: a parameter whose value is the name of an extended resource."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class ReplaceParam(Statement):
    """`set name = value` in a device that extends another: a new value for a parameter of it."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """`set field = value`."""

    name: Name
    value: Expr


FieldStatement = Let | Assign


@dataclass(frozen=True, slots=True)
class Inventory(Statement):
    """`inventory for row in rows { set field = value … }`: one card for each row."""

    name: Name
    rows: Expr
    body: tuple[FieldStatement, ...]


@dataclass(frozen=True, slots=True)
class AdmissionChange(Statement):
    """`set target[key] = value [where condition]`: a field that admission writes into a pod."""

    target: Name
    key: Expr | None
    value: Expr
    where: Expr | None


@dataclass(frozen=True, slots=True)
class Admit(Statement):
    """`admit { … }`: the rejections and changes of admission, container by container."""

    body: tuple[AppliesWhen | Let | Require | AdmissionChange, ...]


@dataclass(frozen=True, slots=True)
class Request(Statement):
    """`request { set field = value … }`: the request of a container."""

    body: tuple[FieldStatement, ...]


@dataclass(frozen=True, slots=True)
class QuotaFields(Statement):
    """`quota { set field = value … }`: the resources that a ResourceQuota may limit."""

    body: tuple[FieldStatement, ...]


@dataclass(frozen=True, slots=True)
class LockFields(Statement):
    """`lock { set field = value … }`: the lock that keeps a node for one pod while its device plugin serves
    it.
    """

    body: tuple[FieldStatement, ...]


@dataclass(frozen=True, slots=True)
class HandshakeFields(Statement):
    """`handshake { set field = value … }`: the protocol that finds out whether a node's device plugin is
    alive.
    """

    body: tuple[FieldStatement, ...]


@dataclass(frozen=True, slots=True)
class Charge(Statement):
    """`charge { set field = value … }`: the part of a card that a request gets."""

    body: tuple[FieldStatement, ...]


@dataclass(frozen=True, slots=True)
class Together(Statement):
    """`together by expr else "reason"`: choosing starts again where the value changes from card to card."""

    by: Expr
    reason: Template


@dataclass(frozen=True, slots=True)
class Fit(Statement):
    """`fit { … }`: the conditions on a card, in order."""

    body: tuple[Let | Require | Together, ...]


@dataclass(frozen=True, slots=True)
class Choose(Statement):
    """`choose name [where condition] [else "reason"] [{ set field = value … }]`.

    `reason` applies where enough cards fit one by one, but no choice of them does.
    """

    name: Name
    body: tuple[FieldStatement, ...]
    where: Expr | None
    reason: Template | None


@dataclass(frozen=True, slots=True)
class Annotate(Statement):
    """`annotate key: value [where condition]`: an annotation of a pod that gets cards."""

    key: Expr
    value: Expr
    where: Expr | None


DeviceStatement = (
    DeviceKind
    | Record
    | Resource
    | Param
    | ReplaceParam
    | Inventory
    | Admit
    | Request
    | QuotaFields
    | LockFields
    | HandshakeFields
    | Charge
    | Require
    | Fit
    | Choose
    | OrderBy
    | Value
    | Annotate
)
