"""The sandbox answers as the recorded API server, and the comparison can fail."""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance.live import API_SERVER
from tests.conformance.live.compare import Bindings
from tests.conformance.live.replay import read_scenarios, replay, replay_all

needs_data = pytest.mark.skipif(not API_SERVER.exists(), reason=f"no recorded answers at {API_SERVER}")


@needs_data
def test_all_recorded_scenarios() -> None:
    scenarios = read_scenarios(API_SERVER)
    assert len(scenarios) == 53
    found = asyncio.run(replay_all(scenarios))
    failed = {
        scenario["name"]: differences
        for scenario, differences in zip(scenarios, found, strict=True)
        if differences
    }
    assert not failed


@needs_data
def test_a_changed_recording_is_noticed() -> None:
    scenario = next(item for item in read_scenarios(API_SERVER) if item["name"] == "binding")
    scenario["steps"][3]["response"]["body"]["spec"]["nodeName"] = "elsewhere"
    scenario["steps"][4]["response"]["status"] = 201
    found = asyncio.run(replay(scenario))
    assert any("'node-not-there' in place of 'elsewhere'" in item for item in found)
    assert any("status 409 in place of 201" in item for item in found)


def test_a_uid_stands_for_one_object() -> None:
    bindings = Bindings()
    uid, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    assert bindings.compare({"a": "<uid:1>"}, {"a": uid}, "", False, False) == []
    assert bindings.compare({"a": "<uid:1>"}, {"a": other}, "", False, False)
    assert bindings.compare({"a": "<uid:2>"}, {"a": uid}, "", False, False)


def test_versions_are_in_the_order_of_their_placeholders() -> None:
    bindings = Bindings()
    assert bindings.compare(["<rv:1>", "<rv:2>"], ["8", "7"], "", False, False) == []
    assert bindings.misordered() == ["<rv:2> is 7, not later than 8"]


def test_what_is_too_much_or_missing_is_a_difference() -> None:
    bindings = Bindings()
    assert bindings.compare({"a": 1}, {"a": 1, "b": 2}, "", False, False)
    assert not bindings.compare({"a": 1}, {"a": 1, "b": 2}, "", True, False)
    assert bindings.compare({"a": 1, "b": 2}, {"a": 1}, "", True, False)
    assert bindings.compare([2, 1], [1, 2], "", True, False)
