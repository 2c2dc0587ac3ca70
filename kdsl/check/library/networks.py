"""IP addresses and CIDR ranges: CEL's network extension, which has Kubernetes' names."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare(
        "ip",
        "An IPv4 or IPv6 address from its text, or the address of a CIDR range.",
        {"string_to_ip": "(string): ip", "cidr_ip": "cidr.(): ip"},
    ),
    declare("isIP", "Is the text an IP address?", "(string): bool"),
    declare(
        "ip.isCanonical",
        "Is the text the canonical form of its address? An invalid address is an error.",
        "(string): bool",
    ),
    declare("family", "4 or 6.", "ip.(): int"),
    declare("isUnspecified", "Is `0.0.0.0` or `::`.", "ip.(): bool"),
    declare("isLoopback", "Is in `127.0.0.0/8`, or `::1`.", "ip.(): bool"),
    declare("isLinkLocalMulticast", "Is in `224.0.0.0/24` or `ff02::/16`.", "ip.(): bool"),
    declare("isLinkLocalUnicast", "Is in `169.254.0.0/16` or `fe80::/10`.", "ip.(): bool"),
    declare(
        "isGlobalUnicast",
        "Is neither unspecified, loopback, multicast, link-local nor `255.255.255.255`.",
        "ip.(): bool",
    ),
    declare("cidr", "A CIDR range from its text; host bits may be set.", "(string): cidr"),
    declare("isCIDR", "Is the text a CIDR range?", "(string): bool"),
    declare(
        "containsIP",
        "The range contains the address.",
        {"cidr_contains_ip_ip": "cidr.(ip): bool", "cidr_contains_ip_string": "cidr.(string): bool"},
    ),
    declare(
        "containsCIDR",
        "The range contains the other range.",
        {"cidr_contains_cidr": "cidr.(cidr): bool", "cidr_contains_cidr_string": "cidr.(string): bool"},
    ),
    declare("masked", "The range without host bits.", "cidr.(): cidr"),
    declare("prefixLength", "The number of bits of the prefix.", "cidr.(): int"),
)
