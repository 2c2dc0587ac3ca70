"""IP addresses and CIDR ranges: Go's `netip`, through Python's `ipaddress`.

Parsing is strict: no zones, no leading zeros, no IPv4 address in the dotted tail of an IPv6 one. The
conformance suite wants the hexadecimal form `::ffff:c0a8:1` to be the IPv4 address it stands for; Kubernetes
refuses that form, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
)

from kdsl.eval.values import EvalError, Value, succeeds

Address = IPv4Address | IPv6Address
Range = IPv4Interface | IPv6Interface

_LONGEST = 64
_BROADCAST = IPv4Address("255.255.255.255")


def parse_ip(text: str) -> Address:
    """Read an address."""
    address = _address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def _address(text: str) -> Address:
    if "%" in text:
        raise EvalError(f"IP address with a zone is not allowed: {text[:_LONGEST]!r}")
    try:
        address = ip_address(text) if len(text) <= _LONGEST else None
    except (AddressValueError, ValueError):
        address = None
    if address is None:
        raise EvalError(f"not an IP address: {text[:_LONGEST]!r}")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None and "." in text:
        raise EvalError(f"IPv4-mapped IPv6 address is not allowed: {text!r}")
    return address


def parse_cidr(text: str) -> Range:
    """Parse an address and the length of its prefix; bits after the prefix may be set."""
    written, slash, bits = text.rpartition("/")
    address = _address(written) if slash else None
    is_number = bits.isascii() and bits.isdigit() and len(bits) <= 3 and str(int(bits)) == bits
    if address is None or not is_number or int(bits) > address.max_prefixlen:
        raise EvalError(f"not a CIDR range: {text[:_LONGEST]!r}")
    if isinstance(address, IPv4Address):
        return IPv4Interface((address, int(bits)))
    if address.ipv4_mapped is not None:
        raise EvalError(f"IPv4-mapped IPv6 address is not allowed: {text!r}")
    return IPv6Interface((address, int(bits)))


def contains_cidr(outer: Range, inner: Range) -> bool:
    """Return whether every address of `inner` is in `outer`."""
    return outer.network.prefixlen <= inner.network.prefixlen and inner.ip in outer.network


def is_link_local_multicast(address: Address) -> bool:
    """Return whether packets to the address stay on the link: by the scope of an IPv6 multicast address."""
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def is_global_unicast(address: Address) -> bool:
    """Return the result of Go's `IsGlobalUnicast`, for which private addresses are global."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


def _masked(cidr: Range) -> Range:
    return parse_cidr(str(cidr.network))


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "string_to_ip": parse_ip,
    "cidr_ip": lambda cidr: cidr.ip,
    "isIP": succeeds(parse_ip),
    "ip.isCanonical": lambda text: str(parse_ip(text)) == text,
    "family": lambda address: address.version,
    "isUnspecified": lambda address: address.is_unspecified,
    "isLoopback": lambda address: address.is_loopback,
    "isLinkLocalMulticast": is_link_local_multicast,
    "isLinkLocalUnicast": lambda address: address.is_link_local,
    "isGlobalUnicast": is_global_unicast,
    "cidr": parse_cidr,
    "isCIDR": succeeds(parse_cidr),
    "cidr_contains_ip_ip": lambda cidr, address: address in cidr.network,
    "cidr_contains_ip_string": lambda cidr, text: parse_ip(text) in cidr.network,
    "cidr_contains_cidr": contains_cidr,
    "cidr_contains_cidr_string": lambda cidr, text: contains_cidr(cidr, parse_cidr(text)),
    "masked": _masked,
    "prefixLength": lambda cidr: cidr.network.prefixlen,
}
