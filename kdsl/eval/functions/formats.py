"""Named formats. Rules and messages are those of Kubernetes' API validation.

Sources: `k8s.io/apimachinery/pkg/util/validation` and `k8s.io/kube-openapi/pkg/validation/strfmt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial

from kdsl.eval.functions.urls import url_problem
from kdsl.eval.values import NONE, Format, Optional, Value

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME})?"
_UUID = re.compile("[0-9A-Fa-f]{8}-?([0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}")
_BASE64 = re.compile("([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")

_LABEL_SAYS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_SAYS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_LABEL_1035_SAYS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_NAME_SAYS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_LABEL_VALUE_SAYS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)
_NAME_EXAMPLES = ("MyName", "my.name", "123-abc")


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _too_long(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} bytes"] if len(text.encode("utf-8", "replace")) > most else []


def _says(message: str, pattern: str, examples: tuple[str, ...]) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


def label_problems(text: str) -> list[str]:
    """Return why a text is no DNS label."""
    problems = _too_long(text, 63)
    if _matches(_LABEL, text):
        return problems
    if _matches(_SUBDOMAIN, text):
        return [*problems, "must not contain dots"]
    return [*problems, _says(_LABEL_SAYS, _LABEL, ("my-name", "123-abc"))]


def _simple(pattern: str, most: int, message: str, examples: tuple[str, ...]) -> Callable[[str], list[str]]:
    says = _says(message, pattern, examples)
    return lambda text: [*_too_long(text, most), *([] if _matches(pattern, text) else [says])]


subdomain_problems = _simple(_SUBDOMAIN, 253, _SUBDOMAIN_SAYS, ("example.com",))
label_1035_problems = _simple(_LABEL_1035, 63, _LABEL_1035_SAYS, ("my-name", "abc-123"))


def qualified_name_problems(text: str) -> list[str]:
    """Return why a text is no name with an optional DNS prefix."""
    parts = text.split("/")
    says = _says(_NAME_SAYS, _NAME, _NAME_EXAMPLES)
    if len(parts) > 2:
        prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {says} {prefix}"]
    problems: list[str] = []
    if len(parts) == 2:
        found = subdomain_problems(parts[0]) if parts[0] else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in found]
    name = parts[-1]
    found = _too_long(name, 63) if name else ["must be non-empty"]
    if not _matches(_NAME, name):
        found = [*found, says]
    return problems + [f"name part {problem}" for problem in found]


def _as_prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the check of a prefix for generated names: it may end in a dash."""
    return lambda text: problems(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    if text.startswith("0000"):  # Go accepts this leap year, Python does not
        text = f"2000{text[4:]}"
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    match = _TIME.fullmatch(time)
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _test(holds: Callable[[str], object], says: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [says]


def _uri_problems(text: str) -> list[str]:
    problem = url_problem(text)
    return [] if problem is None else [f"not a URI: {problem}"]


_CHECKS: Mapping[str, Callable[[str], list[str]]] = {
    "dns1123Label": label_problems,
    "dns1123Subdomain": subdomain_problems,
    "dns1035Label": label_1035_problems,
    "qualifiedName": qualified_name_problems,
    "dns1123LabelPrefix": _as_prefix(label_problems),
    "dns1123SubdomainPrefix": _as_prefix(subdomain_problems),
    "dns1035LabelPrefix": _as_prefix(label_1035_problems),
    "labelValue": _simple(_LABEL_VALUE, 63, _LABEL_VALUE_SAYS, ("MyValue", "my_value", "12345")),
    "uri": _uri_problems,
    "uuid": _test(_UUID.fullmatch, "does not match the UUID format"),
    "byte": _test(_BASE64.fullmatch, "invalid base64"),
    "date": _test(_is_date, "invalid date"),
    "datetime": _test(_is_datetime, "invalid datetime"),
}
FORMATS: Mapping[str, Format] = {name: Format(name, check) for name, check in _CHECKS.items()}
"""All formats by name."""


def validate(format: Format, text: str) -> Optional:
    """Return the problems of the text, none if it is valid."""
    problems = format.problems(text)
    return Optional(tuple(problems)) if problems else NONE


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "validate": validate,
    "format.named": lambda name: Optional(FORMATS[name]) if name in FORMATS else NONE,
    **{f"format.{name}": partial(FORMATS.__getitem__, name) for name in FORMATS},
}
