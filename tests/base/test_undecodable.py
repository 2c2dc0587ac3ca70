"""Words about inputs that are not JSON."""

from __future__ import annotations

import msgspec
import pytest
from kdsl.base.undecodable import json_mistake


def _mistake(data: bytes) -> str:
    with pytest.raises((msgspec.DecodeError, RecursionError)) as caught:
        msgspec.json.decode(data)
    return json_mistake(data, caught.value)


@pytest.mark.parametrize(
    ("data", "mistake"),
    [
        (rb'{"a": "\ud800"}', r"`\ud800` in line 1 is half of a character, without its other half"),
        (
            b'{"a": 1,\n"\\ud83d\\ude00\\uDc00": 1}',
            r"`\uDc00` in line 2 is half of a character, without its other half",
        ),
        (rb'{"a": "\ud800\u0041"}', r"`\ud800` in line 1 is half of a character, without its other half"),
        (rb'{"a": "\\ud800", "\ud83d\ude00": 1', "it ends within a value"),
        (b" ", "it is empty"),
        (b'{"a": {"b": 1e999}}', "number out of range"),
        (b"[" * 10_000, "it is nested too deeply"),
    ],
)
def test_the_mistake_is_named(data: bytes, mistake: str) -> None:
    assert _mistake(data) == mistake
