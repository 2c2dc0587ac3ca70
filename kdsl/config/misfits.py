"""Reports where and why a YAML tree does not fit a JSON Schema (2020-12), in words for people.

jsonschema does the validation; this module finds the place of each error in the text, and a fix. The shape of
rule tests (`kdsl.testing.shape`) uses the same words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import isfinite, isnan
from operator import getitem
from typing import TYPE_CHECKING, Any, Final

from kdsl.base.diagnostic import Diagnostic, did_you_mean, nearest, suggest
from kdsl.base.paths import Path, path_text
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, YamlSequence, is_number_out_of_range, to_plain

if TYPE_CHECKING:
    from jsonschema import ValidationError

TYPES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "`true` or `false`",
    "null": "nothing",
}
"""The types of JSON in words."""
_LEAST: Final = ("minItems", "minLength", "minProperties")
_BOUNDS: Final = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}


def misfits(root: YamlNode, schema: Mapping[str, Any]) -> tuple[Diagnostic, ...]:
    """Return the errors of the tree against the schema, in the order of the text."""
    # jsonschema takes 120 ms to import: only commands that read a configuration pay for it.
    from jsonschema import Draft202012Validator

    errors = list(Draft202012Validator(schema).iter_errors(to_plain(root)))
    of_other_types = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    found = [
        diagnostic
        for error in errors
        # The bounds of a value of another type say nothing more.
        if error.validator == "type" or tuple(error.absolute_path) not in of_other_types
        for diagnostic in _describe(root, error, schema)
    ]
    # A mapping that lacks several keys gives as many errors, and each of them lists all missing keys.
    return tuple(
        sorted(dict.fromkeys(found), key=lambda each: (each.span.start if each.span else 0, each.title))
    )


def fitting_part(root: YamlNode, schema: Mapping[str, Any]) -> YamlNode | None:
    """Return the tree without the parts that do not fit the schema; None where nothing is left."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema)
    part: YamlNode | None = root
    while part is not None:
        unfit: set[Path] = set()
        for error in validator.iter_errors(to_plain(part)):
            path = tuple(error.absolute_path)
            known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
            if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
                unfit.update((*path, key) for key in error.instance if key not in known)
            elif error.validator == "not" and "required" in error.validator_value:
                # Of keys that exclude each other the rest can be read.
                unfit.add((*path, error.validator_value["required"][0]))
            else:
                unfit.add(path)
        if not unfit:
            break
        part = _without(part, frozenset(unfit), ())
    return part


def _without(node: YamlNode, unfit: frozenset[Path], path: Path) -> YamlNode | None:
    """Return a tree without the values at some paths; None where the tree itself is at one of them."""
    if path in unfit:
        return None
    match node:
        case YamlMapping(span, entries):
            kept = ((key, _without(value, unfit, (*path, key.text))) for key, value in entries)
            return YamlMapping(span, tuple((key, value) for key, value in kept if value is not None))
        case YamlSequence(span, items):
            inner = (_without(item, unfit, (*path, index)) for index, item in enumerate(items))
            return YamlSequence(span, tuple(item for item in inner if item is not None))
        case _:
            return node


Places = Mapping[tuple[int, int], YamlNode]
"""All values of a tree by their place, the outer one where two have one."""


def places_of(root: YamlNode) -> Places:
    """Return a tree by places: it may have thousands of values that are looked for one by one."""
    found: dict[tuple[int, int], YamlNode] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        found.setdefault(_place(node), node)
        pending += _inner(node)
    return found


def unfit_keys(written: Places, fitting: YamlNode) -> frozenset[str]:
    """Return the keys below a value whose values, or some of their items, were left out since they do not
    fit; `written` is the whole tree with them.
    """
    return frozenset(_left_out(written.get(_place(fitting), fitting), fitting, ""))


def _place(node: YamlNode) -> tuple[int, int]:
    return node.span.start, node.span.end


def _inner(node: YamlNode) -> Iterable[YamlNode]:
    if isinstance(node, YamlMapping):
        return [value for _, value in node.entries]
    return node.items if isinstance(node, YamlSequence) else ()


def _left_out(written: YamlNode, fitting: YamlNode, key: str) -> Iterator[str]:
    """Yield the keys of values that only the written tree has; `key` is that of the two values."""
    if isinstance(written, YamlMapping) and isinstance(fitting, YamlMapping):
        for name, value in written.entries:
            kept = fitting.get(name.text)
            yield from (name.text,) if kept is None else _left_out(value, kept, name.text)
    elif len(list(_inner(written))) != len(list(_inner(fitting))):
        yield key


def place_of(root: YamlNode, path: Path) -> Span:
    """Return the place of the value at `path`, or of the innermost written value around it."""
    return node_at(root, path).span


def node_at(root: YamlNode, path: Path) -> YamlNode:
    """Return the value at `path`, or the innermost written value around it."""
    node = root
    for step in path:
        inner = _child(node, step)
        if inner is None:
            break
        node = inner
    return node


