"""The texts of plugin errors."""

from __future__ import annotations

from kdsl.hooks.errors import _TEXTS, PluginError
from kdsl.hooks.faults import Fault
from kdsl.hooks.manager import hook_names
from kdsl.hooks.status import Code, Status


def test_every_extension_point_has_a_text() -> None:
    assert set(hook_names()) - set(_TEXTS) == {
        *("filter_node", "score_node"),  # they speak as `filter` and `score`
        *("backoff", "events"),  # asked once, and a diagnostic where they fail
    }


def test_an_error_is_a_status_of_its_plugin() -> None:
    error = PluginError.answered("X", "permit", Status(Code.ERROR, ("a", "b")))
    text = 'running Permit plugin "X": a, b'
    assert error.status == Status(Code.ERROR, (text,), "X", faults=(Fault("X", text),))


def test_a_status_without_reasons_is_named_by_its_code() -> None:
    assert str(PluginError.answered("X", "reserve", Status(Code.WAIT))) == (
        'running Reserve plugin "X": unexpected status Wait'
    )
