"""The inbox between the event loop and the scheduling thread."""

from __future__ import annotations

import asyncio
import threading

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.live.watching.changes import ObjectChange, Verb
from kdsl.live.watching.inbox import Inbox

from tests.live.virtual import run


def put(key: str, version: int, uid: str = "u") -> ObjectChange:
    return ObjectChange(Verb.PUT, "pods", key, uid, str(version), None)


def drop(key: str, version: int, uid: str = "u") -> ObjectChange:
    return ObjectChange(Verb.DROP, "pods", key, uid, str(version), None)


def bound() -> None:
    """A message."""


def failed() -> None:
    """Another one."""


def fill(inbox: Inbox, *changes: ObjectChange) -> int:
    return run(inbox.put(changes))


def test_changes_and_messages_come_in_their_order() -> None:
    inbox = Inbox()
    fill(inbox, put("a", 1), put("a", 2), drop("a", 3))
    inbox.post(bound)
    inbox.post(failed)
    messages, changes = inbox.take(2)
    assert messages == [bound, failed]
    assert changes == [put("a", 1), put("a", 2)]
    assert inbox.take(10) == ([], [drop("a", 3)])


def test_who_takes_again_is_done_with_what_it_took() -> None:
    inbox = Inbox()
    number = fill(inbox, put("a", 1), put("b", 2))
    inbox.take(10)
    assert inbox.done < number
    inbox.take(10, timeout=0)
    assert inbox.done == number


def test_a_backlog_holds_the_last_change_of_each_object() -> None:
    inbox = Inbox(coalesce_from=2)
    number = fill(inbox, put("a", 1), put("b", 2), put("c", 3), put("a", 4), put("b", 5), put("a", 6))
    assert inbox.take(10)[1] == [put("c", 3), put("b", 5), put("a", 6)]
    assert inbox.replaced == 3
    inbox.take(1, timeout=0)
    assert inbox.done == number


def test_drops_are_never_merged_into_another_uid() -> None:
    inbox = Inbox(coalesce_from=0)
    fill(inbox, put("a", 1), drop("a", 2), put("a", 3, "v"), drop("a", 4, "v"), put("a", 5, "w"))
    assert inbox.take(10)[1] == [drop("a", 2), drop("a", 4, "v"), put("a", 5, "w")]


def test_a_hot_object_does_not_fill_the_inbox() -> None:
    inbox = Inbox(capacity=10, coalesce_from=0)
    fill(inbox, *(put("a", version) for version in range(1000)))
    assert inbox.backlog == 1


def test_a_full_inbox_makes_who_puts_wait() -> None:
    async def scenario() -> None:
        inbox = Inbox(capacity=3, coalesce_from=10)
        changes = [put(f"p{number}", number) for number in range(10)]
        task = asyncio.create_task(inbox.put(changes))
        taken = []
        for _ in range(10):
            await asyncio.sleep(0)
            assert inbox.backlog <= 3
            taken += inbox.take(2, timeout=0)[1]
        await task
        assert taken == changes

    run(scenario())


def test_who_takes_waits_for_what_another_thread_puts() -> None:
    inbox = Inbox()
    threading.Timer(0.02, inbox.post, (bound,)).start()
    assert inbox.take(10, timeout=5) == ([bound], [])


def test_a_closed_inbox_lets_nobody_wait() -> None:
    inbox = Inbox()
    fill(inbox, put("a", 1))
    inbox.close()
    assert inbox.take(10) == ([], [put("a", 1)])
    assert inbox.take(10) == ([], [])


EVENTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(("put", "drop", "anew", "take"))), max_size=60
)


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.integers(0, 5))
def test_what_is_left_out_makes_no_difference_in_the_end(events: list[tuple[str, str]], limit: int) -> None:
    inbox = Inbox(coalesce_from=limit)
    there: dict[str, tuple[str, str]] = {}
    known: dict[str, tuple[str, str]] = {}

    def take(most: int) -> None:
        for change in inbox.take(most, timeout=0)[1]:
            before = known.get(change.key)
            if change.verb is Verb.PUT:
                assert before is None or before[0] == change.uid, (
                    "another uid, and the old one was not dropped"
                )
                known[change.key] = change.uid, change.version
            else:
                assert before is None or before[0] == change.uid, "a drop of what is there"
                known.pop(change.key, None)

    for version, (key, action) in enumerate(events):
        uid = there.get(key, (f"{key}{version}", ""))[0]
        if action in ("drop", "anew") and key in there:
            fill(inbox, drop(key, version, uid))
            del there[key]
        if action in ("put", "anew"):
            uid = f"{key}{version}" if action == "anew" else uid
            fill(inbox, put(key, version, uid))
            there[key] = uid, str(version)
        if action == "take":
            take(2)
    take(1000)
    assert known == there
