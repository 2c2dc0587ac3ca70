"""The writes of a scheduler, made comparable: two schedulers that do the same send equal writes.

Times, resource versions, generated names and uids are replaced by placeholders; a uid that the script knows
keeps its own, so that a write to the wrong pod differs.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.scheduler.recording import Step

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBERED = re.compile(r"<(time|gen|rv):\d+>")
_GENERATED = re.compile(r"\.[0-9a-f]{12,16}$")
_SERVER = re.compile(r"https://127\.0\.0\.1:\d+")
_VERSION = "resourceVersion"
# What the encoder of the reference writes for fields that are not set.
_EMPTY_EVENT_FIELDS = ("deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp")


@dataclass(frozen=True, slots=True)
class Write:
    """One changing request. `object` is the pod, claim, volume or lease that it is about."""

    object: str
    method: str
    path: str
    content_type: str
    query: tuple[tuple[str, str], ...]
    body: str
    """JSON with sorted keys."""

    def __str__(self) -> str:
        query = f" ?{dict(self.query)}" if self.query else ""
        return f"{self.method} {self.path}{query} [{self.content_type}] {self.body}"


@dataclass(slots=True)
class Words:
    """The replacements in texts: placeholders of the recording by the uids of this run, and this run's host."""

    uids: dict[str, str] = field(default_factory=dict)
    host: str = ""
    extenders: dict[str, str] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)

    def learn(self, recorded: str, actual: str) -> None:
        """Note that the script's object got a uid here."""
        self.uids[actual] = recorded

    def plain(self, text: str) -> str:
        """Return a text of this run as the recording would have it."""
        for actual, recorded in (*self.identities.items(), *self.extenders.items()):
            text = text.replace(actual, recorded)
        text = _UID.sub(lambda found: self.uids.get(found[0], "<uid>"), text)
        if self.host:
            text = text.replace(self.host, "<host>")
        return _SERVER.sub("<server>", _TIME.sub("<time>", text))

    def actual(self, text: str) -> str:
        """Return a text of the recording with the uids of this run."""
        for actual, recorded in self.uids.items():
            text = text.replace(recorded, actual)
        return text


def recorded_write(step: Step, known: Iterable[str]) -> Write:
    """Return what the reference sent; uids that are not `known` to the script have no number."""
    uids = set(known)

    def plain(text: str) -> str:
        text = _NUMBERED.sub(r"<\1>", text)
        return re.sub(r"<uid:\d+>", lambda found: found[0] if found[0] in uids else "<uid>", text)

    what = step.what
    content_type = what.get("headers", {}).get("content-type", "")
    return _write(
        what["method"], what["path"], content_type, what.get("query") or {}, what.get("body"), plain
    )


def sent_write(
    method: str, path: str, content_type: str, query: Mapping[str, str], body: object, words: Words
) -> Write:
    """Return what was sent here, with the placeholders of the recording."""
    return _write(method, path, content_type, query, body, words.plain)


def by_object(writes: Iterable[Write]) -> dict[str, list[Write]]:
    """Return the writes to each object, in their order: between objects there is none."""
    found: dict[str, list[Write]] = defaultdict(list)
    for write in writes:
        found[write.object].append(write)
    return dict(found)


def _write(
    method: str, path: str, content_type: str, query: Mapping[str, str], body: object, plain: Any
) -> Write:
    path = _generated(plain(path))
    value = _without_noise(_mapped(body, plain))
    asked = tuple(sorted((key, plain(str(each))) for key, each in query.items() if key != "timeout"))
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return Write(_object(path, value), method, path, content_type, asked, text)


def _mapped(value: object, plain: Any, key: str = "") -> Any:
    match value:
        case dict():
            return {name: _mapped(each, plain, name) for name, each in value.items()}
        case list():
            return [_mapped(each, plain) for each in value]
        case str():
            return "<rv>" if key == _VERSION else _generated(plain(value)) if key == "name" else plain(value)
        case _:
            return value


def _without_noise(value: Any) -> Any:
    if isinstance(value, dict) and value.get("kind") == "Event":
        kept = {key: each for key, each in value.items() if key not in _EMPTY_EVENT_FIELDS}
        # The rules behind a decision: kdsl's own.
        kept["metadata"] = {key: each for key, each in kept["metadata"].items() if key != "annotations"}
        return kept
    return value


def _generated(text: str) -> str:
    return _GENERATED.sub(".<gen>", text)


def _object(path: str, body: Any) -> str:
    """Return the object of a write: events are about a pod, but have an order of their own."""
    if "/events" in path:
        about = isinstance(body, dict) and (body.get("regarding") or body.get("involvedObject"))
        name = about["name"] if about else path.rpartition("/")[2].removesuffix(".<gen>")
        return f"events of {path.split('/namespaces/')[1].split('/')[0]}/{name}"
    return re.sub(r"/(status|binding)$", "", path)
