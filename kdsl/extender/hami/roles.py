"""The leading replica, which gets the calls: the one whose kube-scheduler holds the lease.

HAMi's Service selects pods by a label. The leading replica writes it on all pods of the Deployment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from kdsl.live.election.lease import Lease
from kdsl.live.http.messages import MERGE_PATCH, HttpAnswer, HttpRequest, NoAnswerError, Sender
from kdsl.live.writing.outcomes import Refused

ROLE: Final = "hami.io/scheduler-role"
LEADER, FOLLOWER = "leader", "follower"
COMPONENT: Final = ("app.kubernetes.io/component", "hami-scheduler")
"""The label of the pods of HAMi's chart."""
EVERY: Final = 15.0
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replica:
    """This replica: its `pod`, and the `lease` of its kube-scheduler, with their namespaces.

    Without a lease it leads. Without a namespace or a pod it writes no labels.
    """

    namespace: str = ""
    pod: str = ""
    lease_namespace: str = ""
    lease: str = ""


ALONE: Final = Replica()
"""A single replica, outside of a pod."""


class Roles:
    """Follows the lease, and labels the pods of all replicas while this one leads. `now` is in seconds."""

    def __init__(self, sender: Sender, replica: Replica, now: Callable[[], float]) -> None:
        self._sender, self._replica, self._now = sender, replica, now
        self._renewed, self._seen_at = "", 0.0
        self._logged: set[str] = set()
        self.leads = not replica.lease

    async def run(self) -> None:
        """Repeat `round` until cancelled."""
        while True:
            try:
                await self.round()
            except NoAnswerError as error:
                _LOG.warning("the role of this replica is not known: %s", error)
            except Exception:  # noqa: BLE001 - the next round tries again
                _LOG.exception("the role of this replica is not known")
            await asyncio.sleep(EVERY)

    async def round(self) -> None:
        """Read the lease once; if this replica leads, label all replicas."""
        if self._replica.lease:
            self.leads = await self._holds()
        if self.leads and self._replica.namespace and self._replica.pod:
            await self._label()

    async def _holds(self) -> bool:
        """Return whether our kube-scheduler holds the lease: its identity is `POD_…`."""
        replica = self._replica
        path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(replica.lease_namespace, safe='')}/leases"
        answer = await self._sent(HttpRequest("GET", f"{path}/{quote(replica.lease, safe='')}"))
        if answer is None:
            return False
        lease = msgspec.json.decode(answer.body, type=Lease)
        spec = lease.spec
        if (spec.renew_time or "") != self._renewed:
            # By our own clock, as in leader election: clocks of other machines may be wrong.
            self._renewed, self._seen_at = spec.renew_time or "", self._now()
        is_fresh = self._now() < self._seen_at + (spec.lease_duration_seconds or 0)
        return lease.holder.rpartition("_")[0] == replica.pod and is_fresh

    async def _label(self) -> None:
        replica = self._replica
        path = f"/api/v1/namespaces/{quote(replica.namespace, safe='')}/pods"
        query = (("labelSelector", "=".join(COMPONENT)),)
        answer = await self._sent(HttpRequest("GET", path, query=query))
        pods: list[dict[str, Any]] = msgspec.json.decode(answer.body)["items"] if answer is not None else []
        for meta in (pod["metadata"] for pod in pods):
            role = LEADER if meta["name"] == replica.pod else FOLLOWER
            if (meta.get("labels") or {}).get(ROLE) != role:
                body = msgspec.json.encode({"metadata": {"labels": {ROLE: role}}})
                request = HttpRequest("PATCH", f"{path}/{quote(meta['name'], safe='')}", body, MERGE_PATCH)
                await self._sent(request)

    async def _sent(self, request: HttpRequest) -> HttpAnswer | None:
        """Return the answer to a request; None for a refusal, which is logged once."""
        answer = await self._sender.send(request)
        if answer.is_success:
            return answer
        text = f"{request.method} {request.path}: {Refused.of(answer).text}"
        if text not in self._logged:
            self._logged.add(text)
            _LOG.warning("the leading replica cannot be told: %s", text)
        return None
