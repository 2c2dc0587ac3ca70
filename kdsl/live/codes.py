"""Codes of diagnostics about the way to a cluster."""

from __future__ import annotations

from enum import StrEnum


class AccessCode(StrEnum):
    """What can be wrong with a kubeconfig, what it names, where the endpoints are, and who answers there."""

    NO_CLUSTER = "K1150"
    KUBECONFIG = "K1151"
    CREDENTIALS = "K1152"
    PLUGIN = "K1153"
    ADDRESS = "K1154"
    NO_ANSWER = "K1155"
    REFUSED = "K1156"
    NOT_FOUND = "K1157"
