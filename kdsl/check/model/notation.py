"""Types and signatures as text, in the notation of the declared library and the views file.

Both are the project's own data, so an error in them is a developer's and raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from kdsl.check.model.types import Type, parameter

ARITIES = {"list": 1, "map": 2, "optional": 1}

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[(),])")
_SIGNATURE = re.compile(r"(?:(?P<target>[^.]+)\.)?\((?P<args>.*?)(?P<variadic>\.\.\.)?\): (?P<result>.+)")


@cache
def parse_type(text: str) -> Type:
    """Return the type of a text such as `map(string, list(T))`; a single capital is a type parameter."""
    types = parse_types(text)
    if len(types) != 1:
        raise ValueError(f"not one type: {text!r}")
    return types[0]


def parse_types(text: str) -> tuple[Type, ...]:
    """Return the types of a comma-separated list; an empty text is an empty list."""
    tokens = _tokens(text)
    types = tuple(_type_list(tokens, end=""))
    if next(tokens):
        raise ValueError(f"text after a type: {text!r}")
    return types


def parse_signature(text: str) -> tuple[tuple[Type, ...], Type, bool, bool]:
    """Split `(int, T): bool` or `string.(int): string` into arguments, result, is-member and is-variadic.

    The target of a member comes first among the arguments. `(int...)` takes one int or more.
    """
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a signature: {text!r}")
    target = match["target"]
    args = parse_types(match["args"])
    if target is not None:
        args = (parse_type(target), *args)
    return args, parse_type(match["result"]), target is not None, match["variadic"] is not None


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not a type: {text!r}")
        yield match[1]
        at = match.end()
    while True:
        yield ""


def _type_list(tokens: Iterator[str], end: str) -> Iterator[Type]:
    """Yield the types before the token `end`, and consume `end`."""
    token = next(tokens)
    while token != end:
        name, token = token, next(tokens)
        args: tuple[Type, ...] = ()
        if token == "(":
            args = tuple(_type_list(tokens, end=")"))
            token = next(tokens)
        yield _type(name, args)
        if token == ",":
            token = next(tokens)
            if token == end:
                raise ValueError("a comma at the end of a list of types")
        elif token != end:
            raise ValueError(f"unexpected {token!r} in a type")


def _type(name: str, args: tuple[Type, ...]) -> Type:
    if not name.isidentifier() or len(args) != ARITIES.get(name, 0):
        raise ValueError(f"not a type: {name!r} with {len(args)} arguments")
    return parameter(name) if len(name) == 1 and name.isupper() else Type(name, args)
