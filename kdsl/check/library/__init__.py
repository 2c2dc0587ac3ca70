"""Every function, operator and member that expressions may call, as data.

The checker resolves overloads against it, the evaluator implements each overload by its id, documentation and
editors list it. Macros are not functions: see `kdsl.check.expressions.macros`. The members of views are in
`kdsl/check/views`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kdsl.check.library import (
    collections,
    conversions,
    encoders,
    formats,
    networks,
    numbers,
    operators,
    quantities,
    sets,
    strings,
    times,
    urls,
    versions,
)
from kdsl.check.library.declaration import Function, Overload
from kdsl.check.model.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    INT,
    IP,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
)

__all__ = ["LIBRARY", "TYPE_NAMES", "Function", "Overload"]

_MODULES = (
    *(operators, conversions, times, collections, sets, strings, encoders, numbers),
    *(quantities, versions, networks, urls, formats),
)

LIBRARY: Mapping[str, Function] = MappingProxyType(
    {function.name: function for module in _MODULES for function in module.FUNCTIONS}
)
"""All functions by CEL name."""

TYPE_NAMES: Mapping[str, Type] = MappingProxyType(
    {
        "bool": BOOL,
        "int": INT,
        "uint": UINT,
        "double": DOUBLE,
        "string": STRING,
        "bytes": BYTES,
        "null_type": NULL,
        "type": TYPE,
        "list": Type("list"),
        "map": Type("map"),
        "optional_type": Type("optional"),
        "google.protobuf.Timestamp": TIMESTAMP,
        "google.protobuf.Duration": DURATION,
        "net.IP": IP,
        "net.CIDR": CIDR,
        "kubernetes.Quantity": QUANTITY,
        "kubernetes.Semver": SEMVER,
        "kubernetes.URL": Type("url"),
        "kubernetes.NamedFormat": Type("format"),
    }
)
"""Types that are values in expressions, by name; `type(x)` gives them without arguments."""
