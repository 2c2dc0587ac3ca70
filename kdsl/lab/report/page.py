"""The page: one HTML file with plots, tables and the program that draws, which needs no network.

A policy in the page allows its own programs and styles only, by their digests, and no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final

from kdsl import __version__
from kdsl.lab.report import tables
from kdsl.lab.report.cards import LEVEL_NAMES
from kdsl.lab.report.contents import Contents
from kdsl.lab.report.library import vl_convert
from kdsl.lab.report.markup import Markup, joined, json_block, tag
from kdsl.lab.report.page_data import page_data
from kdsl.lab.report.plots import VERSION, Looks, Plot
from kdsl.lab.report.prose import about, cards_note, problems_part, sentence
from kdsl.lab.report.rules import rules_section
from kdsl.lab.report.study import Study, shortened
from kdsl.lab.report.theme import DARK, LIGHT, declarations

_PROGRAM: Final = "window.kdslEmbed = vegaEmbed;"


def page_of(contents: Contents) -> str:
    """Return the page as text. KdslError if the library that draws is not installed."""
    style = _style()
    programs = (drawing_library(), _asset("page.js"))
    data = json_block("page-data", page_data(contents))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, programs))}",
            f"style-src {_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    title = f"{shortened(contents.study.name, 80)} – kdsl lab"
    head = joined(
        (
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name_="color-scheme", content="light dark"),
            tag("meta", name_="generator", content=f"kdsl {__version__}"),
            tag("title", title),
            Markup(f"<style>{style}</style>"),
        )
    )
    scripts = joined([Markup(f"<script>{program}</script>") for program in programs])
    body = tag(
        "body", tag("a", "To the figures", href="#figures", class_="skip"), *_body(contents), data, scripts
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), body, lang='en')}\n"


def drawing_library() -> str:
    """Return the program that draws plots: Vega, Vega-Lite and Vega-Embed in one. KdslError without it."""
    program: str = vl_convert().javascript_bundle(_PROGRAM, vl_version=VERSION)
    return program


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources.files("kdsl.lab.report").joinpath(f"assets/{name}").read_text(encoding="utf-8")


def _style() -> str:
    light, dark = declarations(LIGHT), declarations(DARK)
    return (
        f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        + _asset("page.css")
    )


def _body(contents: Contents) -> Iterator[Markup]:
    study, evidence, looks = contents.study, contents.evidence, contents.looks
    sections = [("figures", "Figures"), ("plots", "Plots")]
    if any(plot.key.startswith("cards-") for plot in contents.plots):
        sections.append(("cards", "Cards"))
    sections += [("runs", "Runs"), ("rules", "Rules"), ("about", "About")]
    yield _header(study)
    yield tag(
        "nav",
        _traces(study),
        *(tag("a", title, href=f"#{key}") for key, title in sections),
        aria_label="Page",
    )
    wide = [plot for plot in contents.plots if plot.key == "traces"]
    cards = [plot for plot in contents.plots if plot.key.startswith("cards-")]
    small = [plot for plot in contents.plots if not plot.is_wide]
    yield tag(
        "main",
        problems_part(evidence.problems),
        _section("figures", "Figures", *_figures(study, looks), *map(_figure, wide)),
        _section("plots", "Plots", tag("div", *map(_figure, small), class_="grid")),
        _section("cards", "Cards", cards_note(contents), _legend(), *map(_figure, cards)) if cards else None,
        _section("runs", "Runs", _finder(), tables.runs(study, looks), _run_place()),
        _section("rules", "Rules", rules_section(study, evidence, looks)),
        _section("about", "About these figures", about(contents)),
    )
    yield tag("div", id="tip", role="status", hidden=True)


def _header(study: Study) -> Markup:
    seeds = sorted({run.seed for run in study.runs})
    counts = (
        (len(study.variants), "policy", "policies"),
        (len(study.traces), "trace", "traces"),
        (len(seeds), "seed", "seeds"),
        (len(study.runs), "run", "runs"),
    )
    facts = " · ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counts)
    return tag(
        "header",
        tag("p", "kdsl lab", class_="kicker"),
        tag("h1", shortened(study.name, 80)),
        tag("p", facts, class_="facts"),
    )


def _traces(study: Study) -> Markup | None:
    if len(study.traces) < 2:
        return None
    options = (tag("option", shortened(name), value=at) for at, name in enumerate(study.traces))
    return tag("label", "Trace ", tag("select", *options, id="trace", autocomplete="off"))


def _section(key: str, title: str, *content: Any) -> Markup:
    return tag(
        "section", tag("h2", title, id=f"{key}-title"), *content, id=key, aria_labelledby=f"{key}-title"
    )


def _figures(study: Study, looks: Looks) -> Iterator[Markup]:
    for trace, name in enumerate(study.traces):
        title = tag("h3", f"Trace {shortened(name)}") if len(study.traces) > 1 else None
        yield tag(
            "div",
            title,
            tag("p", text, class_="lead") if (text := sentence(study, trace)) else None,
            tables.figures(study, looks, trace),
            tables.differences(study, looks, trace),
            class_="of-trace",
            data_trace=trace,
        )


def _figure(plot: Plot) -> Markup:
    key = f"{plot.key}-{plot.trace}"
    place = tag("div", class_="plot", id=f"plot-{key}")
    return tag(
        "figure",
        tag("figcaption", tag("h3", plot.title), tag("p", plot.note, class_="note")),
        tag(
            "div",
            place,
            class_="canvas",
            tabindex=0,
            role="group",
            aria_label=plot.title,
        ),
        id=key,
        class_="wide" if plot.is_wide else None,
        data_plot=key,
        data_trace=None if plot.key == "traces" else plot.trace,
    )


def _legend() -> Markup:
    items = (
        tag("li", tag("i", class_=f"level l{level}", aria_hidden="true"), name)
        for level, name in enumerate(LEVEL_NAMES)
    )
    return tag("ul", *items, class_="levels", aria_label="Used share of a card")


def _finder() -> Markup:
    hint = "trace, policy or seed"
    field = tag("input", type="search", id="find-runs", autocomplete="off", placeholder=hint)
    return tag(
        "p", tag("label", "Find runs ", field), tag("span", id="found-runs", role="status"), class_="finder"
    )


def _run_place() -> Markup:
    return tag(
        "div", tag("p", "Choose a run in the table or a dot of a plot.", class_="note"), id="run", tabindex=-1
    )
