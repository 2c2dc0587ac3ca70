from __future__ import annotations

from kdsl.check.devices.forms import CHOOSERS as FORMS
from kdsl.plan.devices.choosers import CHOOSERS, GREEDY


def test_every_chooser_is_declared_and_written() -> None:
    assert set(FORMS) == set(CHOOSERS)
    assert set(CHOOSERS) >= GREEDY
