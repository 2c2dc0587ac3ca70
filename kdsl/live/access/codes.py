"""Codes of diagnostics about access to a cluster."""

from __future__ import annotations

from enum import StrEnum


class AccessCode(StrEnum):
    """Errors in a kubeconfig and its files, in the address of the endpoints, and in their answers."""

    NO_CLUSTER = "K1150"
    KUBECONFIG = "K1151"
    CREDENTIALS = "K1152"
    PLUGIN = "K1153"
    ADDRESS = "K1154"
    NO_ANSWER = "K1155"
    REFUSED = "K1156"
    NOT_FOUND = "K1157"
