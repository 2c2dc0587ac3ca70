"""Distinct objects are numbered by their keys, and their attributes are columns that grow with them."""

from __future__ import annotations

import numpy as np
from kdsl.cluster.objects.ports import HostPort
from kdsl.plan.columns.column import Coded, Column
from kdsl.plan.columns.distinct_objects import DistinctObjects


def test_attributes_follow_new_objects() -> None:
    ports: DistinctObjects[HostPort] = DistinctObjects()
    found: list[HostPort] = []
    for number in range(3):
        more = [HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "UDP", 90 + number)]
        found += [each for each in more if each not in found]
        assert ports.number(more, more).tolist() == [0, number + 1]
        assert (len(ports), ports.objects) == (number + 2, found)
        variable = ports.variable(np.arange(len(ports)))
        amounts, texts = variable.read("port"), variable.read("protocol")
        assert isinstance(amounts, Column) and isinstance(texts, Coded)
        assert amounts.values.tolist() == [each.port for each in found]
        assert [texts.values[code] for code in texts.codes.tolist()] == [each.protocol for each in found]
        assert texts.values == ("TCP", "UDP")


def test_equal_keys_have_the_object_that_came_first() -> None:
    texts: DistinctObjects[str] = DistinctObjects()
    assert texts.number(["x", "y", "x"], ["a", "b", "c"]).tolist() == [0, 1, 0]
    assert texts.objects == ["a", "b"]


def test_attributes_that_are_no_numbers_or_texts_have_no_column() -> None:
    ports: DistinctObjects[HostPort] = DistinctObjects()
    port = HostPort("0.0.0.0", "TCP", 80)
    ports.number([port], [port])
    assert ports.variable(np.arange(1)).read("__class__") is None
