"""The syntax tree back to text in the canonical style: the output of `kdsl fmt` and `kdsl show`.

Two blanks indent, lines hold up to 100 characters where they can, `else` leads the line below its condition,
one blank line stands between declarations, and single blank lines between statements stay. Comments are
written at their places in the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdsl.lang import device_tree, profile_tree, tree
from kdsl.lang.expression_printer import format_expr
from kdsl.lang.layout import render
from kdsl.lang.statement_printer import statement_doc

__all__ = ["format_declaration", "format_expr", "format_file"]

WIDTH = 100
_INDENT = 2


def format_declaration(declaration: tree.Declaration | tree.Statement) -> str:
    """Return one declaration or statement with its comments, without a line break at the end."""
    return "\n".join(_lines([declaration], (), 0))


def format_file(file: tree.File) -> str:
    """Return the text of a whole file, which ends with one line break."""
    lines = [*_comments(file.leading, 0, is_first=True), *_header(file)]
    lines += _lines(file.imports, (), 0, is_first=False)
    body = list(_lines(file.declarations, file.dangling, 0))
    if body:
        lines += ["", *body]
    return "\n".join(lines) + "\n"


def _header(file: tree.File) -> Iterator[str]:
    """Yield the version and the package with the comments between them; the first comment may trail."""
    behind = [] if not file.header or file.header[0].own_line else [file.header[0]]
    yield f"kdsl {file.version}" + "".join(map(_behind, behind))
    yield from _comments(file.header[len(behind) :], 0, is_first=False)
    if file.package:
        yield f"package {file.package.text}" + (_behind(file.trailing) if file.trailing else "")


def _behind(comment: tree.Comment) -> str:
    return f"  //{comment.text}"


# ---- lines -------------------------------------------------------------------------------------------------


def _lines(
    statements: Sequence[tree.Statement],
    dangling: Sequence[tree.Comment],
    indent: int,
    *,
    is_first: bool = True,
) -> Iterator[str]:
    """Yield statements and the comments around them; blank lines in front of the first are dropped."""
    previous: tree.Statement | None = None
    for statement in statements:
        if previous is not None and _stands_apart(previous, statement):
            yield ""
            is_first = True
        yield from _comments(statement.leading, indent, is_first=is_first)
        is_first = is_first and not statement.leading
        if statement.blank_before and not is_first:
            yield ""
        yield from _statement_lines(statement, indent)
        previous, is_first = statement, False
    yield from _comments(dangling, indent, is_first=is_first)


def _stands_apart(previous: tree.Statement, statement: tree.Statement) -> bool:
    """Return whether a blank line always separates the two: declarations, except consecutive `param`s."""
    return isinstance(statement, tree.Declared) or isinstance(previous, tree.Declared)


def _comments(comments: Sequence[tree.Comment], indent: int, *, is_first: bool) -> Iterator[str]:
    for comment in comments:
        if comment.blank_before and not is_first:
            yield ""
        yield f"{' ' * indent}//{comment.text}"
        is_first = False


def _statement_lines(statement: tree.Statement, indent: int) -> Iterator[str]:
    margin = " " * indent
    if isinstance(statement, tree.Declared):
        yield from (f"{margin}/// {line}".rstrip() for line in statement.doc)
    lines = [margin + render(statement_doc(statement), WIDTH, indent)]
    body = _body(statement)
    if body is not None:
        inner = list(_lines(body, statement.dangling, indent + _INDENT))
        lines[-1] += " {" if inner else " {}"
        lines += [*inner, f"{margin}}}"] if inner else []
    if statement.trailing:
        lines[-1] += _behind(statement.trailing)
    yield from lines


def _body(statement: tree.Statement) -> Sequence[tree.Statement] | None:
    """Return the statements between the braces, None without braces."""
    match statement:
        case profile_tree.ScoreList(scores=scores):
            return scores
        case (
            tree.Predicate(body=body)
            | tree.Score(body=body)
            | tree.Queue(body=body)
            | tree.Preemption(body=body)
            | tree.Device(body=body)
            | tree.Profile(body=body)
            | tree.Team(body=body)
            | tree.ForEach(body=body)
            | device_tree.Inventory(body=body)
            | device_tree.Admit(body=body)
            | device_tree.Request(body=body)
            | device_tree.QuotaFields(body=body)
            | device_tree.LockFields(body=body)
            | device_tree.HandshakeFields(body=body)
            | device_tree.Charge(body=body)
            | device_tree.Fit(body=body)
            | profile_tree.Tighten(body=body)
        ):
            return body
        case device_tree.Choose(body=body) if body or statement.dangling:
            return body
    return None
