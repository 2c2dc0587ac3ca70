"""Checks a test file against its JSON Schema; errors are reported at their places.

The schema is the one description of the shape: editors and the reader in `reading` use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kdsl.base.diagnostic import Diagnostic, did_you_mean, nearest
from kdsl.base.span import Span
from kdsl.cluster.api.objects import NodeSpec, NodeStatus, ObjectMeta, PodSpec, PodStatus
from kdsl.config.misfits import fault_of, type_of, written
from kdsl.config.schema_files import read_schema
from kdsl.lang.yaml_tree import Plain
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PathStep, PlacedValue

if TYPE_CHECKING:
    from jsonschema import ValidationError

_OF_PODS: Final = (("metadata", ObjectMeta), ("spec", PodSpec), ("status", PodStatus))
_OF_NODES: Final = (("metadata", ObjectMeta), ("spec", NodeSpec), ("status", NodeStatus))
"""The parts of an object that a fixture may have as they are, with their fields."""


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema (2020-12) of test files."""
    return read_schema("kdsl.testing", "ruletest.v1")


def check_shape(root: PlacedValue) -> tuple[Diagnostic, ...]:
    """Return all differences between a document and the schema."""
    return tuple(each for error, place in _errors(root) for each in _explain(error, place, root.span))


def fitting(root: PlacedValue) -> PlacedValue | None:
    """Return the valid part of a document, so that the rest can be read; None where no part is valid.

    An invalid value is left out, with the values that need it. A case without expectations stays: its names
    can be checked.
    """
    whole: PlacedValue | None = root
    while whole is not None:
        unfit = {path for error, place in _errors(whole) for path in _unfit(error, place)}
        if not unfit:
            return whole
        whole = _without(whole, unfit)
    return None


def _errors(root: PlacedValue) -> Iterator[tuple[ValidationError, PlacedValue]]:
    # The import takes 120 ms: only those who test rules pay for it.
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(schema()).iter_errors(root.value):
        place = root.get(*error.absolute_path)
        # INVARIANT: the place of an error exists: the validator got the value that the place was made for.
        assert place is not None
        yield error, place


def _unfit(error: ValidationError, place: PlacedValue) -> Iterator[tuple[PathStep, ...]]:
    """Yield the paths of invalid parts: unknown keys, or a value as a whole."""
    path = tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties" if isinstance(error.schema, Mapping):
            known = error.schema.get("properties", {})
            yield from ((*path, key) for key in place.keys if key not in known)
        case "oneOf" if not path:
            # The subject is unknown: all other parts can be read all the same.
            return
        case "minProperties" if _comment(error) == "expectation":
            return
        case "required" if not path:
            return
        case _:
            yield path


def _without(place: PlacedValue, unfit: Set[tuple[PathStep, ...]]) -> PlacedValue | None:
    """Return a place without the values at some paths below it; None where it is itself one of them."""
    if () in unfit:
        return None
    kept: dict[PathStep, PlacedValue] = {}
    for step, child in place.children.items():
        left = _without(child, {path[1:] for path in unfit if path[0] == step})
        if left is not None:
            kept[step] = left
    if isinstance(place.value, list):
        kept = dict(enumerate(kept.values()))
        return PlacedValue([child.value for child in kept.values()], place.span, kept)
    if not isinstance(place.value, dict):
        return place
    keys = {key: span for key, span in place.keys.items() if key in kept}
    return PlacedValue({key: kept[key].value for key in keys}, place.span, kept, keys)


def misfit_of(definition: str, value: Plain) -> str:
    """Return the difference between a value and one of the schema's definitions; empty where it fits."""
    from jsonschema import Draft202012Validator

    wanted = {"$ref": f"#/$defs/{definition}", "$defs": schema()["$defs"]}
    error = next(iter(Draft202012Validator(wanted).iter_errors(value)), None)
    return "" if error is None else _title(error, fault_of(error)[0])


