"""The differences from kube-scheduler that are meant, each with its reason; docs/writes.md shows them.

A difference that is listed and does not occur is a failure: the list says what is so, not what may be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.scheduler.writes import Write


@dataclass(frozen=True, slots=True)
class Rewording:
    """A difference of many writes: `apply` returns a write as kube-scheduler has it, None for others."""

    name: str
    reason: str
    apply: Callable[[Write], Write | None]


@dataclass(frozen=True, slots=True)
class Listed:
    """A difference of some scenarios: `pattern` is looked for in what a finding says.

    What only `may` be seen depends on which of two things is quicker.
    """

    name: str
    scenarios: tuple[str, ...]
    pattern: str
    reason: str
    may: bool = False

    def matches(self, scenario: str, finding: str) -> bool:
        """Tell whether a finding in a scenario is this difference."""
        return scenario in self.scenarios and re.search(self.pattern, finding) is not None


def _without(write: Write, *keys: str) -> Write | None:
    """Return a write without a part of its body."""
    body: Any = json.loads(write.body)
    below = body
    for key in keys[:-1]:
        below = below.get(key) if isinstance(below, dict) else None
    if not isinstance(below, dict) or keys[-1] not in below:
        return None
    del below[keys[-1]]
    if len(keys) > 1 and not body[keys[0]]:
        del body[keys[0]]
    return replace(write, body=json.dumps(body, sort_keys=True, ensure_ascii=False))


def _patch_uid(write: Write) -> Write | None:
    if write.method != "PATCH" or not write.path.endswith("/status"):
        return None
    return _without(write, "metadata", "uid")


def _delete_uid(write: Write) -> Write | None:
    return _without(write, "preconditions") if write.method == "DELETE" else None


REWORDINGS = (
    Rewording(
        "patch-uid", "a pod made anew under the name is not told what was meant for the old one", _patch_uid
    ),
    Rewording("delete-uid", "another pod under the name counts as gone, and is not deleted", _delete_uid),
)

NOT_BUILT = dict.fromkeys(
    ("dra-allocation", "dra-bind-fails", "dra-status-conflict", "dra-template-missing-claim"),
    "devices of ResourceClaims are not allocated: pods that ask for them stay pending, and are told so",
)
"""Scenarios that fail, and why."""

_STARTS = ("startup", "startup-list-watch", "startup-default-content-type", "startup-objects-exist")
_CUTS = ("watch-dropped", "watch-410", "watch-429", "apiserver-down-20s")

LISTED = (
    Listed(
        "no-vain-attempt",
        ("unschedulable-twice", "preemption-two-victims", "nomination-cleared-by-higher", "metrics-run"),
        r"^- events .*(\"FailedScheduling\"|\"series\")|^- .*not eligible due to a terminating pod",
        "a pod is tried again where the rule that rejected it can say yes now, with all pods that are there: "
        "attempts that would end alike are not made, and need no event or patch",
    ),
    Listed(
        "own-patch-is-no-news",
        ("extender-filter-prioritize-nodes", "extender-filter-prioritize-names"),
        r"^- events .*\"FailedScheduling\"|^- extender /x/filter about b",
        "what the scheduler itself wrote into the condition does not wake the pod: extenders are not asked "
        "again about the same",
    ),
    Listed(
        "follows",
        ("leader-lost",),
        r"^\+ process: ended with None",
        "a leader that cannot renew its lease binds nothing any more, and goes on as a follower: an API server "
        "that was away does not restart all schedulers",
    ),
    Listed(
        "drained",
        ("sigterm",),
        r"^\+ events of sigterm/a: .*\"Scheduled\"",
        "what is under way is ended before the lease is given back: the event of the bound pod is not lost",
    ),
    Listed(
        "bound-by-other",
        ("bind-conflict",),
        r"^- .*already assigned to node",
        "the pod is read again: it is bound, so nothing failed, and no condition says so for ever",
    ),
    Listed(
        "gone-before-bound",
        ("pod-deleted-before-binding",),
        r"^- .*not found",
        "the pod is gone: nobody reads its condition, and no event says that something is wrong",
    ),
    Listed(
        "replaced-before-bound",
        ("pod-replaced-before-binding-variant",),
        r"^- kinds",
        "the pod is another one: what failed for the old one is not written over the new one",
    ),
    Listed(
        "lost-answer",
        ("bind-no-answer",),
        r"^- (/api/v1/namespaces/bind-no-answer/pods/b|events of bind-no-answer/b): .*EOF"
        r"|^\+ events of bind-no-answer/b: .*\"Scheduled\"",
        "the answer was lost: the pod is read again, it is bound, and the event says so",
    ),
    Listed(
        "own-words",
        ("bind-no-answer", "extender-errors", "extender-timeout", "extender-unreachable"),
        r"EOF|the server closed the connection|invalid character|context deadline exceeded|no answer within"
        r"|connection refused",
        "errors of Go's libraries (lost connections, malformed JSON, timeouts) are told in our words",
    ),
    Listed(
        "same-version-series",
        ("preemption-delete-fails",),
        r"events of preemption-delete-fails/high: ",
        "the second attempt follows in the same millisecond, before the watch shows the first one's patch: "
        "its event is one more of the series",
        may=True,
    ),
    Listed(
        "not-watched",
        (*_STARTS, *_CUTS),
        r"^- GET /apis/resource\.k8s\.io/",
        "only what the active rules and plugins read is watched; no rule reads ResourceClaims",
    ),
    Listed(
        "no-request-header-authentication",
        ("startup",),
        r"^- GET /api/v1/namespaces/kube-system/configmaps",
        "endpoints are guarded by TokenReview and SubjectAccessReview alone",
    ),
    Listed(
        "watch-list-first",
        ("startup-list-watch",),
        r"^\+ GET .*sendInitialEvents=true",
        "there is no switch for WatchList: it is tried, and lists follow where it is refused",
    ),
    Listed(
        "json",
        ("startup-default-content-type",),
        r"protobuf|\[application/json\]",
        "bodies are JSON: a scheduler reads few of the fields, and decodes only those",
    ),
    Listed(
        "readyz",
        ("watch-429", "apiserver-down-20s"),
        r"^\+ GET /readyz",
        "while the server does not serve, it is asked whether it is ready: then all back-offs start over",
    ),
    Listed(
        "claims",
        ("metrics-run",),
        r"metrics-run/(pods/claims|resourceclaims/|claims)|events of metrics-run/claims",
        "not built: devices of ResourceClaims are not allocated",
    ),
)


def table() -> str:
    """Return the list as the table of docs/writes.md."""
    rows = [("all", each.name, each.reason) for each in REWORDINGS]
    rows += [(", ".join(each.scenarios), each.name, each.reason) for each in LISTED]
    rows += [(", ".join(sorted(NOT_BUILT)), "not built", next(iter(NOT_BUILT.values())))]
    lines = [f"| `{name}` | {where} | {reason} |" for where, name, reason in rows]
    return "\n".join(["| Difference | Scenarios | Why |", "|---|---|---|", *lines])