def _child(node: YamlNode, step: str | int) -> YamlNode | None:
    match node, step:
        case YamlMapping(), str():
            return node.get(step)
        case YamlSequence(items=items), int() if step < len(items):
            return items[step]
    return None


def _describe(root: YamlNode, error: ValidationError, schema: Mapping[str, Any]) -> Iterator[Diagnostic]:
    path = tuple(error.absolute_path)
    name = f"`{path_text(path)}`" if path else "the configuration"
    rule: Any = error.validator_value
    value: Any = error.instance
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(root, path, error)
        case "required":
            known: Mapping[str, Any] = (
                error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
            )
            yield from _missing_keys(root, path, rule, value, known)
        case "not":
            yield from _conflict(root, path, rule["required"])
        case "uniqueItems":
            yield from _repeated(root, path, value)
        case validator:
            is_type = validator == "type" and not _is_out_of_range(error)
            code = ConfigCode.WRONG_TYPE if is_type else ConfigCode.WRONG_VALUE
            fault, help_ = fault_of(error)
            if validator in _LEAST and rule == 1 and _is_required(error, schema):
                help_ = (f"`{path[-1]}` is required: fill it in",)
            yield _misfit(root, path, code, f"{name} {fault}", help_)


def _is_required(error: ValidationError, schema: Mapping[str, Any]) -> bool:
    """Return whether the key of a value that does not fit is required."""
    path: list[Any] = list(error.absolute_schema_path)
    if path[-3:-2] != ["properties"]:
        return False
    part: Any = schema
    required: Sequence[str] = ()
    for step in path[:-2]:
        if step not in part and "$ref" in part:
            # jsonschema's paths do not name references.
            part = reduce(getitem, part["$ref"].split("/")[1:], schema)
        required = part.get("required", ()) if step == "properties" else ()
        part = part[step]
    return path[-2] in required


def written(value: object) -> str:
    """Return a plain value as YAML: `true` instead of Python's True, `.inf` instead of `inf`."""
    if isinstance(value, float) and not isfinite(value):
        return ".nan" if isnan(value) else str(value).replace("inf", ".inf")
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _in_brackets(value: object) -> str:
    """Return a plain value as it stands in brackets; a text in quotes where it would mean another value."""
    is_text = isinstance(value, str) and (not _PLAIN.fullmatch(value) or value.lower() in _OTHER_MEANING)
    return json.dumps(value, ensure_ascii=False) if is_text else written(value)


_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*")


def fault_of(error: ValidationError) -> tuple[str, tuple[str, ...]]:
    """Return the error of one value, to follow its name, such as `must be a list`, and the help lines."""
    rule: Any = error.validator_value
    match error.validator:
        case "type" if _is_out_of_range(error):
            return "is out of range", _range(error) or ("write a number nearer to 0",)
        case "type":
            fault = f"must be {' or '.join(TYPES[each] for each in _listed(rule))}"
            if rule == "array" and isinstance(error.instance, str | int | float):
                return fault, (f"a list of one is written `[{_in_brackets(error.instance)}]`",)
            example = _example(error) or _unquoted(error)
            if not example and "string" in _listed(rule) and isinstance(error.instance, bool | int | float):
                return fault, (f'write it in quotes: `"{written(error.instance)}"`',)
            return fault, example
        case "const":
            return f"must be `{written(rule)}`", (f"write `{written(rule)}`",)
        case "enum":
            known = [written(each) for each in rule]
            allowed = ", ".join(f"`{each}`" for each in known)
            return f"must be one of {allowed}", did_you_mean(str(error.instance), known)
        case bound if bound in _BOUNDS:
            return f"must be {_BOUNDS[bound]} {rule}", _range(error) or _example(error)
        case each if each in _LEAST and rule == 1:
            return "is empty", ("leave it out, or fill it in",)
        case "minItems":
            return f"must hold at least {rule}", ()
        case "maxItems":
            return f"must hold at most {rule}", ()
        case "uniqueItems":
            return "holds an item twice", ()
        case "pattern":
            return "does not have the form that is needed here", _example(error)
        case _:
            # A keyword that this table lacks: jsonschema's own words are better than none.
            return f"does not fit: {error.message}", ()


def _unquoted(error: ValidationError) -> tuple[str, ...]:
    """Return the help for a text where another scalar belongs, or a mapping that needs a name alone."""
    value: Any = error.instance
    rule: Any = error.validator_value
    wanted = _listed(rule)
    part = error.schema if isinstance(error.schema, Mapping) else {}
    if not isinstance(value, str):
        return ()
    if "boolean" in wanted and value.lower() in _SWITCHES:
        return (f"write `{written(_SWITCHES[value.lower()])}`, without quotes",)
    if {"integer", "number"} & set(wanted):
        amount = re.fullmatch(r"(-?[0-9]+)(\.[0-9]+)?(%?)", value, re.ASCII)
        if amount is None or (amount[2] and "number" not in wanted):
            return ()
        return (f"write `{value.rstrip('%')}` without {'the `%`' if amount[3] else 'quotes'}",)
    if wanted == ["object"] and [*part.get("required", ())] == ["name"]:
        return (f"write `{{name: {_in_brackets(value)}}}`",)
    return ()


