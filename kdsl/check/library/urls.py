"""URLs: the functions Kubernetes adds to CEL."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare("url", "A URL from its text: absolute, or an absolute path.", "(string): url"),
    declare("isURL", "Would `url` succeed?", "(string): bool"),
    declare("getScheme", "The scheme, such as `https`; empty if absent.", "url.(): string"),
    declare("getHost", "The host with its port, IPv6 in brackets.", "url.(): string"),
    declare("getHostname", "The host without port and brackets.", "url.(): string"),
    declare("getPort", "The port; empty if absent.", "url.(): string"),
    declare("getEscapedPath", "The path, percent-encoded.", "url.(): string"),
    declare("getQuery", "The values of each key of the query, decoded.", "url.(): map(string, list(string))"),
)
