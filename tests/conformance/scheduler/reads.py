"""The lists and watches of a scheduler, made comparable: per resource, with their forms and their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

_NEVER = ("timeout", "timeoutSeconds")
_COMPARED = ("startup", "watch", "apiserver")


def are_compared(family: str) -> bool:
    """Return whether the lists and watches of a family of scenarios are compared."""
    return family in _COMPARED


def forms(requests: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, list[str]]:
    """Return the forms in which each path was read, in order; equal ones in a row count once."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, query in requests:
        form = _form(query)
        if found[path][-1:] != [form]:
            found[path].append(form)
    return dict(found)


def _form(query: Mapping[str, str]) -> str:
    """Return a query without what may differ: timeouts, and which version was last seen."""
    kept = {key: each for key, each in sorted(query.items()) if key not in _NEVER}
    if kept.get("resourceVersion", "0") != "0":
        kept["resourceVersion"] = "<rv>"
    return "&".join(f"{key}={each}" for key, each in kept.items())
