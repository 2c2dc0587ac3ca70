"""The health checks of each path, with the answers of Kubernetes' components.

Unlike theirs, a failed check gives its reason: it names the resource whose watch fails, so that a missing
right is found without the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.base.visible import visible
from kdsl.live.watching.health import ResourceHealth

Check = Callable[[], str]
"""Returns the error, "" if there is none. It must not wait."""

MOST_TEXT: Final = 512
"""The most characters of one reason."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a health path."""

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
        """Run all checks except the excluded ones."""
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
        """Run one check; return None if no check has this name."""
        check = self.checks.get(name)
        if check is None:
            return None
        reason = self._run(check)
        return Answered(not reason, f"internal server error: {reason}\n" if reason else "ok")

    def _run(self, check: Check) -> str:
        return visible(check()[:MOST_TEXT])


def sync_check(resources: Callable[[], Iterable[ResourceHealth]]) -> Check:
    """Return the check `sched-handler-sync`: it names every resource that is not synced, with the reason."""

    def check() -> str:
        missing = [
            f"{each.resource}: {each.error or 'not listed yet'}" for each in resources() if not each.is_ready
        ]
        return "; ".join(missing)

    return check


def ping() -> str:
    """Succeed always: an answer proves that the process is alive."""
    return ""


def health_paths(leader: Check, shutdown: Check, synced: Check) -> tuple[CheckPath, ...]:
    """Return the paths of a scheduler.

    `leader` fails if the lease cannot be renewed while this instance still acts as leader, `shutdown` once
    the process ends, `synced` until the handlers have seen the complete first list of every resource.
    """
    return (
        CheckPath("healthz", {"leaderElection": leader}),
        CheckPath("livez", {"ping": ping}),
        CheckPath("readyz", {"leaderElection": leader, "shutdown": shutdown, "sched-handler-sync": synced}),
    )
