"""Times and random names: the parts of a sandbox that requests do not determine."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

_NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_NAME_LENGTH: Final = 5


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Chance:
    """The wall clock and the random numbers of one sandbox."""

    now: Callable[[], datetime] = _now
    numbers: random.Random = field(default_factory=random.Random)

    def stamp(self, seconds: float = 0) -> str:
        """Return the time in `seconds` from now in the API's format."""
        moment = self.now()
        if seconds:
            moment += timedelta(seconds=seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def uid(self) -> str:
        """Return a new uid."""
        return str(uuid.UUID(int=self.numbers.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return the random end of a generated name."""
        return "".join(self.numbers.choices(_NAME_LETTERS, k=_NAME_LENGTH))


def seconds_between(earlier: str, now: datetime) -> float:
    """Return the seconds from a time of the API to `now`."""
    return (now - datetime.fromisoformat(earlier.replace("Z", "+00:00"))).total_seconds()
