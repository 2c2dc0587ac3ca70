"""Compares what kdsl sent in a scenario with what kube-scheduler sent."""

from __future__ import annotations

import difflib
import json
import re
import socket
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl

from kdsl.sandbox import RecordedRequest

from tests.conformance.scheduler import reads
from tests.conformance.scheduler.actors import HOST
from tests.conformance.scheduler.differences import REWORDINGS
from tests.conformance.scheduler.recorded_extender import pod_of
from tests.conformance.scheduler.recording import Json, Kind, Scenario
from tests.conformance.scheduler.stage import Played
from tests.conformance.scheduler.writes import (
    Words,
    Write,
    by_object,
    recorded_write,
    sent_write,
)

_IDENTITY = re.compile(r"<host>_(<uid:\d+>)")
_TAKEOVER_SECONDS = 3.0
"""Retries have a jitter of 1.2 periods, on both sides."""


class Side(StrEnum):
    """Who sent what the other did not."""

    MISSING = "missing"
    """kube-scheduler did, kdsl did not."""
    EXTRA = "extra"
    """kdsl did, kube-scheduler did not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One request that only one of the two sent, or another difference."""

    side: Side
    about: str
    text: str

    def __str__(self) -> str:
        sign = "-" if self.side is Side.MISSING else "+"
        return f"{sign} {self.about}: {self.text}"


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences in a scenario, and the rewordings that were needed."""

    findings: list[Finding]
    reworded: frozenset[str]


def compare(scenario: Scenario, played: Played, exchanges: list[Json]) -> Compared:
    """Compare a scenario with what came of it here."""
    known = _known(scenario)
    _learn_identities(scenario, played, known)
    reworded: set[str] = set()
    has_one = len(_recorded_identities(scenario)) == 1  # of several, nobody can tell whose a read is
    sent = [_reworded(write, reworded) for write in _sent(played, with_lease_reads=has_one)]
    if not any(_is_lease(step.what["path"]) for step in scenario.steps if step.is_write):
        sent = [write for write in sent if not _is_lease(write.path)]  # left out of the recording
    findings = [Finding(Side.EXTRA, "script", error) for error in played.errors]
    if scenario.counts:
        findings += _counts(scenario, played)
        return Compared(findings, frozenset(reworded))
    recorded = [
        recorded_write(step, known)
        for step in scenario.steps
        if step.is_write or (has_one and step.kind is Kind.REQUEST and _is_lease(step.what["path"]))
    ]
    if scenario.depends_on_timing:
        findings += _kinds(recorded, sent) + list(_bound(scenario, played))
    else:
        findings += list(_writes(recorded, sent))
    findings += list(_exits(played)) + list(_takeovers(scenario, played))
    findings += list(_script_reads(played, known))
    findings += list(_asked(exchanges, played, known))
    if reads.are_compared(scenario.family):
        findings += list(_reads(scenario, played.requests))
    return Compared(findings, frozenset(reworded))


def _known(scenario: Scenario) -> set[str]:
    """Return the placeholders of uids that can be told here: the script's objects and the instances."""
    driven = {step.response.get("uid", "") for step in scenario.steps if step.kind is Kind.DRIVER}
    return driven | set(_recorded_identities(scenario))


def _recorded_identities(scenario: Scenario) -> list[str]:
    found = (
        _IDENTITY.search(str(step.what["body"])) for step in scenario.steps if step.is_write and _is_lease(step.what["path"])
    )  # fmt: skip
    return list(dict.fromkeys(each[1] for each in found if each))


def _learn_identities(scenario: Scenario, played: Played, known: set[str]) -> None:
    """Let each instance here stand for the recorded one that first wrote the lease in the same place."""
    here: list[str] = []
    for request in played.requests:
        if request.method in ("PUT", "POST") and _is_lease(request.path):
            holder = request.document["spec"].get("holderIdentity", "")
            if "_" in holder and holder not in here:
                here.append(holder)
    for actual, recorded in zip(here, _recorded_identities(scenario), strict=False):
        played.words.identities[actual] = f"<host>_{recorded}"
    played.words.host = (
        HOST if any(HOST.encode() in each.body for each in played.requests) else socket.gethostname()
    )


def _is_lease(path: str) -> bool:
    return "/leases" in path


