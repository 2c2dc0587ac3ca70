"""Turns go to the highest lane that waits, within every lane's share, and none is lost."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from kdsl.live.http.lanes import CAPACITY, SHARES, Lane, Lanes

from tests.live.timeless import run


async def take(lanes: Lanes, lane: Lane, order: list[Lane], seconds: float = 1.0) -> None:
    await lanes.enter(lane)
    order.append(lane)
    try:
        await asyncio.sleep(seconds)
    finally:
        lanes.leave(lane)


def test_what_becomes_free_goes_to_the_highest_lane() -> None:
    async def go() -> list[Lane]:
        lanes, order = Lanes(2, dict.fromkeys(Lane, 2)), list[Lane]()
        waves = [Lane.EVENT, Lane.EVENT, Lane.EVENT, Lane.STATUS, Lane.EVICT, Lane.BIND]
        await asyncio.gather(*(take(lanes, lane, order) for lane in waves))
        return order

    assert run(go()) == [Lane.EVENT, Lane.EVENT, Lane.BIND, Lane.EVICT, Lane.STATUS, Lane.EVENT]


def test_no_lane_takes_more_than_its_share() -> None:
    async def go() -> list[int]:
        lanes, order, seen = Lanes(), list[Lane](), []
        for lane in Lane:
            order.clear()
            works = [asyncio.create_task(take(lanes, lane, order)) for _ in range(100)]
            await asyncio.sleep(0.5)
            seen.append(len(order))
            assert lanes.waiting(lane) == 100 - len(order)
            await asyncio.gather(*works)
        return seen

    assert run(go()) == [SHARES[lane] for lane in Lane]
    assert SHARES[Lane.BIND] < CAPACITY  # the others do not starve


def test_slow_conditions_and_events_leave_turns_for_bindings_and_evictions() -> None:
    async def go() -> list[Lane]:
        lanes, order = Lanes(), list[Lane]()
        slow = [take(lanes, lane, [], 60) for lane in (Lane.STATUS, Lane.EVENT) for _ in range(100)]
        works = [asyncio.create_task(work) for work in slow]
        await asyncio.sleep(1)
        urgent = [take(lanes, lane, order) for lane in (Lane.EVICT, Lane.BIND) for _ in range(8)]
        await asyncio.wait_for(asyncio.gather(*urgent), 2)
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        return order

    assert run(go()) == [Lane.EVICT] * 8 + [Lane.BIND] * 8


@given(
    works=st.lists(
        st.tuples(st.sampled_from(list(Lane)), st.integers(0, 5), st.integers(1, 5), st.integers(0, 8)),
        max_size=40,
    )
)
def test_turns_are_given_back_whatever_is_cancelled(works: list[tuple[Lane, int, int, int]]) -> None:
    async def one(lanes: Lanes, lane: Lane, start: int, seconds: int) -> None:
        await asyncio.sleep(start)
        await take(lanes, lane, [], seconds)

    async def go() -> None:
        lanes = Lanes(3, {Lane.BIND: 2, Lane.EVICT: 1, Lane.STATUS: 2, Lane.EVENT: 1})
        loop = asyncio.get_running_loop()
        tasks = []
        for lane, start, seconds, cancelled in works:
            task = asyncio.create_task(one(lanes, lane, start, seconds))
            if cancelled:
                loop.call_later(cancelled, task.cancel)
            tasks.append(task)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(not lanes.waiting(lane) for lane in Lane)
        order: list[Lane] = []
        await asyncio.wait_for(asyncio.gather(*(take(lanes, lane, order, 0) for lane in Lane)), 1)
        assert len(order) == len(Lane)

    run(go())
