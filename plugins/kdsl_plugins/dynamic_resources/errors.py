"""The error of an allocation that ends without an answer."""

from __future__ import annotations


class AllocationError(Exception):
    """Devices cannot be allocated. `is_local` is true if that holds for the node only, and others may do.

    Texts are those of k8s.io/dynamic-resource-allocation/structured where it has the case.
    """

    def __init__(self, message: str, is_local: bool = False) -> None:
        super().__init__(message)
        self.is_local = is_local


class LongSearchError(AllocationError):
    """A search on one node took all steps that it had."""
