"""The syntax tree of rule files: frozen data, equal when the text means the same, spans everywhere.

Expressions are in `expression_tree.py`, the statements of profiles and teams in `profile_tree.py`, those of
devices in `device_tree.py`. The parser builds it, the printer writes it, the checker reads it. Spans, raw
spellings and comments do not take part in equality, so the formatter keeps the law `parse(print(tree)) ==
tree`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode
from kdsl.lang.expression_tree import Expr, Node

if TYPE_CHECKING:
    from kdsl.lang.device_tree import DeviceStatement
    from kdsl.lang.profile_tree import ProfileStatement, TeamStatement


# ---- pieces of statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A possibly qualified name of a declaration: `default`, `nv.NvidiaVGPU`, `kubernetes.v1_36`."""

    text: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A whole number with its place, such as the weight of a score."""

    value: int


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A written type: `int`, `list(string)`, `map(string, int)`."""

    name: str
    args: tuple[TypeName, ...] = ()


@dataclass(frozen=True, slots=True)
class Template(Node):
    """A reason: text with `${expr}` holes. `raw` is the literal as written, quotes included."""

    parts: tuple[str | Expr, ...]
    raw: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """A `//` comment: the text after the slashes. `own_line` is false for a comment behind code.

    A `///` comment that belongs to no declaration is a comment whose text starts with a slash.
    """

    text: str
    own_line: bool
    blank_before: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Node):
    """The base of declarations and of the lines inside them, with their comments.

    `leading` stand above it, `trailing` behind its last line, `dangling` after the last statement of its
    block.
    """

    leading: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
    trailing: Comment | None = field(default=None, compare=False, repr=False)
    dangling: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
    blank_before: bool = field(default=False, compare=False, repr=False)


# ---- statements inside blocks ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param(Statement):
    """`[final] param name[: type] = value`, at the top of a file or inside a rule."""

    name: Name
    type: TypeName | None
    value: Expr
    final: bool = False


@dataclass(frozen=True, slots=True)
class Let(Statement):
    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class AppliesWhen(Statement):
    condition: Expr


@dataclass(frozen=True, slots=True)
class IgnoreWhen(Statement):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Require(Statement):
    """`require condition else [code] reason`; `code` is None where it is not written (unschedulable)."""

    condition: Expr
    code: RejectionCode | None
    reason: Template


@dataclass(frozen=True, slots=True)
class Narrow(Statement):
    """`narrow to names else [code] reason`: only the named nodes remain; if there is none, reject.

    `names` is an `optional(list(string))` that depends on the pod only; `optional.none()` does not narrow.
    """

    names: Expr
    code: RejectionCode | None
    reason: Template


@dataclass(frozen=True, slots=True)
class ForEach(Statement):
    """`for a[, b] in iterable [where condition] { … }`."""

    names: tuple[Name, ...]
    iterable: Expr
    where: Expr | None
    body: tuple[RuleStatement, ...]


@dataclass(frozen=True, slots=True)
class Report(Statement):
    """`report all` or `report first`."""

    all: bool


@dataclass(frozen=True, slots=True)
class OnError(Statement):
    """`on error reject "reason"`, `on error abort` or `on error zero`."""

    action: ErrorAction
    reason: Template | None


@dataclass(frozen=True, slots=True)
class Value(Statement):
    value: Expr


@dataclass(frozen=True, slots=True)
class Normalize(Statement):
    """`normalize max|reverse|minmax|none` or `normalize by expr`, which alone has an expression."""

    kind: Normalization
    by: Expr | None


@dataclass(frozen=True, slots=True)
class AdmitWhen(Statement):
    condition: Expr
    reason: Template


@dataclass(frozen=True, slots=True)
class SortKey(Node):
    value: Expr
    descending: bool


@dataclass(frozen=True, slots=True)
class OrderBy(Statement):
    keys: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Backoff(Statement):
    initial: Expr
    maximum: Expr


@dataclass(frozen=True, slots=True)
class EligibleWhen(Statement):
    """`eligible when condition else reason`: the pods that may preempt others."""

    condition: Expr
    reason: Template


@dataclass(frozen=True, slots=True)
class VictimWhen(Statement):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Candidates(Statement):
    """`candidates n`: the number of possible nodes that are enough to choose from."""

    count: Expr


@dataclass(frozen=True, slots=True)
class ChooseBy(Statement):
    keys: tuple[SortKey, ...]


RuleStatement = AppliesWhen | Let | Require | Narrow | ForEach | Report | OnError | Param
ScoreStatement = AppliesWhen | IgnoreWhen | Let | Param | Value | Normalize | OnError
PreemptionStatement = EligibleWhen | VictimWhen | OrderBy | Candidates | ChooseBy | Let | Param
QueueStatement = AdmitWhen | OrderBy | Backoff | Let | Param


# ---- declarations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Statement):
    """The base of declarations. `doc` holds the lines of the `///` comment above it."""

    name: Name
    doc: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FnParam(Node):
    name: Name
    type: TypeName


@dataclass(frozen=True, slots=True)
class Fn(Declared):
    """`[dyn] fn name(params): result = body`."""

    params: tuple[FnParam, ...]
    result: TypeName
    body: Expr
    dyn: bool = False


@dataclass(frozen=True, slots=True)
class Predicate(Declared):
    body: tuple[RuleStatement, ...]
    mandatory: bool = False


@dataclass(frozen=True, slots=True)
class Score(Declared):
    body: tuple[ScoreStatement, ...]


@dataclass(frozen=True, slots=True)
class Queue(Declared):
    body: tuple[QueueStatement, ...]


@dataclass(frozen=True, slots=True)
class Preemption(Declared):
    body: tuple[PreemptionStatement, ...]


@dataclass(frozen=True, slots=True)
class Device(Declared):
    """`device name [extends base]`: its statements are those of `device_tree.py`."""

    body: tuple[DeviceStatement, ...]
    extends: Name | None = None


@dataclass(frozen=True, slots=True)
class Profile(Declared):
    """`profile name [extends base]`: its statements are those of `profile_tree.py`."""

    extends: Name | None
    body: tuple[ProfileStatement, ...]


@dataclass(frozen=True, slots=True)
class Team(Declared):
    """`team name`: its statements are those of `profile_tree.py`."""

    body: tuple[TeamStatement, ...]


Declaration = Param | Fn | Predicate | Score | Queue | Preemption | Device | Profile | Team


@dataclass(frozen=True, slots=True)
class Import(Statement):
    """`import package [as alias]`."""

    package: Name
    alias: Name | None


@dataclass(frozen=True, slots=True)
class File(Node):
    """One rule file. `leading` are the comments above its first line, `header` those from there to the line
    of the package, `trailing` the one behind that, `dangling` those after the last declaration.
    """

    version: int
    package: Name | None
    imports: tuple[Import, ...]
    declarations: tuple[Declaration, ...]
    leading: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
    header: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
    trailing: Comment | None = field(default=None, compare=False, repr=False)
    dangling: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
