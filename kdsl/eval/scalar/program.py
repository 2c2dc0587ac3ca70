"""Generated functions: the form in which expressions of rules run.

The text of a function holds slots, names of view attributes, and the names that `NamedObjects` gives to
objects. Constants, and everything else from a rule file, are such objects: text of a rule file never becomes
source. `f` is the frame; a text raises EvalError if its expression has no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Final

from kdsl.eval.scalar.frame import UNSET
from kdsl.eval.values import EvalError, Value

Lines = Callable[[], list[str]]
"""Writes the lines of a function over the frame `f`."""

MOST_NESTED: Final = 40
"""The levels of nesting that are written at once: Python's parser admits 200 brackets."""
_MOST_TEXTS: Final = 8192
"""The most functions whose code is kept."""
_CALL: Final = re.compile(r"return (k\d+)\(f\)")
"""A function that does nothing but call one closure."""


class NamedObjects:
    """The objects that one function refers to by name."""

    __slots__ = ("_objects",)

    def __init__(self) -> None:
        self._objects: dict[str, object] = {"EvalError": EvalError, "UNSET": UNSET}

    def name(self, value: object) -> str:
        """Return a new name for an object."""
        name = f"k{len(self._objects)}"
        self._objects[name] = value
        return name

    def function(self, lines: Sequence[str], parameters: str = "f") -> Callable[..., Value]:
        """Return the function with these lines; the closure itself if they only call it."""
        only = _CALL.fullmatch(lines[0]) if len(lines) == 1 and parameters == "f" else None
        if only is not None:
            closure = self._objects[only[1]]
            assert callable(closure)
            return closure
        run: Callable[..., Value] = FunctionType(_code("\n ".join(lines), parameters), self._objects)
        return run


@lru_cache(_MOST_TEXTS)
def _code(text: str, parameters: str) -> CodeType:
    """Return the code of a function. Functions that differ in constants alone have the same text."""
    module = compile(f"def rule({parameters}):\n {text}\n", "<rule>", "exec", dont_inherit=True)
    (code,) = [each for each in module.co_consts if isinstance(each, CodeType)]
    return code
