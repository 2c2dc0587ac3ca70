"""Statements to documents in the canonical style, without comments and the content of braces.

`printer.py` adds those. The syntax of each line is in the docstring of its class in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.lang import device_tree, expression_tree, profile_tree, tree
from kdsl.lang.choices import RejectionCode
from kdsl.lang.expression_printer import expression_doc, format_expr, spelling
from kdsl.lang.layout import Align, Concat, Doc, Fill, Group, HardLine, Line, Nest, Text, concat
from kdsl.lang.templates import spell_template


def statement_doc(statement: tree.Statement) -> Doc:
    """Return the document of a statement; for a statement with a block only the head, up to its opening
    brace.
    """
    match statement:
        case tree.Import(package, alias):
            return concat(f"import {package.text}", f" as {alias.text}" if alias else "")
        case tree.Param(name, type_name, value, final):
            typed = f": {_type(type_name)}" if type_name else ""
            return _line(f"{'final ' if final else ''}param {name.text}{typed} =", value)
        case tree.Fn(params, result, body, dyn, name=name):
            listed = Fill(tuple(Text(f"{param.name.text}: {_type(param.type)}") for param in params))
            head = concat(f"{'dyn ' if dyn else ''}fn {name.text}(", Align(listed), f"): {_type(result)} =")
            return Group(concat(head, Nest(2, concat(Line(), expression_doc(body, hanging=True)))))
        case tree.Predicate(mandatory=mandatory, name=name):
            return Text(f"{'mandatory ' if mandatory else ''}predicate {name.text}")
        case tree.Score(name=name):
            return Text(f"score {name.text}")
        case tree.Queue(name=name):
            return Text(f"queue {name.text}")
        case tree.Preemption(name=name):
            return Text(f"preemption {name.text}")
        case tree.Device(name=name, extends=extends):
            return Text(f"device {name.text}" + (f" extends {extends.text}" if extends else ""))
        case tree.Profile(extends, name=name):
            return Text(f"profile {name.text}" + (f" extends {extends.text}" if extends else ""))
        case tree.Team(name=name):
            return Text(f"team {name.text}")
    return _rule_line(statement)


def _rule_line(statement: tree.Statement) -> Doc:
    """Return the document of a statement of predicates, scores, queues, preemptions and devices."""
    match statement:
        case tree.AppliesWhen(condition):
            return _line("applies when", condition)
        case tree.IgnoreWhen(condition):
            return _line("ignore when", condition)
        case tree.Let(name, value):
            return _line(f"let {name.text} =", value)
        case tree.Require(condition, code, reason):
            return _otherwise("require", condition, code, reason)
        case tree.Narrow(names, code, reason):
            return _otherwise("narrow to", names, code, reason)
        case tree.AdmitWhen(condition, reason):
            return _otherwise("admit when", condition, None, reason)
        case tree.EligibleWhen(condition, reason):
            return _otherwise("eligible when", condition, None, reason)
        case tree.VictimWhen(condition):
            return _line("victim when", condition)
        case tree.Candidates(count):
            return _line("candidates", count)
        case tree.ForEach(names, iterable, where):
            head = concat(f"for {', '.join(name.text for name in names)} in ", expression_doc(iterable))
            if where is None:
                return head
            return Group(concat(head, Nest(4, concat(Line(), "where ", expression_doc(where)))))
        case tree.Report(everything):
            return Text(f"report {'all' if everything else 'first'}")
        case tree.OnError(action, reason):
            return Text(f"on error {action}{f' {_reason(reason)}' if reason else ''}")
        case tree.Value(value):
            return _line("value", value)
        case tree.Normalize(kind, by):
            return Text(f"normalize {kind}") if by is None else _line("normalize by", by)
        case tree.OrderBy(keys):
            return _keys("order by", keys)
        case tree.ChooseBy(keys):
            return _keys("choose by", keys)
        case tree.Backoff(initial, maximum):
            return concat("backoff ", expression_doc(initial), " to ", expression_doc(maximum))
    return _device_line(statement)


def _device_line(statement: tree.Statement) -> Doc:
    """Return the document of a statement that only devices have."""
    match statement:
        case device_tree.DeviceKind(word):
            return _line("kind", word)
        case device_tree.Record(key):
            return _line("record", key)
        case device_tree.Resource(name, value):
            return _line(f"resource {name.text} =", value)
        case device_tree.ReplaceParam(name, value) | device_tree.Assign(name, value):
            return _line(f"set {name.text} =", value)
        case device_tree.Inventory(name, rows):
            return concat(f"inventory for {name.text} in ", expression_doc(rows))
        case device_tree.Admit():
            return Text("admit")
        case device_tree.Request():
            return Text("request")
        case device_tree.QuotaFields():
            return Text("quota")
        case device_tree.LockFields():
            return Text("lock")
        case device_tree.HandshakeFields():
            return Text("handshake")
        case device_tree.Charge():
            return Text("charge")
        case device_tree.Fit():
            return Text("fit")
        case device_tree.AdmissionChange(target, key, value, where):
            item = target.text if key is None else f"{target.text}[{format_expr(key)}]"
            return _where(_line(f"set {item} =", value), where)
        case device_tree.Together(by, reason):
            return _otherwise("together by", by, None, reason)
        case device_tree.Choose(name, _, where, reason):
            otherwise = f" else {_reason(reason)}" if reason else ""
            return concat(_where(Text(f"choose {name.text}"), where), otherwise)
        case device_tree.Annotate(key, value, where):
            return _where(_line(f"annotate {format_expr(key)}:", value), where)
    return _profile_line(statement)


def _where(head: Doc, condition: expression_tree.Expr | None) -> Doc:
    if condition is None:
        return head
    return Group(concat(head, Nest(4, concat(Line(), "where ", Nest(2, expression_doc(condition))))))


def _profile_line(statement: tree.Statement) -> Doc:
    """Return the document of a statement of profiles and teams."""
    match statement:
        case profile_tree.SchedulerName(name):
            return Text(f"scheduler {spelling(name)}")
        case profile_tree.CheckPredicates(everything):
            return Text("check all" if everything else "check first")
        case profile_tree.SampleSize(count):
            return _line("sample", count)
        case profile_tree.PredicateList(names):
            if not names:
                return Text("predicates {}")
            listed = Fill(tuple(Text(name.text) for name in names), comma="")
            return concat("predicates {", Nest(2, concat(HardLine(), listed)), HardLine(), "}")
        case profile_tree.ScoreList():
            return Text("scores")
        case profile_tree.WeightedScore(name, weight):
            return Text(f"{name.text} weight {weight.value}")
        case profile_tree.UseQueue(name):
            return Text(f"queue {name.text}")
        case profile_tree.UsePreemption(name):
            return Text(f"preemption {name.text}")
        case profile_tree.UseDevices(names):
            return concat("devices ", Align(Fill(tuple(Text(name.text) for name in names))))
        case profile_tree.Tighten(name):
            return Text(f"tighten {name.text}")
        case profile_tree.Reweight(name, weight):
            return Text(f"reweight {name.text} {weight.value}")
        case profile_tree.Disable(kind, name):
            return Text(f"disable {kind} {name.text}")
        case profile_tree.AddPredicate(name, placing, anchor):
            where = f" {placing} {anchor.text}" if placing and anchor else ""
            return Text(f"add predicate {name.text}{where}")
        case profile_tree.AddScore(name, weight):
            return Text(f"add score {name.text} weight {weight.value}")
        case profile_tree.SetParam(rule, param, value):
            return _line(f"set {rule.text}.{param.text} =", value)
        case profile_tree.Owns(condition):
            return _line("owns", condition)
        case profile_tree.Files(pattern):
            return Text(f"files {spelling(pattern)}")
        case profile_tree.Contact(address):
            return Text(f"contact {spelling(address)}")
        case profile_tree.Priority(value):
            return Text(f"priority {value}")
        case profile_tree.May(grants):
            return concat("may ", Align(Fill(tuple(_grant(grant) for grant in grants))))
    # INVARIANT: not reached. A test prints every class of statement in the tree.
    raise TypeError(f"no syntax for {type(statement).__name__}")


def _line(head: str, expr: expression_tree.Expr) -> Doc:
    return concat(f"{head} ", Nest(2, expression_doc(expr)))


def _otherwise(
    head: str, condition: expression_tree.Expr, code: RejectionCode | None, reason: tree.Template
) -> Doc:
    """Return the document of a condition, and below it the `else` for its failure."""
    tail = concat(HardLine(), f"else {f'{code} ' if code else ''}{_reason(reason)}")
    return concat(_line(head, condition), Nest(2, tail))


def _keys(head: str, keys: Iterable[tree.SortKey]) -> Doc:
    parts: list[Doc] = []
    for key in keys:
        if parts:
            parts.append(concat(",", Line()))
        parts.append(concat(expression_doc(key.value), " desc" if key.descending else ""))
    return concat(f"{head} ", Align(Group(Concat(tuple(parts)))))


def _grant(grant: profile_tree.Grant) -> Doc:
    bounds = "" if grant.low is None else f" {grant.low} to {grant.high}"
    return Text(f"{grant.right}{bounds}")


def _type(type_name: tree.TypeName) -> str:
    args = ", ".join(_type(arg) for arg in type_name.args)
    return f"{type_name.name}({args})" if args else type_name.name


def _reason(reason: tree.Template) -> str:
    return reason.raw or spell_template(reason.parts, format_expr)
