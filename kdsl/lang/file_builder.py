"""Turns lark's tree of a file into the syntax tree. One method per rule of the grammar."""

from __future__ import annotations

from typing import TypeVar

from lark import Token, v_args
from lark.tree import Meta

from kdsl.base.span import Source, Span
from kdsl.lang import expression_tree, profile_tree, tree
from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode, RuleKind
from kdsl.lang.comments import Comments
from kdsl.lang.device_builder import Block, DeviceBuilder
from kdsl.lang.literals import INT64_MAX, read_integer
from kdsl.lang.templates import ParseText, cut_template, read_parts

S = TypeVar("S", bound=tree.Statement)


@v_args(inline=True, meta=True)
class FileBuilder(DeviceBuilder):
    """Builds a file. Collects diagnostics; a statement with an error is built all the same."""

    def __init__(self, source: Source, comments: Comments, parse_hole: ParseText) -> None:
        super().__init__(lambda start, end: Span(source, start, end))
        self._source = source
        self._comments = comments
        self._parse_hole = parse_hole

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

    def import_line(self, meta: Meta, package: tree.Name, alias: tree.Name | None) -> tree.Import:
        return tree.Import(package, alias, span=self._span(meta))

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

    def fn_param(self, meta: Meta, name: tree.Name, type_name: tree.TypeName) -> tree.FnParam:
        return tree.FnParam(name, type_name, span=self._span(meta))

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

    def score(self, meta: Meta, name: tree.Name, block: Block[tree.ScoreStatement]) -> tree.Score:
        return tree.Score(block.statements, name=name, dangling=block.dangling, span=self._span(meta))

    def queue(self, meta: Meta, name: tree.Name, block: Block[tree.QueueStatement]) -> tree.Queue:
        return tree.Queue(block.statements, name=name, dangling=block.dangling, span=self._span(meta))

    def preemption(
        self, meta: Meta, name: tree.Name, block: Block[tree.PreemptionStatement]
    ) -> tree.Preemption:
        return tree.Preemption(block.statements, name=name, dangling=block.dangling, span=self._span(meta))

    def profile(
        self,
        meta: Meta,
        name: tree.Name,
        extends: tree.Name | None,
        block: Block[profile_tree.ProfileStatement],
    ) -> tree.Profile:
        span = self._span(meta)
        return tree.Profile(extends, block.statements, name=name, dangling=block.dangling, span=span)

    def team(self, meta: Meta, name: tree.Name, block: Block[profile_tree.TeamStatement]) -> tree.Team:
        return tree.Team(block.statements, name=name, dangling=block.dangling, span=self._span(meta))

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

    def applies_when(self, meta: Meta, condition: expression_tree.Expr) -> tree.AppliesWhen:
        return tree.AppliesWhen(condition, span=self._span(meta))

    def ignore_when(self, meta: Meta, condition: expression_tree.Expr) -> tree.IgnoreWhen:
        return tree.IgnoreWhen(condition, span=self._span(meta))

    def let(self, meta: Meta, name: tree.Name, value: expression_tree.Expr) -> tree.Let:
        return tree.Let(name, value, span=self._span(meta))

    def require(
        self,
        meta: Meta,
        condition: expression_tree.Expr,
        code: RejectionCode | None,
        reason: tree.Template,
    ) -> tree.Require:
        return tree.Require(condition, code, reason, span=self._span(meta))

    def narrow(
        self, meta: Meta, names: expression_tree.Expr, code: RejectionCode | None, reason: tree.Template
    ) -> tree.Narrow:
        return tree.Narrow(names, code, reason, span=self._span(meta))

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

    def value(self, meta: Meta, value: expression_tree.Expr) -> tree.Value:
        return tree.Value(value, span=self._span(meta))

    def normalize(self, meta: Meta, how: Token | expression_tree.Expr) -> tree.Normalize:
        if isinstance(how, Token):
            return tree.Normalize(Normalization(str(how)), None, span=self._span(meta))
        return tree.Normalize(Normalization.BY, how, span=self._span(meta))

    # ---- statements of queues, preemptions and devices -----------------------------------------------------

    def admit_when(
        self, meta: Meta, condition: expression_tree.Expr, reason: tree.Template
    ) -> tree.AdmitWhen:
        return tree.AdmitWhen(condition, reason, span=self._span(meta))

    def order_by(self, meta: Meta, *keys: tree.SortKey) -> tree.OrderBy:
        return tree.OrderBy(keys, span=self._span(meta))

    def sort_key(self, meta: Meta, value: expression_tree.Expr, direction: Token | None) -> tree.SortKey:
        descending = direction is not None and direction.type == "DESC"
        return tree.SortKey(value, descending, span=self._span(meta))

    def backoff(
        self, meta: Meta, initial: expression_tree.Expr, maximum: expression_tree.Expr
    ) -> tree.Backoff:
        return tree.Backoff(initial, maximum, span=self._span(meta))

    def eligible_when(
        self, meta: Meta, condition: expression_tree.Expr, reason: tree.Template
    ) -> tree.EligibleWhen:
        return tree.EligibleWhen(condition, reason, span=self._span(meta))

    def victim_when(self, meta: Meta, condition: expression_tree.Expr) -> tree.VictimWhen:
        return tree.VictimWhen(condition, span=self._span(meta))

    def candidates(self, meta: Meta, count: expression_tree.Expr) -> tree.Candidates:
        return tree.Candidates(count, span=self._span(meta))

    def choose_by(self, meta: Meta, *keys: tree.SortKey) -> tree.ChooseBy:
        return tree.ChooseBy(keys, span=self._span(meta))

    # ---- statements of profiles and teams ------------------------------------------------------------------

    def scheduler(self, meta: Meta, name: expression_tree.Literal) -> profile_tree.SchedulerName:
        return profile_tree.SchedulerName(name, span=self._span(meta))

    def check(self, meta: Meta, which: Token) -> profile_tree.CheckPredicates:
        return profile_tree.CheckPredicates(which.type == "ALL", span=self._span(meta))

    def sample(self, meta: Meta, count: expression_tree.Expr) -> profile_tree.SampleSize:
        return profile_tree.SampleSize(count, span=self._span(meta))

    def predicates(self, meta: Meta, *names: tree.Name) -> profile_tree.PredicateList:
        return profile_tree.PredicateList(names, span=self._span(meta))

    def scores(self, meta: Meta, block: Block[profile_tree.WeightedScore]) -> profile_tree.ScoreList:
        return profile_tree.ScoreList(block.statements, dangling=block.dangling, span=self._span(meta))

    def weighted_score(self, meta: Meta, name: tree.Name, weight: Token) -> profile_tree.WeightedScore:
        return profile_tree.WeightedScore(name, self._weight(weight), span=self._span(meta))

    def use_queue(self, meta: Meta, name: tree.Name) -> profile_tree.UseQueue:
        return profile_tree.UseQueue(name, span=self._span(meta))

    def use_preemption(self, meta: Meta, name: tree.Name) -> profile_tree.UsePreemption:
        return profile_tree.UsePreemption(name, span=self._span(meta))

    def use_devices(self, meta: Meta, *names: tree.Name) -> profile_tree.UseDevices:
        return profile_tree.UseDevices(names, span=self._span(meta))

    def tighten(self, meta: Meta, name: tree.Name, block: Block[tree.RuleStatement]) -> profile_tree.Tighten:
        return profile_tree.Tighten(name, block.statements, dangling=block.dangling, span=self._span(meta))

    def reweight(self, meta: Meta, name: tree.Name, weight: Token) -> profile_tree.Reweight:
        return profile_tree.Reweight(name, self._weight(weight), span=self._span(meta))

    def disable_predicate(self, meta: Meta, name: tree.Name) -> profile_tree.Disable:
        return profile_tree.Disable(RuleKind.PREDICATE, name, span=self._span(meta))

    def disable_score(self, meta: Meta, name: tree.Name) -> profile_tree.Disable:
        return profile_tree.Disable(RuleKind.SCORE, name, span=self._span(meta))

    def disable_preemption(self, meta: Meta, name: tree.Name) -> profile_tree.Disable:
        return profile_tree.Disable(RuleKind.PREEMPTION, name, span=self._span(meta))

    def add_predicate(
        self, meta: Meta, name: tree.Name, placing: Token | None, anchor: tree.Name | None
    ) -> profile_tree.AddPredicate:
        where = None if placing is None else profile_tree.Placing(str(placing))
        return profile_tree.AddPredicate(name, where, anchor, span=self._span(meta))

    def add_score(self, meta: Meta, name: tree.Name, weight: Token) -> profile_tree.AddScore:
        return profile_tree.AddScore(name, self._weight(weight), span=self._span(meta))

    def _weight(self, token: Token) -> tree.Number:
        return tree.Number(self._number(token), span=self._span(token))

    def set_param(self, meta: Meta, *parts: Token | expression_tree.Expr) -> profile_tree.SetParam:
        *words, value = parts
        names = [word for word in words if isinstance(word, Token)]
        assert not isinstance(value, Token)
        rule = tree.Name(".".join(names[:-1]), span=self._span(names[0]).to(self._span(names[-2])))
        param = tree.Name(str(names[-1]), span=self._span(names[-1]))
        return profile_tree.SetParam(rule, param, value, span=self._span(meta))

    def owns(self, meta: Meta, condition: expression_tree.Expr) -> profile_tree.Owns:
        return profile_tree.Owns(condition, span=self._span(meta))

    def files(self, meta: Meta, pattern: expression_tree.Literal) -> profile_tree.Files:
        return profile_tree.Files(pattern, span=self._span(meta))

    def contact(self, meta: Meta, address: expression_tree.Literal) -> profile_tree.Contact:
        return profile_tree.Contact(address, span=self._span(meta))

    def priority(self, meta: Meta, value: Token) -> profile_tree.Priority:
        return profile_tree.Priority(self._number(value), span=self._span(meta))

    def may(self, meta: Meta, *grants: profile_tree.Grant) -> profile_tree.May:
        return profile_tree.May(grants, span=self._span(meta))

    def grant(self, meta: Meta, *words: Token) -> profile_tree.Grant:
        right = " ".join(str(word) for word in words if word.type.startswith("_") and word.type != "_TO")
        numbers = [self._number(word) for word in words if word.type == "INT"]
        low, high = numbers or (None, None)
        return profile_tree.Grant(right, low, high, span=self._span(meta))
