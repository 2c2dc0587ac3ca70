"""The shipped binder plugin, loaded as anybody's plugin is."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kdsl.base.clock import ManualClock
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Code, Status

from kdsl_plugins.default_binder.plugin import DefaultBinder
from tests.cycle.world import cluster, pod, table


class Recorder:
    def __init__(self, answer: Status | None = None) -> None:
        self.bound: list[tuple[str, str]] = []
        self.answer = answer

    def bind(self, pod: Any, node: str) -> Status | None:
        self.bound.append((pod.key, node))
        return self.answer


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        (None, Outcome.PLACED, ""),
        (Status(Code.ERROR, ("409 conflict",)), Outcome.ERROR, 'running Bind plugin "binder": 409 conflict'),
    ],
)
def test_bindings_go_through_the_port(answer: Status | None, outcome: Outcome, message: str) -> None:
    binder = Recorder(answer)
    context = PluginContext(binder, ManualClock(), WaitingPods[Any]())
    engine = Engine([table({"binder": DefaultBinder({}, context)})], cluster(1), ManualClock())
    decision = engine.schedule_one(pod())
    assert (decision.outcome, decision.message) == (outcome, message)
    assert binder.bound == [("default/p", "n0")]


def test_its_schema_takes_no_arguments() -> None:
    text = (
        resources.files("kdsl_plugins.default_binder")
        .joinpath("args.schema.json")
        .read_text(encoding="utf-8")
    )
    validator = Draft202012Validator(json.loads(text))
    assert validator.is_valid({})
    assert not validator.is_valid({"any": 1})
