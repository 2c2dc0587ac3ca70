"""Which replica leads: by the lease of the kube-scheduler beside it, told by a label on the pods."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from kdsl.extender.hami.roles import LEADER, ROLE, Replica, Roles
from kdsl.live.http.messages import HttpAnswer, HttpRequest

PODS = "/api/v1/namespaces/kube-system/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/hami-scheduler"


class Server:
    """Answers with a lease and two pods. Requests of the `refused` method are answered with 403."""

    refused = ""

    def __init__(self, holder: str = "") -> None:
        self.holder, self.renewed = holder, "1"
        self.roles: dict[str, str] = {}

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        if request.method == self.refused:
            return HttpAnswer(403)
        if request.path == LEASE:
            if not self.holder:
                return HttpAnswer(404)
            spec = {"holderIdentity": self.holder, "leaseDurationSeconds": 15, "renewTime": self.renewed}
            return HttpAnswer(200, json.dumps({"spec": spec}).encode())
        if request.method == "GET":
            assert request.path == PODS
            assert request.query == (("labelSelector", "app.kubernetes.io/component=hami-scheduler"),)
            items: list[Any] = [
                {
                    "metadata": {
                        "name": name,
                        "labels": {ROLE: self.roles[name]} if name in self.roles else None,
                    }
                }
                for name in ("pod-1", "pod-10")
            ]
            return HttpAnswer(200, json.dumps({"items": items}).encode())
        assert request.method == "PATCH"
        name = request.path.removeprefix(f"{PODS}/")
        self.roles[name] = json.loads(request.body)["metadata"]["labels"][ROLE]
        return HttpAnswer(200)


def roles(server: Server, lease: str = "hami-scheduler", now: list[float] | None = None) -> Roles:
    replica = Replica("kube-system", "pod-1", "kube-system", lease)
    times = now or [0.0]
    return Roles(server, replica, lambda: times[0])


def test_without_a_lease_it_leads_and_says_so() -> None:
    server = Server()
    found = roles(server, "")
    asyncio.run(found.round())
    assert found.leads
    assert server.roles == {"pod-1": LEADER, "pod-10": "follower"}


@pytest.mark.parametrize(("holder", "leads"), [("pod-1_abc", True), ("pod-10_abc", False), ("", False)])
def test_it_leads_where_its_kube_scheduler_holds_the_lease(holder: str, leads: bool) -> None:
    """HAMi compares the beginning alone: `pod-1` is that of `pod-10` as well."""
    server = Server(holder)
    found = roles(server)
    asyncio.run(found.round())
    assert found.leads is leads
    assert bool(server.roles) is leads


def test_a_lease_that_is_not_renewed_is_no_lease() -> None:
    server, now = Server("pod-1_abc"), [100.0]
    found = roles(server, now=now)
    asyncio.run(found.round())
    now[0] += 16
    asyncio.run(found.round())
    assert not found.leads
    server.renewed = "2"
    asyncio.run(found.round())
    assert found.leads


def test_refusals_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Without the label HAMi's Service has no pod, and nobody gets the calls."""
    server = Server("pod-1_abc")
    server.refused = "PATCH"
    found = roles(server)
    for _ in range(2):
        asyncio.run(found.round())
    assert [record.getMessage() for record in caplog.records] == [
        f"the leading replica cannot be told: PATCH {PODS}/{name}: 403: the server answered 403"
        for name in ("pod-1", "pod-10")
    ]
    caplog.clear()
    server.refused = "GET"
    asyncio.run(found.round())
    assert not found.leads
    assert LEASE in caplog.text
