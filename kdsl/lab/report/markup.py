"""HTML from values: all text but markup is escaped, so no name or text of a result becomes markup."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from kdsl.base.visible import visible_text


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


Content: TypeAlias = "str | int | float | Iterable[Content] | None"
_VOID: Final = frozenset({"meta", "input", "br", "col"})


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """Return an element. `_` in the names of attributes stands for `-`, and ends names that Python reserves;
    True is an attribute without a value, False and None are none.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Content) -> Markup:
    """Return content one after the other, escaped unless it is markup."""
    if content is None:
        return Markup("")
    if isinstance(content, Markup):
        return content
    if isinstance(content, (str, int, float)):
        return Markup(_escaped(str(content)))
    return Markup("".join(map(joined, content)))


def _escaped(text: str) -> str:
    return html.escape(visible_text(text))


def json_block(key: str, value: Any) -> Markup:
    """Return values as JSON in an element that no text in them can end."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{key}">{safe}</script>')
