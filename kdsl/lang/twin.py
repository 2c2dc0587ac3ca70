"""The YAML twin of a rule file: the same tree as a stream of documents, for ConfigMaps and schema checks.

The loader reads `*.kdsl.yaml` with it and `kdsl convert` goes both ways. Expressions and reasons stay text;
only comments are lost. `twin_table.py` defines the content of each document.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import yaml

from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.span import Source, Span
from kdsl.lang import tree
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import TWIN_SUFFIX
from kdsl.lang.hidden import hidden_in_yaml, is_hiding, without_hidden
from kdsl.lang.parser import LANGUAGE_VERSION, MAX_ERRORS, ParseResult, parse_file
from kdsl.lang.printer import format_file
from kdsl.lang.twin_forms import Findings, MisfitError, Schema
from kdsl.lang.twin_records import Group, Part, read_parts_of, schema_of, write_parts_of
from kdsl.lang.twin_table import BLOCKS, KINDS, PACKAGE, PACKAGE_METADATA, PACKAGE_SPEC, DocumentKind
from kdsl.lang.yaml_tree import Plain, YamlMapping, YamlNode, YamlScalar, read_yaml, resolve_plain

API_VERSION: Final = f"kdsl.dev/v{LANGUAGE_VERSION}"
_HEADER: Final = ("apiVersion", "kind")


def is_twin(path: str) -> bool:
    """Return whether a path names a rule file in YAML."""
    return path.endswith(TWIN_SUFFIX)


def parse_rules(source: Source) -> ParseResult:
    """Parse a rule file in the form of its path. Never raises."""
    return parse_twin(source) if is_twin(source.path) else parse_file(source)


def parse_twin(source: Source) -> ParseResult:
    """Parse a rule file in YAML. Never raises: each mistake is a diagnostic, in the order of the text."""
    # Some of these characters break lines of YAML, so they come before its own mistakes.
    if hidden := tuple(islice(hidden_in_yaml(source), MAX_ERRORS)):
        return ParseResult(None, hidden)
    read = read_yaml(source)
    if has_errors(read.diagnostics):
        return ParseResult(None, read.diagnostics)
    found = Findings()
    package: dict[str, Any] = {"package": None, "imports": ()}
    declarations: list[tree.Declaration] = []
    for number, document in enumerate(read.documents):
        try:
            kind = _kind_of(document, found)
            if kind != PACKAGE:
                declarations.append(_declaration(document, KINDS[kind], found))
            elif number:
                title = f"`{PACKAGE}` must be the first document, and the only one of its kind"
                raise found.refuse(LangCode.TWIN_KEY, document.span, title)
            else:
                package = _read(document, PACKAGE_METADATA, PACKAGE_SPEC, found)
        except MisfitError:
            continue
    span = Span(source, 0, len(source.text))
    file = tree.File(LANGUAGE_VERSION, declarations=tuple(declarations), span=span, **package)
    ordered = sorted(found.diagnostics, key=lambda each: each.span.start if each.span else 0)
    return ParseResult(file, tuple(ordered))


def format_twin(file: tree.File) -> str:
    """Return a file in YAML without its comments, but with the documentation of its declarations."""
    text: str = yaml.dump_all(
        _documents(file),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1 << 30,
    )
    return without_hidden(text)


def convert(source: Source, *, to_twin: bool) -> tuple[str | None, tuple[Diagnostic, ...]]:
    """Return a rule file in the other form. The text reads back as the same tree, or there is none."""
    before = parse_rules(source)
    if before.file is None or has_errors(before.diagnostics):
        return None, before.diagnostics
    text = format_twin(before.file) if to_twin else format_file(before.file)
    after = (parse_twin if to_twin else parse_file)(Source(source.path, text))
    if after.file != before.file or after.diagnostics:
        title = "not converted: the other form cannot hold this file"
        reasons = tuple(each.title for each in after.diagnostics)
        refusal = Diagnostic(LangCode.CONVERT_REFUSED, title, Span(source, 0, 0), notes=reasons)
        return None, (*before.diagnostics, refusal)
    return text, before.diagnostics


def twin_schema() -> Schema:
    """Return the JSON Schema (2020-12) of one document of a rule file in YAML."""
    package = _document_schema(PACKAGE, PACKAGE_METADATA, PACKAGE_SPEC)
    # All keys of a package's document are optional, except for those that identify it.
    package["required"] = list(_HEADER)
    kinds: list[Plain] = [package]
    kinds += [_document_schema(name, kind.metadata, kind.spec) for name, kind in KINDS.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://kdsl.dev/schemas/v{LANGUAGE_VERSION}/rules.schema.json",
        "title": "A document of a rule file in YAML",
        "oneOf": kinds,
        "$defs": {block.name: block.definition() for block in BLOCKS},
    }


# ---- reading -----------------------------------------------------------------------------------------------


def _kind_of(document: YamlNode, found: Findings) -> str:
    """Check `apiVersion` and return the kind."""
    if not isinstance(document, YamlMapping):
        title = "a document of a rule file is a mapping with `apiVersion`, `kind`, `metadata` and `spec`"
        raise found.refuse(LangCode.TWIN_SHAPE, document.span, title)
    for key in _HEADER:
        if not isinstance(document.get(key), YamlScalar):
            place = document.entries[0][0].span if document.entries else document.span
            raise found.refuse(
                LangCode.TWIN_MISSING,
                place,
                f"the key `{key}` is missing here",
                f"a rule file in YAML has `apiVersion: {API_VERSION}` and a `kind`",
            )
    version, kind = document.get("apiVersion"), document.get("kind")
    assert isinstance(version, YamlScalar) and isinstance(kind, YamlScalar)
    if version.text != API_VERSION:
        title = f"this kdsl reads `{API_VERSION}`, not `{version.text}`"
        raise found.refuse(LangCode.TWIN_VALUE, version.span, title)
    known = (PACKAGE, *KINDS)
    if kind.text not in known:
        help_ = did_you_mean(kind.text, known) or (f"kinds: {', '.join(known)}",)
        raise found.refuse(LangCode.TWIN_KEY, kind.span, f"there is no kind `{kind.text}`", *help_)
    return kind.text


def _declaration(document: YamlNode, kind: DocumentKind, found: Findings) -> tree.Declaration:
    return kind.make(**_read(document, kind.metadata, kind.spec, found), span=document.span)


def _read(
    document: YamlNode, metadata: tuple[Part, ...], spec: tuple[Part, ...], found: Findings
) -> dict[str, Any]:
    """Read `metadata` and `spec`; one with optional parts only may be absent."""
    assert isinstance(document, YamlMapping)
    body = YamlMapping(
        document.span, tuple(entry for entry in document.entries if entry[0].text not in _HEADER)
    )
    groups = (Group("metadata", metadata), Group("spec", spec))
    absent = [group for group in groups if document.get(group.key) is None and _is_optional(group)]
    values = read_parts_of(body, (group for group in groups if group not in absent), found)
    empty = YamlMapping(document.span, ())
    for group in absent:
        values |= read_parts_of(empty, group.parts, found)
    return values


def _is_optional(group: Group) -> bool:
    return not any(part.required for part in group.parts)


# ---- writing -----------------------------------------------------------------------------------------------


def _documents(file: tree.File) -> Iterator[dict[str, Plain]]:
    if file.package or file.imports:
        yield _document(PACKAGE, file, PACKAGE_METADATA, PACKAGE_SPEC)
    for declaration in file.declarations:
        name, kind = next((name, kind) for name, kind in KINDS.items() if kind.make is type(declaration))
        yield _document(name, declaration, kind.metadata, kind.spec)


def _document(
    kind: str, value: object, metadata: tuple[Part, ...], spec: tuple[Part, ...]
) -> dict[str, Plain]:
    document: dict[str, Plain] = {"apiVersion": API_VERSION, "kind": kind}
    for key, parts in (("metadata", metadata), ("spec", spec)):
        written = write_parts_of(value, parts)
        if written or any(part.required for part in parts):
            document[key] = written
    return document


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and quotes texts that a reader could take for another type.

    Texts with hidden characters are in double quotes, which have escapes. Elsewhere YAML 1.1 would fold some
    of them like line feeds.
    """


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if is_hiding(text):
        style: str | None = '"'
    else:
        style = "|" if "\n" in text else None if isinstance(resolve_plain(text), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]  # a value is written where it stands


def _document_schema(kind: str, metadata: tuple[Part, ...], spec: tuple[Part, ...]) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*_HEADER, "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            "metadata": schema_of(metadata),
            "spec": schema_of(spec),
        },
    }
