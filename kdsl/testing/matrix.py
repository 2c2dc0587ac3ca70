"""The `matrix` of a case: paths such as `nodes.big.labels.example.com/zone`, and their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.span import Span
from kdsl.lang.yaml_tree import Plain
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PlacedValue
from kdsl.testing.fixture_reading import check_fixture
from kdsl.testing.fixtures import Change, FixtureKind, Fixtures
from kdsl.testing.shape import misfit_of

_MAPS = ("labels", "annotations", "requests", "allocatable", "nodeSelector", "images")
"""Keys whose values are mappings with keys of any form, dots included."""
_RAW = ("metadata", "spec", "status", "affinity")
_MAX_CASES = 1000


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of one path's values: a key of a fixture, and a path of keys inside its value."""

    kind: FixtureKind
    name: str
    key: str
    inner: tuple[str, ...]

    @property
    def label(self) -> str:
        return ".".join(self.inner) or self.key

    def change(self, value: Plain) -> Change:
        for step in reversed(self.inner):
            value = {step: value}
        return self.kind, self.name, self.key, value


def read_matrix(
    place: PlacedValue, fixtures: Fixtures, found: list[Diagnostic]
) -> Iterator[tuple[str, Fixtures]]:
    """Yield a label and the changed fixtures for each combination; nothing where one is invalid."""
    targets = [_target(path, span, fixtures, found) for path, span in place.keys.items()]
    known = [target for target in targets if target is not None]
    if len(known) < len(targets):
        return
    columns = [list(place.children[path].each()) for path in place.keys]
    size = 1
    for column in columns:
        size *= len(column)
    if size > _MAX_CASES:
        title = f"this makes {size:,} cases: at most {_MAX_CASES:,}"
        found.append(Diagnostic(TestCode.BAD_MATRIX, title, place.span, "too many combinations"))
        return
    # All values are checked, so that all errors are reported.
    fit = [
        _fits(target, each, found) for target, column in zip(known, columns, strict=True) for each in column
    ]
    if not all(fit):
        return
    reported: set[tuple[str, str]] = set()
    for values in product(*columns):
        changed = fixtures.with_changes(
            target.change(value.value) for target, value in zip(known, values, strict=True)
        )
        problems: list[Diagnostic] = []
        for target, value in zip(known, values, strict=True):
            check_fixture(changed, changed.of[target.kind][target.name], problems, at=value.span)
        new = [each for each in problems if (each.title, str(each.span)) not in reported]
        reported.update((each.title, str(each.span)) for each in new)
        found.extend(new)
        if not has_errors(problems):
            parts = zip(known, values, strict=True)
            yield ", ".join(f"{target.label}={value.text}" for target, value in parts), changed


def _fits(target: _Target, place: PlacedValue, found: list[Diagnostic]) -> bool:
    """Return whether a value has the shape of its key; report it if not."""
    _, _, key, value = target.change(place.value)
    misfit = misfit_of(target.kind.noun, {key: value})
    if misfit:
        found.append(Diagnostic(TestCode.BAD_MATRIX, misfit, place.span, f"for `{key}`"))
    return not misfit


def _target(path: str, span: Span, fixtures: Fixtures, found: list[Diagnostic]) -> _Target | None:
    """Read a path: names and keys may hold dots, so the known names are matched."""
    word, _, rest = path.partition(".")
    if word not in list(FixtureKind):
        title = f"`{path}` does not begin with `nodes.` or `pods.`"
        found.append(Diagnostic(TestCode.BAD_MATRIX, title, span, "a path into the fixtures"))
        return None
    kind = FixtureKind(word)
    names = [name for name in fixtures.of[kind] if rest.startswith(f"{name}.")]
    if not names:
        name = rest.partition(".")[0]
        known = fixtures.of[kind]
        help_ = did_you_mean(name, known) or (f"{kind} here: {', '.join(known) or 'none'}",)
        title = f"there is no {kind.noun} `{name}` among the fixtures"
        found.append(Diagnostic(TestCode.UNKNOWN_FIXTURE, title, span, "unknown", help=help_))
        return None
    name = max(names, key=len)
    key, _, inner = rest.removeprefix(f"{name}.").partition(".")
    if kind is FixtureKind.PODS and key in ("on", "count"):
        title = f"a matrix cannot change `{key}` of a pod"
        help_ = ("write another node with its own pods, and choose it with `nodes` of a case",)
        found.append(Diagnostic(TestCode.BAD_MATRIX, title, span, "fixed for all cases", help=help_))
        return None
    if key not in kind.edits:
        help_ = did_you_mean(key, kind.edits) or (f"keys of a {kind.noun}: {', '.join(sorted(kind.edits))}",)
        found.append(
            Diagnostic(TestCode.BAD_MATRIX, f"a {kind.noun} has no key `{key}`", span, "unknown", help=help_)
        )
        return None
    if inner and key not in (*_MAPS, *_RAW):
        title = f"`{key}` of a {kind.noun} holds nothing that could be called `{inner}`"
        found.append(Diagnostic(TestCode.BAD_MATRIX, title, span, "the path goes too far"))
        return None
    steps = tuple(inner.split(".")) if key in _RAW and inner else ((inner,) if inner else ())
    return _Target(kind, name, key, steps)
