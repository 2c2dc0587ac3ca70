"""Turns lark's tree of a `device` block into the syntax tree; `file_builder.py` has all other statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from lark import Token, v_args
from lark.tree import Meta

from kdsl.lang import device_tree, expression_tree, tree
from kdsl.lang.expression_builder import ExpressionBuilder

S = TypeVar("S", bound=tree.Statement)


@dataclass(frozen=True, slots=True)
class Block(Generic[S]):
    """The content of two braces: statements, and the comments after the last one."""

    statements: tuple[S, ...]
    dangling: tuple[tree.Comment, ...]


Fields = Block[device_tree.FieldStatement]


@v_args(inline=True, meta=True)
class DeviceBuilder(ExpressionBuilder):
    """Builds the statements that only devices have."""

    def device(
        self,
        meta: Meta,
        name: tree.Name,
        extends: tree.Name | None,
        block: Block[device_tree.DeviceStatement],
    ) -> tree.Device:
        span = self._span(meta)
        return tree.Device(block.statements, extends, name=name, dangling=block.dangling, span=span)

    def kind(self, meta: Meta, word: expression_tree.Expr) -> device_tree.DeviceKind:
        return device_tree.DeviceKind(word, span=self._span(meta))

    def record(self, meta: Meta, key: expression_tree.Expr) -> device_tree.Record:
        return device_tree.Record(key, span=self._span(meta))

    def resource(self, meta: Meta, name: tree.Name, value: expression_tree.Expr) -> device_tree.Resource:
        return device_tree.Resource(name, value, span=self._span(meta))

    def replace_param(
        self, meta: Meta, name: tree.Name, value: expression_tree.Expr
    ) -> device_tree.ReplaceParam:
        return device_tree.ReplaceParam(name, value, span=self._span(meta))

    def inventory(
        self, meta: Meta, name: tree.Name, _in: Token, rows: expression_tree.Expr, block: Fields
    ) -> device_tree.Inventory:
        span = self._span(meta)
        return device_tree.Inventory(name, rows, block.statements, dangling=block.dangling, span=span)

    def request(self, meta: Meta, block: Fields) -> device_tree.Request:
        return device_tree.Request(block.statements, dangling=block.dangling, span=self._span(meta))

    def quota(self, meta: Meta, block: Fields) -> device_tree.QuotaFields:
        return device_tree.QuotaFields(block.statements, dangling=block.dangling, span=self._span(meta))

    def lock(self, meta: Meta, block: Fields) -> device_tree.LockFields:
        return device_tree.LockFields(block.statements, dangling=block.dangling, span=self._span(meta))

    def handshake(self, meta: Meta, block: Fields) -> device_tree.HandshakeFields:
        return device_tree.HandshakeFields(block.statements, dangling=block.dangling, span=self._span(meta))

    def charge(self, meta: Meta, block: Fields) -> device_tree.Charge:
        return device_tree.Charge(block.statements, dangling=block.dangling, span=self._span(meta))

    def assign(self, meta: Meta, name: tree.Name, value: expression_tree.Expr) -> device_tree.Assign:
        return device_tree.Assign(name, value, span=self._span(meta))

    def admit(
        self,
        meta: Meta,
        block: Block[tree.AppliesWhen | tree.Let | tree.Require | device_tree.AdmissionChange],
    ) -> device_tree.Admit:
        return device_tree.Admit(block.statements, dangling=block.dangling, span=self._span(meta))

    def change(
        self,
        meta: Meta,
        target: tree.Name,
        key: expression_tree.Expr | None,
        value: expression_tree.Expr,
        where: expression_tree.Expr | None,
    ) -> device_tree.AdmissionChange:
        return device_tree.AdmissionChange(target, key, value, where, span=self._span(meta))

    def fit(
        self, meta: Meta, block: Block[tree.Let | tree.Require | device_tree.Together]
    ) -> device_tree.Fit:
        return device_tree.Fit(block.statements, dangling=block.dangling, span=self._span(meta))

    def together(self, meta: Meta, by: expression_tree.Expr, reason: tree.Template) -> device_tree.Together:
        return device_tree.Together(by, reason, span=self._span(meta))

    def choose(
        self,
        meta: Meta,
        name: tree.Name,
        where: expression_tree.Expr | None,
        reason: tree.Template | None,
        block: Fields | None,
    ) -> device_tree.Choose:
        body, dangling = (block.statements, block.dangling) if block else ((), ())
        span = self._span(meta)
        return device_tree.Choose(name, body, where, reason, dangling=dangling, span=span)

    def annotate(
        self,
        meta: Meta,
        key: expression_tree.Expr,
        value: expression_tree.Expr,
        where: expression_tree.Expr | None,
    ) -> device_tree.Annotate:
        return device_tree.Annotate(key, value, where, span=self._span(meta))
