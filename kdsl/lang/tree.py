"""The syntax tree of rule files: frozen data, equal when the text means the same, spans everywhere.

The parser builds it, the printer writes it, the checker reads it. Spans, raw spellings and comments do not
take part in equality, so `parse(print(tree)) == tree` is the law that the formatter holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from kdsl.base.span import Span

if TYPE_CHECKING:
    from kdsl.lang.device_tree import DeviceStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The base of every tree node."""

    span: Span = field(compare=False, repr=False)


# ---- expressions (CEL without message construction) --------------------------------------------------------


class LiteralKind(StrEnum):
    NULL = "null"
    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant. `raw` is the author's spelling. `-9223372036854775808` is one literal."""

    kind: LiteralKind
    value: bool | int | float | str | bytes | None
    raw: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """`name`, or `.name` when `rooted`."""

    name: str
    rooted: bool = False


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`, `` operand.`field` `` when `escaped`, `operand.?field` when `optional`."""

    operand: Expr
    field: str
    optional: bool = False
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(args)`, `.function(args)` when `rooted`, or `target.function(args)`; macros too."""

    function: str
    target: Expr | None
    args: tuple[Expr, ...]
    rooted: bool = False
    name_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`operand[index]`, `operand[?index]` when `optional`."""

    operand: Expr
    index: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ListItem(Node):
    """An element of a list literal; `?expr` when `optional`."""

    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ListExpr(Node):
    items: tuple[ListItem, ...]


@dataclass(frozen=True, slots=True)
class MapEntry(Node):
    """`key: value`, or `?key: value` when `optional`."""

    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapExpr(Node):
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`op` is `!` or `-`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`op` is one of `|| && < <= > >= == != in + - * / %`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


Expr = Literal | Ident | Select | Call | Index | ListExpr | MapExpr | Unary | Binary | Conditional


# ---- pieces of statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A possibly qualified name of a declaration: `default`, `nv.NvidiaVGPU`, `kubernetes.v1_36`."""

    text: str


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


class Code(StrEnum):
    """The codes a rule may reject with."""

    UNSCHEDULABLE = "unschedulable"
    UNRESOLVABLE = "unresolvable"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """A `//` comment: all that follows the slashes. `own_line` is false for one behind code.

    A `///` comment that belongs to no declaration is a comment whose text starts with a slash.
    """

    text: str
    own_line: bool
    blank_before: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Node):
    """The base of declarations and of the lines inside them: they carry the comments that belong to them.

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
    code: Code | None
    reason: Template


@dataclass(frozen=True, slots=True)
class Narrow(Statement):
    """`narrow to names else [code] reason`: only the named nodes remain; if there is none, reject.

    `names` is an `optional(list(string))` that depends on the pod only; `optional.none()` does not narrow.
    """

    names: Expr
    code: Code | None
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


class ErrorAction(StrEnum):
    REJECT = "reject"
    ABORT = "abort"
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class OnError(Statement):
    """`on error reject "reason"`, `on error abort` or `on error zero`."""

    action: ErrorAction
    reason: Template | None


@dataclass(frozen=True, slots=True)
class Value(Statement):
    value: Expr


class Normalization(StrEnum):
    MAX = "max"
    REVERSE = "reverse"
    MINMAX = "minmax"
    NONE = "none"
    BY = "by"


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
    """`eligible when condition else reason`: which pods may have others removed for them."""

    condition: Expr
    reason: Template


@dataclass(frozen=True, slots=True)
class VictimWhen(Statement):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Candidates(Statement):
    """`candidates n`: how many nodes that would do are enough to choose from."""

    count: Expr


@dataclass(frozen=True, slots=True)
class ChooseBy(Statement):
    keys: tuple[SortKey, ...]


RuleStatement = AppliesWhen | Let | Require | Narrow | ForEach | Report | OnError | Param
ScoreStatement = AppliesWhen | IgnoreWhen | Let | Param | Value | Normalize | OnError
PreemptionStatement = EligibleWhen | VictimWhen | OrderBy | Candidates | ChooseBy | Let | Param
QueueStatement = AdmitWhen | OrderBy | Backoff | Let | Param


# ---- statements of profiles and teams ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SchedulerName(Statement):
    name: Literal


@dataclass(frozen=True, slots=True)
class CheckPredicates(Statement):
    """`check all`: a node is asked about by every predicate; `check first`: until one rejects it."""

    all: bool


@dataclass(frozen=True, slots=True)
class PredicateList(Statement):
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class WeightedScore(Statement):
    name: Name
    weight: int


@dataclass(frozen=True, slots=True)
class ScoreList(Statement):
    scores: tuple[WeightedScore, ...]


@dataclass(frozen=True, slots=True)
class UseQueue(Statement):
    name: Name


@dataclass(frozen=True, slots=True)
class UsePreemption(Statement):
    name: Name


@dataclass(frozen=True, slots=True)
class UseDevices(Statement):
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Tighten(Statement):
    name: Name
    body: tuple[RuleStatement, ...]


@dataclass(frozen=True, slots=True)
class Reweight(Statement):
    name: Name
    weight: int


class RuleKind(StrEnum):
    PREDICATE = "predicate"
    SCORE = "score"
    PREEMPTION = "preemption"


@dataclass(frozen=True, slots=True)
class Disable(Statement):
    kind: RuleKind
    name: Name


class Placing(StrEnum):
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class AddPredicate(Statement):
    """`add predicate name [before|after anchor]`; without an anchor the predicate goes last."""

    name: Name
    placing: Placing | None
    anchor: Name | None


@dataclass(frozen=True, slots=True)
class AddScore(Statement):
    name: Name
    weight: int


@dataclass(frozen=True, slots=True)
class SetParam(Statement):
    """`set rule.param = value`."""

    rule: Name
    param: Name
    value: Expr


ProfileStatement = (
    SchedulerName
    | CheckPredicates
    | PredicateList
    | ScoreList
    | UseQueue
    | UsePreemption
    | UseDevices
    | Tighten
    | Reweight
    | Disable
    | AddPredicate
    | AddScore
    | SetParam
)


@dataclass(frozen=True, slots=True)
class Grant(Node):
    """One right of a `may` list, as its words: `tighten`, `add predicates`, `reweight` with its bounds, …"""

    right: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Owns(Statement):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Files(Statement):
    pattern: Literal


@dataclass(frozen=True, slots=True)
class Contact(Statement):
    address: Literal


@dataclass(frozen=True, slots=True)
class Priority(Statement):
    value: int


@dataclass(frozen=True, slots=True)
class May(Statement):
    grants: tuple[Grant, ...]


TeamStatement = Owns | Files | Contact | Priority | May


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
    extends: Name | None
    body: tuple[ProfileStatement, ...]


@dataclass(frozen=True, slots=True)
class Team(Declared):
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
