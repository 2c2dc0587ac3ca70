"""URLs: the functions Kubernetes adds to CEL."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare("url", "A URL from its text: absolute, or an absolute path.", {"string_to_url": "(string): url"}),
    declare("isURL", "Would `url` succeed?", {"is_url_string": "(string): bool"}),
    declare(
        "getScheme", "The scheme, such as `https`; empty if absent.", {"url_get_scheme": "url.(): string"}
    ),
    declare("getHost", "The host with its port, IPv6 in brackets.", {"url_get_host": "url.(): string"}),
    declare("getHostname", "The host without port and brackets.", {"url_get_hostname": "url.(): string"}),
    declare("getPort", "The port; empty if absent.", {"url_get_port": "url.(): string"}),
    declare("getEscapedPath", "The path, percent-encoded.", {"url_get_escaped_path": "url.(): string"}),
    declare(
        "getQuery",
        "The values of each key of the query, decoded.",
        {"url_get_query": "url.(): map(string, list(string))"},
    ),
)
