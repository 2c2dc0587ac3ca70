"""The library that draws: Vega-Lite, in a package that needs no browser and no network."""

from __future__ import annotations

from typing import Any

from kdsl.base.errors import KdslError


def vl_convert() -> Any:
    """Return the module; KdslError if it is not installed."""
    try:
        import vl_convert as module
    except ImportError as error:
        raise KdslError("reports draw with Vega-Lite: install `kdsl[report]`") from error
    return module
