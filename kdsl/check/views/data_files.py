"""Reads the YAML files beside this module, by libyaml where there is one: ten times faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_views_file(minor: str, concern: str = "") -> Any:
    """Return the document of a Kubernetes minor about a concern, such as `events`; else about views.

    These files are kdsl's own. Files of users are read with places, and all their mistakes are reported.
    """
    name = ".".join(filter(None, (f"v{minor.replace('.', '_')}", concern, "yaml")))
    return yaml.load(Path(__file__).with_name(name).read_text(encoding="utf-8"), Loader=_LOADER)
