"""Calls on threads of their own."""

from __future__ import annotations

import threading

import pytest
from kdsl.base.threads import Threads


def test_the_answer_of_a_call() -> None:
    assert Threads().begin(lambda: 7).result(5) == 7


def test_a_call_that_has_begun_ends_though_nobody_waits_any_more() -> None:
    threads, begun, go = Threads(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        go.wait(5)
        raise ValueError("too late")

    answer = threads.begin(call)
    begun.wait(5)
    assert not answer.cancel()
    go.set()
    with pytest.raises(ValueError, match="too late"):
        answer.result(5)
    # The thread lives, and is used again.
    assert threads.begin(lambda: 8).result(5) == 8
