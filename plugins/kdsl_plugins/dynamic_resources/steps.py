"""The bounds of an attempt: each device that is considered is a step; conditions have other steps."""

from __future__ import annotations

from typing import Final

from kdsl_plugins.dynamic_resources.errors import AllocationError, LongSearchError

NODE_STEPS: Final = 20_000
"""The steps of a search on one node: less than a second, where the reference has a timeout of 10 s."""
PATIENCE: Final = (1_000, 5_000)
"""The steps after which a search asks, with as many steps, whether the last requests cannot be met."""
ATTEMPT_STEPS: Final = 500_000
"""The steps of all searches of an attempt, some seconds. Those in vain are up to 2.5 times as many.
Common requests take one for each device.
"""
CONDITION_STEPS: Final = 8_000_000
"""The steps of all conditions of an attempt: some seconds."""
COMPILING: Final = 32
"""The steps that compiling a condition costs for each character."""


class Steps:
    """Counts the steps on one node, and those of the attempt, which has `left`."""

    def __init__(self) -> None:
        self.left = ATTEMPT_STEPS
        self._of_node = NODE_STEPS

    def begin(self, steps: int = NODE_STEPS) -> None:
        """Begin one or more searches on a node, of so many steps together."""
        self._of_node = steps

    def take(self) -> None:
        """Take a step; AllocationError if there is none left, LongSearchError if only the search has none."""
        self._of_node -= 1
        self.left -= 1
        if self.left < 0:
            raise AllocationError(f"more than {ATTEMPT_STEPS} steps to search for devices on all nodes")
        if self._of_node < 0:
            raise LongSearchError(f"more than {NODE_STEPS} steps to search for devices on one node")
