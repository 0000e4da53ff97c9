"""`http.request` that goes on to the next page, against servers that count right, wrong and for ever."""

import asyncio
import json

import pytest
from aiohttp import web
from yarl import URL

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.http.pages import next_link

ITEMS = [{"id": number} for number in range(7)]


def by_page(request):
    """Three items a page, counted from 1."""
    page = int(request.query["page"])
    return web.json_response(ITEMS[3 * (page - 1) : 3 * page])


def by_offset(request):
    start = int(request.query["offset"])
    return web.json_response({"data": {"rows": ITEMS[start : start + 3]}, "total": len(ITEMS)})


def by_cursor(request):
    start = int(request.query.get("after", "0"))
    following = start + 3 if start + 3 < len(ITEMS) else None
    return web.json_response({"items": ITEMS[start : start + 3], "next": following})


def by_link(request):
    start = int(request.query.get("from", "0"))
    links = f'</?from={start + 3}>; rel="next last", </?from=0>; rel=first' if start + 3 < len(ITEMS) else ""
    return web.json_response(ITEMS[start : start + 3], headers={"Link": links})


def by_url(request):
    start = int(request.query.get("from", "0"))
    following = str(request.url.update_query({"from": start + 3})) if start + 3 < len(ITEMS) else ""
    return web.json_response({"items": ITEMS[start : start + 3], "next": following})


@pytest.fixture
def paged(site):
    """Has the site answer with what a function makes of a request."""

    def serve(answer):
        async def handle(request):
            return answer(request)

        site.answers["/"] = handle

    return serve


@pytest.mark.parametrize(
    ("server", "pagination", "pages"),
    [
        (by_page, {"by": "page"}, 4),
        (by_page, {"by": "page", "pageSize": 3}, 3),
        (by_offset, {"by": "offset", "pageSize": 3, "items": "data.rows"}, 3),
        (by_offset, {"by": "offset", "pageSize": 1, "items": "data.rows", "total": "total"}, 3),
        (by_cursor, {"by": "cursor", "path": "next", "parameter": "after", "items": "items"}, 3),
        (by_link, {"by": "link"}, 3),
        (by_url, {"by": "url", "path": "next", "items": "items"}, 3),
    ],
    ids=["page", "short page", "offset", "total", "cursor", "link", "url"],
)
async def test_the_items_of_all_pages_come_in_order(site, request_, paged, server, pagination, pages):
    paged(server)

    output = await request_(pagination=pagination)

    assert output == {"items": ITEMS, "pages": pages, "status": 200, "more": False}
    assert len(site.requests) == pages


async def test_a_cursor_can_be_sent_in_the_body(site, request_):
    asked = []

    async def search(request):
        asked.append(json.loads(await request.text()))
        return web.json_response({"items": [len(asked)], "cursor": "c2" if len(asked) == 1 else None})

    site.answers["/"] = search

    plan = {"by": "cursor", "path": "cursor", "place": "body", "parameter": "page.after", "items": "items"}
    output = await request_(method="POST", body={"query": "x"}, pagination=plan)

    assert output["items"] == [1, 2]
    assert asked == [{"query": "x"}, {"query": "x", "page": {"after": "c2"}}]


@pytest.mark.parametrize(
    ("limits", "count", "asked"), [({"maxPages": 2}, 6, 2), ({"maxItems": 4}, 4, 2), ({"maxItems": 3}, 3, 1)]
)
async def test_a_limit_ends_the_pages_and_says_that_there_are_more(site, request_, paged, limits, count, asked):
    paged(by_page)

    output = await request_(pagination={"by": "page", **limits})

    assert (output["items"], output["more"], len(site.requests)) == (ITEMS[:count], True, asked)


async def test_pages_that_never_end_are_asked_for_up_to_the_limit(site, request_):
    async def endless(request):
        return web.json_response({"items": [len(site.requests)], "next": f"c{len(site.requests)}"})

    site.answers["/"] = endless

    plan = {"by": "cursor", "path": "next", "items": "items", "maxPages": 20}
    output = await request_(pagination=plan)

    assert (output["pages"], output["more"]) == (20, True)


