"""The published schema of kdsl's output documents. `kdsl schema` and the tests read it."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def output_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one kind of output document: `Explanation`, `Simulation`, …."""
    text = resources.files(__name__).joinpath("v1alpha1.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    definitions = schema["$defs"]
    return {
        "$schema": schema["$schema"],
        "title": kind,
        "$ref": f"#/$defs/{kind}",
        "$defs": {name: definitions[name] for name in _used(definitions, kind)},
    }


def _used(definitions: dict[str, Any], kind: str) -> list[str]:
    """Return the definitions that a kind uses, in the order of the file."""
    wanted, pending = {kind}, [kind]
    while pending:
        text = json.dumps(definitions[pending.pop()])
        found = {name for name in definitions if f'"#/$defs/{name}"' in text} - wanted
        wanted |= found
        pending += found
    return [name for name in definitions if name in wanted]
