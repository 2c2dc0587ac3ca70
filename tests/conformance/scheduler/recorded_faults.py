"""The recorder's interventions in single requests, repeated by the sandbox on the same requests."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from kdsl.sandbox import Answer, BreakWatch, Delay, Faults, LoseAnswer, LoseRequest, RecordedRequest
from kdsl.sandbox.faults import Action

from tests.conformance.scheduler.recording import Scenario, Step

Key = tuple[str, str]
"""The method and the path of a request; events have no name in it."""

_ANSWERED = re.compile(r"(\d{3}) from the recorder")
_INTERVENED = "before it reached the server"
_DRIVER_SECONDS = 0.05
"""Until the script has done what it does before the request goes on."""
_DELETED_SECONDS = 0.5
"""The recorder held the bindings of deleted pods so long."""
_FIXED: dict[str, Action] = {
    "never forwarded; connection closed after 12 s": LoseRequest(12),
    "forwarded, the answer was lost": LoseAnswer(0.2),
    "200 with one ERROR frame (410) from the recorder": BreakWatch(410),
    "forwarded at once, the answer comes 3 s late": Delay(3),
}


def key_of(method: str, path: str) -> Key:
    """Return what tells a request from those of another kind or to another object."""
    return method, re.sub(r"(/events/[^/]*?)\.[^/]*$", r"\1.<gen>", path)


def action_of(step: Step, start: str = "") -> Action:
    """Return what is to be done to a request, with an error text that has this `start`.

    ValueError where a fault is not known.
    """
    answered = _ANSWERED.fullmatch(step.fault)
    if answered:
        code = int(answered[1])
        return Answer(code, _message(code, step, start), 1 if code in (429, 503) else None)
    if step.fault.startswith(_INTERVENED):
        return Delay(_DELETED_SECONDS if step.fault.endswith("deleted the pod") else _DRIVER_SECONDS)
    if step.fault in _FIXED:
        return _FIXED[step.fault]
    raise ValueError(f"no such fault: {step.fault}")


def is_intervention(step: Step) -> bool:
    """Return whether the script acts while the request waits."""
    return step.fault.startswith(_INTERVENED)


@dataclass(slots=True)
class Occurrences:
    """Counts the requests of a key: a fault is for the n-th."""

    seen: Counter[Key] = field(default_factory=Counter)
    numbers: dict[int, int] = field(default_factory=dict)

    def number(self, request: RecordedRequest) -> int:
        """Return how many requests of its key came before it."""
        if id(request) not in self.numbers:
            key = key_of(request.method, request.path)
            self.numbers[id(request)] = self.seen[key]
            self.seen[key] += 1
        return self.numbers[id(request)]


def install(scenario: Scenario, faults: Faults) -> Occurrences:
    """Switch the faults of a scenario's writes on."""
    occurrences, counted = Occurrences(), Counter[Key]()
    for step in scenario.steps:
        if not step.is_write:
            continue
        key = key_of(step.what["method"], step.what["path"])
        if step.fault:
            _add(faults, occurrences, key, counted[key], action_of(step, _errors_begin(scenario)))
        counted[key] += 1
    # A rule that is over is not asked any more: this one counts for those that are left.
    faults.always(lambda request: occurrences.number(request) < 0, Delay(0))
    return occurrences


def install_read(step: Step, faults: Faults) -> None:
    """Switch the fault of a list or watch on: it is for the next one of this resource."""
    path = step.what["path"]
    faults.once(lambda request: request.method == "GET" and request.path == path, action_of(step))


def _add(faults: Faults, occurrences: Occurrences, key: Key, number: int, action: Action) -> None:
    def applies(request: RecordedRequest) -> bool:
        return key_of(request.method, request.path) == key and occurrences.number(request) == number

    faults.once(applies, action)


def _errors_begin(scenario: Scenario) -> str:
    """Return how the recorder's errors began: that shows in what the scheduler wrote about them."""
    is_long = any("Internal error occurred: made by" in str(step.what) for step in scenario.steps)
    return "Internal error occurred: " if is_long else ""


def _message(code: int, step: Step, start: str) -> str:
    """Return the text of the recorder's answer."""
    if code == 409 and step.what["path"].endswith("/binding"):
        name = step.what["path"].split("/")[-2]
        return f'Operation cannot be fulfilled on pods/binding "{name}": made by the recorder'
    return f"{start if code == 500 else ''}made by the recorder"
