"""Reading of calls, in any case of letters and with limits, and writing of answers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import msgspec
import pytest
from kdsl.extender import members, protocol
from kdsl.extender.objects import read_pod
from kdsl.extender.protocol import (
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    UnreadableError,
)

POD = b'{"metadata":{"name":"a","namespace":"default","uid":"u"},"spec":{"containers":[]}}'
DEEP = b"[" * 100_000


def test_names_are_read() -> None:
    args = protocol.read_args(b'{"Pod":' + POD + b',"Nodes":null,"NodeNames":["n2","n1"]}')
    assert (args.names, args.nodes) == (("n2", "n1"), None)
    assert read_pod(args.pod).key == "default/a"


def test_whole_nodes_are_kept_as_they_came() -> None:
    node = b'{"metadata":{"name":"n1"},"extra":{"Unknown":[1, 2]}}'
    args = protocol.read_args(b'{"Pod":' + POD + b',"Nodes":{"metadata":{},"items":[' + node + b"]}}")
    assert args.nodes is not None and args.names == ("n1",)
    assert bytes(args.nodes[0].raw) == node


def test_keys_are_read_in_any_case() -> None:
    args = protocol.read_args(b'{"pod":' + POD + b',"nodenames":["n1"]}')
    assert args.names == ("n1",)
    victims = (
        b'{"pod":' + POD + b',"nodeNameToMetaVictims":{"n1":{"pods":[{"uid":"x"}],"numPDBViolations":2}}}'
    )
    assert protocol.read_preemption(victims).meta_victims == {"n1": MetaVictims((MetaPod("x"),), 2)}


def test_no_nodes_are_not_absent_ones() -> None:
    assert protocol.read_args(b'{"Pod":' + POD + b',"NodeNames":[]}').names == ()
    with pytest.raises(UnreadableError, match="neither Nodes nor NodeNames"):
        protocol.read_args(b'{"Pod":' + POD + b',"Nodes":null,"NodeNames":null}')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        DEEP,
        b'{"Pod":' + DEEP + b"}",
        b'{"Pod":null,"NodeNames":[]}',
        b'{"Pod":{},"NodeNames":"n1"}',
        b'{"Pod":{},"NodeNames":[1]}',
        b'{"Pod":{},"Nodes":{"items":[{"metadata":{}}]}}',
        b'{"Pod":{},"NodeNames":["n1"]} more',
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        protocol.read_args(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"", "it is empty"), (b'{"Pod":', "it ends within a value"), (b"[]", "Expected `object`, got `array`")],
)
def test_why_a_body_cannot_be_read(body: bytes, said: str) -> None:
    with pytest.raises(UnreadableError, match=f"the body cannot be read: {said}"):
        protocol.read_args(body)


@pytest.mark.parametrize(
    "pod",
    [
        b"[]",
        b'{"metadata":{}}',
        b'{"metadata":{"name":"a"},"spec":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"many"}}}]}}',
        b'{"metadata":{"name":"a"},"spec":{"priority":1e300}}',
        b'{"metadata":{"name":"a"},"spec":{"containers":7}}',
    ],
)
def test_a_pod_that_nobody_can_count_with_is_refused(pod: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_pod(msgspec.Raw(pod))


_LARGE = {"metadata": {"name": "a", "labels": {"a": "x" * protocol.MOST_BYTES}}}
_MANY = protocol.MOST_NODES + 1
_SHORT = {"metadata": {"name": ""}}


@pytest.mark.parametrize(
    ("read", "body", "said"),
    [
        (protocol.read_args, {"Pod": _LARGE, "NodeNames": ["n"]}, "the Pod has more than 3145728 bytes"),
        (
            protocol.read_args,
            {"Pod": {}, "NodeNames": ["n"] * _MANY},
            "NodeNames has more than 100000 entries",
        ),
        (
            protocol.read_args,
            {"Pod": {}, "Nodes": {"items": [_SHORT] * _MANY}},
            "Nodes has more than 100000 entries",
        ),
        (protocol.read_args, {"Pod": {}, "Nodes": {"items": [_LARGE]}}, "a node has more than"),
        (
            protocol.read_preemption,
            {"Pod": {}, "NodeNameToVictims": {"n": {"Pods": [_LARGE]}}},
            "a victim has more",
        ),
        (
            protocol.read_preemption,
            {"Pod": {}, "NodeNameToVictims": {"n": {"Pods": [_SHORT] * _MANY}}},
            "Pods has more than 100000 entries",
        ),
        (
            protocol.read_preemption,
            {"Pod": {}, "NodeNameToVictims": {str(key): {} for key in range(_MANY)}},
            "NodeNameToVictims has more than 100000 entries",
        ),
        (
            protocol.read_preemption,
            {"Pod": {}, "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}] * 300_000}}},
            "the list of victims on a node has more than",
        ),
        (
            protocol.read_review,
            {
                "kind": "AdmissionReview",
                "apiVersion": "admission.k8s.io/v1",
                "request": {"uid": "u", "object": _LARGE},
            },
            "the object has more than",
        ),
    ],
)
def test_a_small_text_cannot_take_much_memory(
    read: Callable[[bytes], object], body: object, said: str
) -> None:
    """Twenty million empty containers are 60 MiB of text, and more than 4 GiB as objects."""
    with pytest.raises(UnreadableError, match=said):
        read(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (protocol.read_args, b'{"Pod":{},"Nodes":{"items":[%s0]}}'),
        (protocol.read_preemption, b'{"Pod":{},"NodeNameToVictims":{"n":{"Pods":[%s0]}}}'),
    ],
)
def test_a_list_of_what_is_no_object_is_given_up_at_its_start(
    read: Callable[[bytes], object], body: bytes
) -> None:
    text = body % (b"0," * 500_000)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="Expected `object`, got `int`"):
            read(text)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(text)
    finally:
        tracemalloc.stop()


_FEW = 20_000
_KEYS = b",".join(b'"%x":1' % at for at in range(10 * _FEW))


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (protocol.read_args, b'{"Pod":{},"NodeNames":["n"],%s}' % _KEYS),
        (protocol.read_args, b'{"Pod":{},"Nodes":{%s}}' % _KEYS),
        (
            protocol.read_preemption,
            b'{"Pod":{},"NodeNameToVictims":{%s}}' % _KEYS,
        ),
        (protocol.read_binding, b"{%s}" % _KEYS),
        (
            protocol.read_args,
            b'{"Pod":{},"Nodes":{"items":[%s]}}' % b",".join([b'{"metadata":{"name":""}}'] * (10 * _FEW)),
        ),
        (
            protocol.read_preemption,
            b'{"Pod":{},"NodeNameToMetaVictims":{%s}}'
            % b",".join(b'"%d":{"Pods":[%s]}' % (at, b",".join([b"{}"] * _FEW)) for at in range(3)),
        ),
    ],
    ids=["keys", "keys of Nodes", "nodes", "keys of a binding", "objects", "victims"],
)
def test_many_short_members_are_given_up(
    read: Callable[[bytes], object], body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """28 MiB of short keys took 458 MiB."""
    monkeypatch.setattr(members, "MOST_MEMBERS", _FEW)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match=f"the body has more than {_FEW} members"):
            read(body)
        assert tracemalloc.get_traced_memory()[1] < 200 * _FEW
    finally:
        tracemalloc.stop()


def test_of_equal_keys_the_last_counts() -> None:
    """As for Go."""
    names = b'{"Pod":{},"NodeNames":["a"],"nodenames":["b"],"x":1,"y":2}'
    assert protocol.read_args(names).names == ("b",)
    victims = b'{"Pod":{},"NodeNameToMetaVictims":{"n":{"pods":[{"UID":"a"},{"uid":"b"},{"Uid":null},{}]}}}'
    found = protocol.read_preemption(victims).meta_victims
    assert found == {"n": MetaVictims(tuple(map(MetaPod, ("a", "b", "", ""))))}


def test_a_call_may_have_the_most_nodes() -> None:
    named = protocol.read_args(msgspec.json.encode({"Pod": {}, "NodeNames": ["n"] * protocol.MOST_NODES}))
    whole = {"Pod": {}, "Nodes": {"items": [_SHORT] * protocol.MOST_NODES}}
    for args in (named, protocol.read_args(msgspec.json.encode(whole))):
        assert len(args.names) == protocol.MOST_NODES


def test_nulls_in_a_pod_are_absent() -> None:
    pod = b'{"metadata":{"name":"a","creationTimestamp":null,"labels":null},"spec":{"containers":null}}'
    assert read_pod(msgspec.Raw(pod)).name == "a"


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"PodName":"a"}', b'{"PodName":"a","PodNamespace":"b","Node":""}', b'{"PodName":1}'],
)
def test_a_binding_without_pod_or_node_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        protocol.read_binding(body)


def test_answers_have_kube_schedulers_keys() -> None:
    filtered = ExtenderFilterResult(
        node_names=("n1",), failed_nodes={"n2": "full"}, failed_and_unresolvable_nodes={"n3": "never"}
    )
    assert protocol.write(filtered) == (
        b'{"NodeNames":["n1"],"FailedNodes":{"n2":"full"},"FailedAndUnresolvableNodes":{"n3":"never"}}'
    )
    assert protocol.write(ExtenderFilterResult(node_names=())) == b'{"NodeNames":[]}'
    assert protocol.write([HostPriority("n1", 0)]) == b'[{"Host":"n1","Score":0}]'
    assert protocol.write(ExtenderBindingResult()) == b"{}"
    victims = ExtenderPreemptionResult({"n1": MetaVictims((MetaPod("u"),), 1)})
    assert (
        protocol.write(victims)
        == b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}'
    )
    assert protocol.write(ExtenderPreemptionResult()) == b'{"NodeNameToMetaVictims":{}}'


REVIEW = (
    b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/%s","request":{"uid":"u1","kind":{"group":"",'
    b'"version":"v1","kind":"Pod"},"operation":"CREATE","namespace":"default","userInfo":{"username":"me"},'
    b'"object":' + POD + b',"oldObject":null,"dryRun":false}}'
)


@pytest.mark.parametrize("version", [b"v1", b"v1beta1"])
def test_a_review_is_answered_in_its_version(version: bytes) -> None:
    review = protocol.read_review(REVIEW % version)
    assert review.request is not None and bytes(review.request.object) == POD
    start = (
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/%s","response":{"uid":"u1","allowed":'
        % version
    )
    assert protocol.write(review.allowed()) == start + b'true,"status":{"metadata":{},"code":200}}}'
    assert protocol.write(review.allowed(b"[]")) == (
        start + b'true,"patch":"W10=","patchType":"JSONPatch","status":{"metadata":{},"code":200}}}'
    )
    assert protocol.write(review.denied("exceeding resource quota")) == (
        start
        + b'false,"status":{"metadata":{},"message":"exceeding resource quota","reason":"Forbidden","code":403}}}'
    )


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","request":{"uid":"u"}}',
        b'{"kind":"Pod","apiVersion":"admission.k8s.io/v1","request":{"uid":"u"}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":'
        + DEEP
        + b"}}",
    ],
)
def test_a_review_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        protocol.read_review(body)
