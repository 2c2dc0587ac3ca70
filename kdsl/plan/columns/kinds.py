"""Kinds of nodes: those of which a rule reads the same for one pod, so that it has one answer for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Array, NotColumnar
from kdsl.plan.columns.groups import Digit, Groups, few_groups
from kdsl.plan.facts import ABSENT

_STEPS: Final = 512
"""The steps that finding out may take; where it takes more, columns are as fast."""
Scalar = TypeVar("Scalar", bound=np.generic)

Numbers = tuple[Value, Callable[[Array], Array | int], tuple[int, int]]
"""Whose method it is that gives an integer for each row, what gives them, and two that none is beyond."""


@dataclass(slots=True)
class Sight:
    """What is read of nodes: attributes, what maps hold at keys or only whether they hold it, and numbers
    that a column has by row. `lets` are those that were gone through.
    """

    fields: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    tests: set[tuple[str, str]] = field(default_factory=set)
    columns: dict[int, Numbers] = field(default_factory=dict)
    lets: set[int] = field(default_factory=set)

    def digits(self, batch: Batch) -> list[Digit]:
        """Return in what the rows of a batch differ."""
        facts, rows = batch.facts, batch.rows
        digits: list[Digit] = [facts.field(name).digit(rows) for name in self.fields]
        digits += [facts.key(*place).digit(rows) for place in self.keys]
        for place in self.tests - self.keys:
            held = facts.key(*place)
            if not held.is_everywhere:
                digits.append((held.codes.take(rows) != ABSENT, 2))
        for _, numbers, (least, largest) in self.columns.values():
            values = numbers(rows) if least < largest else least
            if isinstance(values, np.ndarray):
                digits.append((values - least if least else values, largest - least + 1))
        return digits


Look = Callable[[Frame, Sight], None]
"""Adds to a sight what an expression may read of a node; EvalError, NotColumnar where that is not known."""


class Kinds:
    """Tells which rows of a batch have one answer. `slot` is where a frame holds what is read of nodes for
    the attempt: all that it follows from stays as it is.
    """

    def __init__(self, look: Look, slot: int) -> None:
        self._look = look
        self._slot = slot

    def ask(self, batch: Batch, question: Callable[[Batch], NDArray[Scalar]]) -> NDArray[Scalar] | None:
        """Ask about the first row of each kind, in visiting order, and return the answer for each row.

        None where kinds are not told apart, or where there are so many that columns are as fast.
        """
        groups = self.groups(batch)
        if groups is None:
            return None
        answers = question(batch.part(np.array(groups.firsts)))
        known = answers.tolist()
        # Most often all nodes pass.
        return answers[:1].repeat(len(batch)) if len({*known}) == 1 else groups.spread(known, answers.dtype)

    def groups(self, batch: Batch) -> Groups | None:
        """Return the rows of each kind; None where `ask` does."""
        frame = batch.frame
        sight = frame[self._slot]
        if sight is UNSET:
            sight = frame[self._slot] = self._sight(frame)
        return None if sight is None else few_groups(sight.digits(batch), len(batch))

    def _sight(self, frame: Frame) -> Sight | None:
        sight, meter = Sight(), frame[-1]
        frame[-1] = Meter(_STEPS)
        try:
            self._look(frame, sight)
        except (EvalError, NotColumnar):
            return None
        finally:
            frame[-1] = meter
        return sight
