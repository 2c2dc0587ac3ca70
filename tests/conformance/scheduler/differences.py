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
        """Return whether a finding in a scenario is this difference."""
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
    if write.method != "PATCH" or not write.path.endswith("/status") or "/pods/" not in write.path:
        return None
    return _without(write, "metadata", "uid")


def _delete_uid(write: Write) -> Write | None:
    return _without(write, "preconditions") if write.method == "DELETE" else None


REWORDINGS = (
    Rewording("patch-uid", "a new pod of the same name does not get the status of the old one", _patch_uid),
    Rewording(
        "delete-uid", "a new pod of the same name is not deleted; the old one counts as gone", _delete_uid
    ),
)

LISTED = (
    Listed(
        "no-vain-attempt",
        (
            *("unschedulable-twice", "preemption-two-victims", "nomination-cleared-by-higher"),
            *("nominated-node-deleted", "metrics-run"),
        ),
        r"^- events .*(\"FailedScheduling\"|\"series\")|^- .*not eligible due to a terminating pod",
        "a pod is tried again only if the rule that rejected it can pass now, with all present pods: there are no attempts with equal results, and no events or patches for them",
    ),
    Listed(
        "own-patch-is-no-news",
        ("extender-filter-prioritize-nodes", "extender-filter-prioritize-names"),
        r"^- events .*\"FailedScheduling\"|^- extender /x/filter about b",
        "the scheduler's own write of the condition does not wake the pod: extenders get no repeated request",
    ),
    Listed(
        "follows",
        ("leader-lost",),
        r"^\+ process: ended with None",
        "a leader that cannot renew its lease stops binding and continues as a follower: an outage of the API server does not restart all schedulers",
    ),
    Listed(
        "drained",
        ("sigterm",),
        r"^\+ events of sigterm/a: .*\"Scheduled\"",
        "work under way ends before the lease is released: the event of the bound pod is not lost",
    ),
    Listed(
        "bound-by-other",
        ("bind-conflict",),
        r"^- .*already assigned to node",
        "the pod is read again: it is bound, so nothing failed, and no condition reports a failure for ever",
    ),
    Listed(
        "gone-before-bound",
        ("pod-deleted-before-binding",),
        r"^- .*not found",
        "the pod is gone: its condition has no reader, and no event reports an error",
    ),
    Listed(
        "replaced-before-bound",
        ("pod-replaced-before-binding-variant",),
        r"^- kinds",
        "a new pod of the same name does not get the failure of the old one",
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
        "errors of Go's libraries (lost connections, malformed JSON, timeouts) have texts of our own",
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
        "no-request-header-authentication",
        ("startup",),
        r"^- GET /api/v1/namespaces/kube-system/configmaps",
        "endpoints use only TokenReview and SubjectAccessReview",
    ),
    Listed(
        "watch-list-first",
        ("startup-list-watch",),
        r"^\+ GET .*sendInitialEvents=true",
        "there is no switch for WatchList: it is tried first, and lists follow after a refusal",
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
        "while the server is unreachable, `/readyz` is requested; once it answers, all back-offs are reset",
    ),
)


def table() -> str:
    """Return the list as the table of docs/writes.md."""
    rows = [("all", each.name, each.reason) for each in REWORDINGS]
    rows += [(", ".join(each.scenarios), each.name, each.reason) for each in LISTED]
    lines = [f"| `{name}` | {where} | {reason} |" for where, name, reason in rows]
    return "\n".join(["| Difference | Scenarios | Why |", "|---|---|---|", *lines])