_SWITCHES: Final = {
    **dict.fromkeys(("true", "yes", "on", "y"), True),
    **dict.fromkeys(("false", "no", "off", "n"), False),
}

_OTHER_MEANING: Final = frozenset((*_SWITCHES, "null"))


def _is_out_of_range(error: ValidationError) -> bool:
    """Return whether a number was written where one belongs, but one so large that it was read as text."""
    value: Any = error.instance
    is_wanted = error.validator == "type" and error.validator_value in ("integer", "number")
    return is_wanted and isinstance(value, str) and is_number_out_of_range(value)


def _range(error: ValidationError) -> tuple[str, ...]:
    """Return the help for a number out of range, if the range has two ends."""
    part = error.schema if isinstance(error.schema, Mapping) else {}
    if "minimum" not in part or "maximum" not in part:
        return ()
    return (f"write a number from {part['minimum']} to {part['maximum']}",)


def _example(error: ValidationError) -> tuple[str, ...]:
    """Return the schema's examples of a valid value, if there are some."""
    examples = error.schema.get("examples", ()) if isinstance(error.schema, Mapping) else ()
    texts = [f"`{each if isinstance(each, str) else json.dumps(each)}`" for each in examples]
    return (f"write it like {' or '.join(texts)}",) if texts else ()


def _listed(rule: str | list[str]) -> list[str]:
    return [rule] if isinstance(rule, str) else rule


def _unknown_keys(root: YamlNode, path: Path, error: ValidationError) -> Iterator[Diagnostic]:
    known: list[str] = list(error.schema["properties"]) if isinstance(error.schema, Mapping) else []
    node = _at(root, path)
    for key, _ in node.entries if isinstance(node, YamlMapping) else ():
        if key.text not in known:
            title = f"unknown key `{path_text((*path, key.text))}`"
            help_, fixes = suggest(key.span, key.text, known)
            if not fixes:
                help_ = help_ or (f"keys here: {', '.join(known)}",)
            yield Diagnostic(ConfigCode.UNKNOWN_KEY, title, key.span, help=help_, fixes=fixes)


def _missing_keys(
    root: YamlNode,
    path: Path,
    required: Iterable[str],
    present: Mapping[str, object],
    known: Mapping[str, Any],
) -> Iterator[Diagnostic]:
    node = _at(root, path)
    first = node.entries[0][0].span if isinstance(node, YamlMapping) and node.entries else node.span
    # A misspelled key is reported as an unknown one.
    meant = {nearest(key, known) for key in present if key not in known}
    for key in required:
        if key not in present and key not in meant:
            title = f"the key `{path_text((*path, key))}` is missing"
            value = known.get(key, {}).get("const", "…")
            yield Diagnostic(ConfigCode.MISSING_KEY, title, first, help=(f"add `{key}: {value}` here",))


def _conflict(root: YamlNode, path: Path, keys: Sequence[str]) -> Iterator[Diagnostic]:
    node = _at(root, path)
    entries = [node.entry(key) for key in keys] if isinstance(node, YamlMapping) else []
    places = sorted((entry[0].span for entry in entries if entry), key=lambda span: span.start)
    title = f"{' and '.join(f'`{key}`' for key in keys)} exclude each other"
    yield Diagnostic(ConfigCode.CONFLICT, title, places[-1], help=("remove one of them",))


def _repeated(root: YamlNode, path: Path, items: Sequence[object]) -> Iterator[Diagnostic]:
    for index, item in enumerate(items):
        if item in items[:index]:
            title = f"`{path_text(path)}` holds `{item}` twice"
            yield _misfit(root, (*path, index), ConfigCode.LISTED_TWICE, title)


def _misfit(
    root: YamlNode, path: Path, code: ConfigCode, title: str, help_: tuple[str, ...] = ()
) -> Diagnostic:
    node = _at(root, path)
    label = f"this is {type_of(to_plain(node))}" if code is ConfigCode.WRONG_TYPE else ""
    return Diagnostic(code, title, node.span, label=label, help=help_)


def type_of(value: object) -> str:
    """Return the type of a plain value in words."""
    match value:
        case None:
            return "empty"
        case bool():
            return TYPES["boolean"]
        case int() | float():
            return TYPES["number"]
        case str():
            return TYPES["string"]
        case list():
            return TYPES["array"]
        case _:
            return TYPES["object"]


def _at(root: YamlNode, path: Path) -> YamlNode:
    node = root
    for step in path:
        inner = _child(node, step)
        # INVARIANT: jsonschema only names places that the value has.
        assert inner is not None
        node = inner
    return node