def _sent(played: Played, *, with_lease_reads: bool) -> Iterator[Write]:
    for request in played.requests:
        if request.method != "GET" or (with_lease_reads and _is_lease(request.path)):
            yield sent_write(
                request.method, request.path, request.content_type, _query(request), request.document, played.words
            )  # fmt: skip


def _query(request: RecordedRequest) -> dict[str, str]:
    return dict(parse_qsl(request.query, keep_blank_values=True))


def _reworded(write: Write, used: set[str]) -> Write:
    """Return a write without the listed differences that many writes have."""
    for rewording in REWORDINGS:
        other = rewording.apply(write)
        if other is not None and other != write:
            used.add(rewording.name)
            write = other
    return write


def _writes(recorded: list[Write], sent: list[Write]) -> Iterator[Finding]:
    expected, actual = by_object(recorded), by_object(sent)
    for about in sorted(expected.keys() | actual.keys()):
        old = _texts(about, expected.get(about, []))
        new = _texts(about, actual.get(about, []))
        yield from _differ(about, old, new)


def _differ(about: str, old: list[str], new: list[str]) -> Iterator[Finding]:
    for line in difflib.ndiff(old, new):
        if line.startswith("- "):
            yield Finding(Side.MISSING, about, line[2:])
        elif line.startswith("+ "):
            yield Finding(Side.EXTRA, about, line[2:])


def _texts(about: str, writes: list[Write]) -> list[str]:
    texts = [str(write) for write in writes]
    return _without_rounds(texts) if _is_lease(about) else texts


def _without_rounds(texts: list[str]) -> list[str]:
    """Return what a lease was asked, without how often the same one or two requests were repeated."""
    found: list[str] = []
    for text in texts:
        found.append(text)
        for length in (1, 2):
            if found[-length:] == found[-2 * length : -length]:
                del found[-length:]
    return found


def _kinds(recorded: list[Write], sent: list[Write]) -> list[Finding]:
    """Compare which kinds of requests were sent, not how many."""
    old, new = {_kind(write) for write in recorded}, {_kind(write) for write in sent}
    gone = [Finding(Side.MISSING, "kinds", each) for each in sorted(old - new)]
    return gone + [Finding(Side.EXTRA, "kinds", each) for each in sorted(new - old)]


def _kind(write: Write) -> str:
    body = json.loads(write.body) or {}
    reason = body.get("reason", "") if isinstance(body, dict) else ""
    return f"{write.method} {write.path} {reason}".strip()


def _bound(scenario: Scenario, played: Played) -> Iterator[Finding]:
    """Compare where pods ended."""
    for step in scenario.steps:
        path = step.what.get("path", "")
        if step.is_write and path.endswith("/binding") and step.response.get("status") == 201:
            name, node = path.split("/")[-2], step.what["body"]["target"]["name"]
            found = played.pods.get(name, {}).get("spec", {}).get("nodeName")
            if found != node:
                yield Finding(Side.MISSING, f"pod {name}", f"on {node}, here on {found}")


def _exits(played: Played) -> Iterator[Finding]:
    """Compare what the process ended with."""
    for step, code in played.exits:
        recorded = re.search(r"\d+", step.what["note"])
        if recorded is not None and code != int(recorded[0]):
            yield Finding(Side.EXTRA, "process", f"ended with {code}, kube-scheduler with {recorded[0]}")


def _takeovers(scenario: Scenario, played: Played) -> Iterator[Finding]:
    """Compare how long it took until another instance held the lease, after the script's step before that."""
    old = _holders(
        (step.seconds, str(step.what["body"]["spec"].get("holderIdentity", "")))
        for step in scenario.steps
        if step.is_write and _is_lease(step.what["path"]) and step.response.get("status") in (200, 201)
    )
    new = _holders(
        (each.at, played.words.plain(each.document["spec"].get("holderIdentity", "")))
        for each in played.requests
        if each.method in ("POST", "PUT") and _is_lease(each.path) and each.status in (200, 201)
    )
    for holder, at in list(old.items())[1:]:
        before = [(step.seconds, here) for step, here in played.acted if step.seconds <= at]
        if holder not in new or not before:
            continue  # that is a missing write
        took, takes = at - before[-1][0], new[holder] - before[-1][1]
        if abs(took - takes) > _TAKEOVER_SECONDS:
            yield Finding(
                Side.EXTRA, "lease", f"taken after {takes:.1f} s, by kube-scheduler after {took:.1f} s"
            )


