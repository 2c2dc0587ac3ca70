"""The heat map of cards at the end of a run: a column of the page for each variant, a strip for each model,
in it nodes from left to right and their cards from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from kdsl.lab.report.evidence import Evidence
from kdsl.lab.report.held import ModelCards
from kdsl.lab.report.plots import Looks, Plot, Row, Spec, frame
from kdsl.lab.report.study import Study, shortened
from kdsl.lab.report.theme import LEVELS
from kdsl.lab.traces import CARD

LEVEL_NAMES: Final = ("idle", "under 25 %", "25 to 49 %", "50 to 74 %", "75 to 99 %", "full")
ABREAST: Final = 4
"""The variants beside each other in one plot."""
MOST_MODELS: Final = 12
_WIDTH: Final = 1000
_GAP: Final = 60
_CARD_HEIGHT: Final = 7
_TITLE: Final = 22
_NAMED: Final = (("m", "models", "model"), ("c", "columns", "v"), ("l", "levels", "level"))
"""The columns of rectangles that are numbers, with the datasets of their names."""


def level_of(parts: int) -> int:
    """Return the class of a card by its parts in use: 0 is idle, 5 is full."""
    if parts <= 0:
        return 0
    return LEVELS - 1 if parts >= CARD else 1 + min(parts * 4 // CARD, 3)


def heat_maps(study: Study, evidence: Evidence, looks: Looks, trace: int) -> Iterator[Plot]:
    """Yield plots of the cards of a trace, a few variants in each."""
    variants = [variant for variant in range(len(study.variants)) if (trace, variant) in evidence.cards]
    for start in range(0, len(variants), ABREAST):
        shown = variants[start : start + ABREAST]
        number = start // ABREAST + 1
        title = "Cards at the end of a run" + (f" ({number})" if len(variants) > ABREAST else "")
        # All columns are equally wide, in the last plot too.
        columns = min(len(variants), ABREAST)
        yield _plot(study, evidence, looks, (trace, shown), columns, f"cards-{number}", title)


def _plot(
    study: Study,
    evidence: Evidence,
    looks: Looks,
    shown: tuple[int, Sequence[int]],
    columns: int,
    key: str,
    title: str,
) -> Plot:
    trace, variants = shown
    held = {variant: evidence.cards[trace, variant] for variant in variants}
    models = list(dict.fromkeys(each.model for of_variant in held.values() for each in of_variant))
    drawn = models[:MOST_MODELS]
    tops, bottom = _tops(drawn, [each for of_variant in held.values() for each in of_variant])
    rects: list[Row] = []
    texts: list[Row] = []
    heads: list[Row] = []
    for at, variant in enumerate(variants):
        left = at * (_WIDTH + _GAP)
        example = study.example(trace, variant)
        run = example.digest if example else ""
        heads.append({"x": left, "t": looks.labels[variant], "run": run})
        for each in held[variant]:
            if each.model in tops:
                rects += _rectangles(each, left, tops[each.model], drawn.index(each.model), at)
                about = f"{shortened(each.model, 24)} · {len(each.nodes):,} nodes" if at == 0 else ""
                texts.append(
                    {
                        "x": left,
                        "x2": left + _WIDTH,
                        "y": tops[each.model] - 5,
                        "t": about,
                        "used": f"{100 * each.used:.1f} %",
                    }
                )
    left_out = f" Only {MOST_MODELS} of {len(models)} models are drawn." if len(models) > MOST_MODELS else ""
    names = [{"m": at, "model": shortened(model)} for at, model in enumerate(drawn)]
    names_of_columns = [{"c": at, "v": looks.labels[variant]} for at, variant in enumerate(variants)]
    levels = [{"l": at, "level": name} for at, name in enumerate(LEVEL_NAMES)]
    return Plot(
        key,
        title,
        "Each strip is a model: its nodes from left to right, the fullest first, and the cards of a node from"
        " top to bottom. Percentages are the used share of the model's cards. Of each policy the run that is"
        f" nearest to the mean of its seeds is shown.{left_out}",
        trace,
        frame(bottom + 26, _layers(columns, bottom)),
        {
            "cards": rects,
            "texts": texts,
            "heads": heads,
            "models": names,
            "columns": names_of_columns,
            "levels": levels,
        },
        is_wide=True,
    )


def _tops(models: Sequence[str], cards: Sequence[ModelCards]) -> tuple[dict[str, int], int]:
    """Return the top of the strip of each model, and the bottom of the last one, in pixels."""
    tops, bottom = {}, 0
    for model in models:
        deepest = max(len(node) for each in cards if each.model == model for node in each.nodes)
        tops[model] = bottom + _TITLE
        bottom += _TITLE + deepest * _CARD_HEIGHT + 8
    return tops, bottom


def _rectangles(cards: ModelCards, left: int, top: int, model: int, column: int) -> Iterator[Row]:
    """Yield rectangles of equally full neighbours: nodes share the width of a column evenly."""
    count = len(cards.nodes)
    for card in range(max(map(len, cards.nodes))):
        levels = [level_of(node[card]) if card < len(node) else None for node in cards.nodes]
        at = 0
        for level, group in groupby(levels):
            start, at = at, at + len(list(group))
            if level is not None:
                yield {
                    "x": left + start * _WIDTH // count,
                    "x2": left + at * _WIDTH // count,
                    "y": top + card * _CARD_HEIGHT,
                    "l": level,
                    "m": model,
                    "k": card,
                    "n": at - start,
                    "c": column,
                }


def _layers(columns: int, bottom: int) -> list[Spec]:
    width = columns * (_WIDTH + _GAP) - _GAP
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, width], "nice": False},
    }
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [-26, bottom], "reverse": True, "nice": False, "zero": False},
    }
    title: Spec = {"type": "text", "align": "left", "baseline": "bottom"}
    return [
        {
            "data": {"name": "cards"},
            "transform": [
                {"calculate": f"datum.y + {_CARD_HEIGHT - 1}", "as": "y2"},
                *(
                    {"lookup": key, "from": {"data": {"name": name}, "key": key, "fields": [field]}}
                    for key, name, field in (
                        ("m", "models", "model"),
                        ("c", "columns", "v"),
                        ("l", "levels", "level"),
                    )
                ),
            ],
            "mark": {"type": "rect", "aria": False},
            "encoding": {
                "x": x,
                "x2": {"field": "x2"},
                "y": y,
                "y2": {"field": "y2"},
                "color": {
                    "field": "l",
                    "type": "ordinal",
                    "scale": {
                        "domain": list(range(LEVELS)),
                        "range": [f"var(--l{at})" for at in range(LEVELS)],
                    },
                    "legend": None,
                },
                "tooltip": [
                    {"field": "v", "title": "policy"},
                    {"field": "model", "title": "model"},
                    {"field": "k", "title": "card"},
                    {"field": "n", "title": "nodes"},
                    {"field": "level", "title": "used"},
                ],
            },
        },
        {
            "data": {"name": "heads"},
            "mark": {**title, "fontSize": 14, "fontWeight": 700, "cursor": "pointer"},
            "encoding": {
                "x": x,
                "y": {"datum": -8, **{k: v for k, v in y.items() if k != "field"}},
                "text": {"field": "t"},
            },
        },
        {
            "data": {"name": "texts"},
            "mark": {**title, "color": "var(--soft)"},
            "encoding": {"x": x, "y": y, "text": {"field": "t"}},
        },
        {
            "data": {"name": "texts"},
            "mark": {**title, "align": "right", "color": "var(--soft)"},
            "encoding": {"x": {**x, "field": "x2"}, "y": y, "text": {"field": "used"}},
        },
    ]
