"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class ConfigCode(StrEnum):
    """K113x: configurations. Text that is not YAML has a code of `kdsl.lang.codes`."""

    UNREADABLE = "K1130"  # a configuration that cannot be read
    UNKNOWN_KEY = "K1131"  # a key that configurations do not have
    MISSING_KEY = "K1132"  # a key that must be there
    WRONG_TYPE = "K1133"  # a value of the wrong type
    WRONG_VALUE = "K1134"  # a value out of range, or not one of the allowed values
    CONFLICT = "K1135"  # keys that exclude each other
    LISTED_TWICE = "K1136"  # the same entry twice in a list
    UNKNOWN_PLUGIN = "K1137"  # a plugin that kube-scheduler does not have, or that has no counterpart in kdsl
    NOT_SUPPORTED = "K1138"  # a part of a scheduler's configuration that kdsl does not have
    OLD_KEY = "K1140"  # a key of an older version of a configuration
    NO_EFFECT = "K1141"  # a setting, or rules, that no profile in use reads
    NOT_ONE = "K1142"  # a file of a configuration that is empty, or has several documents
    NO_BINDER = "K1143"  # plugins of which none binds pods
    NO_CONFIGURATION = "K1139"  # a document of another kind than those that can be imported
