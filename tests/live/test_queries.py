"""The requests of lists and watches are those that kube-scheduler 1.36 sends, as they were recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kdsl.live.http.messages import HttpRequest
from kdsl.live.watching import queries
from kdsl.live.watching.decode import Cause, Details, Status
from kdsl.live.watching.queries import Trouble, trouble_of
from kdsl.live.watching.resources import RESOURCES, ApiResource

RECORDED = Path(__file__).parents[3] / "shared" / "conformance" / "live" / "scheduler.jsonl.gz"
RANDOM = ("timeout", "timeoutSeconds")


def recorded() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the lists and watches of all scenarios."""
    for scenario in map(json.loads, gzip.decompress(RECORDED.read_bytes()).splitlines()):
        for step in scenario["timeline"]:
            request = step.get("request", {})
            if request.get("method") == "GET":
                yield request["path"], request["query"]


def ours(resource: ApiResource, query: dict[str, str]) -> HttpRequest:
    version = query.get("resourceVersion", "")
    if "sendInitialEvents" in query:
        return queries.watch_list(resource, version, 300)
    if "watch" in query:
        return queries.watch(resource, version, 300)
    if version == "0":
        return queries.first_list(resource)
    return queries.fresh_list(resource, version) if version else queries.newest_list(resource)


@pytest.mark.skipif(not RECORDED.exists(), reason="no recorded conversations beside this checkout")
def test_lists_and_watches_are_the_recorded_ones() -> None:
    resources = {resource.path: resource for resource in RESOURCES.values()}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for path, query in recorded():
        if path in resources and ("watch" in query or "resourceVersion" in query):
            sent = {name: value for name, value in ours(resources[path], query).query if name not in RANDOM}
            assert sent == {name: value for name, value in query.items() if name not in RANDOM}, path
            seen.add((path, tuple(sorted(query))))
    assert len({path for path, _ in seen}) == len(RESOURCES) - 1, (
        "all but quotas, which kube-scheduler does not read"
    )
    assert len({names for _, names in seen}) >= 6, "of all forms"


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        (Status(410), Trouble.EXPIRED),
        (Status(0, "Expired"), Trouble.EXPIRED),
        (Status(500, "Gone"), Trouble.EXPIRED),
        (Status(504, "Timeout", "x", Details((Cause("ResourceVersionTooLarge"),))), Trouble.TOO_NEW),
        (Status(504, "Timeout", "Timeout: Too large resource version: 9, current: 5"), Trouble.TOO_NEW),
        (Status(504, "Timeout"), Trouble.SERVER),
        (Status(429), Trouble.TOO_MANY),
        (Status(401), Trouble.UNAUTHORIZED),
        (Status(403), Trouble.FORBIDDEN),
        (Status(404), Trouble.ABSENT),
        (Status(400), Trouble.OTHER),
        (Status(), Trouble.OTHER),
    ],
)  # fmt: skip
def test_what_an_error_is_about(status: Status, trouble: Trouble) -> None:
    assert trouble_of(status) is trouble
