"""Objects of a cluster that cannot be read are left out, and the warning says so and what to do."""

from __future__ import annotations

import asyncio
import json

import pytest
from kdsl.base.errors import InvalidInputError
from kdsl.live.http.messages import HttpAnswer, HttpRequest
from kdsl.live.watching.listing import MAX_REPORTED, list_cluster
from kdsl.live.watching.needs import Need, Needs
from kdsl.live.watching.resources import PODS


class Served:
    """A server with pods whose priority is no number."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        meta = {"namespace": "a", "resourceVersion": "1"}
        pods = [{"metadata": {**meta, "name": f"p{at}"}, "spec": {"priority": "high"}} for at in range(12)]
        return HttpAnswer(200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": pods}).encode())


def test_unreadable_objects_have_a_cure() -> None:
    listed = asyncio.run(list_cluster(Served(), Needs((Need(PODS, ("pods",)),)), "here"))
    assert len(listed.problems) == MAX_REPORTED + 1
    assert listed.problems[-1].title == "12 objects of pods are left out"
    assert all("answer is made without it" in each.help[0] for each in listed.problems)


class Proxy:
    """A server that is none of Kubernetes, and answers everything with 200."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        return HttpAnswer(200, b'{"status": "ok"}')


def test_other_json_is_no_empty_cluster() -> None:
    with pytest.raises(InvalidInputError) as caught:
        asyncio.run(list_cluster(Proxy(), Needs((Need(PODS, ("pods",)),)), "here"))
    [found] = caught.value.diagnostics
    assert found.title == "the list of pods cannot be read: it has no resourceVersion"
