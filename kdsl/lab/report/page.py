"""The page: one HTML file with plots, tables and the program that draws, which needs no network.

A policy in the page allows its own programs and styles only, by their digests, and no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from kdsl import __version__
from kdsl.base.diagnostic import Diagnostic
from kdsl.lab.report import tables
from kdsl.lab.report.cards import LEVEL_NAMES
from kdsl.lab.report.evidence import Evidence, Excerpt
from kdsl.lab.report.library import vl_convert
from kdsl.lab.report.markup import Markup, joined, json_block, tag
from kdsl.lab.report.plots import VERSION, Looks, Plot, Row
from kdsl.lab.report.rules import rules_section
from kdsl.lab.report.study import Study, shortened
from kdsl.lab.report.theme import CONFIG, DARK, LIGHT, declarations

_SHORT: Final = 12
_PROGRAM: Final = "window.kdslEmbed = vegaEmbed;"
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class Contents:
    """What a page shows. `explain` is the start of the command that explains a decision, if there is one."""

    study: Study
    evidence: Evidence
    looks: Looks
    plots: Sequence[Plot]
    explain: str | None = None


def page_of(contents: Contents) -> str:
    """Return the page as text. KdslError if the library that draws is not installed."""
    style = _style()
    programs = (drawing_library(), _asset("page.js"))
    data = json_block("page-data", _data(contents))
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
        _problems(evidence.problems),
        _section("figures", "Figures", *_figures(study, looks), *map(_figure, wide)),
        _section("plots", "Plots", tag("div", *map(_figure, small), class_="grid")),
        _section("cards", "Cards", _legend(), *map(_figure, cards)) if cards else None,
        _section("runs", "Runs", _finder(), tables.runs(study, looks), _run_place()),
        _section("rules", "Rules", rules_section(study, evidence, looks)),
        _section("about", "About these figures", _about(contents)),
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
            tag("p", sentence, class_="lead") if (sentence := _sentence(study, trace)) else None,
            tables.figures(study, looks, trace),
            tables.differences(study, looks, trace),
            class_="of-trace",
            data_trace=trace,
        )


def _sentence(study: Study, trace: int) -> str | None:
    """Return what the first metric says: the best variant, and how far the next one is."""
    metric = study.metrics[0]
    known = [
        (each, variant)
        for variant in range(len(study.variants))
        if (each := study.over_seeds(trace, variant, metric.key)) is not None
    ]
    if len(known) < 2:
        return None
    known.sort(key=lambda pair: (-1 if metric.is_more_better else 1) * pair[0].mean)
    (best, first), (_, second) = known[:2]
    unit = f" {metric.unit}" if metric.unit else ""
    apart = study.difference(trace, second, first, metric.key)
    text = (
        f"{study.variants[first].label} is best in {metric.title[0].lower()}{metric.title[1:]}:"
        f" {tables.number_text(metric, best.mean)}{unit}"
    )
    if apart is None:
        return f"{text}."
    points = " points" if metric.unit == "%" else unit
    distance = f"{tables.number_text(metric, abs(apart.mean))}{points}"
    if apart.half is not None and abs(apart.mean) <= apart.half:
        return f"{text}. The next, {study.variants[second].label}, is not clearly apart ({distance})."
    return f"{text}, {distance} from the next, {study.variants[second].label}."


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


def _problems(problems: Sequence[Diagnostic]) -> Markup | None:
    if not problems:
        return None
    items = [tag("li", shortened(each.title, _LONGEST)) for each in problems[:20]]
    more = len(problems) - len(items)
    return tag(
        "aside",
        tag("h2", "Not everything could be read"),
        tag("ul", *items, tag("li", f"and {more:,} more") if more else None),
        class_="problems",
    )


def _about(contents: Contents) -> list[Markup]:
    study, evidence = contents.study, contents.evidence
    shown = sum(len(each.places) for each in evidence.excerpts.values())
    total = sum(each.total for each in evidence.excerpts.values())
    intervals = (
        "Intervals: mean ± t · s / √n over the seeds of a policy on a trace, where s is the standard"
        " deviation of the sample and t the 97.5 % quantile of Student’s t distribution with n − 1 degrees of"
        " freedom. They suppose that seeds are drawn independently and that figures are about normal. A"
        " single seed has none."
    )
    differences = (
        "Differences: a seed gives all policies the same pods in the same order, so the interval is that of"
        " the differences of each seed. It is often narrower than those of the two means."
    )
    held = (
        f"Decisions: the page holds {shown:,} of the {total:,} decisions of {len(evidence.excerpts):,} runs,"
        " those nearest to the mean of their seeds; pods without a node come first. All others are in the"
        f" folder: kdsl.lab.open(“{shortened(study.name, 80)}”).decisions(“RUN”)."
    )
    metrics = tag(
        "dl",
        *((tag("dt", metric.axis), tag("dd", metric.about)) for metric in study.metrics),
        class_="metrics",
    )
    return [*(tag("p", text) for text in (intervals, differences, held)), metrics]


# ---- data --------------------------------------------------------------------------------------------------


def _data(contents: Contents) -> Mapping[str, Any]:
    study, evidence = contents.study, contents.evidence
    return {
        "config": CONFIG,
        "explain": contents.explain,
        "metrics": [{"title": metric.axis, "digits": metric.digits_of_one} for metric in study.metrics],
        "plots": {
            f"{plot.key}-{plot.trace}": {
                "spec": plot.spec,
                "data": {name: _columns(rows) for name, rows in plot.data.items()},
            }
            for plot in contents.plots
        },
        "runs": {run.digest: _run_data(contents, at) for at, run in enumerate(study.runs)},
        "decisions": {digest: _excerpt_data(each) for digest, each in evidence.excerpts.items()},
    }


def _columns(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return rows as the names of columns and the values of each row: much shorter than with names."""
    names = list(rows[0]) if rows else []
    return {"names": names, "rows": [[row.get(name) for name in names] for row in rows]}


def _run_data(contents: Contents, at: int) -> Mapping[str, Any]:
    study = contents.study
    run = study.runs[at]
    return {
        "trace": shortened(study.traces[run.trace]),
        "policy": study.variants[run.variant].label,
        "settings": _settings(study, at, contents.evidence.inputs.get(run.digest, {})),
        "values": [run.values.get(metric.key) for metric in study.metrics],
    }


def _settings(study: Study, at: int, inputs: Mapping[str, Any]) -> list[list[str]]:
    run = study.runs[at]
    found = [["seed", str(run.seed)]]
    parameters = tables.settings_of(study.variants[run.variant].parameters)
    if parameters != "–":
        found.append(["parameters", shortened(parameters, _LONGEST)])
    for name, value in inputs.items():
        if name in ("seed", "values", "cards"):
            continue
        if isinstance(value, dict):
            found += [[f"{name}: {key}", shortened(str(each), _LONGEST)] for key, each in value.items()]
        else:
            found.append([str(name), shortened(str(value), _LONGEST)])
    return found


def _excerpt_data(excerpt: Excerpt) -> Mapping[str, Any]:
    """Return decisions by column, with nodes and reasons by number."""
    names: dict[str, int] = {}
    rows = []
    for place, row in zip(excerpt.places, excerpt.rows, strict=True):
        node, reason = (
            None if row.get(key) is None else names.setdefault(shortened(str(row[key]), _LONGEST), len(names))
            for key in ("node", "reason")
        )
        cards = row.get("cards") or []
        rows.append([place, shortened(str(row.get("pod")), 253), node, ",".join(map(str, cards)), reason])
    return {"total": excerpt.total, "pending": excerpt.pending, "names": list(names), "rows": rows}
