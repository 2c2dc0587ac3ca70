"""CEL's math extension, under the names it has there, `math.log` and `math.exp`."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare


def _extreme(name: str, doc: str) -> Function:
    """Declare `math.greatest` or `math.least`: one number or more, or a list of them.

    The `dyn` forms take mixed numbers; they exist where types are decided at run time, not in rule files.
    """
    word = name.replace(".", "_")
    overloads = {f"{word}_{kind}": f"({kind}...): {kind}" for kind in ("int", "uint", "double", "dyn")}
    overloads |= {
        f"{word}_list_{kind}": f"(list({kind})): {kind}" for kind in ("int", "uint", "double", "dyn")
    }
    return declare(name, doc, overloads)


def _double(name: str, doc: str, result: str = "double") -> Function:
    return declare(name, doc, {f"{name.replace('.', '_')}_double": f"(double): {result}"})


def _number(name: str, doc: str, result: str = "") -> Function:
    """Declare a function of one number; its result has the same type unless `result` says otherwise."""
    word = name.replace(".", "_")
    return declare(
        name, doc, {f"{word}_{kind}": f"({kind}): {result or kind}" for kind in ("int", "uint", "double")}
    )


def _bits(name: str, doc: str, args: str) -> Function:
    """Declare a function of bits; `{}` in `args` stands for the type, `int` or `uint`, of the result."""
    word = name.replace(".", "_")
    return declare(
        name, doc, {f"{word}_{kind}": f"({args.format(*[kind] * 2)}): {kind}" for kind in ("int", "uint")}
    )


FUNCTIONS: tuple[Function, ...] = (
    _extreme("math.greatest", "The largest of its arguments, or of a list."),
    _extreme("math.least", "The smallest of its arguments, or of a list."),
    _number("math.abs", "The absolute value; of the smallest int it is an error."),
    _number("math.sign", "-1, 0 or 1, in the type of the argument."),
    _number("math.sqrt", "The square root, NaN for a negative number.", result="double"),
    _double("math.log", "The natural logarithm: minus infinity of zero, NaN of a negative number."),
    _double("math.exp", "The exponential function: infinity where that is too large for a double."),
    _double("math.ceil", "The least whole number that is not less."),
    _double("math.floor", "The greatest whole number that is not greater."),
    _double("math.round", "The nearest whole number, halves away from zero."),
    _double("math.trunc", "The whole part."),
    _double("math.isNaN", "Is not a number.", result="bool"),
    _double("math.isInf", "Is positive or negative infinity.", result="bool"),
    _double("math.isFinite", "Is neither NaN nor infinite.", result="bool"),
    _bits("math.bitAnd", "The bits that both have.", "{}, {}"),
    _bits("math.bitOr", "The bits that one has or both.", "{}, {}"),
    _bits("math.bitXor", "The bits that exactly one has.", "{}, {}"),
    _bits("math.bitNot", "The 64 bits, each reversed.", "{}"),
    _bits("math.bitShiftLeft", "The 64 bits moved up, zeros from below.", "{}, int"),
    _bits("math.bitShiftRight", "The 64 bits moved down, zeros from above.", "{}, int"),
)
