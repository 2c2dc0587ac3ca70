from __future__ import annotations

import pytest
from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.quota import Quota, QuotaNames, limits_of

NAMES = QuotaNames("v.com/mem", "v.com/cores", factor=256)


@pytest.mark.parametrize(
    "limits, memory, cores, expected",
    [
        ({}, 10**9, 10**9, True),
        ({"v.com/mem": 4}, 1024, 0, True),
        ({"v.com/mem": 4}, 1025, 0, False),
        ({"v.com/mem": 0}, 1, 0, False),
        ({"v.com/cores": 100}, 0, 100, True),
        ({"v.com/cores": 100}, 0, 101, False),
    ],
)
def test_limits(limits: dict[str, int], memory: int, cores: int, expected: bool) -> None:
    assert Quota(limits).allows(NAMES, memory, cores) == expected


def test_usage_adds_up() -> None:
    quota = Quota({"v.com/mem": 4}).with_usage(
        NAMES, [DeviceGrant("a", "T", 512, 0), DeviceGrant("b", "T", 256, 0)]
    )
    assert quota.allows(NAMES, 256, 0)
    assert not quota.allows(NAMES, 257, 0)


def test_limits_of_a_quota() -> None:
    hard = {"limits.v.com/mem": 4, "requests.v.com/mem": 2, "pods": 10}
    assert limits_of(hard) == {"v.com/mem": 4}
