"""The texts of health checks, as Kubernetes' components write them."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.live.serving.health_checks import CheckPath, health_paths, ping, sync_check


def path(reason: str = "") -> CheckPath:
    return health_paths(ping, ping, lambda: reason)[2]


def test_all_is_well() -> None:
    assert path().answer().text == "ok" and path().answer().status == 200
    verbose = "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n"
    assert path().answer(is_verbose=True).text == verbose


def test_a_failure_names_the_resource_whose_watch_fails() -> None:
    answered = path("resourcequotas: 403 Forbidden").answer()
    assert answered.status == 500
    assert answered.text == (
        "[+]leaderElection ok\n[+]shutdown ok\n[-]sched-handler-sync failed: resourcequotas: 403 Forbidden\n"
        "readyz check failed\n"
    )


@dataclass(frozen=True)
class Watched:
    resource: str
    is_ready: bool
    error: str = ""


def test_the_check_of_the_sync_names_what_is_missing() -> None:
    watched = [
        Watched("pods", False),
        Watched("nodes", True, "old"),
        Watched("resourcequotas", False, "403 Forbidden"),
    ]
    assert sync_check(lambda: watched)() == "pods: not listed yet; resourcequotas: 403 Forbidden"
    assert sync_check(lambda: watched[1:2])() == ""


def test_a_check_that_is_excluded_does_not_count() -> None:
    answered = path("no").answer(["sched-handler-sync"], is_verbose=True)
    assert answered.is_well and "[+]sched-handler-sync excluded: ok\n" in answered.text
    warned = path().answer(["what\n"], is_verbose=True).text
    assert 'warn: some health checks cannot be excluded: no matches for "what\\n"\n' in warned


def test_one_check() -> None:
    assert path().answer_one("shutdown").text == "ok"  # type: ignore[union-attr]
    failed = path("no\x1b[2J").answer_one("sched-handler-sync")
    assert failed is not None and failed.status == 500
    assert failed.text == "internal server error: no\\x1b[2J\n"
    assert path().answer_one("none") is None
    assert list(health_paths(ping, ping, ping)[0].checks) == ["leaderElection"]
    assert list(health_paths(ping, ping, ping)[1].checks) == ["ping"]
