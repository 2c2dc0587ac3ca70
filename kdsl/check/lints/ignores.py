"""Comments that silence a lint: `// kdsl: ignore[K0701] reason`, above or behind a statement.

A comment covers its statement, above a declaration all of it. It needs a reason, and a finding to silence:
both are checked here, after the lints. Files in the YAML form have no such comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.span import Span
from kdsl.check.lints.codes import IgnoreCode
from kdsl.check.lints.removal import removal
from kdsl.lang.expression_tree import Node
from kdsl.lang.program import Program
from kdsl.lang.tree import Comment, Statement

PAGES = {
    IgnoreCode.BAD_IGNORE: (
        "bad-ignore",
        "A `// kdsl: ignore[…]` comment without a code or without a reason. It silences nothing. Write\n"
        "`// kdsl: ignore[K0701] why this is right here`; several codes are separated by commas.",
    ),
    IgnoreCode.UNUSED_IGNORE: (
        "unused-ignore",
        "A `// kdsl: ignore[…]` comment with a code that nothing in its statement is reported with. Remove\n"
        "it, or move it: it covers the statement below it or in front of it, above a declaration all of it.",
    ),
}
_MARK = re.compile(r"\s*kdsl:\s*ignore\b\s*(?:\[(?P<codes>[^\]]*)\])?(?P<reason>.*)")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment: the codes that it silences in the characters of `covers`, None where it covers none."""

    comment: Comment
    codes: tuple[str, ...]
    reason: str
    covers: Span | None

    def silences(self, finding: Diagnostic, code: str) -> bool:
        span, covers = finding.span, self.covers
        if span is None or covers is None or finding.code != code:
            return False
        return span.begins_in(covers)


def sift(program: Program, findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the findings that no comment silences, and the errors in the comments."""
    left, about_comments = list(findings), list[Diagnostic]()
    silenced: set[int] = set()
    for ignore in _ignores(program):
        if not ignore.codes or not ignore.reason:
            about_comments.append(_bad(ignore))
            continue
        for code in ignore.codes:
            hits = {at for at, finding in enumerate(left) if ignore.silences(finding, code)}
            if not hits:
                about_comments.append(_unused(ignore, code))
            silenced |= hits
    return (*(each for at, each in enumerate(left) if at not in silenced), *about_comments)


def _ignores(program: Program) -> Iterator[Ignore]:
    for file in program.files:
        for comment, covers in _comments(file):
            found = _MARK.fullmatch(comment.text)
            if found is not None:
                codes = [code.strip() for code in (found["codes"] or "").split(",")]
                yield Ignore(comment, tuple(filter(None, codes)), found["reason"].strip(), covers)


def _comments(tree: Node) -> Iterator[tuple[Comment, Span | None]]:
    """Yield the comments of a file, each with the characters of its statement."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Statement):
            attached = (*node.leading, *((node.trailing,) if node.trailing else ()))
            yield from ((comment, node.span) for comment in attached)
        for each in reversed(fields(node)):
            if each.name in ("leading", "trailing") and isinstance(node, Statement):
                continue
            value = getattr(node, each.name)
            for part in reversed(value if isinstance(value, tuple) else (value,)):
                if isinstance(part, Comment):
                    yield part, None
                elif isinstance(part, Node):
                    pending.append(part)


def _bad(ignore: Ignore) -> Diagnostic:
    missing = "a reason" if ignore.codes else "the code of a lint"
    return Diagnostic(
        IgnoreCode.BAD_IGNORE,
        f"this `ignore` lacks {missing}",
        ignore.comment.span,
        "it silences nothing",
        Severity.WARNING,
        help=("write `// kdsl: ignore[K0701] why this is right here`",),
    )


def _unused(ignore: Ignore, code: str) -> Diagnostic:
    title, why = f"there is no `{code}` to ignore here", "it silences nothing"
    fixes = removal(ignore.comment) if ignore.codes == (code,) else ()
    help_ = () if fixes else ("remove it",)
    span = ignore.comment.span
    return Diagnostic(IgnoreCode.UNUSED_IGNORE, title, span, why, Severity.WARNING, help=help_, fixes=fixes)
