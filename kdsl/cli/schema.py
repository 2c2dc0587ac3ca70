"""`kdsl schema`: print the JSON Schemas of kdsl's inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click

from kdsl.cli.examples import examples_of
from kdsl.cli.output import print_document


def _config() -> Mapping[str, Any]:
    from kdsl.config.configuration import configuration_schema

    return configuration_schema()


def _experiment() -> Mapping[str, Any]:
    from kdsl.lab.experiment import experiment_schema

    return experiment_schema()


def _mapping() -> Mapping[str, Any]:
    from kdsl.lab.inputs.mapping_file import mapping_schema

    return mapping_schema()


def _output(kind: str) -> Mapping[str, Any]:
    from kdsl.report.schemas import output_schema

    return output_schema(kind)


def _plugin() -> Mapping[str, Any]:
    from kdsl.hooks.manifest import manifest_schema

    return manifest_schema()


def _rules() -> Mapping[str, Any]:
    from kdsl.lang.twin import twin_schema

    return twin_schema()


def _test() -> Mapping[str, Any]:
    from kdsl.testing.shape import schema

    return schema()


SCHEMAS: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "changes": partial(_output, "RuleChanges"),
    "config": _config,
    "decision": partial(_output, "decision"),
    "experiment": _experiment,
    "explanation": partial(_output, "Explanation"),
    "findings": partial(_output, "Findings"),
    "mapping": _mapping,
    "plugin": _plugin,
    "rules": _rules,
    "simulation": partial(_output, "Simulation"),
    "test": _test,
    "trace": partial(_output, "Trace"),
}


@click.command("schema", epilog=examples_of("schema"))
@click.argument("kind", type=click.Choice(list(SCHEMAS)), metavar="KIND")
def command(kind: str) -> None:
    """Print the JSON Schema (2020-12) of a KIND of document.

    KIND is changes, config, decision, experiment, explanation, findings, mapping, plugin, rules, simulation,
    test or trace.
    """
    print_document(SCHEMAS[kind](), "json")
