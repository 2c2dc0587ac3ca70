"""Reads the JSON Schemas that packages of kdsl contain, in their folder `schemas`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def read_schema(package: str, name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) `name` of a package, such as `v1alpha1` of `kdsl.config`."""
    text = resources.files(package).joinpath("schemas", f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
