"""Named formats of strings, which Kubernetes adds to CEL: `format.dns1123Label().validate(x)`."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

_FORMATS = {
    "dns1123Label": "A DNS label: lower case letters, digits and `-`.",
    "dns1123Subdomain": "A DNS name: labels with dots between them.",
    "dns1035Label": "A DNS label that begins with a letter.",
    "qualifiedName": "A name with an optional DNS prefix, as keys of labels.",
    "dns1123LabelPrefix": "A prefix of a DNS label.",
    "dns1123SubdomainPrefix": "A prefix of a DNS name.",
    "dns1035LabelPrefix": "A prefix of a DNS label that begins with a letter.",
    "labelValue": "The value of a label.",
    "uri": "An absolute URI or an absolute path.",
    "uuid": "A UUID.",
    "byte": "Base64.",
    "date": "A date as in RFC 3339.",
    "datetime": "A date and time as in RFC 3339.",
}

FUNCTIONS: tuple[Function, ...] = (
    declare(
        "validate",
        "The errors of the string; none if it has the format.",
        "format.(string): optional(list(string))",
    ),
    declare(
        "format.named",
        "The format of that name; none if there is no such format.",
        "(string): optional(format)",
    ),
    *(declare(f"format.{name}", doc, "(): format") for name, doc in _FORMATS.items()),
)
