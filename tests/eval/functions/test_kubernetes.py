"""Kubernetes' additions to CEL beside quantities: addresses, versions, URLs, formats, patterns.

Cases are those of its documentation and of Go's libraries behind it, if the two agree.
"""

from __future__ import annotations

import pytest
from kdsl.base.resources import Resources
from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.library import LIBRARY
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.types import INT, RESOURCES, list_of
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.functions.formats import FORMATS
from kdsl.eval.values import EvalError, equals
from kdsl.lang.parser import parse_expression

from tests.plan.lab import evaluate, node, nodes_of, predicate, statuses

TRUE = [
    # addresses
    "ip('1.2.3.4') == ip('1.2.3.4') && ip('1.2.3.4') != ip('::102:304')",
    "isIP('::') && !isIP('01.2.3.4') && !isIP('1.2.3') && !isIP('1:2:3:4:5:6:7:8::') && !isIP('fe80::1%eth0')",
    "!isIP('::ffff:1.2.3.4') && ip('::ffff:102:304') == ip('1.2.3.4')",
    "string(ip('2001:DB8:0:0:1:0:0:1')) == '2001:db8::1:0:0:1'",
    "!ip.isCanonical('2001:db8::0:0:0:abcd') && ip.isCanonical('127.0.0.1')",
    "ip('10.0.0.1').isGlobalUnicast() && !ip('0.0.0.0').isGlobalUnicast() && !ip('127.9.9.9').isGlobalUnicast()",
    "ip('ff12::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
    "ip('127.255.0.1').isLoopback() && !ip('::2').isLoopback()",
    "ip('febf::1').isLinkLocalUnicast() && !ip('fec0::1').isLinkLocalUnicast()",
    "type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR",
    "!isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/255.0.0.0')",
    "!isCIDR('10.0.0.0/+8') && !isCIDR('/8') && !isCIDR('::ffff:102:304/112') && isCIDR('::1/128')",
    "!isCIDR('10.0.0.0/²') && !isCIDR('10.0.0.0/٨') && !isCIDR('10.0.0.0/') && !isCIDR('10.0.0.0/-8')",
    "!isCIDR('10.0.0.0/" + "1" * 5000 + "') && !isCIDR('10.0.0.0/1000') && !isCIDR('::1/129')",
    "isCIDR('10.0.0.0/0') && isCIDR('10.0.0.0/32') && isCIDR('::1/100') && !isCIDR('10.0.0.0/x')",
    "cidr('10.1.2.3/8') != cidr('10.1.2.3/8').masked() && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
    "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('::1/12').prefixLength() == 12",
    "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('::/0').containsCIDR('10.0.0.0/8')",
    "cidr('192.168.0.0/24').containsIP('192.168.0.255') && !cidr('0.0.0.0/0').containsIP('::1')",
    "sign(quantity('-1')) == quantity('-1').sign()",
    # semantic versions
    "semver('1.2.3') < semver('1.10.0') && semver('1.2.3') >= semver('1.2.3-rc.1')",
    "semver('1.2.3+a') == semver('1.2.3+b') && semver('1.0.0').compareTo(semver('1.2.3')) == -1",
    "semver('v01.01', true) == semver('1.1.0') && !isSemver('v1.0.0') && isSemver('v1', true)",
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
    "semver('2.0.0').isGreaterThan(semver('1.9.9')) && semver('1.0.0-a').isLessThan(semver('1.0.0'))",
    "[semver('1.10.0'), semver('1.9.0')].max() == semver('1.10.0')",
    "string(semver('1.2.3-rc.1+b')) == '1.2.3-rc.1+b'",
    # URLs
    "url('/path').getScheme() == '' && url('HTTPS://example.com/').getScheme() == 'https'",
    "url('https://example.com:80/').getHost() == 'example.com:80' && url('/path').getHost() == ''",
    "url('https://[::1]:80/').getHost() == '[::1]:80' && url('https://[::1]/').getHostname() == '::1'",
    "url('https://example.com:80/').getHostname() == 'example.com' && url('https://a:/').getPort() == ''",
    "url('https://example.com:80/').getPort() == '80' && url('https://[::1]/').getPort() == ''",
    "url('https://example.com/with space/').getEscapedPath() == '/with%20space/'",
    "url('https://example.com').getEscapedPath() == '' && url('/a%2Fb').getEscapedPath() == '/a%2Fb'",
    "url('/a%2Fb/ü').getEscapedPath() == '/a/b/%C3%BC'",
    "url('https://a/p?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
    "url('https://a/p?key with=v+w%21').getQuery() == {'key with': ['v w!']}",
    "url('https://a/p?').getQuery() == {} && url('https://a/p?x&y=%zz&a;b=1&').getQuery() == {'x': ['']}",
    "url('https://u:p@a/') != url('https://a/') && url('https://a/') == url('HTTPS://a/')",
    "url('https://a/p#frag?x').getQuery() == {} && url('//host/p').getHost() == 'host'",
    "url('mailto:x@y').getHost() == '' && isURL('*')",
    "!isURL('') && !isURL('../a') && !isURL('https://a:b:c/') && !isURL('https://a b/') && !isURL('/%zz')",
    "!isURL('https://[::1/') && !isURL('https://[1.2.3.4]/') && !isURL('https://a:8x/') && !isURL(':a')",
    "!isURL('https://a%41/') && isURL('https://a%c3%bc/') && !isURL('https://u^@a/') && !isURL('/\\t')",
    # formats
    "format.dns1123Label().validate('my-name') == optional.none()",
    "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
    "format.dns1123Label().validate('A').value()[0].startsWith('a lowercase RFC 1123 label must consist of')",
    "format.dns1123Subdomain().validate('a.b-c.d').hasValue() == false",
    "format.dns1123Subdomain().validate('a..b').hasValue() && format.dns1035Label().validate('1a').hasValue()",
    "format.dns1123LabelPrefix().validate('a-') == optional.none()",
    "format.dns1123Label().validate('a-').hasValue() && format.dns1035LabelPrefix().validate('-').hasValue()",
    "format.qualifiedName().validate('example.com/My_Name.1') == optional.none()",
    "format.qualifiedName().validate('a/b/c').value().size() == 1",
    "format.qualifiedName().validate('/').value()[0] == 'prefix part must be non-empty'",
    "format.labelValue().validate('') == optional.none() && format.labelValue().validate('-').hasValue()",
    "format.uri().validate('/a') == optional.none() && format.uri().validate('a').hasValue()",
    "format.uuid().validate('123e4567-e89b-12d3-a456-426614174000') == optional.none()",
    "format.uuid().validate('123e4567').value() == ['does not match the UUID format']",
    "format.byte().validate('aGVsbG8=') == optional.none() && format.byte().validate('').hasValue()",
    "format.date().validate('2024-02-29') == optional.none() && format.date().validate('2023-02-29').hasValue()",
    "format.date().validate('0000-02-29') == optional.none() && format.date().validate('20240229').hasValue()",
    "format.datetime().validate('2021-01-01T00:00:00.5+01:00') == optional.none()",
    "format.datetime().validate('2021-01-01T24:00:00Z').hasValue()",
    "format.named('uuid').value() == format.uuid() && format.named('nope') == optional.none()",
    # patterns, with Go's answers
    "'abc 123'.find('[0-9]+') == '123' && 'abc 123'.find('xyz') == '' && 'abc'.find('[0-9]*') == ''",
    "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '123 abc 456'.findAll('xyz') == []",
    "'1 2 3'.findAll('[0-9]', 2) == ['1', '2'] && '1'.findAll('1', 0) == [] && '11'.findAll('1', -1).size() == 2",
    # durations, by Go's units
    "duration('1us') == duration('1000ns') && duration('1µs') == duration('1us') && duration('1μs') == duration('1us')",
    "duration('1ms') == duration('1000us') && duration('1s') == duration('1000ms') && duration('1m') == duration('60s')",
    "duration('1h') == duration('60m') && duration('1h1m1.5s') == duration('3661500ms') && duration('-1h') < duration('0')",
    # sets and base64
    "sets.contains([1, 2u, 3.0], [3, 2]) && !sets.contains([1], [1, 2]) && sets.contains([], [])",
    "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
    "sets.intersects(['a', 'b'], ['b']) && !sets.intersects([true], [1])",
    "base64.encode(b'\\xff\\xfe') == '//4=' && base64.decode('//4') == b'\\xff\\xfe' && base64.decode('YQ\\n==') == b'a'",
]

