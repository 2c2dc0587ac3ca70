"""The table of built-in volumes: what it says of disks, and which mistakes in it are found."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.cluster.objects.in_tree_volumes import InTreeVolumes, handle_of, in_tree_volumes

ZONES: dict[str, Any] = {"zoneLabels": ["zone", "old-zone"], "unknownZone": "nowhere"}
PLUGIN = {"volume": "disk", "plugin": "example.com/disk", "driver": "csi.example.com"}


def table(*plugins: dict[str, Any], **more: Any) -> InTreeVolumes:
    return InTreeVolumes({"plugins": list(plugins), **ZONES, **more})


@pytest.mark.parametrize(
    ("handle", "zones", "expected"),
    [
        ("{id}", "z", "far/d"),
        ("disk/{name}", "z", "disk/d"),
        ("{location}/{id}", "z", "zones/z/far/d"),
        ("{location}", "eu-1a__eu-1b", "regions/eu"),
    ],
)
def test_a_handle_is_a_template(handle: str, zones: str, expected: str) -> None:
    plugin = table({**PLUGIN, "handle": handle}).by_name["example.com/disk"]
    assert handle_of(plugin, "far/d", zones) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [({}, "nowhere"), ({"old-zone": "a"}, "a"), ({"zone": "", "old-zone": "a"}, "a")],
)
def test_the_first_label_that_is_not_empty_names_the_zones(labels: dict[str, str], expected: str) -> None:
    assert table(PLUGIN).zones_in(labels) == expected


@pytest.mark.parametrize(
    ("plugins", "more", "message"),
    [
        ([{**PLUGIN, "drivers": "x"}], {}, r"unknown field `drivers` - at `\$.plugins\[0\]`"),
        ([{"volume": "disk"}], {}, "missing required field `plugin`"),
        ([PLUGIN, {**PLUGIN, "plugin": "example.com/other"}], {}, "twice"),
        ([PLUGIN, {**PLUGIN, "volume": "other"}], {}, "twice"),
        ([{**PLUGIN, "handle": "{zone}"}], {}, r"\{zone\} is none of"),
        ([{**PLUGIN, "handle": "{id!r}"}], {}, "is none of"),
        ([{**PLUGIN, "handle": "{id"}], {}, "handle of example.com/disk"),
        ([PLUGIN], {"zoneLabels": "zone"}, "Expected `array`"),
    ],
)
def test_mistakes_in_the_table_are_errors(
    plugins: list[dict[str, Any]], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        table(*plugins, **more)


def test_the_shipped_table_is_read_once() -> None:
    assert in_tree_volumes() is in_tree_volumes()
    assert {each.driver for each in in_tree_volumes().by_volume.values() if not each.driver.endswith(".com")} == {
        "cinder.csi.openstack.org", "pd.csi.storage.gke.io", "",
    }  # fmt: skip
