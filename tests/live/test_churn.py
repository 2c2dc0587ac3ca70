"""The random churn law, for a few seeds; hours of it are `python -m tests.live.churn --minutes N`."""

from __future__ import annotations

import pytest

from tests.live import churn
from tests.live.card_churn import ALLOCATED, CardChurn
from tests.live.churn import Churn, play
from tests.live.cluster_api import pod
from tests.live.virtual_time import run_virtually


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_everything_is_right_in_the_end(seed: int) -> None:
    assert play(seed, steps=120) == []


def test_the_law_notices_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that never leads leaves its pods where they are: the run must say so."""
    monkeypatch.setattr(churn, "HEALING", 20.0)

    class Idle(Churn):
        async def _heal(self) -> None:
            self.api.create("pods", {**pod("left"), "status": {"phase": "Pending"}})
            await super()._heal()
            for world in self.worlds:
                world.leads = False
            self.api.create("pods", pod("lost"))

    problems = run_virtually(lambda: Idle(5, steps=0).run())
    assert [problem for problem in problems if "default/lost" in problem]


def test_the_law_notices_a_card_that_is_promised_twice() -> None:
    class Greedy(CardChurn):
        async def _heal(self) -> None:
            for name in ("one", "two"):
                made = self._pod(name, nodeName="n1")
                made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "700"
                made["metadata"]["annotations"] = {ALLOCATED: "n1-0,NVIDIA,700,0:;"}
                self.api.create("pods", made)

    problems = run_virtually(lambda: Greedy(5, steps=0).run())
    assert [problem for problem in problems if "has [700, 700] taken of 1000 MB" in problem]