ERRORS = {
    "ip('::1%eth0')": "zone",
    "ip('::ffff:1.2.3.4')": "IPv4-mapped",
    "ip('" + "1" * 100 + "')": "not an IP address",
    "ip.isCanonical('x')": "not an IP address",
    "cidr('fe80::%1/64')": "zone",
    "cidr('1.2.3.4/x')": "not a CIDR range",
    "cidr('10.0.0.0/8').containsIP('x')": "not an IP address",
    "semver('v1.0')": "not a semantic version",
    "semver('18446744073709551615.0.0').major()": "integer overflow",
    "url('../a')": "not a URL",
    "url('/a#%zz')": "invalid escape",
    "'a'.find('(')": "invalid regular expression",
    "'aaaaaaaaaa'.replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa')"
    ".findAll('a.*b|a') == []": "more than 1000000 steps",
    "base64.decode('a')": "invalid base64",
    "base64.decode('a-_=')": "invalid base64",
}


@pytest.mark.parametrize("text", TRUE)
def test_true(text: str) -> None:
    assert evaluate(text) is True


@pytest.mark.parametrize(("text", "message"), ERRORS.items(), ids=ERRORS)
def test_error(text: str, message: str) -> None:
    result = evaluate(text)
    assert isinstance(result, EvalError), result
    assert message in result.message


