"""Checks the configured arguments of plugins against the JSON Schema that they bring. Imports no plugin."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kdsl.base import paths
from kdsl.base.containment import describe
from kdsl.base.diagnostic import Diagnostic, did_you_mean, nearest
from kdsl.base.installed import GROUP, InstalledPlugin, package_folder
from kdsl.base.span import Span
from kdsl.hooks.codes import PluginCode

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

SCHEMA_FILE = "args.schema.json"
_NO_ARGUMENTS = {"type": "object", "additionalProperties": False}

Placed = Callable[[paths.Path], Span | None]
"""Returns the place of the argument at a path."""


def check_args(
    plugin: InstalledPlugin, args: Mapping[str, Any], placed: Placed = lambda path: None
) -> tuple[Diagnostic, ...]:
    """Check `args` against the JSON Schema (2020-12) beside the plugin's module; without a schema none are
    valid.

    The plugin is not imported. Codes: `BAD_SCHEMA`, or `BAD_ARGUMENT` for each argument that does not fit.
    """
    try:
        schema = args_schema(plugin)
    except (OSError, ValueError) as cause:
        return (_unusable(plugin, str(cause)),)
    # The schemas of kdsl itself are sound.
    if not args and plugin.distribution == GROUP and "required" not in schema:
        return ()
    # jsonschema takes 120 ms to import: only plugins with arguments, and those of others, pay for it.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import EMPTY_REGISTRY

    try:
        Draft202012Validator.check_schema(schema)
        # Without its own registry the validator would download references from any address.
        errors = list(Draft202012Validator(schema, registry=EMPTY_REGISTRY).iter_errors(args))
    except SchemaError as cause:
        return (_unusable(plugin, cause.message),)
    except RecursionError:
        return (_unusable(plugin, "it refers to itself without end"),)
    except (ValueError, Unresolvable) as cause:
        return (_unusable(plugin, str(cause)),)
    except Exception as cause:  # noqa: BLE001 - a schema may break its reader in any way
        return (_unusable(plugin, describe(cause)),)
    if schema is _NO_ARGUMENTS:
        return tuple(_without_schema(plugin, args, placed))
    return tuple(
        each
        for error in sorted(errors, key=lambda error: (error.json_path, error.message))
        for each in _misfits(plugin, error, placed)
    )


def _misfits(plugin: InstalledPlugin, error: ValidationError, placed: Placed) -> Iterator[Diagnostic]:
    """Yield the diagnostics of an error: one for each argument that the schema does not have, or needs."""
    from kdsl.config.misfits import fault_of

    path, where = tuple(error.absolute_path), f"plugins.{plugin.name}{error.json_path.removeprefix('$')}"
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    instance = error.instance
    if error.validator == "required" and isinstance(instance, Mapping):
        names = [name for name in schema["required"] if name not in instance]
        # jsonschema yields one error for each of them.
        name = next((name for name in names if repr(name) in error.message), names[0])
        properties = schema.get("properties", {})
        if any(each not in properties and nearest(each, properties) == name for each in instance):
            # It is misspelled, which is reported as an unknown argument.
            return
        title = f"plugin `{plugin.name}` needs the argument `{paths.path_text((*path, name))}`"
        yield Diagnostic(PluginCode.BAD_ARGUMENT, title, placed(path), where=where)
        return
    is_named = error.validator == "additionalProperties" and "patternProperties" not in schema
    if not is_named or not isinstance(instance, Mapping):
        fault, help_ = fault_of(error)
        what = f"the argument `{paths.path_text(path)}`" if path else "what stands below `args`"
        title = f"{what} of plugin `{plugin.name}` {fault}"
        yield Diagnostic(PluginCode.BAD_ARGUMENT, title, placed(path), where=where, help=help_)
        return
    known = list(schema.get("properties", {}))
    listed = (f"known here: {', '.join(f'`{name}`' for name in known)}",) if known else ()
    for name in instance:
        if name not in known:
            title = f"plugin `{plugin.name}` has no argument `{name}`"
            help_ = did_you_mean(name, known) or listed
            span = placed((*path, name))
            yield Diagnostic(PluginCode.BAD_ARGUMENT, title, span, where=f"{where}.{name}", help=help_)


def _without_schema(plugin: InstalledPlugin, args: Mapping[str, Any], placed: Placed) -> Iterator[Diagnostic]:
    for name in args:
        yield Diagnostic(
            PluginCode.BAD_ARGUMENT,
            f"plugin `{plugin.name}` takes no arguments, such as `{name}`",
            placed((name,)),
            where=f"plugins.{plugin.name}.{name}",
            help=(f"the author of a plugin lists its arguments in `{SCHEMA_FILE}` beside its module",),
        )


def _unusable(plugin: InstalledPlugin, reason: str) -> Diagnostic:
    title = f"the {SCHEMA_FILE} of plugin `{plugin.name}` cannot be used: {reason}"
    return Diagnostic(PluginCode.BAD_SCHEMA, title, where=f"plugins.{plugin.name}")


def args_schema(plugin: InstalledPlugin) -> Mapping[str, Any]:
    """Return the schema beside the plugin's module; without one, a schema that allows no arguments.

    Raises ValueError where it is not a JSON object, OSError where it cannot be read.
    """
    folder = package_folder(plugin.module)
    file = None if folder is None else folder / SCHEMA_FILE
    if file is None or not file.is_file():
        return _NO_ARGUMENTS
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(schema, dict):
        raise ValueError("it is not an object")
    return schema
