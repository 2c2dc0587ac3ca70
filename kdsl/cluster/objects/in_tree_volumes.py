"""The table of volumes that used to be built into Kubernetes: `in_tree_volumes.yaml`, read once and checked.

A mistake in the file raises ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Final

import msgspec

from kdsl.base.yaml_text import read_data_file
from kdsl.cluster.api.data_files import typed

_FILE: Final = Path(__file__).with_suffix(".yaml")
_HOLES: Final = frozenset({"id", "name", "location"})


class InTreePlugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A built-in plugin and the driver that took over its volumes, "" for one that attaches nothing.

    `handle` is the template of the driver's name for a disk.
    """

    volume: str
    plugin: str
    driver: str = ""
    handle: str = "{id}"


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    plugins: list[InTreePlugin]
    zone_labels: list[str]
    unknown_zone: str


class InTreeVolumes:
    """The plugins by the source of their volumes and by name, and how zones are read."""

    def __init__(self, document: object) -> None:
        read = typed(document, _Document, "the table of built-in volumes")
        self.by_volume: Mapping[str, InTreePlugin] = {each.volume: each for each in read.plugins}
        self.by_name: Mapping[str, InTreePlugin] = {each.plugin: each for each in read.plugins}
        self._zone_labels = read.zone_labels
        self.unknown_zone = read.unknown_zone
        for index in (self.by_volume, self.by_name):
            if len(index) < len(read.plugins):
                raise ValueError("the table of built-in volumes: a volume or a plugin stands there twice")
        for each in read.plugins:
            _check_handle(each)

    def zones_in(self, labels: Mapping[str, str]) -> str:
        """Return the zones that the labels of a persistent volume name, as in `z1__z2`."""
        return next((labels[key] for key in self._zone_labels if labels.get(key)), self.unknown_zone)


@cache
def in_tree_volumes() -> InTreeVolumes:
    """Return the shipped table."""
    return InTreeVolumes(read_data_file(_FILE))


def handle_of(plugin: InTreePlugin, disk: str, zones: str) -> str:
    """Return the driver's name for a disk in some zones; a disk in several zones is in their region."""
    first, *others = zones.split("__")
    location = f"regions/{first.rpartition('-')[0]}" if others else f"zones/{first}"
    return plugin.handle.format(id=disk, name=disk.rpartition("/")[2], location=location)


def _check_handle(plugin: InTreePlugin) -> None:
    try:
        parts: list[Any] = list(Formatter().parse(plugin.handle))
    except ValueError as error:
        raise ValueError(f"the handle of {plugin.plugin}: {error}") from None
    for _, hole, form, conversion in parts:
        if hole is not None and (hole not in _HOLES or form or conversion):
            raise ValueError(f"the handle of {plugin.plugin}: {{{hole}}} is none of {sorted(_HOLES)}")
