"""Finds the plugins that installed distributions offer, and checks the arguments they are configured with.

Finding imports nothing: a plugin's code is loaded only when a configuration names it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from typing import Any

from kdsl.base.diagnostic import Diagnostic

GROUP = "kdsl"
SCHEMA_FILE = "args.schema.json"
BAD_ARGUMENT = "K1004"
_NO_ARGUMENTS = {"type": "object", "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry point of the group `kdsl`: `target` is `module:attribute`."""

    name: str
    target: str
    distribution: str
    version: str
    entry_point: metadata.EntryPoint


def installed_plugins() -> tuple[InstalledPlugin, ...]:
    """List the plugins of all installed distributions, by name, then distribution."""
    found = [
        InstalledPlugin(
            name=entry_point.name,
            target=entry_point.value,
            distribution=entry_point.dist.name if entry_point.dist else "",
            version=entry_point.dist.version if entry_point.dist else "",
            entry_point=entry_point,
        )
        for entry_point in metadata.entry_points(group=GROUP)
    ]
    # An editable installation may list its entry points twice: once is enough.
    unique = {(plugin.name, plugin.target, plugin.distribution): plugin for plugin in found}
    return tuple(unique[key] for key in sorted(unique))


def check_args(plugin: InstalledPlugin, args: Mapping[str, Any]) -> tuple[Diagnostic, ...]:
    """Check `args` against the JSON Schema (2020-12) beside the plugin's module; without one none fit.

    The module must be imported already. Codes: K1003 for a broken schema, `BAD_ARGUMENT` for each argument
    that does not fit.
    """
    # jsonschema takes 120 ms to import: only configurations with entry-point plugins pay for it.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    where = f"plugins.{plugin.name}"
    try:
        schema = _read_schema(plugin)
        Draft202012Validator.check_schema(schema)
        errors = list(Draft202012Validator(schema).iter_errors(args))
    except (ValueError, SchemaError, Unresolvable) as cause:
        reason = cause.message if isinstance(cause, SchemaError) else str(cause)
        title = f"the {SCHEMA_FILE} of plugin `{plugin.name}` cannot be used: {reason}"
        return (Diagnostic("K1003", title, where=where),)
    return tuple(
        Diagnostic(
            BAD_ARGUMENT,
            f"argument does not fit plugin `{plugin.name}`: {error.message}",
            where=where + error.json_path.removeprefix("$"),
        )
        for error in sorted(errors, key=lambda error: (error.json_path, error.message))
    )


def _read_schema(plugin: InstalledPlugin) -> Mapping[str, Any]:
    """Return the schema beside the plugin's module; ValueError where it is not a JSON object."""
    spec = sys.modules[plugin.entry_point.module].__spec__
    if spec is None or not spec.parent:
        return _NO_ARGUMENTS
    file = resources.files(spec.parent).joinpath(SCHEMA_FILE)
    if not file.is_file():
        return _NO_ARGUMENTS
    schema = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(schema, dict):
        raise ValueError("it is not an object")
    return schema
