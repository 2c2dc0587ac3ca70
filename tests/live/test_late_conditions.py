"""A pod that was bound while its condition was on the way: the condition is put right."""

from __future__ import annotations

import json

import pytest
from kdsl.live.http.messages import HttpAnswer

from tests.live.pods import live_pod
from tests.live.test_status_writer import answers, wish, written
from tests.live.timeless import OK, status


def _seen(node: str) -> HttpAnswer:
    return HttpAnswer(200, json.dumps({"metadata": {"uid": "u"}, "spec": {"nodeName": node}}).encode())


def test_a_pod_that_was_bound_meanwhile_counts_as_scheduled() -> None:
    script = answers(_seen("n1"))
    written(script, lambda writer: writer.submit(live_pod("a"), wish()))
    first, second = script.bodies("PATCH")
    assert first["status"]["conditions"][0]["status"] == "False"
    [condition] = second["status"]["conditions"]
    assert second["metadata"] == first["metadata"]
    assert condition == {
        "message": None,
        "observedGeneration": None,
        "reason": None,
        "lastTransitionTime": condition["lastTransitionTime"],
        "status": "True",
        "type": "PodScheduled",
    }


def test_a_pod_that_still_waits_is_left_alone() -> None:
    script = answers(_seen(""))
    written(script, lambda writer: writer.submit(live_pod("a"), wish()))
    assert len(script.sent) == 1


def test_the_correction_is_repeated_and_ends_with_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    script = answers(_seen("n1"), status(500, "etcd"), OK)
    written(script, lambda writer: writer.submit(live_pod("a"), wish()))
    assert len(script.sent) == 3
    script = answers(_seen("n1"), status(404, "gone", "NotFound"))
    written(script, lambda writer: writer.submit(live_pod("a"), wish()))
    assert len(script.sent) == 2 and not caplog.records
