"""Bytes of one input to plain documents, in any of the formats YAML, JSON and JSON lines.

`reader` uses it for every file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import msgspec

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.undecodable import json_mistake, undecodable
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.yaml_text import MistakeKind, yaml_documents

_CODES: Final = {
    MistakeKind.SYNTAX: InputCode.SYNTAX,
    MistakeKind.DUPLICATE_KEY: InputCode.DUPLICATE_KEY,
    MistakeKind.TOO_LARGE: InputCode.TOO_LARGE,
}


@dataclass(frozen=True, slots=True)
class Document:
    """A value from `where`, a file with the number of the document or line in it: `nodes.yaml#3`."""

    where: str
    value: object


def read_documents(name: str, data: bytes, found: list[Diagnostic]) -> Iterator[Document]:
    """Yield the documents of an input; skip those that cannot be parsed and add the errors to `found`.

    The suffix of `name` is the format: `.json` and `.jsonl` are JSON; any other input is YAML unless it is
    JSON.
    """
    suffixes = PurePath(name).suffixes
    suffix = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if suffix == ".jsonl":
        yield from _json_lines(name, data, found)
    elif suffix == ".json" or data.lstrip()[:1] in (b"{", b"["):
        yield from _json(name, data, found, is_certain=suffix == ".json")
    else:
        yield from _yaml(name, data, found)


def _json(name: str, data: bytes, found: list[Diagnostic], *, is_certain: bool) -> Iterator[Document]:
    try:
        value = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        if _is_json_lines(data):
            yield from _json_lines(name, data, found)
        elif is_certain:
            Problems(found, f"{name}#1").add(
                InputCode.SYNTAX, (), f"this is not JSON: {json_mistake(data, error)}"
            )
        else:
            yield from _yaml(name, data, found)
    else:
        yield Document(f"{name}#1", value)


def _json_lines(name: str, data: bytes, found: list[Diagnostic]) -> Iterator[Document]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{name}#{number}"
        try:
            yield Document(where, msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            Problems(found, where).add(InputCode.SYNTAX, (), f"this is not JSON: {json_mistake(line, error)}")


def _is_json_lines(data: bytes) -> bool:
    """Return whether the data is JSON lines, some perhaps broken, and not YAML whose documents are JSON."""
    lines = [line for line in data.splitlines() if line.strip()]
    if len(lines) < 2 or any(line.startswith(b"---") for line in lines):
        return False
    try:
        msgspec.json.decode(lines[0])
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return True


def _yaml(name: str, data: bytes, found: list[Diagnostic]) -> Iterator[Document]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found.append(undecodable(InputCode.SYNTAX, name, error))
        return
    for document in yaml_documents(text):
        where = f"{name}#{document.number}"
        for mistake in document.mistakes:
            Problems(found, f"{where}: line {mistake.line}").add(
                _CODES[mistake.kind], (), mistake.text, *mistake.help
            )
        if not document.is_broken and document.value is not None:
            yield Document(where, document.value)
