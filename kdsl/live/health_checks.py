"""Health checks: which there are on each path, and the texts that Kubernetes' components answer with.

Unlike those, a failed check says what is wrong: it names the resource whose watch fails, so that nobody has
to look for a missing right in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from kdsl.base.visible import visible

Check = Callable[[], str]
"""Returns what is wrong, "" where nothing is. It must not wait."""

MOST_TEXT: Final = 512
"""Characters of one reason."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a health path answers."""

    is_well: bool
    text: str

    @property
    def status(self) -> int:
        return 200 if self.is_well else 500


@dataclass(frozen=True, slots=True)
class CheckPath:
    """The checks of one path (`readyz`), by name in the order in which they are listed."""

    name: str
    checks: Mapping[str, Check]

    def answer(self, excluded: Iterable[str] = (), *, is_verbose: bool = False) -> Answered:
        """Run all checks but the excluded ones."""
        excluded = frozenset(excluded)
        lines: list[str] = []
        is_well = True
        for name, check in self.checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            reason = self._run(check)
            is_well = is_well and not reason
            lines.append(f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok")
        unknown = sorted(excluded - self.checks.keys())
        if unknown:
            names = ", ".join(f'"{visible(name[:MOST_TEXT])}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if is_well and not is_verbose:
            return Answered(True, "ok")
        lines.append(f"{self.name} check {'passed' if is_well else 'failed'}")
        return Answered(is_well, "".join(f"{line}\n" for line in lines))

    def answer_one(self, name: str) -> Answered | None:
        """Run one check; None where there is none of this name."""
        check = self.checks.get(name)
        if check is None:
            return None
        reason = self._run(check)
        return Answered(not reason, f"internal server error: {reason}\n" if reason else "ok")

    def _run(self, check: Check) -> str:
        return visible(check()[:MOST_TEXT])


class WatchedResource(Protocol):
    """How well a resource is known; `kdsl.live.health.ResourceHealth` is one."""

    @property
    def resource(self) -> str: ...

    @property
    def is_ready(self) -> bool: ...

    @property
    def error(self) -> str: ...


def sync_check(resources: Callable[[], Iterable[WatchedResource]]) -> Check:
    """Return the check `sched-handler-sync`: it names every resource that is not known yet, and why."""

    def check() -> str:
        missing = [
            f"{each.resource}: {each.error or 'not listed yet'}" for each in resources() if not each.is_ready
        ]
        return "; ".join(missing)

    return check


def ping() -> str:
    """Answer: who can say this is alive."""
    return ""


def health_paths(
    leader: Check, shutdown: Check, synced: Check, others: Mapping[str, Check] | None = None
) -> tuple[CheckPath, ...]:
    """Return the paths of a scheduler.

    `leader` fails where the lease cannot be renewed and this instance still acts on it, `shutdown` once the
    process ends, `synced` until every resource was listed and its handlers have seen all of it.
    """
    return (
        CheckPath("healthz", {"leaderElection": leader}),
        CheckPath("livez", {"ping": ping}),
        CheckPath(
            "readyz",
            {"leaderElection": leader, "shutdown": shutdown, "sched-handler-sync": synced, **(others or {})},
        ),
    )
