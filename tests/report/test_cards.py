"""The map of cards, and who has what."""

from __future__ import annotations

from kdsl.cluster.devices.cards import Card, Tenant
from kdsl.plan.devices.demand import DeviceRequest
from kdsl.report.cards import CardReport, cards_text, summary_lines
from msgspec.structs import replace

IDLE = Card("a", "NVIDIA", "A10", slots=4, memory=1000, cores=100)
HALF = replace(IDLE, id="b").with_usage(1, 500, 30, (Tenant("p", "team", {}, 500, 30),))
BROKEN = replace(HALF, id="c", healthy=False)


def test_a_map_and_who_has_what() -> None:
    report = CardReport({"n": [IDLE, HALF], "m": [BROKEN]}, {DeviceRequest("A10", 1, 600, 101, 0): 1})
    assert cards_text(report) == (
        """\
NODE  CARDS  SLOTS    MEMORY   CORES
n     ·▄       1/8  500/2000  30/200
m     x        1/4  500/1000  30/100

NODE  CARD  TYPE          SLOTS    MEMORY   CORES  PODS
n     b     A10             1/4  500/1000  30/100  team/p (500 MiB, 30)
m     c     A10 (broken)    1/4  500/1000  30/100  team/p (500 MiB, 30)

each character is a card: · idle to █ full, x broken
3 cards, 50.0% allocated, 33.3% of the rest fragmented"""
    )


def test_one_card_is_no_cards() -> None:
    (line,) = summary_lines(CardReport({"n": [IDLE]}, {}))
    assert line.startswith("1 card, 0.0% allocated")


def test_long_maps_are_cut() -> None:
    report = CardReport({f"n{at}": [IDLE] for at in range(42)}, {})
    assert "… and 2 more nodes (-o wide lists all)" in cards_text(report)
    wide = cards_text(report, wide=True)
    # With `wide` idle cards are listed, too.
    assert "n41" in wide and "more nodes" not in wide and wide.count("0/1000") == 84
