"""Answers of the endpoints, and who gets them."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.live.http.messages import HttpAnswer
from kdsl.live.serving.application import Shown, application
from kdsl.live.serving.decision_log import DecisionLog
from kdsl.live.serving.guarding import AT_ONCE, MAX_BODY, OPEN
from kdsl.live.serving.health_checks import health_paths, ping
from kdsl.live.serving.listening import Listener, address_reason
from kdsl.live.serving.questions import Explained, Question
from kdsl.live.serving.reviews import KEPT_FOR, MAX_KEPT, CallerReviews, ReviewCache
from kdsl.obs.kdsl_families import KDSL
from kdsl.obs.registry import Registry
from kdsl.obs.scheduler_families import CLIENT, SCHEDULER, SLIS
from kdsl.obs.state import QueueState, SchedulerState

from tests.live.reviews import Reviewer
from tests.obs.exposition import value


class Explains:
    """Explains one pod."""

    async def explain(self, namespace: str, name: str, question: Question) -> Explained | None:
        document = {"pod": f"{namespace}/{name}", "answer": "it waits", "asked": question.node}
        return Explained("unschedulable", "", False, "active", "", document=document) if name == "a" else None


class Site:
    """The endpoints of a scheduler whose watch of one resource may fail."""

    def __init__(self, *, with_rights: bool = True, open_paths: tuple[str, ...] = OPEN) -> None:
        self.now, self.failing = 100.0, ""
        self.reviewer = Reviewer()
        self.decisions = DecisionLog(lambda: 5, "i")
        self.is_stuck = False
        shown = Shown(
            health_paths(ping, ping, lambda: self.failing),
            Registry([*SCHEDULER.values(), *CLIENT.values(), *KDSL.values()]),
            Registry(SLIS.values()),
            now=lambda: self.now, started=10.0, state=self.state,
            pods=lambda: [PodInfo("a", namespace="team")],
            configuration=lambda: {"kind": "KdslConfiguration"},
            decisions=self.decisions, explainer=Explains(), extra={"/shadow": lambda: {"pods": 3}},
        )  # fmt: skip
        rights = CallerReviews(self.reviewer, lambda: self.now) if with_rights else None
        self.app = application(shown, rights, open_paths)

    async def state(self) -> SchedulerState:
        if self.is_stuck:
            raise TimeoutError
        return SchedulerState(QueueState({"active": 3}, {}, {}), nodes=7)

    def ask(self, path: str, token: str = "", method: str = "GET", **headers: str) -> tuple[int, str]:
        """Send one request and return status and body."""
        return asyncio.run(self.asked(path, token, method, **headers))

    async def asked(self, path: str, token: str = "", method: str = "GET", **headers: str) -> tuple[int, str]:
        where, _, query = path.partition("?")
        sent: list[Any] = []
        given = {**headers, **({"authorization": f"Bearer {token}"} if token else {})}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": where,
            "raw_path": where.encode(), "root_path": "", "scheme": "https", "query_string": query.encode(),
            "headers": [(key.replace("_", "-").encode(), text.encode()) for key, text in given.items()],
            "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2),
        }  # fmt: skip

        body = iter([True])

        async def receive() -> dict[str, Any]:
            if next(body, None) is None:
                await asyncio.Event().wait()  # the client stays, and says nothing more
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]).decode()


def test_health_does_not_wait_behind_callers_whose_rights_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hanging(reviewer: Reviewer, request: object, *, timeout: float | None = None) -> HttpAnswer:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")

    monkeypatch.setattr(Reviewer, "send", hanging)
    site = Site()

    async def play() -> None:
        callers = [asyncio.create_task(site.asked("/metrics", f"token-{at}")) for at in range(AT_ONCE)]
        await asyncio.sleep(0)
        assert await site.asked("/metrics", "one-more") == (503, "503 too many requests are under way\n")
        assert await site.asked("/healthz") == (200, "ok")
        for each in callers:
            each.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    asyncio.run(play())


def test_health_before_and_after_the_sync_and_metrics_with_and_without_a_token() -> None:
    site = Site()
    site.failing = "pods: not listed yet"
    assert site.ask("/readyz") == (
        500,
        "[+]leaderElection ok\n[+]shutdown ok\n[-]sched-handler-sync failed: pods: not listed yet\nreadyz check failed\n",
    )
    assert site.ask("/healthz") == (200, "ok") and site.ask("/livez") == (200, "ok")
    site.failing = ""
    assert site.ask("/readyz") == (200, "ok")
    assert site.ask("/readyz?verbose")[1].endswith("readyz check passed\n")
    status, body = site.ask("/metrics")
    assert status == 403
    assert json.loads(body) == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
        "reason": "Forbidden", "details": {}, "code": 403,
    }  # fmt: skip
    status, body = site.ask("/metrics", "wrong")
    assert status == 401
    assert json.loads(body) == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    }  # fmt: skip
    status, body = site.ask("/metrics", "prometheus")
    assert status == 200 and value(body, "scheduler_cache_size", type="nodes") == 7
    assert (
        json.loads(site.ask("/metrics", "team")[1])["message"]
        == 'forbidden: User "team" cannot get path "/metrics"'
    )


def test_the_reviews_say_what_is_asked() -> None:
    site = Site()
    site.ask("/metrics", "prometheus")
    token, access = site.reviewer.requests
    assert token.path == "/apis/authentication.k8s.io/v1/tokenreviews"
    assert json.loads(token.body)["spec"] == {"token": "prometheus"}
    assert access.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert json.loads(access.body)["spec"] == {
        "user": "system:serviceaccount:monitoring:prometheus", "groups": ["system:authenticated"],
        "extra": {"a": ["b"]}, "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }  # fmt: skip


def test_answers_of_reviews_are_kept_ten_seconds() -> None:
    site = Site()
    for _ in range(3):
        assert site.ask("/metrics", "prometheus")[0] == 200
    assert len(site.reviewer.requests) == 2
    site.now += KEPT_FOR
    assert site.ask("/metrics", "prometheus")[0] == 200
    assert len(site.reviewer.requests) == 4
    kept: ReviewCache[int, int] = ReviewCache(lambda: 0.0)
    for number in range(MAX_KEPT + 1):
        kept.put(number, number)
    assert kept.get(0) is None and kept.get(1) == 1


def test_without_an_answer_nobody_gets_in() -> None:
    site = Site()
    site.reviewer.is_down = True
    assert site.ask("/metrics", "prometheus")[0] == 401
    status, body = site.ask("/metrics")
    assert status == 500 and "connection refused" in body
    assert site.ask("/readyz")[0] == 200
    assert Site(with_rights=False).ask("/metrics", "prometheus")[0] == 403


def test_paths_that_are_open() -> None:
    site = Site(open_paths=(*OPEN, "/metrics"))
    assert site.ask("/metrics")[0] == 200
    assert site.ask("/readyz/shutdown")[0] == 403 and site.ask("/readyz/shutdown", "prometheus") == (
        200,
        "ok",
    )
    assert site.ask("/readyz/none", "prometheus") == (404, "404 page not found\n")
    assert site.ask("/nowhere", "prometheus") == (404, "404 page not found\n")


def test_documents() -> None:
    site = Site()
    assert json.loads(site.ask("/configz", "prometheus")[1]) == {
        "componentconfig": {"kind": "KdslConfiguration"}
    }
    state = site.ask("/statusz", "prometheus")[1]
    assert "Started: Thu Jan  1 00:00:10 UTC 1970\nUp: 0 hr 01 min 30 sec" in state
    assert "\nPaths: /configz /decisions /explain/{namespace}/{name} /healthz /livez /metrics " in state
    assert json.loads(site.ask("/shadow", "prometheus")[1]) == {"pods": 3}
    resources = site.ask("/metrics/resources", "prometheus")[1]
    assert "# TYPE kube_pod_resource_request gauge" in resources
    slis = site.ask("/metrics/slis", "prometheus")[1]
    assert value(slis, "kubernetes_healthcheck", name="ping", type="livez") == 1
    assert value(slis, "kubernetes_healthchecks_total", name="ping", type="livez", status="success") == 1


def test_a_scrape_does_not_wait_for_a_scheduling_thread_that_is_stuck() -> None:
    site = Site()
    assert value(site.ask("/metrics", "prometheus")[1], "kdsl_state_is_stale") == 0
    site.is_stuck = True
    text = site.ask("/metrics", "prometheus")[1]
    assert value(text, "kdsl_state_is_stale") == 1 and value(text, "scheduler_cache_size", type="nodes") == 7


def test_who_may_get_a_pod_may_have_it_explained() -> None:
    site = Site()
    site.decisions.record(Decision("team/a", "p", Outcome.UNSCHEDULABLE, message="0/1"))
    status, body = site.ask("/explain/team/a", "team")
    document = json.loads(body)
    assert status == 200 and document["explanation"]["answer"] == "it waits"
    assert document["last"]["id"] == "i-1" and document["last"]["decision"]["message"] == "0/1"
    assert site.ask("/explain/team/a", "team", "POST")[0] == 200
    assert site.ask("/explain/team/none", "team")[0] == 404
    status, body = site.ask("/explain/other/a", "team")
    assert status == 403
    assert json.loads(body)["message"] == (
        'pods "a" is forbidden: User "team" cannot get resource "pods" in API group "" in the namespace "other"'
    )


def test_the_last_decisions() -> None:
    site = Site()
    for number in range(1500):
        site.decisions.record(Decision(f"team/{number}", "p", Outcome.PLACED))
    found = json.loads(site.ask("/decisions?limit=2", "prometheus")[1])["decisions"]
    assert [each["id"] for each in found] == ["i-1500", "i-1499"] and found[0]["time"] == 5
    assert len(json.loads(site.ask("/decisions?limit=99999", "prometheus")[1])["decisions"]) == 1000
    assert site.ask("/decisions?limit=-1", "prometheus")[0] == 400
    assert site.decisions.of_pod("team/1") is None


@pytest.mark.parametrize(
    ("path", "method", "headers", "status"),
    [
        ("/metrics", "DELETE", {}, 400),
        ("/" + "a" * 2000, "GET", {}, 400),
        ("/metrics\x00", "GET", {}, 400),
        ("/readyz", "POST", {"content_length": str(MAX_BODY + 1)}, 413),
        ("/readyz", "POST", {"transfer_encoding": "chunked"}, 413),
        ("/readyz", "POST", {"content_length": "9" * 5000}, 413),
        ("/readyz", "POST", {}, 405),
    ],
)
def test_requests_that_are_not_taken(path: str, method: str, headers: dict[str, str], status: int) -> None:
    assert Site().ask(path, "", method, **headers)[0] == status


def test_a_token_that_is_too_long_is_nobodys() -> None:
    site = Site()
    assert site.ask("/metrics", "x" * 20_000)[0] == 401
    assert site.reviewer.requests == []


def test_a_scheduler_that_may_not_ask_for_rights_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    text = 'User "kdsl" cannot create resource "tokenreviews"'
    site.reviewer.refusal = HttpAnswer(403, json.dumps({"message": text}).encode())
    for _ in range(3):
        status, body = site.ask("/metrics", "prometheus")
        assert status == 401 and "kdsl" not in body
    assert [each.getMessage() for each in caplog.records] == [
        f"callers of the endpoints cannot be authenticated: TokenReview: the API server answered 403: {text}"
    ]


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70, "..", "ü..b"])
def test_an_address_without_a_host_of_its_name(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*_: object) -> None:
        # Asking a name server would need one.
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(OSError) as caught:
        asyncio.run(Listener(Site().app, None).start(host, 0))
    assert "not known" in address_reason(caught.value)


def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError) as caught:
        asyncio.run(Listener(Site().app, None).start("127.0.0.1", other.getsockname()[1]))
    assert address_reason(caught.value) == "address already in use"
