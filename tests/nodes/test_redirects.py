"""Where `http.request` lets itself be led, and where not."""

import pytest
from yarl import URL

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import Facilities, NodeFailure
from ropewalk.nodes.network import NetworkPolicy

from .conftest import context_of


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
    ],
)
async def test_redirects_are_followed_as_browsers_do(site, request_, status, method, then):
    site.redirect("/old", "/new", status)
    site.answer("/new", text="here")

    output = await request_("/old", method=method, body={"a": 1} if method in ("POST", "PUT") else None)

    assert output["status"] == 200
    assert site.asked == [(method, "/old"), (then, "/new")]
    assert site.body == ('{"a":1}' if then in ("POST", "PUT") else "")
    assert ("content-type" in site.headers) == (then in ("POST", "PUT"))


async def test_redirects_can_be_left_alone(site, request_):
    site.redirect("/", "/new")

    output = await request_(followRedirects=False)

    assert (output["status"], output["headers"]["location"]) == (302, "/new")


async def test_a_circle_of_redirects_ends(site, failure):
    site.redirect("/", "/")

    error = await failure(maxRedirects=3)

    assert (error.type, len(site.requests)) == (ErrorType.PERMANENT, 4)


CREDENTIALS = {"Authorization": "Bearer s3cret", "Cookie": "a=1", "X-Api-Key": "s3cret", "X-Custom": "s3cret"}


async def test_credentials_do_not_go_along_to_another_origin(site, other_site, request_):
    site.redirect("/", f"{other_site.url}/back", 307)
    other_site.redirect("/back", f"{site.url}/end", 307)
    site.answer("/end")

    await request_(headers=CREDENTIALS | {"Accept": "text/plain"})

    assert other_site.headers["accept"] == site.headers["accept"] == "text/plain"
    for seen in (other_site.headers, site.headers):
        assert not {name.lower() for name in CREDENTIALS} & seen.keys()


async def test_credentials_go_along_within_one_origin(site, request_):
    site.redirect("/", "/end", 307)
    site.answer("/end")

    await request_(headers=CREDENTIALS)

    assert site.headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    "location",
    [
        *("http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/latest", "http://2130706433/", "//0x7f.1/"),
        *("file:///etc/passwd", "ftp://127.0.0.1/", "http://user:pass@127.0.0.1/", "http://127.0.0.2/", "http://["),
    ],
)
async def test_a_redirect_inside_is_refused_before_anything_is_sent(site, failure, location):
    site.redirect("/", location)

    error = await failure()

    assert error.type is ErrorType.PERMANENT
    assert len(site.requests) == 1


async def test_a_name_that_answers_with_a_private_address_is_refused(registry, site):
    async def resolve(host, port):
        return ["127.0.0.1"]

    facilities = Facilities(resolve=resolve)
    node_type = registry.get("http.request")
    parameters = node_type.accept({"url": str(URL(site.url).with_host("shop.example"))})

    with pytest.raises(NodeFailure) as caught:
        await node_type.run(parameters, context_of(facilities))

    assert caught.value.error.type is ErrorType.PERMANENT
    assert "ROPEWALK_ALLOW_HOSTS" in caught.value.error.message
    assert site.requests == []
    await facilities.close()


async def test_a_host_allowed_by_name_is_reached(registry, site):
    async def resolve(host, port):
        return ["127.0.0.1"]

    site.answer("/", text="hello")
    facilities = Facilities(NetworkPolicy(allow=("shop.internal",)), resolve=resolve)
    node_type = registry.get("http.request")
    parameters = node_type.accept({"url": str(URL(site.url).with_host("shop.internal"))})

    output = await node_type.run(parameters, context_of(facilities))

    assert (output.value["body"], site.headers["host"].split(":")[0]) == ("hello", "shop.internal")
    await facilities.close()
