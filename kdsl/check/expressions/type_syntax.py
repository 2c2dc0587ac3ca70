"""Types in the notation of rule files: `list(string)`, `map(string, quantity)`, `Taint`.

`dyn` is allowed in functions that are marked with it: see `dynamic`.
"""

from __future__ import annotations

from kdsl.base.diagnostic import Diagnostic, suggest
from kdsl.check.expressions.mismatch import listing
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.notation import ARITIES
from kdsl.check.model.types import ERROR, Type
from kdsl.check.views.view import Views
from kdsl.lang.tree import TypeName

_PLAIN = frozenset(
    {
        *("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"),
        *("quantity", "resources", "semver", "ip", "cidr", "url"),
        "dyn",
    }
)
_FOREIGN = {
    **dict.fromkeys(("integer", "number", "long", "int64"), "int"),
    **dict.fromkeys(("float", "float64"), "double"),
    **dict.fromkeys(("str", "text", "String"), "string"),
    "boolean": "bool",
    **dict.fromkeys(("time", "date"), "timestamp"),
    "array": "list(T)",
    **dict.fromkeys(("dict", "object"), "map(K, V)"),
}
_KEYS = frozenset({"bool", "int", "uint", "string"})


def read_type(written: TypeName, views: Views, diagnostics: list[Diagnostic]) -> Type:
    """Return the type; report an error in it and return `error`."""
    args = tuple(read_type(arg, views, diagnostics) for arg in written.args)
    if ERROR in args:
        return ERROR
    problem = _problem(written, args, views)
    if problem is None:
        return Type(written.name, args)
    diagnostics.append(problem)
    return ERROR


def _problem(written: TypeName, args: tuple[Type, ...], views: Views) -> Diagnostic | None:
    name = written.name
    known = sorted({*_PLAIN, *ARITIES, *views.types})
    if name not in known:
        help_, fixes = suggest(written.span, name, known)
        if name in _FOREIGN:
            help_, fixes = (f"write `{_FOREIGN[name]}`",), ()
        elif not fixes:
            help_ = help_ or listing("there is", sorted({*_PLAIN, *ARITIES}), most=len(known))
        return Diagnostic(
            CheckCode.UNKNOWN_TYPE,
            f"unknown type `{name}`",
            written.span,
            "not a type",
            help=help_,
            fixes=fixes,
        )
    arity = ARITIES.get(name, 0)
    if len(args) != arity:
        wanted = {0: "takes no arguments", 1: "is written `" + name + "(T)`", 2: "is written `map(K, V)`"}[
            arity
        ]
        title = f"type `{name}` {wanted}"
        return Diagnostic(CheckCode.UNKNOWN_TYPE, title, written.span, f"{len(args)} given")
    if name == "map" and args[0].name not in _KEYS:
        title = f"`{args[0]}` cannot be a map key"
        return Diagnostic(
            CheckCode.UNKNOWN_TYPE, title, written.args[0].span, "keys are bool, int, uint or string"
        )
    return None
