"""Pods get annotations that fit; those of nodes are compared and set, and locks are one pod's at a time."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.status import Status
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.writing.annotations import MAX_BYTES, Annotations, NotReadError
from kdsl.live.writing.api import Api

from tests.live.timeless import LOST, OK, REFUSED, Script, run, status

POD = PodInfo("a", "ns", "uid-a")
LOCK = "hami.io/mutex.lock"


@dataclass
class Node:
    """A server with one node, which others may change between two requests."""

    annotations: dict[str, str] = field(default_factory=dict)
    version: int = 1
    meddling: list[dict[str, str]] = field(default_factory=list)
    lost: int = 0

    def answer(self, request: HttpRequest) -> HttpAnswer | NoAnswerError:
        if request.method == "PATCH":
            if self.meddling:
                self.annotations |= self.meddling.pop(0)
                self.version += 1
            meta = json.loads(request.body)["metadata"]
            if meta["resourceVersion"] != str(self.version):
                return status(409, "the object has been modified", "Conflict")
            for key, value in meta["annotations"].items():
                self.annotations.pop(key, None)
                if value is not None:
                    self.annotations[key] = value
            self.version += 1
            if self.lost:
                self.lost -= 1
                return LOST
        meta = {"uid": "u", "resourceVersion": str(self.version), "annotations": self.annotations}
        return HttpAnswer(200, json.dumps({"kind": "Node", "metadata": meta}).encode())


def set_on(node: Node, value: str, was: str) -> tuple[Status | None, Script]:
    script = Script(node.answer)
    return run(Annotations(Api(script)).write_node("n1", LOCK, value, was)), script


def test_a_pod_gets_annotations_by_merge_patch() -> None:
    script = Script()
    assert run(Annotations(Api(script)).write_pod(POD, {"hami.io/vgpu-node": "n1"})) is None
    ((_, request),) = script.sent
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/ns/pods/a")
    assert request.content_type == "application/merge-patch+json"
    assert script.bodies() == [{"metadata": {"annotations": {"hami.io/vgpu-node": "n1"}, "uid": "uid-a"}}]


def test_annotations_that_do_not_fit_are_not_sent() -> None:
    script = Script()
    pod = POD.with_fields(annotations={"mine": "x" * 1000})
    big = {"k": "é" * ((MAX_BYTES - 1000) // 2)}
    problem = run(Annotations(Api(script)).write_pod(pod, big))
    assert problem is not None
    assert problem.message == "annotations of pod ns/a take 262149 bytes, more than 262144"
    assert run(Annotations(Api(script)).write_pod(pod, {"k": "x" * (MAX_BYTES - 1005)})) is None
    assert len(script.sent) == 1


def test_text_without_utf_8_is_not_sent() -> None:
    script = Script()
    problem = run(Annotations(Api(script)).write_pod(POD, {"k": "\ud800"}))
    assert problem is not None
    assert "UTF-8" in problem.message
    assert script.sent == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (status(422, "invalid", "Invalid", "metadata.uid"), "pod ns/a was deleted and made anew"),
        (status(404, 'pods "a" not found', "NotFound"), 'pods "a" not found'),
        (status(403, "no right"), "no right"),
    ],
)
def test_a_pod_that_cannot_get_them_is_told_of(answer: HttpAnswer, text: str) -> None:
    script = Script(lambda request: answer)
    problem = run(Annotations(Api(script)).write_pod(POD, {"k": "v"}))
    assert problem is not None
    assert problem.message == text
    assert len(script.sent) == 1


@pytest.mark.parametrize("failure", [LOST, REFUSED, status(500, "x")])
def test_writing_to_a_pod_is_repeated(failure: HttpAnswer | NoAnswerError) -> None:
    left = [failure]
    script = Script(lambda request: left.pop() if left else OK)
    assert run(Annotations(Api(script)).write_pod(POD, {"k": "v"})) is None
    assert len(script.sent) == 2


def test_a_node_is_changed_as_it_was_read() -> None:
    node = Node()
    problem, script = set_on(node, "t,ns,a", "")
    assert problem is None
    assert node.annotations == {LOCK: "t,ns,a"}
    assert script.bodies() == [{"metadata": {"annotations": {LOCK: "t,ns,a"}, "resourceVersion": "1"}}]


def test_an_empty_value_takes_the_annotation_away() -> None:
    node = Node({LOCK: "t,ns,a", "other": "x"})
    problem, script = set_on(node, "", "t,ns,a")
    assert problem is None
    assert node.annotations == {"other": "x"}
    assert script.bodies()[0]["metadata"]["annotations"] == {LOCK: None}


def test_changes_of_other_annotations_are_waited_out() -> None:
    node = Node(meddling=[{"heartbeat": str(number)} for number in range(3)])
    problem, script = set_on(node, "t,ns,a", "")
    assert problem is None
    assert [line.split()[0] for line in script.lines] == ["GET", "PATCH"] * 4
    gets = [time for time, request in script.sent if request.method == "GET"]
    assert [round(b - a, 1) for a, b in itertools.pairwise(gets)] == [0.1, 0.2, 0.4]


def test_five_conflicts_are_enough() -> None:
    problem, script = set_on(Node(meddling=[{"heartbeat": str(n)} for n in range(9)]), "t,ns,a", "")
    assert problem is not None
    assert "modified" in problem.message
    assert len(script.sent) == 10


@pytest.mark.parametrize("node", [Node({LOCK: "t,ns,b"}), Node(meddling=[{LOCK: "t,ns,b"}])])
def test_a_lock_that_somebody_else_took_stays(node: Node) -> None:
    problem, _ = set_on(node, "t,ns,a", "")
    assert problem is not None
    assert problem.message == f"annotation {LOCK} of node n1 was changed by another writer"
    assert node.annotations[LOCK] == "t,ns,b"


def test_a_lost_answer_is_looked_up() -> None:
    node = Node(lost=1)
    problem, script = set_on(node, "t,ns,a", "")
    assert problem is None
    assert [line.split()[0] for line in script.lines] == ["GET", "PATCH", "GET"]


def test_a_node_that_is_gone_is_told_of() -> None:
    script = Script(lambda request: status(404, 'nodes "n1" not found'))
    annotations = Annotations(Api(script))
    problem = run(annotations.write_node("n1", LOCK, "v", ""))
    assert problem is not None
    assert problem.message == "node n1 is gone"
    assert run(annotations.read_node("n1")) is None


def test_annotations_of_a_node_are_read() -> None:
    script = Script(Node({LOCK: "x"}).answer)
    assert run(Annotations(Api(script)).read_node("n1")) == {LOCK: "x"}


def test_too_much_on_a_node_is_not_sent() -> None:
    node = Node({"big": "x" * MAX_BYTES})
    problem, script = set_on(node, "t,ns,a", "")
    assert problem is not None
    assert "more than 262144" in problem.message
    assert [line.split()[0] for line in script.lines] == ["GET"]


@pytest.mark.parametrize(
    ("answer", "there"), [(OK, True), (status(404, 'pods "a" not found', "NotFound"), False)]
)
def test_whether_there_is_a_pod(answer: HttpAnswer, there: bool) -> None:
    assert run(Annotations(Api(Script(lambda request: answer))).has_pod("ns/a")) is there


def test_where_the_server_does_not_say_nobody_knows() -> None:
    annotations = Annotations(Api(Script(lambda request: status(403, "no right"))))
    with pytest.raises(NotReadError, match=r"node n1 could not be read: no right"):
        run(annotations.read_node("n1"))
    with pytest.raises(NotReadError, match="pod ns/a could not be read"):
        run(annotations.has_pod("ns/a"))
    problem = run(annotations.write_node("n1", LOCK, "v", ""))
    assert problem is not None
    assert "no right" in problem.message
