"""The guard in front of the network."""

import socket
from ipaddress import ip_address

import pytest
from yarl import URL

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import Facilities, NodeFailure
from ropewalk.nodes.network import Guard, NetworkPolicy, is_global, is_never_allowed


def answering(*addresses):
    """A resolver that knows one answer."""

    async def resolve(host, port):
        return addresses

    return resolve


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
)
def test_public_addresses_are_global(address):
    assert is_global(ip_address(address))


PRIVATE = [
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1"),
    *("192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fc00::1", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "100::1", "64:ff9b:1::1"),
    *("2001:2::1", "2001:10::1", "5f00::1"),
    # IPv4 inside IPv6: mapped, compatible, NAT64, 6to4, Teredo (its server, and its client, which is inverted).
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a9fe:a9fe::"),
    *("2001:0:7f00:1::f7f7:f7f7", "2001:0:808:808::80ff:fffe"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_special_addresses_are_not_global_in_any_wrapping(address):
    assert not is_global(ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_resolves_there_is_refused_with_the_way_to_allow_it(address):
    with pytest.raises(NodeFailure) as caught:
        await Guard(resolve=answering("8.8.8.8", address)).addresses("shop.example", 443)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert is_never_allowed(ip_address(address)) or "list shop.example:443 in the setting ROPEWALK_ALLOW_HOSTS" in str(
        caught.value
    )


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://shop.example/", "file:///etc/passwd", "gopher://shop.example/", "//shop.example/", "shop.example", ""),
        *("http://user@shop.example/", "http://user:secret@shop.example/", "http://:secret@shop.example/"),
        *("http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://127.1/"),
        *("http://017700000001/", "http://127.0.0.1./", "http://1.1.1.1.1/", "http://256.1.1.1/"),
        *("http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/"),
        *(
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::]/",
        ),
        *("http://[fe80::1%25eth0]/", "http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/"),
    ],
)
def test_addresses_written_to_slip_through_are_refused(url):
    with pytest.raises(NodeFailure) as caught:
        Guard().check_url(URL(url))

    assert caught.value.error.type is ErrorType.PERMANENT
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("host", ["0x7f000001", "2130706433", "0177.0.0.1", "127.1"])
async def test_the_resolver_refuses_numbers_in_disguise_too(host):
    with pytest.raises(NodeFailure):
        await Guard(resolve=answering("8.8.8.8")).addresses(host, 80)


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("files.internal", "files.internal", "10.0.0.5"),
        ("Files.Internal:80", "files.internal.", "10.0.0.5"),
        ("10.0.0.0/8", "anything.example", "10.0.0.5"),
        ("10.0.0.5", "anything.example", "::ffff:10.0.0.5"),
        ("10.0.0.5:80", "10.0.0.5", "10.0.0.5"),
        ("::1", "localhost", "::1"),
        ("[::1]:80", "::1", "::1"),
        ("[::1]", "localhost", "0:0:0:0:0:0:0:1"),
        ("fd12::/16", "anything.example", "fd12::7"),
    ],
)
async def test_what_the_operator_lists_is_allowed(entry, host, address):
    guard = Guard(NetworkPolicy(allow=(entry,)), answering(address))

    assert await guard.addresses(host, 80) == [ip_address(address)]


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("files.internal:81", "files.internal", "10.0.0.5"),
        ("files.internal", "evil-files.internal", "10.0.0.5"),
        ("10.0.0.0/16", "anything.example", "10.1.0.5"),
        ("10.0.0.5", "anything.example", "10.0.0.6"),
        ("10.0.0.5:81", "10.0.0.5", "10.0.0.5"),
    ],
)
async def test_what_the_operator_did_not_list_stays_closed(entry, host, address):
    guard = Guard(NetworkPolicy(allow=(entry,)), answering(address))

    with pytest.raises(NodeFailure):
        await guard.addresses(host, 80)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "::ffff:169.254.1.1", "64:ff9b::a9fe:a9fe"]
)
@pytest.mark.parametrize("entry", ["meta.internal", "169.254.0.0/16", "::/0", "0.0.0.0/0", "169.254.169.254"])
async def test_link_local_is_never_allowed_however_it_is_listed(entry, address):
    guard = Guard(NetworkPolicy(allow=(entry,)), answering(address))

    with pytest.raises(NodeFailure, match="never allowed"):
        await guard.addresses("meta.internal", 80)


@pytest.mark.parametrize("entry", ["10.0.0.1/8", "host:", ":80", "host:http", "", "[::1]x:y", "a/b"])
def test_an_entry_that_means_nothing_is_refused_when_the_policy_is_made(entry):
    with pytest.raises(ValueError, match="ROPEWALK_ALLOW_HOSTS"):
        NetworkPolicy(allow=(entry,))


@pytest.mark.parametrize("found", [(), ("not an address",)])
async def test_a_name_without_an_address_may_have_one_later(found):
    with pytest.raises(NodeFailure) as caught:
        await Guard(resolve=answering(*found)).addresses("shop.example", 80)

    assert caught.value.error.type is ErrorType.TRANSIENT


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
async def test_a_name_that_can_be_none_is_not_asked_for_again(host):
    with pytest.raises(NodeFailure) as caught:
        await Guard().addresses(host, 80)

    assert caught.value.error.type is ErrorType.PERMANENT


@pytest.mark.parametrize(
    ("allow", "host"), [((), "127.0.0.1"), (("0.0.0.0/0",), "169.254.169.254"), (("127.0.0.1",), "shop.example")]
)
def test_the_socket_gate_knows_only_vetted_addresses(allow, host):
    guard = Guard(NetworkPolicy(allow))
    info = (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, 80))

    with pytest.raises(NodeFailure):
        guard.open_socket(info)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "shop.example"])
async def test_the_shared_session_itself_cannot_be_led_inside(site, host):
    site.answer("/", text="inside")
    facilities = Facilities(resolve=answering("127.0.0.1"))

    with pytest.raises(NodeFailure):
        await facilities.http.get(URL(site.url).with_host(host))

    assert site.requests == []
    await facilities.close()


async def test_the_shared_session_cannot_be_redirected_inside(site, other_site):
    site.redirect("/", f"{other_site.url}/")
    facilities = Facilities(NetworkPolicy(allow=(URL(site.url).authority,)))

    with pytest.raises(NodeFailure):
        await facilities.http.get(site.url)

    assert other_site.requests == []
    await facilities.close()


async def test_a_connection_goes_to_the_address_that_was_vetted(site):
    site.answer("/", text="hello")
    asked = []

    async def rebinding(host, port):
        """Harmless at first, somewhere else from the second question on."""
        asked.append(host)
        return ["127.0.0.1" if len(asked) == 1 else "10.0.0.1"]

    facilities = Facilities(NetworkPolicy(allow=("127.0.0.1",)), resolve=rebinding)
    async with facilities.http.get(URL(site.url).with_host("shop.example")) as response:
        text = await response.text()

    assert (text, asked) == ("hello", ["shop.example"])
    await facilities.close()
