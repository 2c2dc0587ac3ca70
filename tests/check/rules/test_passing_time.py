"""`now` in sort keys, and what `backoff` may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_rules
from kdsl.cluster.objects.pod import PodInfo

from tests.plan.lab import compile_rules
from tests.plan.rules.test_queue import order

YOUNG, OLD = PodInfo("young", created_at=9), PodInfo("old", created_at=1)


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("order by now - pod.createdAt desc", "old"),
        ("order by now - pod.createdAt", "young"),
        ("let waited = now - pod.createdAt\norder by waited desc", "old"),
        ("let t = now\nlet waited = t - pod.createdAt\nlet w = waited\norder by w", "young"),
        ("order by pod.createdAt - now", "old"),
        ("order by pod.createdAt - now desc", "young"),
    ],
)
def test_a_key_that_grows_for_all_pods_alike_is_ordered_without_the_time(body: str, first: str) -> None:
    plugin = compile_rules(f'queue R {{\n{body}\n}}\nprofile p {{ scheduler "t" queue R }}').queue
    assert order(plugin, (YOUNG, 0), (OLD, 0))[0] == first


@pytest.mark.parametrize(
    ("backoff", "said"),
    [
        ('duration("1s") to duration("10s")', []),
        ('duration("0s") to duration("0s")', []),
        ('duration("5m") to duration("10s")', ["the first wait is longer than the longest"]),
        ('duration("-1s") to duration("10s")', ["a wait cannot be negative"]),
        ('late(3) to duration("10s")', ["this wait has no value"]),
    ],
)
def test_waits_are_checked_by_value(backoff: str, said: list[str], tmp_path: Path) -> None:
    file = tmp_path / "queue.kdsl"
    file.write_text(
        'kdsl 1\npackage t\nfn late(at: int): duration = duration(["1s"][at])\n'
        f"queue Q {{\n  order by pod.queuedAt\n  backoff {backoff}\n}}\n"
        'profile p { scheduler "t" queue Q }\n'
    )
    found = check_rules([file]).diagnostics
    assert [(str(each.code), each.title) for each in found] == [("K0217", title) for title in said]


def test_a_wait_that_is_no_duration_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "queue.kdsl"
    file.write_text(
        'kdsl 1\npackage t\nqueue Q {\n  order by pod.queuedAt\n  backoff duration("soon") to duration("10s")\n}\n'
    )
    assert [str(each.code) for each in check_rules([file]).diagnostics] == ["K0206"]


def test_a_constant_wait_without_a_value_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "queue.kdsl"
    file.write_text(
        "kdsl 1\npackage t\nqueue Q {\n  order by pod.queuedAt\n"
        '  backoff duration(["1s"][3]) to duration("10s")\n}\n'
    )
    assert [str(each.code) for each in check_rules([file]).diagnostics] == ["K0218"]
