"""The codes for functions, fields and rules of plugins, each with its meaning: the docs list them. The codes
of hooks are those of `manager` and `table`.
"""

from __future__ import annotations

from enum import StrEnum


class PluginCode(StrEnum):
    """K1001, K101x and K102x: manifests, activation and the time that hooks take."""

    NOT_INSTALLED = "K1001"  # a plugin that no installed package offers
    MANIFEST = "K1017"  # a manifest that cannot be used
    SAME_NAME = "K1018"  # two active plugins that bring the same name
    NO_FUNCTION = "K1019"  # a function of a manifest that cannot be imported
    UNDECLARED = "K1020"  # a function that does not declare its reads, without the configuration's permission
    VERSION = "K1021"  # a plugin or kdsl of another version than required
    NO_RULES = "K1022"  # a rule package whose folder does not exist
    DECLARATION = "K1023"  # an invalid `events` or `backoff` of a plugin
    SLOW = "K1024"  # a hook that took long
