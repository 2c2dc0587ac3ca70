"""The recorded calls of kube-scheduler: each must be answered as it takes it, and as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.acceptance import objections
from tests.conformance.extender import read_scenarios, run_scenarios
from tests.conformance.tally import Tally

EXCHANGES = Path(__file__).parent / "data/extender/exchanges.jsonl.gz"
NAMES = {"NodeNames": ["n1", "n2"], "Nodes": None}
WHOLE = {"NodeNames": None, "Nodes": {"items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}}
VICTIMS = {"NodeNameToVictims": None, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u1"}]}}}


def test_every_call_is_answered_as_recorded() -> None:
    tally = Tally()
    run_scenarios(read_scenarios(EXCHANGES), tally)
    assert not tally.failed
    assert tally.passed == {"filter": 20, "prioritize": 2, "bind": 3, "preempt": 2}


@pytest.mark.parametrize(
    ("verb", "request_", "answer"),
    [
        ("filter", NAMES, []),
        ("filter", NAMES, {"Nodes": {"items": []}}),
        ("filter", NAMES, {"NodeNames": ["n1", "n3"], "FailedNodes": {"n2": "no"}}),
        ("filter", NAMES, {"NodeNames": ["n1"]}),
        ("filter", NAMES, {"NodeNames": ["n1"], "FailedNodes": {"n1": "no", "n2": "no"}}),
        ("filter", NAMES, {"NodeNames": ["n1"], "FailedNodes": {"n2": 1}}),
        ("filter", WHOLE, {"NodeNames": ["n1", "n2"]}),
        (
            "filter",
            WHOLE,
            {"Nodes": {"items": [{"metadata": {"name": "n1"}, "spec": {}}]}, "FailedNodes": {"n2": ""}},
        ),
        ("prioritize", NAMES, {"n1": 1}),
        ("prioritize", NAMES, [{"Host": "n3", "Score": 1}]),
        ("prioritize", NAMES, [{"Host": "n1", "Score": 11}]),
        ("prioritize", NAMES, [{"Host": "n1", "Score": "1"}]),
        ("preempt", VICTIMS, {}),
        ("preempt", VICTIMS, {"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "u1"}]}}}),
        ("preempt", VICTIMS, {"NodeNameToMetaVictims": {"n1": {"Pods": []}}}),
        ("preempt", VICTIMS, {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u2"}]}}}),
        ("bind", {}, {"Error": 1}),
    ],
)
def test_what_kube_scheduler_would_not_take_is_found(verb: str, request_: Any, answer: Any) -> None:
    assert objections(verb, request_ is not WHOLE, request_, 200, answer)


def test_an_answer_in_other_case_is_taken() -> None:
    answer = {"nodenames": ["n2"], "failedNodes": {"n1": "no"}}
    assert objections("filter", True, NAMES, 200, answer) == []
    assert objections("filter", True, NAMES, 500, answer) == ["the status is 500"]
