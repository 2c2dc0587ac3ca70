"""The families with kube-scheduler's names are its families: type, stability, labels, buckets."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from kdsl.obs.family import Family, MetricType
from kdsl.obs.kdsl_families import KDSL
from kdsl.obs.registry import bound_text
from kdsl.obs.scheduler_families import CLIENT, SCHEDULER, SLIS

from tests.obs.left_out import LEFT_OUT

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "kube_scheduler_families.json").read_text(encoding="utf-8")
)
OURS = {**SCHEDULER, **CLIENT}
NOT_IN_THE_RECORDING = {
    # Those appear with the first pod that waits, the first retry, the first slow renewal.
    "scheduler_permit_wait_duration_seconds",
    "rest_client_request_retries_total",
    "leader_election_slowpath_total",
}
PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_every_recorded_family_is_here_or_left_out_with_a_reason(name: str) -> None:
    assert (name in OURS) != (name in LEFT_OUT)
    if name in OURS:
        family, recorded = OURS[name], RECORDED[name]
        assert family.kind == recorded["type"]
        assert family.stability == recorded["stability"]
        assert sorted(family.labels) == recorded["labels"]
        bounds = [bound_text(bound) for bound in (*family.bounds, math.inf)] if family.bounds else []
        assert bounds == recorded["bounds"]


def test_no_family_of_this_name_is_made_up() -> None:
    assert OURS.keys() - RECORDED.keys() == NOT_IN_THE_RECORDING
    assert LEFT_OUT.keys() <= RECORDED.keys()


@pytest.mark.parametrize(
    "family", [*OURS.values(), *SLIS.values(), *KDSL.values()], ids=lambda each: each.name
)
def test_the_page_says_what_each_means(family: Family) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{family.name}`")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == f"`{family.name}`" + (f" {{{', '.join(family.labels)}}}" if family.labels else "")
    assert cells[1] == family.kind and len(cells) == 4 and all(cells)
    assert family.name.endswith("_total") == (family.kind is MetricType.COUNTER)


def test_the_page_names_no_family_that_is_not_there() -> None:
    known = {*OURS, *SLIS, *KDSL, *LEFT_OUT, "kube_pod_resource_request", "kube_pod_resource_limit"}
    named = set(
        re.findall(r"`((?:kdsl|scheduler|rest_client|leader_election|kubernetes|workqueue)_[a-z_]+)`", PAGE)
    )
    assert named - known == set()
