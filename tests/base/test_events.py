"""Patterns of events, in words."""

from __future__ import annotations

import pytest
from kdsl.base.events import read_pattern


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("CSINode/ADD", ("a CSINode is added",)),
        ("Node/ADD|NODE_LABEL", ("a node is added", "labels of a node change")),
        ("Node", ("a node is added", "a node is removed", "a node changes")),
        (
            "AssignedPod/DELETE|POD_OTHER",
            ("a pod on a node goes away", "something else of a pod on a node changes"),
        ),
        ("TargetPod", ("the pod itself changes",)),
        ("TargetPod/ADD|POD_LABEL", ("labels of the pod itself change",)),
    ],
)
def test_words(pattern: str, words: tuple[str, ...]) -> None:
    assert read_pattern(pattern).words() == words
