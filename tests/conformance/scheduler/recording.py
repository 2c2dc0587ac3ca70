"""Reads the recorded scenarios: what the script did, what the scheduler sent, in the order of arrival."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Kind(StrEnum):
    """Whose step it is."""

    DRIVER = "driver"
    REQUEST = "request"
    EXTENDER = "extender"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of a timeline. `what` is the request, for a control a dictionary with its text."""

    kind: Kind
    what: Json
    response: Json
    fault: str
    seconds: float
    """Since the first step."""

    @property
    def is_write(self) -> bool:
        """Return whether the request changed something."""
        return self.kind is Kind.REQUEST and self.what["method"] != "GET"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A recorded run of kube-scheduler."""

    name: str
    about: str
    config: Json
    repeats: str
    steps: tuple[Step, ...]
    counts: Json

    @property
    def family(self) -> str:
        """The first word of the name."""
        return self.name.partition("-")[0]

    @property
    def depends_on_timing(self) -> bool:
        """Return whether only the kinds of requests and the final state can be compared."""
        return self.repeats == "differs"


def read_scenarios(path: Path) -> Iterator[Scenario]:
    """Yield the scenarios of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            if "timeline" in raw:
                yield _scenario(raw)


def read_exchanges(path: Path) -> dict[str, list[Json]]:
    """Return what extenders were asked and what they answered, by scenario."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {raw["name"]: raw["exchanges"] for raw in map(json.loads, lines)}


def _scenario(raw: Json) -> Scenario:
    steps: list[Step] = []
    for entry in raw["timeline"]:
        steps.append(_step(entry, steps[-1].seconds if steps else 0.0))
    return Scenario(
        raw["name"], raw["about"], raw["config"], raw.get("repeats", "-"), tuple(steps), raw.get("counts", {})
    )


def _step(entry: Json, before: float) -> Step:
    kind = next(each for each in Kind if each in entry)
    what, response = entry[kind], entry.get("response", {})
    if kind is Kind.CONTROL:
        what = {"text": what, "note": entry.get("note", "")}
    fault = entry.get("fault", "")
    if not fault and response.get("from") == "recorder":
        fault = f"{response['status']} from the recorder"
    return Step(kind, what, response, fault, float(entry.get("t", before)))
