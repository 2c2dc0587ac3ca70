"""Colours and type of plots. In the page colours are variables of its style sheet, so that a plot follows
the light, dark or printed page; in pictures they are those of the light page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

SERIES: Final = 8
"""The colours for variants. They differ in lightness too, and lines in their dashes."""
LEVELS: Final = 6
"""The classes of a card by its used share: idle, four between, and full."""

LIGHT: Final[Mapping[str, str]] = {
    "--ink": "#1a2230",
    "--soft": "#566175",
    "--line": "#c9d0da",
    "--grid": "#e6eaf0",
    "--paper": "#ffffff",
    "--s1": "#0a5fa8",
    "--s2": "#c2480a",
    "--s3": "#00785a",
    "--s4": "#9a3a82",
    "--s5": "#8a6800",
    "--s6": "#2673a3",
    "--s7": "#5b4bb0",
    "--s8": "#5f6b7a",
    "--other": "#a3acb9",
    "--l0": "#f0c9a6",
    "--l1": "#dfe9f3",
    "--l2": "#b3cfe6",
    "--l3": "#78abd3",
    "--l4": "#3a80ba",
    "--l5": "#0b4a80",
}
DARK: Final[Mapping[str, str]] = {
    "--ink": "#e8ecf2",
    "--soft": "#a2adbd",
    "--line": "#465166",
    "--grid": "#2b3445",
    "--paper": "#151b26",
    "--s1": "#62b0f2",
    "--s2": "#ff955c",
    "--s3": "#3fcfa0",
    "--s4": "#e58fcf",
    "--s5": "#e2c04c",
    "--s6": "#a5d8f7",
    "--s7": "#b3a6f5",
    "--s8": "#adb7c5",
    "--other": "#667286",
    "--l0": "#8a5a35",
    "--l1": "#22344a",
    "--l2": "#2b5078",
    "--l3": "#3f78ab",
    "--l4": "#6aa9da",
    "--l5": "#c3e2fa",
}
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_AXIS: Final = {
    "labelColor": "var(--soft)",
    "titleColor": "var(--soft)",
    "gridColor": "var(--grid)",
    "domainColor": "var(--line)",
    "tickColor": "var(--line)",
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": 500,
    "titlePadding": 10,
    "labelPadding": 6,
    "tickSize": 4,
}
CONFIG: Final[Mapping[str, Any]] = {
    "font": FONT,
    "background": None,
    "view": {"stroke": None},
    "axis": _AXIS,
    "axisY": {
        "domain": False,
        "ticks": False,
        "titleAlign": "left",
        "titleAngle": 0,
        "titleBaseline": "bottom",
        "titleX": -34,
        "titleY": -12,
    },
    "axisX": {"grid": False, "labelFlush": False},
    "text": {"color": "var(--ink)", "fontSize": 12, "font": FONT},
    "legend": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--soft)",
        "labelFontSize": 12,
        "labelLimit": 520,
        "symbolType": "square",
        "symbolOpacity": 1,
    },
    "aria": True,
}
"""The configuration of Vega-Lite that all plots share."""


def series_colour(place: int | None) -> str:
    """Return the colour of a variant by its place among the coloured ones; grey for all others."""
    return "var(--other)" if place is None else f"var(--s{place % SERIES + 1})"


def dash_of(place: int | None) -> list[int]:
    """Return the dashes of a variant's line."""
    return ([], [7, 3], [2, 2], [9, 3, 2, 3])[(place or 0) % 4]


def in_colours(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plot with the colours themselves in place of variables, for a picture."""
    text = json.dumps({**spec, "background": "var(--paper)"})
    for name, colour in LIGHT.items():
        text = text.replace(f'"var({name})"', f'"{colour}"')
    found: dict[str, Any] = json.loads(text)
    return found


def declarations(colours: Mapping[str, str]) -> str:
    """Return colours as declarations of a style sheet."""
    return " ".join(f"{name}: {colour};" for name, colour in colours.items())
