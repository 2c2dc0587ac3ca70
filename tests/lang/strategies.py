"""Random syntax trees, as the parser could have built them, but without spans and spellings."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st
from kdsl.base.span import Source, Span
from kdsl.lang import device_tree, expression_tree, profile_tree, tree
from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode, RuleKind
from kdsl.lang.rights import RIGHTS
from kdsl.lang.slips import RESERVED

SPAN = Span(Source("<generated>", ""), 0, 0)
T = TypeVar("T")

_words = st.one_of(
    st.sampled_from(["a", "pod", "order", "value", "require", "queue", "kdsl", "_x1", "b", "r", "predicate"]),
    st.from_regex(r"[a-z_][a-zA-Z0-9_]{0,6}", fullmatch=True),
).filter(lambda word: word not in RESERVED)
_fields = st.one_of(_words, st.sampled_from(["for", "package", "else", "namespace"]))
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def _literal(
    kind: expression_tree.LiteralKind, values: st.SearchStrategy[T]
) -> st.SearchStrategy[expression_tree.Literal]:
    return values.map(lambda value: expression_tree.Literal(kind, value, "", span=SPAN))  # type: ignore[arg-type]  # any value


strings = _literal(expression_tree.LiteralKind.STRING, _texts)
literals = st.one_of(
    _literal(expression_tree.LiteralKind.NULL, st.none()),
    _literal(expression_tree.LiteralKind.BOOL, st.booleans()),
    _literal(expression_tree.LiteralKind.INT, st.one_of(st.integers(0, 2**63 - 1), st.just(-(2**63)))),
    _literal(expression_tree.LiteralKind.UINT, st.integers(0, 2**64 - 1)),
    _literal(
        expression_tree.LiteralKind.DOUBLE, st.floats(0, allow_nan=False, allow_infinity=False).map(abs)
    ),
    _literal(expression_tree.LiteralKind.BYTES, st.binary(max_size=6)),
    strings,
)


def _tuples(items: st.SearchStrategy[T], least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def _unary(op: str, operand: expression_tree.Expr) -> expression_tree.Expr:
    """Negate as the parser does: the smallest int is one literal, never a minus before its number."""
    return expression_tree.Unary(op, operand, span=SPAN)


def _compound(inner: st.SearchStrategy[expression_tree.Expr]) -> st.SearchStrategy[expression_tree.Expr]:
    flags = st.booleans()
    span = st.just(SPAN)
    item = st.builds(expression_tree.ListItem, inner, flags, span=span)
    entry = st.builds(expression_tree.MapEntry, inner, inner, flags, span=span)
    escaped = st.from_regex(r"[A-Za-z0-9_./ -]{1,6}", fullmatch=True)
    operators = st.sampled_from(["||", "&&", "<", "<=", ">", ">=", "==", "!=", "in", "+", "-", "*", "/", "%"])
    return st.one_of(
        st.builds(expression_tree.Select, inner, _fields, flags, span=span),
        st.builds(expression_tree.Select, inner, escaped, flags, st.just(True), span=span),
        st.builds(expression_tree.Index, inner, inner, flags, span=span),
        st.builds(expression_tree.Call, _fields, inner, _tuples(inner), span=span),
        st.builds(expression_tree.Call, _words, st.none(), _tuples(inner), flags, span=span),
        st.builds(expression_tree.ListExpr, _tuples(item), span=span),
        st.builds(expression_tree.MapExpr, _tuples(entry), span=span),
        st.builds(_unary, st.sampled_from(["!", "-"]), inner),
        st.builds(expression_tree.Binary, operators, inner, inner, span=span),
        st.builds(expression_tree.Conditional, inner, inner, inner, span=span),
    )


idents = st.builds(expression_tree.Ident, _words, st.booleans(), span=st.just(SPAN))
expressions: st.SearchStrategy[expression_tree.Expr] = st.recursive(
    st.one_of(literals, idents), _compound, max_leaves=12
)

names = st.builds(tree.Name, _words, span=st.just(SPAN))
qualified = st.builds(tree.Name, _tuples(_words, 1).map(".".join), span=st.just(SPAN))
types = st.recursive(
    st.builds(tree.TypeName, _words, span=st.just(SPAN)),
    lambda inner: st.builds(tree.TypeName, _words, _tuples(inner, 1), span=st.just(SPAN)),
    max_leaves=4,
)


def _merge(parts: list[str | expression_tree.Expr]) -> tuple[str | expression_tree.Expr, ...]:
    """Join neighbouring text, as a template has it; no part at all is the empty text."""
    merged: list[str | expression_tree.Expr] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    return tuple(merged) or ("",)


templates = st.builds(
    tree.Template,
    st.lists(st.one_of(_texts, expressions), max_size=3).map(_merge),
    st.just(""),
    span=st.just(SPAN),
)
codes = st.one_of(st.none(), st.sampled_from(RejectionCode))


def _statements(*kinds: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return _tuples(st.one_of(*kinds), most=4)


def _node(
    node: type[T], *args: st.SearchStrategy[object], **named: st.SearchStrategy[object]
) -> st.SearchStrategy[T]:
    return st.builds(node, *args, **named, span=st.just(SPAN))


maybe_type = st.one_of(st.none(), types)
sort_keys = _node(tree.SortKey, expressions, st.booleans())
params = _node(tree.Param, names, maybe_type, expressions, st.booleans())
lets = _node(tree.Let, names, expressions)
applies = _node(tree.AppliesWhen, expressions)
on_error = st.one_of(
    _node(tree.OnError, st.just(ErrorAction.REJECT), templates),
    _node(tree.OnError, st.sampled_from([ErrorAction.ABORT, ErrorAction.ZERO]), st.none()),
)
values = _node(tree.Value, expressions)
normalizations = st.one_of(
    _node(tree.Normalize, st.sampled_from([kind for kind in Normalization if kind != "by"]), st.none()),
    _node(tree.Normalize, st.just(Normalization.BY), expressions),
)
simple_rules = st.one_of(
    applies,
    lets,
    params,
    on_error,
    _node(tree.Require, expressions, codes, templates),
    _node(tree.Narrow, expressions, codes, templates),
    _node(tree.Report, st.booleans()),
)
rule_statements: st.SearchStrategy[tree.Statement] = st.recursive(
    simple_rules,
    lambda inner: _node(
        tree.ForEach, _tuples(names, 1, 2), expressions, st.one_of(st.none(), expressions), _tuples(inner)
    ),
    max_leaves=4,
)
rule_body = _tuples(rule_statements, most=4)
score_body = _statements(applies, lets, params, values, normalizations, on_error)
order_by = _node(tree.OrderBy, _tuples(sort_keys, 1))
queue_body = _statements(
    _node(tree.AdmitWhen, expressions, templates),
    order_by,
    _node(tree.Backoff, expressions, expressions),
    lets,
    params,
)
preemption_body = _statements(
    _node(tree.EligibleWhen, expressions, templates),
    _node(tree.VictimWhen, expressions),
    order_by,
    _node(tree.Candidates, expressions),
    _node(tree.ChooseBy, _tuples(sort_keys, 1)),
    lets,
    params,
)
requires = _node(tree.Require, expressions, codes, templates)
perhaps = st.one_of(st.none(), expressions)
field_body = _statements(lets, _node(device_tree.Assign, names, expressions))
device_body = _statements(
    _node(device_tree.DeviceKind, expressions),
    _node(device_tree.Record, expressions),
    _node(device_tree.Resource, names, expressions),
    _node(device_tree.ReplaceParam, names, expressions),
    _node(device_tree.Inventory, names, expressions, field_body),
    _node(
        device_tree.Admit,
        _statements(
            applies, lets, requires, _node(device_tree.AdmissionChange, names, perhaps, expressions, perhaps)
        ),
    ),
    _node(device_tree.Request, field_body),
    _node(device_tree.QuotaFields, field_body),
    _node(device_tree.Charge, field_body),
    _node(
        device_tree.Fit,
        _statements(lets, requires, _node(device_tree.Together, expressions, templates)),
    ),
    _node(device_tree.Choose, names, field_body, perhaps, st.one_of(st.none(), templates)),
    order_by,
    _node(device_tree.Annotate, expressions, expressions, perhaps),
    requires,
    values,
    params,
)
weights = st.integers(0, 1000)
numbers = _node(tree.Number, weights)
profile_body = _statements(
    _node(profile_tree.SchedulerName, strings),
    _node(profile_tree.CheckPredicates, st.booleans()),
    _node(profile_tree.SampleSize, expressions),
    _node(profile_tree.PredicateList, _tuples(qualified)),
    _node(profile_tree.ScoreList, _tuples(_node(profile_tree.WeightedScore, qualified, numbers))),
    _node(profile_tree.UseQueue, qualified),
    _node(profile_tree.UsePreemption, qualified),
    _node(profile_tree.UseDevices, _tuples(qualified, 1)),
    _node(profile_tree.Tighten, qualified, rule_body),
    _node(profile_tree.Reweight, qualified, numbers),
    _node(profile_tree.Disable, st.sampled_from(RuleKind), qualified),
    _node(profile_tree.AddPredicate, qualified, st.none(), st.none()),
    _node(profile_tree.AddPredicate, qualified, st.sampled_from(profile_tree.Placing), qualified),
    _node(profile_tree.AddScore, qualified, numbers),
    _node(profile_tree.SetParam, qualified, names, expressions),
)
grants = st.one_of(
    _node(profile_tree.Grant, st.sampled_from(RIGHTS)),
    _node(profile_tree.Grant, st.just("reweight"), weights, weights),
)
team_body = _statements(
    _node(profile_tree.Owns, expressions),
    _node(profile_tree.Files, strings),
    _node(profile_tree.Contact, strings),
    _node(profile_tree.Priority, weights),
    _node(profile_tree.May, _tuples(grants, 1)),
)
docs = _tuples(st.from_regex(r"([a-z]( ?[a-z.]){0,5})?", fullmatch=True), most=2)
declarations = st.one_of(
    params,
    _node(
        tree.Fn,
        _tuples(_node(tree.FnParam, names, types)),
        types,
        expressions,
        st.booleans(),
        name=names,
        doc=docs,
    ),
    _node(tree.Predicate, rule_body, st.booleans(), name=names, doc=docs),
    _node(tree.Score, score_body, name=names, doc=docs),
    _node(tree.Queue, queue_body, name=names, doc=docs),
    _node(tree.Preemption, preemption_body, name=names, doc=docs),
    _node(tree.Device, device_body, st.one_of(st.none(), qualified), name=names, doc=docs),
    _node(tree.Profile, st.one_of(st.none(), qualified), profile_body, name=names, doc=docs),
    _node(tree.Team, team_body, name=names, doc=docs),
)
files = _node(
    tree.File,
    st.just(1),
    st.one_of(st.none(), qualified),
    _tuples(_node(tree.Import, qualified, st.one_of(st.none(), names))),
    _tuples(declarations),
)
