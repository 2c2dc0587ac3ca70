"""The fix that removes a part of a rule file, with its comments and the lines that become empty."""

from __future__ import annotations

import re

from kdsl.base.diagnostic import Applicability, Edit, Fix
from kdsl.base.span import Span
from kdsl.lang.discovery import SUFFIX
from kdsl.lang.tree import Comment, Statement

_LINE_END = re.compile(r"[ \t]*(\r?\n|\Z)")


def removal(what: Statement | Comment) -> tuple[Fix, ...]:
    """Return the fix; empty for a rule file in YAML, where a statement is not a range of lines."""
    source = what.span.source
    if not source.path.endswith(SUFFIX):
        return ()
    spans = [what.span]
    if isinstance(what, Statement):
        spans += [comment.span for comment in what.leading]
        spans += [what.trailing.span] if what.trailing else []
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    text = source.text
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    line_end = _LINE_END.match(text, end)
    if line_end is not None and (start == 0 or text[start - 1] == "\n"):
        end = line_end.end()
    edit = Edit(Span(source, start, end), "")
    return (Fix("remove it", (edit,), Applicability.CERTAIN),)
