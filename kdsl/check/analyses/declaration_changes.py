"""The changes of a written declaration: head, description, and statements one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from difflib import SequenceMatcher

from kdsl.check.analyses.change import ChangeKind, PropertyChange
from kdsl.lang.choices import RejectionCode
from kdsl.lang.device_tree import (
    Admit,
    Charge,
    Choose,
    Fit,
    HandshakeFields,
    Inventory,
    LockFields,
    QuotaFields,
    Request,
)
from kdsl.lang.expression_printer import format_expr
from kdsl.lang.layout import render
from kdsl.lang.profile_tree import Tighten
from kdsl.lang.statement_printer import statement_doc
from kdsl.lang.templates import spell_template
from kdsl.lang.tree import (
    Declared,
    Device,
    Fn,
    ForEach,
    Predicate,
    Preemption,
    Queue,
    Require,
    Score,
    Statement,
    Team,
)

_ONE_LINE = 1_000_000


def declaration_changes(subject: str, old: Statement, new: Statement) -> Iterator[PropertyChange]:
    """Yield the changes of a declaration."""
    if _head(old) != _head(new):
        yield PropertyChange(
            subject, ChangeKind.CHANGED, "declaration", _line(old), _line(new), new.span.site
        )
    if isinstance(old, Declared) and isinstance(new, Declared) and old.doc != new.doc:
        yield PropertyChange(
            subject, ChangeKind.CHANGED, "description", " ".join(old.doc), " ".join(new.doc), new.span.site
        )
    yield from _statements(subject, _inner(old), _inner(new))


def _statements(subject: str, old: Sequence[Statement], new: Sequence[Statement]) -> Iterator[PropertyChange]:
    """Compare the statements of two blocks; statements at the same position form a pair."""
    heads = [_head(each) for each in old], [_head(each) for each in new]
    for tag, a, b, c, d in SequenceMatcher(None, *heads, autojunk=False).get_opcodes():
        pairs = min(b - a, d - c)
        for before, after in zip(old[a : a + pairs], new[c : c + pairs], strict=True):
            if tag == "equal":
                yield from _statements(subject, _inner(before), _inner(after))
            elif type(before) is type(after):
                yield from _statement(subject, before, after)
            else:
                yield from (*_removed(subject, [before]), *_added(subject, [after]))
        yield from _removed(subject, old[a + pairs : b])
        yield from _added(subject, new[c + pairs : d])


def _statement(subject: str, old: Statement, new: Statement) -> Iterator[PropertyChange]:
    site = new.span.site
    if isinstance(old, Require) and isinstance(new, Require):
        if old.condition != new.condition:
            conditions = format_expr(old.condition), format_expr(new.condition)
            yield PropertyChange(subject, ChangeKind.CHANGED, "condition", *conditions, site)
        codes = str(old.code or RejectionCode.UNSCHEDULABLE), str(new.code or RejectionCode.UNSCHEDULABLE)
        if codes[0] != codes[1]:
            yield PropertyChange(subject, ChangeKind.CHANGED, "code", *codes, site)
        if old.reason != new.reason:
            yield PropertyChange(subject, ChangeKind.CHANGED, "reason", _reason(old), _reason(new), site)
        return
    word, before, after = _word(new), _line(old), _line(new)
    if _word(old) == word:
        before, after = before.removeprefix(f"{word} "), after.removeprefix(f"{word} ")
    yield PropertyChange(subject, ChangeKind.CHANGED, word, before, after, site)
    yield from _statements(subject, _inner(old), _inner(new))


def _removed(subject: str, statements: Iterable[Statement]) -> Iterator[PropertyChange]:
    for each in statements:
        yield PropertyChange(subject, ChangeKind.REMOVED, _word(each), _text(each), site=each.span.site)


def _added(subject: str, statements: Iterable[Statement]) -> Iterator[PropertyChange]:
    for each in statements:
        yield PropertyChange(subject, ChangeKind.ADDED, _word(each), after=_text(each), site=each.span.site)


def _inner(statement: Statement) -> Sequence[Statement]:
    match statement:
        case (
            Predicate(body=body)
            | Score(body=body)
            | Queue(body=body)
            | Preemption(body=body)
            | Device(body=body)
            | Team(body=body)
            | ForEach(body=body)
            | Inventory(body=body)
            | Admit(body=body)
            | Request(body=body)
            | QuotaFields(body=body)
            | LockFields(body=body)
            | HandshakeFields(body=body)
            | Charge(body=body)
            | Fit(body=body)
            | Choose(body=body)
            | Tighten(body=body)
        ):
            return body
    return ()


def _head(statement: Statement) -> tuple[object, ...]:
    """Return a statement without its block and description, as a hashable tuple."""
    said = (each.name for each in fields(statement) if each.compare and each.name not in ("body", "doc"))
    # The body of a `fn` is an expression, not a block.
    block = statement.body if isinstance(statement, Fn) else None
    return type(statement), block, *(getattr(statement, name) for name in said)


def _reason(statement: Require) -> str:
    return spell_template(statement.reason.parts, format_expr)


def _line(statement: Statement) -> str:
    """Return a statement on one line; for a statement with a block, its head only."""
    if isinstance(statement, Require):
        code = f"{statement.code} " if statement.code else ""
        return f"require {format_expr(statement.condition)} else {code}{_reason(statement)}"
    return render(statement_doc(statement), _ONE_LINE)


def _text(statement: Statement) -> str:
    """Return a statement on one line, with its block."""
    inner = joined(_inner(statement))
    return f"{_line(statement)} {{ {inner} }}" if inner else _line(statement)


def _word(statement: Statement) -> str:
    return _line(statement).partition(" ")[0]


def joined(statements: Iterable[Statement]) -> str:
    """Return statements on one line, with their blocks."""
    return "; ".join(_text(each) for each in statements)