def _explain(error: ValidationError, place: PlacedValue, whole: Span) -> Iterator[Diagnostic]:
    rule: Any = error.validator_value
    match error.validator:
        case "additionalProperties":
            known = list(error.schema.get("properties", {})) if isinstance(error.schema, Mapping) else []
            for key in (key for key in place.keys if key not in known):
                title = f"there is no key `{key}` here"
                help_ = _help_for_key(key, known)
                yield Diagnostic(TestCode.UNKNOWN_KEY, title, place.keys[key], "unknown", help=help_)
        case "required":
            meant = _misspelled(error, place)
            missing = [key for key in rule if key not in place.keys and key not in meant]
            # one error per key: the first error reports all of them
            if missing and error.message.split("'")[1] == missing[0]:
                names = ", ".join(f"`{key}`" for key in missing)
                span = _head(place, whole)
                verb = "is" if len(missing) == 1 else "are"
                yield Diagnostic(TestCode.MISSING_KEY, f"{names} {verb} missing", span, _comment(error))
        case "oneOf":
            keys = [each["required"][0] for each in rule]
            names = ", ".join(f"`{key}`" for key in keys)
            given = [key for key in keys if key in place.keys]
            title = f"one of {names} must name the subject of the test" + (", and only one" if given else "")
            span = place.keys[given[1]] if len(given) > 1 else _head(place, whole)
            yield Diagnostic(TestCode.MISSING_KEY, title, span, _comment(error))
        case "minProperties" if _comment(error) == "expectation":
            title = "this case expects nothing, so it cannot fail"
            yield Diagnostic(TestCode.NO_EXPECTATION, title, place.span, "state the expected result")
        case "dependentRequired":
            title = error.message.replace("'", "`").replace("is a dependency of", "is needed by")
            yield Diagnostic(TestCode.MISSING_KEY, title, _head(place, whole), _comment(error))
        case _:
            fault, help_ = fault_of(error)
            title = _title(error, fault)
            if error.validator == "type" and _is_rejection(error):
                help_ = (f"name the rule with `by`: `{{by: {error.instance}}}`",)
            elif error.validator_value == "boolean" and tuple(error.absolute_path)[-1:] == ("placed",):
                help_ = (f"the chosen node is `picks: {error.instance}`",)
            label = _comment(error).replace("expectation", "")
            yield Diagnostic(TestCode.WRONG_VALUE, title, place.span, label, help=help_)


def _misspelled(error: ValidationError, place: PlacedValue) -> Set[str | None]:
    """Return the keys that unknown keys of a mapping were to be: those are reported."""
    known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    return {nearest(key, known) for key in place.keys if key not in known}


def _title(error: ValidationError, fault: str) -> str:
    if error.validator == "type":
        return f"this {fault}, but it is {type_of(error.instance)}"
    is_short = isinstance(error.instance, str | int | float) and error.instance != ""
    return f"{f'`{written(error.instance)}`' if is_short else 'this'} {fault}"


_GPU = frozenset(("gpu", "gpus", "nvidia"))


def _help_for_key(key: str, known: list[str]) -> tuple[str, ...]:
    resources = next((each for each in ("allocatable", "requests") if each in known), "")
    if resources and ("/" in key or key in _GPU):
        name = "nvidia.com/gpu" if key in _GPU else key
        return (f"amounts of other resources stand in `{resources}: {{{name}: …}}`",)
    if key == "node" and "picks" in known:
        return ("the chosen node is `picks`",)
    for part, struct in _OF_NODES if "taints" in known else _OF_PODS:
        if part in known and key in struct.__struct_encode_fields__:
            return (f"write it as in the API: `{part}: {{{key}: …}}`",)
    return did_you_mean(key, known) or (f"known here: {', '.join(sorted(known))}",)


def _is_rejection(error: ValidationError) -> bool:
    """Return whether the value belongs to `rejected`, where `by` names the rule."""
    return isinstance(error.schema, Mapping) and "by" in error.schema.get("properties", {})


def _comment(error: ValidationError) -> str:
    """Return the schema's comment on a value, for the label."""
    comment: str = error.schema.get("$comment", "") if isinstance(error.schema, Mapping) else ""
    return comment


def _head(place: PlacedValue, whole: Span) -> Span:
    """Return a short span to mark a mapping: its first key."""
    first = next(iter(place.keys.values()), None)
    return first or (Span(whole.source, whole.start, whole.start) if place.span == whole else place.span)
