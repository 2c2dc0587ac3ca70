"""A sandbox on a thread of its own."""

from __future__ import annotations

import socket

import pytest
from kdsl.sandbox import SandboxOptions, SandboxThread
from kdsl.sandbox.model.resources import PODS
from kdsl.sandbox.requests.creating import add

from tests.sandbox.talk import pod


def test_it_serves_and_is_reached_from_outside() -> None:
    with SandboxThread(SandboxOptions(seed=1)) as thread:
        body = pod()
        body["metadata"]["namespace"] = "default"
        version = thread.call(lambda sandbox: add(sandbox.world, PODS, body))
        names = thread.call(lambda sandbox: [item["metadata"]["name"] for item in sandbox.store.bodies(PODS)])
        assert (version.key, names) == (("default", "a"), ["a"])
        port = int(thread.sandbox.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            pass
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2).close()


def test_uids_come_of_the_seed() -> None:
    def uids(seed: int) -> list[str]:
        with SandboxThread(SandboxOptions(seed=seed)) as thread:
            from kdsl.sandbox.model.resources import NAMESPACES

            return thread.call(
                lambda sandbox: [item["metadata"]["uid"] for item in sandbox.store.bodies(NAMESPACES)]
            )

    assert uids(7) == uids(7) != uids(8)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(OSError, match="in use"),
            SandboxThread(SandboxOptions(port=taken.getsockname()[1])),
        ):
            pass
