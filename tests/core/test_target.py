"""Targets of calls, and patterns of hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.target import host_of, is_host_pattern, matches, type_of


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [
        ("http.request https://Shop.example", "shop.example", "443"),
        ("http.request http://127.0.0.1:8080", "127.0.0.1", "8080"),
        ("http.request http://[::1]:80", "[::1]", "80"),
        ("email.send mail.example:587", "mail.example", "587"),
        ("call shop", "shop", None),
        ("email.send", "", None),
    ],
)
def test_a_target_tells_its_type_and_its_host(target: str, host: str, port: str | None):
    assert type_of(target) == target.split()[0]
    assert host_of(target) == (host, port)


@pytest.mark.parametrize(
    ("pattern", "wanted", "unwanted"),
    [
        ("shop.example", "x https://shop.example:8443", "x https://api.shop.example"),
        ("shop.example:8443", "x https://shop.example:8443", "x https://shop.example"),
        ("shop.example:443", "x https://shop.example", "x http://shop.example"),
        ("*.shop.example", "x http://a.b.shop.example", "x http://shop.example"),
        ("*.shop.example", "x http://a.shop.example", "x http://bshop.example"),
        ("[::1]", "x http://[::1]:9", "x http://[::2]:9"),
        ("[::1]:9", "x http://[::1]:9", "x http://[::1]:8"),
        ("*", "x shop", "x"),
    ],
)
def test_a_pattern_means_a_host_or_those_below_it(pattern: str, wanted: str, unwanted: str):
    assert is_host_pattern(pattern)
    assert matches(pattern, wanted)
    assert not matches(pattern, unwanted)


@pytest.mark.parametrize("text", ["", "http://shop", "shop.*", "Shop", "*shop", "a b", "shop/x", "-a", "shop:", ":80"])
def test_what_is_no_pattern_is_told_from_one(text: str):
    assert not is_host_pattern(text)


@given(st.text(), st.sampled_from(["*", "shop", "*.shop:80", "[::1]:1"]))
def test_any_text_may_be_a_target(text: str, pattern: str):
    assert matches(pattern, text) in (True, False)
