"""Ways to have a worker call what it must not: none of them gets there.

Each address is tried as what an author writes, as where a server redirects to, and as where a server says that the next
page is; a server listens on loopback, and what reaches it has escaped.
"""

import json

import pytest
from yarl import URL

from ropewalk.nodes.base import Facilities, NodeFailure
from ropewalk.nodes.network import NetworkPolicy

from .conftest import context_of

# PORT is that of the server which listens.
LOOPBACK = [
    *("http://127.0.0.1:PORT/", "http://localhost:PORT/", "http://LOCALHOST:PORT/", "http://localhost.:PORT/"),
    *("http://127.0.0.2:PORT/", "http://127.1:PORT/", "http://127.0.1:PORT/", "http://127.255.255.255:PORT/"),
    *("http://0:PORT/", "http://0.0.0.0:PORT/", "http://00000:PORT/", "http://0.0:PORT/", "http://0x0:PORT/"),
    *("http://2130706433:PORT/", "http://0x7f000001:PORT/", "http://0X7F000001:PORT/", "http://017700000001:PORT/"),
    *("http://0x7f.0x0.0x0.0x1:PORT/", "http://0x7f.1:PORT/", "http://0177.0.0.1:PORT/", "http://0177.1:PORT/"),
    *("http://127.0.0.01:PORT/", "http://127.0.0.0x1:PORT/", "http://00127.0.0.1:PORT/", "http://127.0.0.1.:PORT/"),
    *(
        "http://4294967297:PORT/",
        "http://127.0.0.1%00:PORT/",
        "http://127.0.0.1%2e:PORT/",
        "http://%31%32%37.0.0.1:PORT/",
    ),
    *("http://①②⑦.⓪.⓪.①:PORT/", "http://127。0。0。1:PORT/", "http://127．0．0．1:PORT/", "http://１２７.0.0.1:PORT/"),
    *(
        "http://127｡0｡0｡1:PORT/",
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/",
        "http://loc\u00adalhost:PORT/",
        "http://lo\u200bcalhost:PORT/",
    ),
    *("http://[::1]:PORT/", "http://[0:0:0:0:0:0:0:1]:PORT/", "http://[::]:PORT/", "http://[0::0]:PORT/"),
    *("http://[::ffff:127.0.0.1]:PORT/", "http://[::ffff:7f00:1]:PORT/", "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/"),
    *("http://[::127.0.0.1]:PORT/", "http://[::7f00:1]:PORT/", "http://[64:ff9b::127.0.0.1]:PORT/"),
    *("http://[64:ff9b::7f00:1]:PORT/", "http://[2002:7f00:1::]:PORT/", "http://[2002:7f00:0001::1]:PORT/"),
    *("http://[2001:0:7f00:1::]:PORT/", "http://[2001:0:808:808::80ff:fffe]:PORT/", "http://[fe80::1]:PORT/"),
    *(
        "http://[fe80::1%25lo]:PORT/",
        "http://[::1%25lo]:PORT/",
        "http://[::ffff:0.0.0.0]:PORT/",
        "http://[64:ff9b:1::1]:PORT/",
    ),
    *("http://ip6-localhost:PORT/", "http://ip6-loopback:PORT/", "http://localhost.localdomain:PORT/"),
]
PRIVATE = [
    *(
        "http://10.0.0.1/",
        "http://10.255.255.255/",
        "http://172.16.0.1/",
        "http://172.31.255.254/",
        "http://192.168.0.1/",
    ),
    *("http://100.64.0.1/", "http://100.127.255.254/", "http://192.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/"),
    *(
        "http://198.51.100.7/",
        "http://203.0.113.9/",
        "http://224.0.0.1/",
        "http://239.255.255.250/",
        "http://240.0.0.1/",
    ),
    *("http://255.255.255.255/", "http://192.88.99.1/", "http://0.1.2.3/", "http://167772161/", "http://0xa000001/"),
    *("http://012.0.0.1/", "http://3232235521/", "http://0xc0a80001/", "http://0300.0250.0.1/", "http://192.168.1/"),
    *("http://[fc00::1]/", "http://[fd12:3456::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/"),
    *(
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:192.168.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[2002:a00:1::]/",
    ),
    *("http://[100::1]/", "http://[3fff::1]/", "http://[5f00::1]/", "http://[2001:10::1]/", "http://[2001:2::1]/"),
]
METADATA = [
    *(
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254./",
        "http://2852039166/",
        "http://0xa9fea9fe/",
    ),
    *(
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
    ),
    *(
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[fd00:ec2::254]/",
        "http://[fd20:ce::254]/",
    ),
    *("http://100.100.100.200/", "http://192.0.0.192/", "http://169.254.170.2/v2/credentials", "http://169.254.0.1/"),
    *("http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/", "http://169。254。169。254/"),
]
SCHEMES = [
    *("file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/_GET"),
    *("dict://127.0.0.1:PORT/", "ldap://127.0.0.1:PORT/", "data:text/plain,hello", "javascript:alert(1)"),
    *(
        "ws://127.0.0.1:PORT/",
        "unix:///var/run/docker.sock",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
        "jar:http://127.0.0.1!/",
    ),
    *(
        "netdoc:///etc/passwd",
        "tftp://127.0.0.1:PORT/",
        "sftp://127.0.0.1:PORT/",
        "http:127.0.0.1:PORT",
        "http:/127.0.0.1:PORT/",
    ),
]
CONFUSING = [
    *("http://shop.example@127.0.0.1:PORT/", "http://127.0.0.1:PORT@127.0.0.1:PORT/", "http://:@127.0.0.1:PORT/"),
    *(
        "http://shop.example:80@127.0.0.1:PORT/",
        "http://127.0.0.1:PORT#@shop.example/",
        "http://127.0.0.1:PORT?@shop.example/",
    ),
    *("http://127.0.0.1:PORT\\@shop.example/", "http://shop.example\\@127.0.0.1:PORT/", "http:///127.0.0.1:PORT/"),
    *("http://127.0.0.1:PORT:80/", "http://[127.0.0.1]:PORT/", "http://127.0.0.1 :PORT/", "http://127.0.0.1\t:PORT/"),
    *("http://127.0.0.1:0/", "http://127.0.0.1:99999/", "http://127.0.0.1:-1/", "http://[::1/", "http://"),
    *("//127.0.0.1:PORT/", "///127.0.0.1:PORT/", "\\\\127.0.0.1:PORT/", "http://127.0.0.1:PORT\r\nHost: shop.example/"),
]
# Names whose owner answers with an address inside, alone or beside one outside.
ANSWERS = {
    "rebound.example": ["127.0.0.1"],
    "mixed.example": ["8.8.8.8", "127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "six.example": ["::1"],
    "meta.example": ["169.254.169.254"],
    "nat64.example": ["64:ff9b::a9fe:a9fe"],
    "lan.example": ["192.168.0.10"],
    "metadata.google.internal": ["169.254.169.254"],
    "any.example": ["0.0.0.0"],
    "localhost.example": ["127.0.0.53"],
}
NAMES = [f"http://{name}:PORT/" for name in ANSWERS]
CORPUS = [*LOOPBACK, *PRIVATE, *METADATA, *SCHEMES, *CONFUSING, *NAMES]


async def resolve(host, port):
    """As the names above answer; any other name is this machine."""
    return ANSWERS.get(host, ["127.0.0.1"])


def test_the_corpus_is_large_and_has_no_case_twice():
    assert len(set(CORPUS)) == len(CORPUS) >= 120


@pytest.fixture
async def outside(registry):
    """Calls with a policy that allows the address of `allowed` alone, and tells which sockets were opened."""
    opened = []

    async def call(inputs, allowed=()):
        facilities = Facilities(NetworkPolicy(allow=allowed), resolve=resolve)
        gate = facilities.guard.open_socket
        facilities.guard.open_socket = lambda info: opened.append(gate(info)) or opened[-1]
        node_type = registry.get("http.request")
        try:
            with pytest.raises(NodeFailure):
                await node_type.run(node_type.accept({"timeout": "2s", **inputs}), context_of(facilities))
        finally:
            await facilities.close()
        return len(opened)

    return call


def at(address, site):
    return address.replace("PORT", str(URL(site.url).port))


@pytest.mark.parametrize("address", CORPUS)
async def test_no_address_an_author_writes_leads_inside(site, outside, address):
    site.answer("/", text="escaped")

    sockets = await outside({"url": at(address, site)})

    assert (sockets, site.requests) == (0, [])


@pytest.mark.parametrize("address", [each for each in CORPUS if each.startswith("http://") and each.isprintable()])
async def test_no_redirect_and_no_next_page_leads_inside(site, other_site, outside, address):
    """`site` may be called, `other_site` listens inside."""
    target, allowed = at(address, other_site), (URL(site.url).authority,)
    other_site.answer("/", text="escaped")
    site.redirect("/away", target.encode().decode("latin-1") if not target.isascii() else target)
    site.answer("/pages", text=json.dumps({"items": [1], "next": target}), content_type="application/json")

    await outside({"url": f"{site.url}/away"}, allowed)
    plan = {"by": "url", "path": "next", "items": "items"}
    await outside({"url": f"{site.url}/pages", "pagination": plan}, allowed)

    assert other_site.requests == []
