"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class PluginCode(StrEnum):
    """K10xx: plugins, from their installation to the time that their hooks take."""

    NOT_INSTALLED = "K1001"  # a plugin that no installed package offers
    NOT_IMPORTED = "K1002"  # a plugin that cannot be imported
    BAD_SCHEMA = "K1003"  # a schema of arguments that cannot be used
    BAD_ARGUMENT = "K1004"  # an argument that does not fit the plugin
    NOT_BUILT = "K1005"  # a plugin that cannot be built
    UNKNOWN_HOOK = "K1006"  # a hook that does not exist
    NOT_REGISTERED = "K1007"  # a plugin that cannot be registered, or an argument that its hook does not have
    WRAPS_HOOK = "K1008"  # a plugin that wraps a hook
    REGISTERED_TWICE = "K1009"  # a plugin that is registered twice
    NO_HOOKS = "K1010"  # a plugin without hooks
    SEVERAL_OFFERS = "K1011"  # a plugin that several packages offer
    NOT_ACTIVE = "K1012"  # a plugin in a profile that is not registered
    NO_SUCH_PLACE = "K1013"  # a plugin in a place of a profile for which it has no hook
    TOTAL_WEIGHT = "K1014"  # score weights whose total is too large
    NO_PLACE = "K1015"  # an active plugin without a place in a profile
    SETS_ORDER = "K1016"  # a hook that sets its place in the order
    MANIFEST = "K1017"  # a manifest that cannot be used
    SAME_NAME = "K1018"  # two active plugins that bring the same name
    NO_FUNCTION = "K1019"  # a function of a manifest that cannot be imported
    UNDECLARED = "K1020"  # a function that does not declare its reads, without the configuration's permission
    VERSION = "K1021"  # a plugin or kdsl of another version than required
    NO_RULES = "K1022"  # a rule package whose folder does not exist
    DECLARATION = "K1023"  # an invalid `events` or `backoff` of a plugin
    SLOW = "K1024"  # a hook that took long