def _holders(writes: Iterable[tuple[float, str]]) -> dict[str, float]:
    """Return when each instance was first written down as the holder."""
    found: dict[str, float] = {}
    for at, holder in writes:
        if holder:
            found.setdefault(holder, at)
    return found


def _script_reads(played: Played, known: Iterable[str]) -> Iterator[Finding]:
    """Compare what the script read: the state in the end."""
    for step, actual in played.read:
        expected = step.response.get("body")
        if expected is None:
            continue
        old = _plain_document(expected, None, known)
        new = _plain_document(actual, played.words, known)
        yield from _differ(f"script's GET {step.what['path']}", old, new)


def _plain_document(document: object, words: Words | None, known: Iterable[str]) -> list[str]:
    text = json.dumps(document, sort_keys=True)
    if words is not None:
        text = words.plain(text)
    else:
        uids = set(known)
        text = re.sub(r"<uid:\d+>", lambda found: found[0] if found[0] in uids else "<uid>", text)
        text = re.sub(r"<(time|gen|rv):\d+>", r"<\1>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>", text)
    text = re.sub(r'"resourceVersion": "[^"]*"', '"resourceVersion": "<rv>"', text)
    return _lines("", json.loads(text))


def _lines(path: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [
            line
            for key, each in sorted(value.items())
            if key != "managedFields"
            for line in _lines(f"{path}.{key}", each)
        ]
    if isinstance(value, list):
        return [line for each in value for line in _lines(f"{path}[]", each)] or [f"{path}: []"]
    return [f"{path}: {value!r}"]


def _asked(exchanges: list[Json], played: Played, known: Iterable[str]) -> Iterator[Finding]:
    """Compare what an extender was asked about each pod, in order."""
    old, new = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for exchange in exchanges:
        path, body = exchange["request"]["path"], exchange["request"]["body"]
        old[f"{path} about {pod_of(body)}"].append(_question(body, None, known))
    for path, body in played.asked:
        new[f"{path} about {pod_of(body)}"].append(_question(body, played.words, known))
    for about in sorted(old.keys() | new.keys()):
        yield from _differ(f"extender {about}", old[about], new[about])


def _question(body: Json, words: Words | None, known: Iterable[str]) -> str:
    """Return a question; which of several nodes is named first depends on threads."""
    if body.get("NodeNames"):
        body = {**body, "NodeNames": sorted(body["NodeNames"])}
    if body.get("Nodes"):
        items = sorted(body["Nodes"]["items"], key=lambda node: str(node["metadata"]["name"]))
        body = {**body, "Nodes": {**body["Nodes"], "items": items}}
    return json.dumps(_plain_document(body, words, known))


def _reads(scenario: Scenario, requests: list[RecordedRequest]) -> Iterator[Finding]:
    old = reads.forms(
        (step.what["path"], step.what.get("query") or {})
        for step in scenario.steps
        if step.kind is Kind.REQUEST and step.what["method"] == "GET" and not _is_lease(step.what["path"])
    )
    new = reads.forms(
        (each.path, _query(each)) for each in requests if each.method == "GET" and not _is_lease(each.path)
    )
    for path in sorted(old.keys() | new.keys()):
        yield from _differ(f"GET {path}", old.get(path, []), new.get(path, []))


def _counts(scenario: Scenario, played: Played) -> list[Finding]:
    """Compare how many requests of each kind were sent, and how many events of each reason."""
    kinds, reasons = Counter[str](), Counter[str]()
    for request in played.requests:
        if request.method == "GET":
            continue
        path = re.sub(r"/pods/p\d+/", "/pods/NAME/", request.path)
        kinds[f"{request.method} {path} -> {request.status}"] += 1
        if path.endswith("/events"):
            reasons[request.document["reason"]] += 1
    counted = {"requests": dict(kinds), "event_reasons": dict(reasons)}
    return [
        Finding(side, name, f"{key}: {value}")
        for name in counted
        for side, one, other in (
            (Side.MISSING, scenario.counts[name], counted[name]), (Side.EXTRA, counted[name], scenario.counts[name]),
        )
        for key, value in one.items()
        if other.get(key) != value
    ]  # fmt: skip
