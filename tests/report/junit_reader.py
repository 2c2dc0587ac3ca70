"""A strict reader of JUnit XML: what Jenkins' schema (junit-10.xsd) allows, as far as kdsl writes it."""

from __future__ import annotations

from xml.etree import ElementTree

COUNTS = ("tests", "failures", "errors")
ALLOWED = {
    "testsuites": {"name", "time", *COUNTS},
    "testsuite": {"name", "time", "skipped", *COUNTS},
    "testcase": {"name", "classname", "time", "file", "line"},
    "failure": {"message", "type"},
    "skipped": {"message"},
    "system-out": set[str](),
}
REQUIRED = {"testsuite": {"name", *COUNTS}, "testcase": {"name", "classname"}}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "skipped", "system-out"},
}
NUMBERS = {"line", "skipped", *COUNTS}


def read_junit(text: str) -> ElementTree.Element:
    """Parse a report; raise AssertionError where a strict reader would refuse it."""
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    _check(root)
    for name in COUNTS:
        assert int(root.attrib[name]) == sum(int(suite.attrib[name]) for suite in root), name
    for suite in root:
        assert int(suite.attrib["tests"]) == len(suite)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert suite.attrib["errors"] == "0"
    return root


def _check(element: ElementTree.Element) -> None:
    given = set(element.attrib)
    assert given <= ALLOWED[element.tag], (element.tag, given - ALLOWED[element.tag])
    assert REQUIRED.get(element.tag, set()) <= given, element.tag
    assert all(element.attrib[name] for name in given & {"name", "classname"}), element.attrib
    for name in given & NUMBERS:
        assert element.attrib[name].isdigit(), (name, element.attrib[name])
    if "time" in given:
        assert float(element.attrib["time"]) >= 0
    for child in element:
        assert child.tag in CHILDREN.get(element.tag, set()), (element.tag, child.tag)
        _check(child)
    if element.tag in CHILDREN:
        assert not (element.text or "").strip(), "text between elements"
