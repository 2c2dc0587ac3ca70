"""Installed plugins and their contributions, as text and as documents."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from kdsl.base.installed import InstalledPlugin, InstalledRules
from kdsl.base.visible import visible_lines
from kdsl.check.names.externals import PLUGINS, rule_name
from kdsl.check.views.view import time_of
from kdsl.hooks.manifest import Brought, Manifest
from kdsl.report.decisions import API_VERSION, Json
from kdsl.report.tables import table

_NONE = "-"


def plugins_text(
    plugins: Sequence[InstalledPlugin], rules: Sequence[InstalledRules], active: Container[str]
) -> str:
    """Return the table of plugins, and that of rule packages if there are any."""
    rows = [[plugin.name, _yes(plugin.name in active), _from(plugin), plugin.target] for plugin in plugins]
    lines = table(["NAME", "ACTIVE", "FROM", "ENTRY POINT"], rows)
    if rules:
        packages = [[each.name, _from(each), str(each.folder or "not there")] for each in rules]
        lines += ["", *table(["RULE PACKAGE", "FROM", "FOLDER"], packages)]
    return visible_lines(lines)


def plugins_document(
    plugins: Sequence[InstalledPlugin], rules: Sequence[InstalledRules], active: Container[str]
) -> dict[str, Json]:
    """Return installed plugins and rule packages as a versioned document."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PluginList",
        "plugins": [_plugin(plugin, plugin.name in active) for plugin in plugins],
        "rules": [
            {
                "name": each.name,
                "distribution": each.distribution,
                "version": each.version,
                "target": each.target,
                "folder": None if each.folder is None else str(each.folder),
            }
            for each in rules
        ],
    }


def description_text(
    plugin: InstalledPlugin, manifest: Manifest, schema: Mapping[str, Any] | str, active: bool
) -> str:
    """Return a plugin's properties, contributions and arguments; a `schema` that is text says why there is
    none.
    """
    heading = [
        f"{plugin.name}: {_from(plugin)}, {'active' if active else 'not active'}",
        f"entry point {plugin.target}, {PLUGINS}.{rule_name(plugin.name)} in rule files",
    ]
    if manifest.requires:
        heading.append(f"needs kdsl {manifest.requires}")
    if manifest.doc:
        heading += ["", manifest.doc]
    rows = [
        [_kind(each), _signature(plugin, each), _time(each), _reads(each), str(each.cost), each.doc]
        for each in manifest.brought
    ]
    brings = table(["KIND", "NAME", "KNOWN WITH", "READS", "COST", "WHAT"], rows) if rows else []
    arguments = [schema] if isinstance(schema, str) else list(_arguments(schema))
    sections = [visible_lines(each) for each in (heading, brings, arguments)]
    return "\n\n".join(filter(None, sections))


def description_document(
    plugin: InstalledPlugin, manifest: Manifest, schema: Mapping[str, Any] | str, active: bool
) -> dict[str, Json]:
    """Return the same as a versioned document."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plugin",
        "plugin": {
            **_plugin(plugin, active),
            "doc": manifest.doc,
            "requires": manifest.requires,
            "brings": [_brought(plugin, each) for each in manifest.brought],
            "args": None if isinstance(schema, str) else dict(schema),
        },
    }


def _plugin(plugin: InstalledPlugin, active: bool) -> dict[str, Json]:
    return {
        "name": plugin.name,
        "active": active,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "target": plugin.target,
    }


def _brought(plugin: InstalledPlugin, brought: Brought) -> dict[str, Json]:
    return {
        "kind": _kind(brought),
        "name": _name(plugin, brought),
        "args": [] if brought.view else [str(arg) for arg in brought.args],
        "type": str(brought.result),
        "reads": [*sorted(brought.reads)],
        "declared": brought.is_declared,
        "knownWith": _time(brought),
        "cost": brought.cost,
        "doc": brought.doc,
    }


def _arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    """List the arguments of a schema; the document contains its other properties."""
    properties = schema.get("properties", {})
    if not properties:
        yield "takes no arguments"
        return
    required = schema.get("required", ())
    rows = [
        [name, str(spec.get("type", _NONE)), _yes(name in required), str(spec.get("description", ""))]
        for name, spec in properties.items()
    ]
    yield from table(["ARGUMENT", "TYPE", "REQUIRED", "WHAT"], rows)


def _kind(brought: Brought) -> str:
    return "field" if brought.view else "function"


def _name(plugin: InstalledPlugin, brought: Brought) -> str:
    if brought.view:
        return f"{brought.view.lower()}.{brought.name}"
    return f"{PLUGINS}.{rule_name(plugin.name)}.{brought.name}"


def _signature(plugin: InstalledPlugin, brought: Brought) -> str:
    args = "" if brought.view else f"({', '.join(map(str, brought.args))})"
    return f"{_name(plugin, brought)}{args}: {brought.result}"


def _time(brought: Brought) -> str:
    """Return the earliest binding time of the value: that of its arguments may be later."""
    return time_of(brought.reads).name.lower()


def _reads(brought: Brought) -> str:
    return ", ".join(sorted(brought.reads)) or _NONE


def _from(offer: InstalledPlugin | InstalledRules) -> str:
    return f"{offer.distribution} {offer.version}"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
