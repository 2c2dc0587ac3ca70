"""The storage of plugins within one scheduling attempt."""

from __future__ import annotations

from msgspec import Struct

from kdsl.base.containment import ForeignError, contain, kind_name
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault


class CycleState(Struct, eq=False):
    """Per-attempt storage: one value per key, and the plugins that are skipped in this attempt.

    `values` holds the values. `write`, `read` and `get` are for plugins; they take one more call.

    Cloned before pods are added to or removed from a node tentatively; values with a `clone` method are
    cloned with it, the others are shared. `faults` are ignored errors, for the decision to record; clones
    share the list. `local_filters` are plugins whose Filter, as they found in PreFilter, reads of the pods on
    nodes only those of the node in question, from `NodeSet.snapshot.info`: dry runs of preemption ask them
    about many nodes at once.
    """

    skipped_filters: set[str] = set()
    skipped_scores: set[str] = set()
    faults: list[Fault] = []
    values: dict[str, object] = {}
    local_filters: set[str] = set()

    def write(self, key: str, value: object) -> None:
        self.values[key] = value

    def read(self, key: str) -> object:
        """Return the value under `key`; raises KeyError where none was written."""
        return self.values[key]

    def get(self, key: str) -> object | None:
        return self.values.get(key)

    @property
    def has_faults(self) -> bool:
        """Return whether a plugin has recorded a fault."""
        faults = self.faults
        return type(faults) is not list or len(faults) > 0

    def take_faults(self) -> tuple[Fault, ...]:
        """Return the faults that plugins recorded since the last call. A recorded value may be of any
        type.
        """
        if type(self.faults) is not list:
            self.faults = []
            return (Fault("", "a plugin put something else in the place of the faults"),)
        noted = tuple([_fault(each) for each in self.faults])
        self.faults.clear()
        return noted

    def clone(self) -> CycleState:
        """Return an independent state; raises PluginError where the `clone` of a value raises."""
        values = {key: _clone(key, value) for key, value in self.values.items()}
        skipped = set(self.skipped_filters), set(self.skipped_scores)
        return CycleState(*skipped, self.faults, values, self.local_filters)


def _fault(noted: object) -> Fault:
    """Return the fault for a recorded value: an untyped plugin may have recorded a text, or any other
    value.
    """
    if type(noted) is Fault and type(noted.source) is str and type(noted.message) is str:
        return Fault(noted.source, noted.message)
    return Fault("", noted if type(noted) is str else f"a fault of type {kind_name(noted)}")


def _clone(key: str, value: object) -> object:
    try:
        # A check against a protocol takes 10 µs, and a search for victims clones hundreds of times.
        clone = contain(getattr, value, "clone", None)
        return value if clone is None else contain(clone)
    except ForeignError as error:
        raise PluginError(key, "clone", str(error)) from error