def test_every_named_format_has_a_function() -> None:
    declared = {name.removeprefix("format.") for name in LIBRARY if name.startswith("format.")}
    assert declared - {"named"} == FORMATS.keys()


def test_sets_are_bounded() -> None:
    many = tuple(range(2_000))
    result = evaluate("sets.contains(a, a)", {"a": list_of(INT)}, many)
    assert isinstance(result, EvalError)
    assert "too long" in result.message


def test_rules_use_them() -> None:
    plugin = predicate(
        """
        let version = semver(node.labels[?"kernel"].orValue("0.0.0"), true)
        require version >= semver("5.10.0") && cidr("10.0.0.0/8").containsIP(node.labels[?"ip"].orValue("::"))
          else "kernel ${version} too old"
        """
    )
    nodes = nodes_of(
        node("new", labels={"kernel": "6.1", "ip": "10.1.1.1"}),
        node("old", labels={"kernel": "v5.4.0", "ip": "10.1.1.1"}),
        node("far", labels={"kernel": "5.10.1", "ip": "192.168.0.1"}),
    )
    found = statuses(plugin, PodInfo("p", "ns"), nodes)
    assert {name: status.reasons for name, status in found.items()} == {
        "old": ("kernel 5.4.0 too old",),
        "far": ("kernel 5.10.1 too old",),
    }


def test_a_constant_version_is_checked_with_the_rule() -> None:
    expr, _ = parse_expression(Source("e", 'semver("v1.2") < semver("1.3.0")'))
    assert expr is not None
    typed, (problem,) = check_expression(expr, Environment(strict=True))
    assert typed is None
    assert (problem.code, problem.span and problem.span.text) == (CheckCode.BAD_TEXT, '"v1.2"')
    assert problem.help == ("write it as in `1.2.3` or `1.2.3-beta.1`",)


class TestResources:
    """Arithmetic and comparison of `resources`."""

    SMALL = Resources({"cpu": 1000, "memory": 5})
    LARGE = Resources({"cpu": 2000, "memory": 5, "vendor.com/card": 1})

    def evaluate(self, text: str, a: Resources, b: Resources) -> object:
        return evaluate(text, {"a": RESOURCES, "b": RESOURCES}, a, b)

    def test_arithmetic_is_element_wise(self) -> None:
        assert self.evaluate("a + b", self.SMALL, self.LARGE) == Resources(
            {"cpu": 3000, "memory": 10, "vendor.com/card": 1}
        )
        assert self.evaluate("a - b", self.SMALL, self.LARGE) == Resources(
            {"cpu": -1000, "vendor.com/card": -1}
        )
        assert self.evaluate("[a, b, a].sum() == a + b + a", self.SMALL, self.LARGE) is True

    def test_comparison_is_element_wise(self) -> None:
        assert self.evaluate("a <= b && b >= a && a <= a", self.SMALL, self.LARGE) is True
        assert self.evaluate("b <= a", self.SMALL, self.LARGE) is False
        assert self.evaluate("dyn(a) <= dyn(b)", self.SMALL, self.LARGE) is True
        # Neither is less: there is no total order.
        other = Resources({"cpu": 500, "memory": 6})
        assert self.evaluate("a <= b || a >= b", self.SMALL, other) is False

    def test_a_missing_resource_is_zero(self) -> None:
        debt = Resources({"vendor.com/card": -1})
        assert self.evaluate("a <= b", Resources({}), debt) is False
        assert self.evaluate("b <= a", Resources({}), debt) is True

    def test_sums_are_bounded(self) -> None:
        most = Resources({"memory": 2**63 - 1})
        result = self.evaluate("a + b", most, most)
        assert isinstance(result, EvalError)
        assert "overflow" in result.message

    def test_equality(self) -> None:
        assert equals(self.SMALL, Resources({"memory": 5, "cpu": 1000}))
