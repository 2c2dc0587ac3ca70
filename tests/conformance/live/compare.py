"""Compares answers with recorded ones by the rules of the data's README: placeholders, order, subsets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_PLACEHOLDER = re.compile(
    r"<(uid|rv|time|gen|continue):(\d+)>|<(age|any|host|server|version|os|arch|commit)>"
)
_PATTERNS = {
    "uid": r"[0-9a-f-]{36}",
    "rv": r"\d+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    "gen": r"[a-z0-9.]+",
    "continue": r"[A-Za-z0-9_=-]+",
}
_LISTS = re.compile(r"List$|^Table$")


@dataclass(slots=True)
class Bindings:
    """The values of the placeholders of one scenario."""

    values: dict[str, str] = field(default_factory=dict)
    times: dict[tuple[str, str], str] = field(default_factory=dict)
    versions: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """The numbers, and whether they are of lists, bookmarks or Tables."""

    def fill(self, value: Any) -> Any:
        """Return a part of a request with its placeholders replaced."""
        if isinstance(value, dict):
            return {self.fill(name): self.fill(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, str) and "<" in value:
            return _PLACEHOLDER.sub(lambda match: self.values.get(match.group(), ""), value)
        return value

    def compare(self, wanted: Any, given: Any, path: str, is_subset: bool, is_list: bool) -> list[str]:
        """Return how an answer differs from the recorded one."""
        if isinstance(wanted, dict) and isinstance(given, dict):
            return self._objects(wanted, given, path, is_subset, is_list)
        if isinstance(wanted, list) and isinstance(given, list):
            return self._lists(wanted, given, path, is_subset, is_list)
        if isinstance(wanted, str) and isinstance(given, str):
            return self._texts(wanted, given, path, is_list)
        if wanted == "<age>" or wanted == "<any>":
            return []
        if type(wanted) is type(given) and wanted == given:
            return []
        return [f"{path or 'body'}: {_short(given)} in place of {_short(wanted)}"]

    def _objects(
        self, wanted: dict[str, Any], given: dict[str, Any], path: str, is_subset: bool, is_list: bool
    ) -> list[str]:
        found: list[str] = []
        kind = wanted.get("kind")
        if isinstance(kind, str) and "metadata" in wanted:
            is_list = bool(_LISTS.search(kind))
        for name, item in wanted.items():
            where = f"{path}.{name}" if path else name
            if name not in given:
                found.append(f"{where}: missing, {_short(item)} wanted")
            else:
                inner = is_list and name not in ("items", "rows")
                found += self.compare(item, given[name], where, is_subset, inner)
        extra = given.keys() - wanted.keys() - {"managedFields"}
        if not is_subset:
            found += [f"{path}.{name}: {_short(given[name])} is too much" for name in sorted(extra)]
        return found

    def _lists(
        self, wanted: list[Any], given: list[Any], path: str, is_subset: bool, is_list: bool
    ) -> list[str]:
        if is_subset:
            return self._subsequence(wanted, given, path, is_list)
        if len(wanted) != len(given):
            return [f"{path}: {len(given)} items in place of {len(wanted)}: {_short(given)}"]
        found: list[str] = []
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            found += self.compare(one, other, f"{path}[{index}]", False, is_list)
        return found

    def _subsequence(self, wanted: list[Any], given: list[Any], path: str, is_list: bool) -> list[str]:
        rest = iter(given)
        for index, one in enumerate(wanted):
            if not any(not self.compare(one, other, path, True, is_list) for other in rest):
                return [f"{path}[{index}]: {_short(one)} is missing, or not in this order"]
        return []

    def _texts(self, wanted: str, given: str, path: str, is_list: bool) -> list[str]:
        if "<" not in wanted:
            return [] if wanted == given else [f"{path}: {_short(given)} in place of {_short(wanted)}"]
        pattern, names, start = "", [], 0
        for match in _PLACEHOLDER.finditer(wanted):
            kind = match.group(1)
            pattern += re.escape(wanted[start : match.start()])
            pattern += f"({_PATTERNS[kind]})" if kind else ".*?"
            if kind:
                names.append((kind, int(match.group(2)), match.group()))
            start = match.end()
        found = re.fullmatch(pattern + re.escape(wanted[start:]), given, re.DOTALL)
        if found is None:
            return [f"{path}: {_short(given)} in place of {_short(wanted)}"]
        differences: list[str] = []
        for (kind, number, name), value in zip(names, found.groups(), strict=True):
            differences += self._bind(kind, number, name, value, path, is_list)
        return differences

    def _bind(self, kind: str, number: int, name: str, value: str, path: str, is_list: bool) -> list[str]:
        if kind == "time":
            known = self.times.setdefault((name, path), value)
        else:
            known = self.values.setdefault(name, value)
            twin = [other for other, item in self.values.items() if item == value and other != name]
            if kind == "uid" and any(other.startswith("<uid:") for other in twin):
                return [f"{path}: {name} is the same as {twin}"]
            if kind == "rv":
                self.versions.setdefault(number, (int(value), is_list))
        return [] if known == value else [f"{path}: {name} is {value}, and was {known}"]

    def misordered(self) -> list[str]:
        """Return which resourceVersions are not in the order of their placeholders."""
        found: list[str] = []
        latest = -1
        for number, (value, is_list) in sorted(self.versions.items()):
            if value < latest or (value == latest and not is_list):
                found.append(f"<rv:{number}> is {value}, not later than {latest}")
            latest = max(latest, value)
        return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}…"
