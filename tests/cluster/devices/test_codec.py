from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.codec import collapse, decode, encode
from kdsl.cluster.devices.pods import Phase

names = st.from_regex(r"[A-Za-z0-9-]{1,6}", fullmatch=True)
grants = st.builds(DeviceGrant, names, names, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
records = st.lists(st.lists(grants, max_size=3).map(tuple), max_size=4).map(tuple)


def test_text() -> None:
    cards = (DeviceGrant("G0", "NVIDIA", 3000, 30), DeviceGrant("G1", "NVIDIA", 3000, 30))
    assert encode([(), cards, ()]) == ";G0,NVIDIA,3000,30:G1,NVIDIA,3000,30:;;"


@given(records)
def test_what_is_written_is_read(record: tuple[tuple[DeviceGrant, ...], ...]) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize("text", ["G0,NVIDIA,3000:;", "G0,NVIDIA,many,30:;", "G0,NVIDIA,1,:;"])
def test_unreadable(text: str) -> None:
    with pytest.raises(ValueError, match="card `"):
        decode(text)


def test_text_without_cards() -> None:
    assert decode("") == ()
    assert decode(";x:;") == ((), ())


def grant(card: str, memory: int, cores: int = 0, slots: int = 1) -> DeviceGrant:
    return DeviceGrant(card, "T", memory, cores, slots)


@pytest.mark.parametrize(
    "phases, containers, expected",
    [
        pytest.param("app app", [[grant("a", 1)], [grant("a", 2)]], [grant("a", 3, slots=2)], id="together"),
        pytest.param(
            "init app", [[grant("a", 5)], [grant("a", 2)]], [grant("a", 5)], id="one after the other"
        ),
        pytest.param(
            "init init app", [[grant("a", 5)], [grant("b", 4)], []], [grant("a", 5), grant("b", 4)], id="each"
        ),
        pytest.param(
            "sidecar init app",
            [[grant("a", 3)], [grant("a", 3)], [grant("a", 2)]],
            [grant("a", 6, slots=2)],
            id="init beside the sidecar",
        ),
        pytest.param(
            "init sidecar app",
            [[grant("a", 4)], [grant("a", 3)], [grant("a", 2)]],
            [grant("a", 5, slots=2)],
            id="init before the sidecar",
        ),
    ],
)
def test_collapse(phases: str, containers: list[list[DeviceGrant]], expected: list[DeviceGrant]) -> None:
    assert list(collapse(containers, [Phase(phase) for phase in phases.split()])) == expected
