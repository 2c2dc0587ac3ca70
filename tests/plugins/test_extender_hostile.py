"""Extenders that answer to do harm: too slowly, too much, too deep, or what no node is called."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kdsl.cycle.decision import Outcome

from kdsl_plugins.extender import connection as connections
from kdsl_plugins.extender.connection import Connection, ExtenderError
from tests.plugins.services import serving
from tests.plugins.test_extender import World, asking

OK = b"HTTP/1.1 200 OK\r\n"
Talk = Callable[[socket.socket], None]


@contextmanager
def talking(talk: Talk, heard: list[bytes] | None = None) -> Iterator[str]:
    """Run a server for one call that says what `talk` writes, and yield its address.

    `heard` gets the first bytes of the question.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            channel = server.accept()[0]
            with channel:
                try:
                    (heard if heard is not None else []).append(channel.recv(1 << 16))
                    talk(channel)
                    channel.shutdown(socket.SHUT_WR)
                    while channel.recv(1 << 16):
                        pass  # closing with unread bytes would reset the connection
                except OSError:
                    return  # the client has left

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def ask(talk: Talk, limit: float = 5) -> Any:
    with talking(talk) as url:
        return Connection(url, limit, False, {}).post("filter", {})


def drop_by_drop(text: bytes, said: list[int]) -> Talk:
    """Say a text byte by byte, each well within the limit of the call, all of it far beyond."""
    gap = threading.Event()

    def talk(channel: socket.socket) -> None:
        for at in range(len(text)):
            channel.sendall(text[at : at + 1])
            said.append(at)
            gap.wait(0.01)

    return talk


BODY = b'{"Error": "the whole answer came"}'


LONG = b"X-Slow: " + b"x" * 100 + b"\r\n"


@pytest.mark.parametrize(
    "text",
    [
        OK + LONG + b"\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n22\r\n" + BODY + b"\r\n0\r\n" + LONG + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 6 + OK + b"\r\n",
    ],
)
def test_the_limit_is_that_of_the_whole_call(text: bytes) -> None:
    said: list[int] = []
    with pytest.raises(ExtenderError, match=r"no answer within 0.1s"):
        ask(drop_by_drop(text, said), 0.1)
    # Who is given up is not listened to until the end of what it says.
    assert len(said) < len(text)


def test_a_handshake_that_never_ends_counts_as_well() -> None:
    def talk(channel: socket.socket) -> None:
        # The head of a record of TLS that is to have 16 KiB.
        drop_by_drop(b"\x16\x03\x03\x40\x00" + b"\x02" * 60, [])(channel)

    with talking(talk) as url:
        tls = Connection(url.replace("http", "https"), 0.1, True, {})
        with pytest.raises(ExtenderError, match=r"no answer within 0.1s"):
            tls.post("filter", {})


def test_what_was_given_up_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = threading.Event()
    addresses = socket.getaddrinfo

    def look_up(*args: Any, **more: Any) -> Any:
        found.wait()
        return addresses(*args, **more)

    heard: list[bytes] = []
    with talking(lambda channel: None, heard) as url:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        with pytest.raises(ExtenderError, match=r"no answer within 0.01s"):
            Connection(url, 0.01, False, {}).post("bind", {})
        found.set()
    assert heard == [b""]


@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_body_has_an_end(is_chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 100_000)
    size = 400_000
    body = b'"' + b"x" * (size - 2) + b'"'

    def talk(channel: socket.socket) -> None:
        if is_chunked:
            channel.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size + body + b"\r\n0\r\n\r\n")
        else:
            channel.sendall(OK + b"Content-Length: %d\r\n\r\n" % size + body)

    with pytest.raises(ExtenderError, match=r"the answer has more than 100004 bytes"):
        ask(talk)


def test_an_answer_may_be_as_long_as_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 0)
    with serving(filter=lambda asked: asked) as service:
        sent = {"nodes": ["x" * 100_000]}
        assert Connection(service.url, 5, False, {}).post("filter", sent) == sent


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"".join(b"X-%d: 1\r\n" % at for at in range(200)), "got more than 100 headers"),
        (b"X: " + b"x" * 70_000 + b"\r\n", "got more than 65536 bytes"),
    ],
)
def test_headers_have_an_end(head: bytes, reason: str) -> None:
    with pytest.raises(ExtenderError, match=reason):
        ask(lambda channel: channel.sendall(OK + head + b"\r\n{}"))


