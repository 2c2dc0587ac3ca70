"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class InputCode(StrEnum):
    """K11xx: files of objects and tables of traces. K1201: parts of objects that kdsl does not support."""

    UNREADABLE = "K1101"  # an input that cannot be read
    SYNTAX = "K1102"  # text that is neither YAML nor JSON
    DUPLICATE_KEY = "K1103"  # a mapping that holds a key twice
    TOO_LARGE = "K1104"  # an input that is too large or nests too deeply
    NOT_AN_OBJECT = "K1105"  # a document that is no Kubernetes object
    UNKNOWN_KIND = "K1106"  # a kind that kdsl does not support
    WRONG_TYPE = "K1107"  # a value of another type than in the API
    QUANTITY = "K1108"  # an invalid quantity, or one that is not allowed in its place
    VALUE = "K1109"  # a value that the API server would reject
    MISSING = "K1110"  # an absent field that the API needs
    DUPLICATE_OBJECT = "K1111"  # an object that occurs twice
    DUPLICATE_VALUE = "K1112"  # a unique item that a list holds twice
    TRACE = "K1113"  # a row or column of a trace that does not fit
    INCOMPLETE = "K1114"  # an input without a required part
    UNKNOWN_FIELD = "K1115"  # a field that the object does not have
    NOT_READ_YET = "K1201"  # a part of an object that kdsl does not support yet