@pytest.mark.parametrize(
    ("body", "plan", "said"),
    [
        ({"items": [1], "next": "same"}, {"by": "cursor", "path": "next"}, "the pages go in a circle"),
        ({"items": [1], "next": "/?at=1"}, {"by": "url", "path": "next"}, "the pages go in a circle"),
        ({"items": [1]}, {"by": "page"}, "the server does not heed 'page'"),
        ({"items": [1]}, {"by": "offset", "pageSize": 1, "parameter": "skip"}, "the server does not heed 'skip'"),
        ({"items": {"a": 1}}, {"by": "page"}, "items of a page is no list"),
        ({"items": [1], "next": {"a": 1}}, {"by": "cursor", "path": "next"}, "next of a page is no text"),
        ({"items": [1], "next": "x" * 5000}, {"by": "cursor", "path": "next"}, "is too long"),
        ({"items": [1], "next": "http://["}, {"by": "url", "path": "next"}, "at what is no address"),
        ({"items": [1], "next": "file:///etc/passwd"}, {"by": "url", "path": "next"}, "only http and https"),
        ({"items": [1], "next": "http://169.254.169.254/"}, {"by": "url", "path": "next"}, "never allowed"),
    ],
)
async def test_a_server_that_counts_wrong_ends_in_a_permanent_failure(site, failure, body, plan, said):
    site.answer("/", text=json.dumps(body), content_type="application/json")

    error = await failure(pagination={"items": "items", **plan})

    assert error.type is ErrorType.PERMANENT
    assert said in error.message
    assert len(site.requests) <= 2


async def test_no_credential_goes_along_to_a_next_page_of_another_origin(site, other_site, request_):
    site.answer("/", text=json.dumps({"items": [1], "next": f"{other_site.url}/more"}), content_type="application/json")
    other_site.answer("/more", text='{"items": [2]}', content_type="application/json")

    plan = {"by": "url", "path": "next", "items": "items"}
    output = await request_(headers={"X-Api-Key": "s3cret"}, pagination=plan)

    assert output["items"] == [1, 2]
    assert "x-api-key" not in other_site.headers


async def test_a_page_that_asks_for_a_short_pause_is_asked_for_again_alone(site, request_, paged):
    paged(by_page)
    answer = site.answers["/"]

    async def busy(request):
        return (
            web.Response(status=429, headers={"Retry-After": "0"}) if len(site.requests) == 2 else await answer(request)
        )

    site.answers["/"] = busy

    output = await request_(pagination={"by": "page", "pageSize": 3})

    assert output["items"] == ITEMS
    assert len(site.requests) == 4


@pytest.mark.parametrize("wish", ["3600", None])
async def test_a_page_that_fails_otherwise_fails_the_node(site, failure, paged, wish):
    paged(by_page)
    answer = site.answers["/"]

    async def broken(request):
        headers = {} if wish is None else {"Retry-After": wish}
        return web.Response(status=503, headers=headers) if len(site.requests) == 2 else await answer(request)

    site.answers["/"] = broken

    error = await failure(pagination={"by": "page"})

    assert (error.type, error.status, len(site.requests)) == (ErrorType.TRANSIENT, 503, 2)


async def test_there_is_a_pause_between_pages_if_the_author_wants_one(site, request_, paged):
    paged(by_page)
    loop = asyncio.get_running_loop()
    begun = loop.time()

    await request_(pagination={"by": "page", "delay": "20ms", "pageSize": 3})

    assert loop.time() - begun >= 0.04


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"by": "cursor"}, "with.pagination: pagination by cursor needs the path"),
        ({"by": "offset"}, "with.pagination: pagination by offset needs pageSize"),
        ({"by": "guess"}, "with.pagination.by: "),
        ({"by": "page", "maxPages": 0}, "with.pagination.maxPages: "),
        ({"by": "page", "delay": "2h"}, "with.pagination.delay: must be from"),
        ({"by": "url", "path": "a..b"}, "with.pagination.path: is no path"),
        ({"by": "page", "place": "body", "parameter": "a..b"}, "with.pagination: is no path"),
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused(run, plan, said):
    with pytest.raises(NodeFailure) as caught:
        await run("http.request", {"url": "http://a.example", "pagination": plan})

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith(said)


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ('<https://a.example/?page=2>; rel="next"', "https://a.example/?page=2"),
        ('</a>; rel=prev, </b>; title="x"; rel=next', "/b"),
        ('</a,b>; rel="last next"', "/a,b"),
        ('</a>; rel="nextish"', None),
        ("<", None),
        ("", None),
        ('</a>; title="; rel=next"', None),
    ],
)
def test_the_next_of_a_link_header_is_found(header, address):
    assert next_link(header) == address


async def test_a_link_header_that_is_made_to_take_long_does_not(site):
    header = "<a>" + "; x=y" * 5_000 + "<" * 5_000

    assert next_link(header) is None
    assert URL(site.url).host
