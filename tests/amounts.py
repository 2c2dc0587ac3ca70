"""Resources as they are written in manifests."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.base.quantity import parse_quantity
from kdsl.base.resources import Resources


def read_resources(quantities: Mapping[str, str]) -> Resources:
    """Read quantities by resource name."""
    return Resources.from_quantities({name: parse_quantity(text) for name, text in quantities.items()})
