"""The chooser `runs`: cards next to each other."""

from __future__ import annotations

from kdsl.plan.devices.choice import Choice, Chosen, Refusal


def runs(choice: Choice) -> Chosen | Refusal:
    """Take a run of cards that all fit, the first there is; a run begins at a multiple of `step`.

    Cards stand in the order in which the last to be tried is the first. No run does where `step` is not
    positive. A refusal counts 1, and nothing of what was rejected.
    """
    step, last = choice.read("step"), len(choice.cards) - 1
    by_position = {last - one.place: one for one in choice.fitting}
    for start in range(0, len(choice.cards) - choice.count + 1, step) if step > 0 else ():
        if all(position in by_position for position in range(start, start + choice.count)):
            return [by_position[position] for position in range(start, start + choice.count)]
    return Refusal(counts={"": 1})
