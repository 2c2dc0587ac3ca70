"""Turns lark's tree of a file into the syntax tree.

Most statements have the parts of the text in their order: tables have their classes, by rule of the grammar.
Each other rule has a method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from lark import Token, v_args
from lark.tree import Meta

from kdsl.base.span import Source, Span
from kdsl.lang import device_tree, expression_tree, profile_tree, tree
from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode, RuleKind
from kdsl.lang.comments import Comments
from kdsl.lang.expression_builder import ExpressionBuilder
from kdsl.lang.literals import INT64_MAX, read_integer
from kdsl.lang.templates import ParseText, cut_template, read_parts

S = TypeVar("S", bound=tree.Statement)


@dataclass(frozen=True, slots=True)
class Block(Generic[S]):
    """The content of two braces: statements, and the comments after the last one."""

    statements: tuple[S, ...]
    dangling: tuple[tree.Comment, ...]


Make = Callable[..., expression_tree.Node]
PLAIN: Final[Mapping[str, Make]] = {
    "import_line": tree.Import,
    "fn_param": tree.FnParam,
    "applies_when": tree.AppliesWhen,
    "ignore_when": tree.IgnoreWhen,
    "let": tree.Let,
    "require": tree.Require,
    "narrow": tree.Narrow,
    "value": tree.Value,
    "admit_when": tree.AdmitWhen,
    "backoff": tree.Backoff,
    "eligible_when": tree.EligibleWhen,
    "victim_when": tree.VictimWhen,
    "candidates": tree.Candidates,
    "kind": device_tree.DeviceKind,
    "record": device_tree.Record,
    "resource": device_tree.Resource,
    "replace_param": device_tree.ReplaceParam,
    "assign": device_tree.Assign,
    "change": device_tree.AdmissionChange,
    "together": device_tree.Together,
    "annotate": device_tree.Annotate,
    "scheduler": profile_tree.SchedulerName,
    "sample": profile_tree.SampleSize,
    "use_queue": profile_tree.UseQueue,
    "use_preemption": profile_tree.UsePreemption,
    "disable_predicate": partial(profile_tree.Disable, RuleKind.PREDICATE),
    "disable_score": partial(profile_tree.Disable, RuleKind.SCORE),
    "disable_preemption": partial(profile_tree.Disable, RuleKind.PREEMPTION),
    "owns": profile_tree.Owns,
    "files": profile_tree.Files,
    "contact": profile_tree.Contact,
}
"""Statements of the parts of the text."""
LISTS: Final[Mapping[str, Make]] = {
    "order_by": tree.OrderBy,
    "choose_by": tree.ChooseBy,
    "predicates": profile_tree.PredicateList,
    "use_devices": profile_tree.UseDevices,
    "may": profile_tree.May,
}
"""Statements that are one list."""
WEIGHTED: Final[Mapping[str, Make]] = {
    "weighted_score": profile_tree.WeightedScore,
    "reweight": profile_tree.Reweight,
    "add_score": profile_tree.AddScore,
}
"""Statements of a name and a weight."""
BLOCKS: Final[Mapping[str, Make]] = {
    "inventory": device_tree.Inventory,
    "request": device_tree.Request,
    "quota": device_tree.QuotaFields,
    "lock": device_tree.LockFields,
    "handshake": device_tree.HandshakeFields,
    "charge": device_tree.Charge,
    "admit": device_tree.Admit,
    "fit": device_tree.Fit,
    "scores": profile_tree.ScoreList,
    "tighten": profile_tree.Tighten,
}
"""Statements that end with a block."""
DECLARED: Final[Mapping[str, Make]] = {
    "score": tree.Score,
    "queue": tree.Queue,
    "preemption": tree.Preemption,
    "team": tree.Team,
    "profile": tree.Profile,
    "device": tree.Device,
}
"""Declarations of a name, of some also the name of what they extend, and a block."""


@v_args(inline=True, meta=True)
class FileBuilder(ExpressionBuilder):
    """Builds a file. Collects diagnostics; a statement with an error is built all the same."""

    def __init__(self, source: Source, comments: Comments, parse_hole: ParseText) -> None:
        super().__init__(lambda start, end: Span(source, start, end))
        self._source = source
        self._comments = comments
        self._parse_hole = parse_hole

    def __default__(self, data: str, children: Sequence[Any], meta: Meta) -> expression_tree.Node:
        """Build a node that is in one of the tables. Words between the parts are none."""
        span = self._span(meta)
        if data in LISTS:
            return LISTS[data](tuple(children), span=span)
        if data in WEIGHTED:
            name, weight = children
            number = tree.Number(self._number(weight), span=self._span(weight))
            return WEIGHTED[data](name, number, span=span)
        parts = [each for each in children if not isinstance(each, Token)]
        if data in PLAIN:
            return PLAIN[data](*parts, span=span)
        *parts, block = parts
        if data in DECLARED:
            name, *base = parts
            extends = {"extends": base[0]} if base else {}
            return DECLARED[data](
                body=block.statements, name=name, dangling=block.dangling, span=span, **extends
            )
        return BLOCKS[data](*parts, block.statements, dangling=block.dangling, span=span)

    # ---- files and declarations ----------------------------------------------------------------------------

    def file(
        self, meta: Meta, version: Token, package: tree.Name | None, *rest: tree.Import | tree.Declaration
    ) -> tree.File:
        span = Span(self._source, 0, len(self._source.text))
        header_end = package.span.end if package else self._span(version).end
        line_end = self._source.text.find("\n", header_end)
        first = rest[0].span.start if rest else span.end
        leading = self._comments.take(0, self._span(version).start)
        header = self._comments.take(0, package.span.start if package else header_end)
        behind = self._comments.take(0, first if line_end < 0 else min(first, line_end))
        if not package:
            header, behind = [*header, *behind], []
        statements, dangling = self._comments.attach(rest, header_end, span.end)
        return tree.File(
            self._number(version),
            package,
            tuple(statement for statement in statements if isinstance(statement, tree.Import)),
            tuple(statement for statement in statements if not isinstance(statement, tree.Import)),
            leading=tuple(leading),
            # A name that continues on the next line may have comments inside.
            header=(*header, *behind[:-1]),
            trailing=behind[-1] if behind else None,
            dangling=dangling,
            span=span,
        )

    def package(self, meta: Meta, name: tree.Name) -> tree.Name:
        return name

    def fn(
        self,
        meta: Meta,
        dyn: Token | None,
        name: tree.Name,
        params: tuple[tree.FnParam, ...] | None,
        result: tree.TypeName,
        body: expression_tree.Expr,
    ) -> tree.Fn:
        return tree.Fn(params or (), result, body, dyn is not None, name=name, span=self._span(meta))

    def fn_params(self, meta: Meta, *params: tree.FnParam) -> tuple[tree.FnParam, ...]:
        return params

    def type(self, meta: Meta, name: Token, *args: tree.TypeName | None) -> tree.TypeName:
        return tree.TypeName(str(name), tuple(arg for arg in args if arg is not None), span=self._span(meta))

    def param(
        self,
        meta: Meta,
        final: Token | None,
        name: tree.Name,
        type_name: tree.TypeName | None,
        value: expression_tree.Expr,
    ) -> tree.Param:
        return tree.Param(name, type_name, value, final=final is not None, span=self._span(meta))

    def predicate(
        self, meta: Meta, mandatory: Token | None, name: tree.Name, block: Block[tree.RuleStatement]
    ) -> tree.Predicate:
        return tree.Predicate(
            block.statements,
            mandatory=mandatory is not None,
            name=name,
            dangling=block.dangling,
            span=self._span(meta),
        )

    # ---- pieces --------------------------------------------------------------------------------------------

    def block(self, meta: Meta, *statements: S) -> Block[S]:
        return Block(*self._comments.attach(statements, meta.start_pos, meta.end_pos))

    def name(self, meta: Meta, word: Token) -> tree.Name:
        return tree.Name(str(word), span=self._span(meta))

    def qualified(self, meta: Meta, *words: Token) -> tree.Name:
        return tree.Name(".".join(words), span=self._span(meta))

    def dotted(self, meta: Meta, name: tree.Name, word: Token) -> tree.Name:
        return tree.Name(f"{name.text}.{word}", span=self._span(meta))

    def code(self, meta: Meta, word: Token) -> RejectionCode:
        return RejectionCode(str(word))

    def reason(self, meta: Meta, token: Token) -> tree.Template:
        start = self._span(token).start
        cut = cut_template(str(token))
        self._report_escapes(token, cut.decoded.problems)
        parts, found = read_parts(
            cut.parts, lambda low, high: Span(self._source, start + low, start + high), self._parse_hole
        )
        self._diagnostics.extend(found)
        return tree.Template(parts, str(token), span=self._span(token))

    def _number(self, token: Token) -> int:
        number = read_integer(str(token))
        if number is None or number > INT64_MAX:
            self._report_range(self._span(token), str(token), "int", f"the largest is {INT64_MAX}")
        return number or 0

    # ---- statements of rules -------------------------------------------------------------------------------

    def for_each(
        self,
        meta: Meta,
        first: tree.Name,
        second: tree.Name | None,
        _in: Token,
        iterable: expression_tree.Expr,
        where: expression_tree.Expr | None,
        block: Block[tree.RuleStatement],
    ) -> tree.ForEach:
        names = (first,) if second is None else (first, second)
        span = self._span(meta)
        return tree.ForEach(names, iterable, where, block.statements, dangling=block.dangling, span=span)

    def report(self, meta: Meta, which: Token) -> tree.Report:
        return tree.Report(which.type == "ALL", span=self._span(meta))

    def on_error(self, meta: Meta, action: Token, reason: tree.Template | None = None) -> tree.OnError:
        return tree.OnError(ErrorAction(str(action)), reason, span=self._span(meta))

    def normalize(self, meta: Meta, how: Token | expression_tree.Expr) -> tree.Normalize:
        if isinstance(how, Token):
            return tree.Normalize(Normalization(str(how)), None, span=self._span(meta))
        return tree.Normalize(Normalization.BY, how, span=self._span(meta))

    def choose(
        self,
        meta: Meta,
        name: tree.Name,
        where: expression_tree.Expr | None,
        reason: tree.Template | None,
        block: Block[device_tree.FieldStatement] | None,
    ) -> device_tree.Choose:
        body, dangling = (block.statements, block.dangling) if block else ((), ())
        span = self._span(meta)
        return device_tree.Choose(name, body, where, reason, dangling=dangling, span=span)

    # ---- statements of queues, preemptions and devices -----------------------------------------------------

    def sort_key(self, meta: Meta, value: expression_tree.Expr, direction: Token | None) -> tree.SortKey:
        descending = direction is not None and direction.type == "DESC"
        return tree.SortKey(value, descending, span=self._span(meta))

    # ---- statements of profiles and teams ------------------------------------------------------------------

    def check(self, meta: Meta, which: Token) -> profile_tree.CheckPredicates:
        return profile_tree.CheckPredicates(which.type == "ALL", span=self._span(meta))

    def add_predicate(
        self, meta: Meta, name: tree.Name, placing: Token | None, anchor: tree.Name | None
    ) -> profile_tree.AddPredicate:
        where = None if placing is None else profile_tree.Placing(str(placing))
        return profile_tree.AddPredicate(name, where, anchor, span=self._span(meta))

    def set_param(self, meta: Meta, *parts: Token | expression_tree.Expr) -> profile_tree.SetParam:
        *words, value = parts
        names = [word for word in words if isinstance(word, Token)]
        assert not isinstance(value, Token)
        rule = tree.Name(".".join(names[:-1]), span=self._span(names[0]).to(self._span(names[-2])))
        param = tree.Name(str(names[-1]), span=self._span(names[-1]))
        return profile_tree.SetParam(rule, param, value, span=self._span(meta))

    def priority(self, meta: Meta, value: Token) -> profile_tree.Priority:
        return profile_tree.Priority(self._number(value), span=self._span(meta))

    def grant(self, meta: Meta, *words: Token) -> profile_tree.Grant:
        right = " ".join(str(word) for word in words if word.type.startswith("_") and word.type != "_TO")
        numbers = [self._number(word) for word in words if word.type == "INT"]
        low, high = numbers or (None, None)
        return profile_tree.Grant(right, low, high, span=self._span(meta))
