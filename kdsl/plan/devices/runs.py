"""The chooser `runs`: cards next to each other."""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.plan.devices.choice import Candidate, Choice, Chosen, Refusal


def runs(choice: Choice) -> Chosen | Refusal:
    """Take a run of cards that all fit, the first there is; a run begins at a multiple of `step`.

    Cards stand in the order in which the last to be tried is the first. No run does where `step` is not
    positive. A refusal counts 1, and nothing of what was rejected.

    With `byIndex` the places of the run are read as indexes, and the cards that have them are taken whether
    they fit or not, as HAMi does for AWS Neuron. A run does not do where no card has one of them.
    """
    last = len(choice.cards) - 1
    by_position = {last - one.place: one for one in choice.fitting}
    taken = _by_index(choice) if choice.read("byIndex") else by_position
    for run in _runs(choice):
        if all(position in by_position and position in taken for position in run):
            return [taken[position] for position in run]
    return Refusal(counts={"": 1})


def _runs(choice: Choice) -> Iterator[range]:
    """Yield the places of each run."""
    step = choice.read("step")
    if step > 0:
        for start in range(0, len(choice.cards) - choice.count + 1, step):
            yield range(start, start + choice.count)


def _by_index(choice: Choice) -> dict[int, Candidate]:
    """Return all cards by index; of those with the same the one that stands first."""
    return {card.index: choice.candidate(place) for place, card in enumerate(choice.cards)}