@pytest.mark.parametrize("says", [b"", b"\x1b[31m\r\n\r\n", b"HTTP/9.9 abc\r\n\r\n", OK + b"\x00\xff\r\n"])
def test_what_is_no_http_is_an_error(says: bytes) -> None:
    with pytest.raises(ExtenderError):
        ask(lambda channel: channel.sendall(says))


def test_nobody_follows_elsewhere() -> None:
    with serving(filter=lambda asked: {"NodeNames": ["n0"]}) as elsewhere:
        moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s/filter\r\nContent-Length: 0\r\n\r\n"
        with pytest.raises(ExtenderError, match="code 307"):
            ask(lambda channel: channel.sendall(moved % elsewhere.url.encode()))
        assert elsewhere.asked == []


DEEP = 100_000
BAD = {
    "lists": ("[" * DEEP + "]" * DEEP, "the answer is nested too deeply"),
    "objects": ('{"a":' * DEEP + "1" + "}" * DEEP, "the answer is nested too deeply"),
    "open": ("[" * DEEP, ""),
    "NaN": ('{"NodeNames": NaN}', "the answer is no JSON"),
    "infinite": ('{"NodeNames": -Infinity}', "the answer is no JSON"),
    "latin": ('{"Error": "\\ud800"}', "the answer is no JSON"),
    "number": ('{"NodeNames": 1e999}', ""),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_an_answer_that_cannot_be_read_is_like_any_other_failure(what: str) -> None:
    answer, text = BAD[what]
    with serving(filter=lambda asked: answer, prioritize=lambda asked: answer) as service:
        failed = World(asking(service)).decide()
        gone_on = World(asking(service, ignorable=True, prioritizeVerb="prioritize", weight=1)).decide()
    assert failed.outcome is Outcome.ERROR and text in failed.message
    assert (gone_on.outcome, len(gone_on.faults)) == (Outcome.PLACED, 2)


def test_of_a_key_that_stands_twice_the_last_counts_as_in_go() -> None:
    with serving(filter=lambda asked: '{"NodeNames": ["n9"], "NodeNames": ["n2"]}') as service:
        assert World(asking(service)).decide().node == "n2"


def test_a_key_in_two_spellings_is_no_answer() -> None:
    with serving(filter=lambda asked: '{"NodeNames": ["n1"], "nodenames": ["n2"]}') as service:
        decision = World(asking(service)).decide()
    assert decision.outcome is Outcome.ERROR
    assert decision.message.endswith("can be read: a key stands twice, with capitals and without")


@pytest.mark.parametrize(
    "score", ["9223372036854775808", "1e400", "-1e30", "1.5", "true", '"7"', "922337203685477580"]
)
def test_scores_that_no_total_can_hold_are_none(score: str) -> None:
    answer = f'[{{"Host": "n1", "Score": {score}}}]'
    with serving(prioritize=lambda asked: answer) as service:
        extender = {
            "urlPrefix": service.url,
            "prioritizeVerb": "prioritize",
            "weight": 2,
            "nodeCacheCapable": True,
        }
        decision = World(extender).decide()
    assert decision.outcome is Outcome.PLACED and len(decision.faults) == 1


def test_scores_are_in_any_range_and_of_unknown_nodes_nobody_hears() -> None:
    answer = json.dumps(
        [{"Host": "n1", "Score": 1_000}, {"Host": "n0", "Score": -5}, {"Host": "n9", "Score": 9}]
    )
    with serving(prioritize=lambda asked: answer) as service:
        extender = {
            "urlPrefix": service.url,
            "prioritizeVerb": "prioritize",
            "weight": 2,
            "nodeCacheCapable": True,
        }
        decision = World(extender).decide()
    assert (decision.node, decision.total, decision.faults) == ("n1", 20_000, ())
    assert {each.node: each.total for each in decision.verdicts} == {"n0": -100, "n1": 20_000, "n2": 0}
