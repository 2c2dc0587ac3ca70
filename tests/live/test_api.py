"""Requests are quoted and sorted into outcomes; what servers say is bounded and made visible."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.live.http.messages import HttpAnswer, NoAnswerError
from kdsl.live.watching.changes import PodCondition
from kdsl.live.writing.api import Api, SeenNode, SeenPod
from kdsl.live.writing.outcomes import MAX_MESSAGE, Done, Lost, Refused, Result, message_of

from tests.live.timeless import LOST, REFUSED, Script, run, status

POD = PodInfo("a", "ns", "uid-a")
Ask = Callable[[Api], Coroutine[Any, Any, Result[object]]]


def answering(answer: HttpAnswer | NoAnswerError) -> Script:
    return Script(lambda request: answer)


def test_names_are_quoted() -> None:
    script = Script()
    api = Api(script)
    run(api.bind(PodInfo("a/../b?c#d", "n s", "u"), "n"))
    run(api.read_node("../../secrets"))
    assert script.lines == [
        "POST /api/v1/namespaces/n%20s/pods/a%2F..%2Fb%3Fc%23d/binding",
        "GET /api/v1/nodes/..%2F..%2Fsecrets",
    ]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_are_no_names_ask_for_nothing(name: str) -> None:
    script = Script()
    result = run(Api(script).bind(PodInfo(name, "ns", "u"), "n"))
    assert isinstance(result, Refused)
    assert "no name" in result.message
    assert script.sent == []


def test_a_lost_answer_says_whether_it_may_be_done() -> None:
    assert run(Api(answering(LOST)).bind(POD, "n1")) == Lost("EOF", may_be_done=True)
    assert run(Api(answering(REFUSED)).bind(POD, "n1")) == Lost("connection refused", may_be_done=False)


def test_a_pod_is_read() -> None:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": None, "reason": None}
    meta = {"uid": "u", "resourceVersion": "7", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    pod = {"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"conditions": [condition]}}
    result = run(Api(answering(HttpAnswer(200, json.dumps(pod).encode()))).read_pod("ns", "a"))
    known = (PodCondition("PodScheduled", "True"),)
    assert result == Done(SeenPod("u", "7", "n1", "", 2, True, known))


def test_a_node_is_read() -> None:
    node = {"metadata": {"uid": "u", "resourceVersion": "7"}}
    result = run(Api(answering(HttpAnswer(200, json.dumps(node).encode()))).read_node("n1"))
    assert result == Done(SeenNode("u", "7", {}))


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b'{"status": "ok"}', b"<html>", b"[]", b'{"metadata": 1}', b"\xff", b'{"a":' * 100_000],
)
def test_an_answer_that_cannot_be_read_is_a_lost_one(body: bytes) -> None:
    """A proxy may answer 200 by itself: neither is a pod bound then, nor is one without a node there."""
    api = Api(answering(HttpAnswer(200, body)))
    for result in (run(api.read_pod("ns", "a")), run(api.bind(POD, "n1"))):
        assert isinstance(result, Lost)
        assert result.may_be_done
        assert "not readable" in result.text


VOLUME = {"metadata": {"name": "v", "namespace": "ns"}}


@pytest.mark.parametrize(
    "ask",
    [
        lambda api: api.bind(POD, "n1"),
        lambda api: api.delete_pod(POD),
        lambda api: api.annotate_pod(POD, {"a": "b"}),
        lambda api: api.patch_status(POD, b"{}"),
        lambda api: api.annotate_node("n1", {"a": "b"}, "1"),
        lambda api: api.read_claim("ns", "c"),
        lambda api: api.update_claim(VOLUME),
        lambda api: api.read_volume("v"),
        lambda api: api.update_volume(VOLUME),
        lambda api: api.read_device_claim("ns", "c"),
        lambda api: api.create_device_claim("ns", b"{}"),
        lambda api: api.update_device_claim(VOLUME, "status"),
        lambda api: api.patch_device_claim("ns", "c", b"{}"),
        lambda api: api.delete_device_claim("ns", "c", "u"),
    ],
)
@pytest.mark.parametrize("body", [b'{"status": "ok"}', b'{"metadata": {}}', b"<html>"])
def test_what_is_no_answer_of_the_api_is_a_lost_one(ask: Ask, body: bytes) -> None:
    assert isinstance(run(ask(Api(answering(HttpAnswer(200, body))))), Lost)


def test_a_refusal_is_read() -> None:
    refused = Refused.of(status(409, "m", "Conflict", "spec"))
    assert (refused.status, refused.reason, refused.message, refused.fields) == (
        409,
        "Conflict",
        "m",
        ("spec",),
    )
    assert refused.is_conflict
    assert message_of(refused) == "m"


def test_control_characters_of_a_server_are_visible() -> None:
    refused = Refused.of(status(500, "a\x1b[31mb\nc\u202e", "x\ty"))
    assert refused.message == "a\\x1b[31mb\\nc\\u202e"
    assert refused.reason == "x\\ty"


def test_a_long_message_is_kept_in_part_and_logged_in_less() -> None:
    refused = Refused.of(status(500, "x" * 100_000))
    assert len(refused.message) == MAX_MESSAGE
    assert len(refused.text) < 400


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the server answered 502"),
        (b"<html>bad\x07", "the server answered 502: <html>bad\\x07"),
        (b'{"message": null}', 'the server answered 502: {"message": null}'),
        (b"\xff\xfe", "the server answered 502: \ufffd\ufffd"),
        (b"[" * 2_000_000, "the server answered 502: " + "[" * 200),
    ],
)
def test_a_refusal_that_is_no_status_is_quoted(body: bytes, message: str) -> None:
    assert Refused.of(HttpAnswer(502, body)).message == message


RECREATED = (
    'Operation cannot be fulfilled on pods "w1": StorageError: invalid object, Code: 4, Key: /registry/pods/n/w1, '
    "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: a, UID in object meta: b"
)


@pytest.mark.parametrize(
    ("answer", "is_recreated"),
    [
        (status(409, RECREATED, "Conflict"), True),
        (
            status(409, "the UID in the precondition (a) does not match the UID in record (b).", "Conflict"),
            True,
        ),
        (status(422, "field is immutable", "Invalid", "metadata.uid"), True),
        (status(409, "the object has been modified", "Conflict"), False),
        (status(422, "invalid", "Invalid", "spec.x"), False),
        (status(404, "not found", "NotFound"), False),
    ],
)
def test_another_object_under_the_name_is_known(answer: HttpAnswer, is_recreated: bool) -> None:
    refused = Refused.of(answer)
    assert refused.is_recreated is is_recreated
    assert refused.is_conflict is (refused.status == 409 and not is_recreated)
