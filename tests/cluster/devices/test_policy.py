from __future__ import annotations

import pytest
from kdsl.cluster.devices.policy import Policy, Weights, read_weights


def test_annotations_come_before_the_default() -> None:
    annotations = {
        "hami.io/node-scheduler-policy": "spread",
        "hami.io/gpu-scheduler-policy": "",
        "hami.io/device-scoring-weights": "memory=3, slot=1,core=2",
        "nvidia.com/numa-bind": "t",
    }
    expected = Policy("spread", "", True, Weights(1, 2, 3))
    assert Policy("binpack", "binpack").of(annotations) == expected
    assert Policy("other", "numa").of({}) == Policy("other", "numa")


@pytest.mark.parametrize(
    "word, spreads", [("spread", True), ("binpack", False), ("Spread", False), ("", False)]
)
def test_only_one_word_spreads(word: str, spreads: bool) -> None:
    assert Policy(word).spreads_nodes == spreads


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slot=1",
        "slot=1,core=1",
        "slot=1,core=1,memory=1,slot=1",
        "slot=-1,core=1,memory=1",
        "slot=0,core=0,memory=0",
        "slot=1,core=1,disk=1",
    ],
)
def test_weights_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="device-scoring-weights"):
        read_weights(text)


@pytest.mark.parametrize(
    "text", ["1", "t", "T", "true", "TRUE", "True", "0", "f", "false", "tRUE", "yes", ""]
)
def test_what_go_reads_as_true_binds_cards_to_one_numa_node(text: str) -> None:
    is_bound = text in ("1", "t", "T", "true", "TRUE", "True")
    assert Policy().of({"nvidia.com/numa-bind": text}).numa_bind is is_bound
