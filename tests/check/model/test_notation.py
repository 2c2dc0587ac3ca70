"""Types and signatures as text."""

from __future__ import annotations

import pytest
from kdsl.check.model.notation import parse_signature, parse_type
from kdsl.check.model.types import BOOL, INT, STRING, list_of, map_of, optional_of, parameter


def test_types() -> None:
    assert parse_type("int") == INT
    assert parse_type("map(string, list(T))") == map_of(STRING, list_of(parameter("T")))
    assert parse_type(" optional( list(string) ) ") == optional_of(list_of(STRING))


@pytest.mark.parametrize(
    "text",
    ["", "list", "list()", "list(int, int)", "map(int)", "int(string)", "int int", "int,", "list(int", "a-b"],
)
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="type"):
        parse_type(text)


def test_signatures() -> None:
    item = parameter("T")
    assert parse_signature("(T, list(T)): bool") == ((item, list_of(item)), BOOL, False, False)
    assert parse_signature("list(T).(): int") == ((list_of(item),), INT, True, False)
    assert parse_signature("(int...): int") == ((INT,), INT, False, True)
    assert parse_signature("(): string") == ((), STRING, False, False)


@pytest.mark.parametrize("text", ["int", "(int)", "(int) int", "int.(: int"])
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError, match="signature"):
        parse_signature(text)
