"""Which hosts a build with package indexes alone may reach, and which only look like it."""

import re

import pytest

from researchenvbench.errors import RebError
from researchenvbench.relay.registries.hosts import (
    Hosts,
    Rule,
    hosts_of,
    known_hosts,
    loopback_ports,
    plain_host,
    read_rule,
)

KNOWN = hosts_of({})


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("pypi.org", 443),
        ("pypi.org", 80),
        ("PyPI.org", 443),
        ("pypi.org.", 443),
        ("download.pytorch.org", 443),
        ("cas-bridge.xethub.hf.co", 443),
        ("us.aws.cdn.hf.co", 443),
        ("deb.debian.org", 80),
        ("github.com", 443),
    ],
)
def test_indexes_and_hubs_are_reached(host, port):
    assert KNOWN.rule(host, port)


@pytest.mark.parametrize(
    "host",
    [
        "evilpypi.org",
        "pypi.org.evil.example",
        "pypi.org@evil.example",
        "evil.example/pypi.org",
        "evil.example#.xethub.hf.co",
        "evilxethub.hf.co",
        "xethub.hf.co",
        ".xethub.hf.co",
        "x..xethub.hf.co",
        "pypi.org..",
        "pypi\u3002org",
        "\u0440ypi.org",  # with a letter of another alphabet
        "pypi.org\x00.xethub.hf.co",
        "router.huggingface.co",
        "gist.githubusercontent.com",
        "storage.googleapis.com",
        "localhost",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "10.0.0.1",
        "169.254.169.254",
        "151.101.0.223",
        "[::1]",
        "::ffff:127.0.0.1",
        "",
        "a" * 64 + ".xethub.hf.co",
        ".".join(["a" * 60] * 5) + ".xethub.hf.co",
    ],
)
def test_others_and_addresses_are_not(host):
    assert KNOWN.rule(host, 443) is None


@pytest.mark.parametrize("port", [22, 25, 8080, 0, 65535])
def test_other_ports_are_not(port):
    assert KNOWN.rule("pypi.org", port) is None


class TestThisHost:
    def test_what_its_settings_name_by_its_port(self):
        hosts = hosts_of(
            {
                "PIP_INDEX_URL": "http://user:word@Mirror.Example:8081/simple",
                "PIP_EXTRA_INDEX_URL": "https://one.example/s https://two.example/s",
                "UV_FIND_LINKS": "/opt/wheels,https://links.example/x",
                "PIP_FIND_LINKS": "http://10.1.2.3:9000/",
            }
        )
        for host in ("mirror.example", "one.example", "two.example", "links.example"):
            assert hosts.rule(host, 443), host
        assert hosts.rule("mirror.example", 8081)
        assert not hosts.rule("mirror.example", 8082)
        assert hosts.rule("10.1.2.3", 9000)
        assert not hosts.rule("10.1.2.3", 443)

    @pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY", "PIP_PROXY"])
    def test_its_proxy_is_no_host_to_reach(self, name):
        assert not hosts_of({name: "http://proxy.example:3128"}).rule("proxy.example", 3128)

    def test_sources_of_packages_in_the_image(self):
        one_line = "deb [signed-by=/k.gpg] http://debian.mirror.example/debian bookworm main\n"
        stanza = "Types: deb\nURIs: https://a.example/ubuntu http://b.example:8000/u\nSuites: x\n"
        hosts = hosts_of({}, [one_line, stanza])
        assert hosts.rule("debian.mirror.example", 80)
        assert hosts.rule("a.example", 443)
        assert hosts.rule("b.example", 8000)

    def test_its_loopback_is_found_at_the_box_s_own(self):
        """Programs do not ask the proxy for it, so the port is served there."""
        installs = {
            "PIP_INDEX_URL": "http://localhost:3141/root/pypi",
            "UV_INDEX": "http://127.0.0.1:8080/simple https://x.example/simple",
            "http_proxy": "http://127.0.0.1:3128",
        }
        assert loopback_ports(installs) == (3141, 8080)
        assert not hosts_of(installs).rule("127.0.0.1", 8080)
        # Of another address there the proxy is asked.
        assert loopback_ports({"PIP_INDEX_URL": "http://127.0.0.2:8080/simple"}) == ()
        assert hosts_of({"PIP_INDEX_URL": "http://127.0.0.2:8080/s"}).rule("127.0.0.2", 8080)

    def test_what_is_no_address_is_passed_over(self):
        assert not hosts_of({"PIP_INDEX_URL": "http://[::1/simple http://x:99999/"}).rule("x", 80)


class TestAllowed:
    @pytest.mark.parametrize(
        ("text", "host", "port"),
        [
            ("data.example.org", "data.example.org", 443),
            ("data.example.org:8443", "data.example.org", 8443),
            ("*.example.org", "a.b.example.org", 80),
            ("Example.ORG", "example.org", 80),
            ("10.0.0.7:8080", "10.0.0.7", 8080),
            ("[fd00::1]:8080", "fd00::1", 8080),
            ("fd00::1", "[fd00:0::1]", 443),
        ],
    )
    def test_is_reached(self, text, host, port):
        hosts = hosts_of({}, allowed=[text])
        assert hosts.rule(host, port)
        assert not hosts.rule(host, port + 1)
        assert hosts.rule("pypi.org", 443)

    def test_below_a_name_is_not_the_name(self):
        hosts = hosts_of({}, allowed=["*.example.org"])
        assert not hosts.rule("example.org", 443)
        assert not hosts.rule("badexample.org", 443)

    @pytest.mark.parametrize(
        "text",
        ["", "*", "*.org", "*.*", "https://x.example", "x.example/y", "a b", "x:0", "x:99999"],
    )
    def test_what_is_no_host_is_refused_with_advice(self, text):
        with pytest.raises(RebError, match=re.escape(repr(text))) as caught:
            read_rule(text)
        assert "data.example.org" in caught.value.advice

    @pytest.mark.parametrize(
        "text", ["user@x.example", "*.10.0.0.1", "x.example:", "*.*.example.org", "\u0440ypi.org"]
    )
    def test_what_is_none_either(self, text):
        with pytest.raises(RebError, match=re.escape(repr(text))):
            read_rule(text)


def test_a_refusal_is_one_line_that_says_what_is_allowed():
    said = hosts_of({}, allowed=["data.example.org"]).refusal("evil.example", 443)
    assert said.startswith("evil.example:443 is refused by the policy of this run")
    assert "data.example.org, pypi.org" in said
    assert re.search(r"and \d+ more$", said)
    strange = Hosts([]).refusal("a\r\nSet-Cookie: x", 443)
    assert strange.isprintable()


def test_the_list_is_in_the_form_that_is_compared():
    rules = known_hosts()
    assert len(rules) == len(set(rules)) > 50
    for rule in rules:
        assert rule == Rule(rule.host, rule.below)
        assert plain_host(rule.host) == rule.host
        assert rule.host.count(".") >= 1
