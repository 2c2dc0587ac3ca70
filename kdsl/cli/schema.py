"""`kdsl schema`: the JSON Schemas of what kdsl reads and writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from kdsl.cli.output import emit


def _config() -> Mapping[str, Any]:
    from kdsl.config.configuration import configuration_schema

    return configuration_schema()


def _decision() -> Mapping[str, Any]:
    from kdsl.report.schemas import output_schema

    return output_schema("decision")


def _explanation() -> Mapping[str, Any]:
    from kdsl.report.schemas import output_schema

    return output_schema("Explanation")


def _findings() -> Mapping[str, Any]:
    from kdsl.report.schemas import output_schema

    return output_schema("Findings")


def _plugin() -> Mapping[str, Any]:
    from kdsl.hooks.manifest import manifest_schema

    return manifest_schema()


def _rules() -> Mapping[str, Any]:
    from kdsl.lang.twin import twin_schema

    return twin_schema()


def _simulation() -> Mapping[str, Any]:
    from kdsl.report.schemas import output_schema

    return output_schema("Simulation")


def _test() -> Mapping[str, Any]:
    from kdsl.testing.shape import schema

    return schema()


def _trace() -> Mapping[str, Any]:
    from kdsl.report.schemas import output_schema

    return output_schema("Trace")


SCHEMAS: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "config": _config,
    "decision": _decision,
    "explanation": _explanation,
    "findings": _findings,
    "plugin": _plugin,
    "rules": _rules,
    "simulation": _simulation,
    "test": _test,
    "trace": _trace,
}


@click.command("schema")
@click.argument("kind", type=click.Choice(list(SCHEMAS)))
def command(kind: str) -> None:
    """Print the JSON Schema (2020-12) of a KIND of document."""
    emit(json.dumps(SCHEMAS[kind](), indent=2, ensure_ascii=False))
