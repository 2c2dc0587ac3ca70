"""The data of a page: plots, runs and decisions, which its program reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kdsl.lab.report import tables
from kdsl.lab.report.contents import Contents
from kdsl.lab.report.evidence import Excerpt
from kdsl.lab.report.plots import Row
from kdsl.lab.report.study import Study, shortened
from kdsl.lab.report.theme import CONFIG

_LONGEST: Final = 400
_LONGEST_NAME: Final = 253


def page_data(contents: Contents) -> Mapping[str, Any]:
    """Return the data as values for JSON."""
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
        "runs": {
            run.digest: _run_data(contents, at)
            for at, run in enumerate(study.runs)
            if at < tables.MOST_ROWS or run.digest in evidence.excerpts
        },
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
        rows.append(
            [place, shortened(str(row.get("pod")), _LONGEST_NAME), node, ",".join(map(str, cards)), reason]
        )
    return {"total": excerpt.total, "pending": excerpt.pending, "names": list(names), "rows": rows}
