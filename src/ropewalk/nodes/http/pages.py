"""One call after the other until there are no more pages, and never for ever.

Where the next page is comes from a `Link` header, from an address or a cursor in the body, or from counting. The pages
end where none is next, where one is empty, short or the last by the total, and at the limits. A cursor or an address
that comes again, and a page that is the one before, end in a failure: such a server would be asked in circles.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, field_validator, model_validator
from yarl import URL

from ropewalk.core.canonical import content_hash
from ropewalk.core.duration import MILLISECOND, MINUTE, SECOND, parse_duration
from ropewalk.core.errors import ErrorType
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.http.answers import Answer
from ropewalk.nodes.http.call import Call, Request, moved, origin_of
from ropewalk.nodes.http.payloads import json_body, written
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.paths import MISSING, FieldPath, find, getter, put, steps_of
from ropewalk.nodes.values import LARGEST_OUTPUT

JSON: TypeAlias = Any

MOST_PAGES = 10_000
MOST_ITEMS = 100_000
LONGEST_CURSOR = 4_096
MOST_PAUSES = 3
LONGEST_PAUSE = 60.0
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+(?:\s*=\s*(?:"[^"]*"|[^\s",;]*))?)*)', re.ASCII)
_PARAMETER = re.compile(r';\s*([\w*-]+)(?:\s*=\s*(?:"([^"]*)"|([^\s",;]*)))?', re.ASCII)


class Pagination(Inputs):
    by: Literal["link", "url", "cursor", "page", "offset"] = Field(
        description=(
            "Where the next page is: in the `Link` header, in an address or a cursor in the body, or by counting pages"
            " or items."
        ),
        examples=["cursor"],
    )
    items: FieldPath | None = Field(
        None, description="Where in the body the list of items is; by default the body is the list.", examples=["data"]
    )
    path: FieldPath | None = Field(
        None, description="Where in the body the next address or cursor is.", examples=["meta.nextCursor"]
    )
    parameter: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="What the cursor, page or offset is called in the query; by default cursor, page or offset.",
        examples=["starting_after"],
    )
    place: Literal["query", "body"] = Field(
        "query", description="Where the cursor, page or offset is sent; in a JSON body at a path.", examples=["body"]
    )
    start: int | None = Field(
        None, ge=0, le=2**31, description="The first page (by default 1) or offset (0).", examples=[0]
    )
    page_size: int | None = Field(
        None,
        ge=1,
        le=MOST_ITEMS,
        description="How many items a full page has: one with fewer is the last.",
        examples=[50],
    )
    total: FieldPath | None = Field(
        None, description="Where in the body it says how many items there are in all.", examples=["meta.total"]
    )
    max_pages: int = Field(100, ge=1, le=MOST_PAGES, description="How many pages are asked for at most.", examples=[10])
    max_items: int = Field(10_000, ge=1, le=MOST_ITEMS, description="How many items are handed on.", examples=[500])
    delay: float | str = Field(
        0, description="How long to wait between two pages: like 500ms, or a number of seconds.", examples=["200ms"]
    )

    @field_validator("delay", mode="before")
    @classmethod
    def _sensible(cls, delay: JSON) -> JSON:
        if delay != 0:
            parse_duration(delay, MILLISECOND, MINUTE)
        return delay

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.by in ("url", "cursor") and self.path is None:
            raise ValueError(f"pagination by {self.by} needs the path of the next one")
        if self.by == "offset" and self.page_size is None:
            raise ValueError("pagination by offset needs pageSize")
        if self.place == "body" and self.by in ("cursor", "page", "offset"):
            steps_of(self.parameter or self.by)
        return self


PAGINATION_OUTPUT = {
    "items": {"type": "array", "description": "With `pagination`: the items of all pages."},
    "pages": {"type": "integer", "description": "With `pagination`: how many pages were read."},
    "more": {"type": "boolean", "description": "With `pagination`: whether a limit ended it before the pages did."},
}

Send = Callable[[Call], Awaitable[Answer]]


async def read_pages(call: Call, plan: Pagination, context: NodeContext, send: Send) -> dict[str, JSON]:
    """The items of all pages, within the limits."""
    return await _Walk(plan, context, send).through(call)


class _Walk:
    """The pages of one call, and what was met on the way."""

    def __init__(self, plan: Pagination, context: NodeContext, send: Send) -> None:
        self._plan = plan
        self._context = context
        self._send = send
        self._items: list[JSON] = []
        self._pages = 0
        self._size = 0
        self._met: set[str] = set()
        self._last = ""
        self._pause = parse_duration(plan.delay) / SECOND if plan.delay else 0.0

    async def through(self, call: Call) -> dict[str, JSON]:
        first = counted(call, self._plan, self._start) if self._plan.by in ("page", "offset") else call
        following: Call | None = first
        while following is not None and not self._is_full:
            if self._pages and self._pause:
                await asyncio.sleep(self._pause)
            answer = await self._patiently(following)
            items = self._taken(answer)
            following = self._following(call, following, answer, items)
        more = following is not None or len(self._items) > self._plan.max_items
        kept = self._items[: self._plan.max_items]
        return {"items": kept, "pages": self._pages, "status": answer.status, "more": more}

    @property
    def _is_full(self) -> bool:
        return self._pages >= self._plan.max_pages or len(self._items) >= self._plan.max_items

    @property
    def _start(self) -> int:
        default = 1 if self._plan.by == "page" else 0
        return default if self._plan.start is None else self._plan.start

    async def _patiently(self, call: Call) -> Answer:
        """The answer; a server that asks for a short pause gets it, and the pages before are not asked for again."""
        for _ in range(MOST_PAUSES):
            try:
                return await self._send(call)
            except NodeFailure as failure:
                wish = failure.error.retry_after
                if failure.error.type is not ErrorType.TRANSIENT or wish is None or wish > self._patience:
                    raise
                await asyncio.sleep(wish)
        return await self._send(call)

    @property
    def _patience(self) -> float:
        """The longest pause that still leaves half of the attempt's time."""
        deadline = self._context.deadline
        left = LONGEST_PAUSE if deadline is None else (deadline - self._context.now) / SECOND / 2
        return min(LONGEST_PAUSE, left)

    def _taken(self, answer: Answer) -> list[JSON]:
        items = items_of(answer.body, self._plan.items)
        self._pages += 1
        self._size += answer.size
        if self._size > LARGEST_OUTPUT:
            raise NodeFailure.permanent(f"the pages have more than {LARGEST_OUTPUT} bytes in all; ask for fewer")
        self._items += items
        return items

    def _following(self, call: Call, at: Call, answer: Answer, items: list[JSON]) -> Call | None:
        """The call for the next page; None after the last."""
        plan = self._plan
        if not items or (plan.page_size is not None and len(items) < plan.page_size) or self._has_all(answer):
            return None
        match plan.by:
            case "link":
                return self._at_address(at, next_link(answer.headers.get("link", "")))
            case "url":
                return self._at_address(at, _found_text(answer.body, plan.path))
            case "cursor":
                cursor = _found_text(answer.body, plan.path)
                return None if cursor is None else with_value(call, plan, self._new(cursor))
            case "page":
                self._require_another(items)
                return counted(call, plan, self._start + self._pages)
            case "offset":
                self._require_another(items)
                return counted(call, plan, self._start + len(self._items))

    def _has_all(self, answer: Answer) -> bool:
        if self._plan.total is None:
            return False
        total = getter(self._plan.total)(answer.body)
        return isinstance(total, int) and not isinstance(total, bool) and len(self._items) >= total

    def _at_address(self, at: Call, address: str | None) -> Call | None:
        if address is None:
            return None
        try:
            url = at.request.url.join(URL(self._new(address))).with_fragment(None)
        except ValueError:
            raise NodeFailure.permanent("the next page is at what is no address") from None
        is_same = origin_of(url) == origin_of(at.request.url)
        request, authentication = moved(at.request, url), at.authentication if is_same else None
        return msgspec.structs.replace(at, request=request, authentication=authentication)

    def _new(self, mark: str) -> str:
        """The cursor or address, which must not have been there before."""
        if len(mark) > LONGEST_CURSOR:
            raise NodeFailure.permanent("the cursor or address of the next page is too long")
        if mark in self._met:
            raise NodeFailure.permanent(f"page {self._pages} leads back to one before it: the pages go in a circle")
        self._met.add(mark)
        return mark

    def _require_another(self, items: list[JSON]) -> None:
        seen = content_hash(items)
        if seen == self._last:
            name = self._plan.parameter or self._plan.by
            raise NodeFailure.permanent(f"page {self._pages} is the one before it: the server does not heed {name!r}")
        self._last = seen


def items_of(body: JSON, path: str | None) -> list[JSON]:
    """The items of a page; none where the body says nothing."""
    found = body if path is None else find(body, steps_of(path))
    if found is MISSING or found is None:
        return []
    if not isinstance(found, list):
        place = "the body of a page" if path is None else f"{path} of a page"
        raise NodeFailure.permanent(f"{place} is no list; name the list with pagination.items")
    return found


def next_link(header: str) -> str | None:
    """The address that a `Link` header calls the next, if it names one."""
    for found in _LINK.finditer(header):
        for name, quoted, plain in _PARAMETER.findall(found[2]):
            if name.lower() == "rel" and "next" in (quoted or plain).lower().split():
                return found[1]
    return None


def _found_text(body: JSON, path: str | None) -> str | None:
    """The cursor or address at a path; None where there is none, or an empty one."""
    found = None if path is None else getter(path)(body)
    if found is None or found is False or found == "":
        return None
    if not isinstance(found, str | int):
        raise NodeFailure.permanent(f"{path} of a page is no text")
    return written(found)


def counted(call: Call, plan: Pagination, count: int) -> Call:
    """The call for the page with this number, or from this item on."""
    return with_value(call, plan, count)


def with_value(call: Call, plan: Pagination, value: str | int) -> Call:
    """The call with the cursor, page or offset where the server looks for it."""
    name = plan.parameter or plan.by
    request = call.request
    if plan.place == "query":
        url = request.url.update_query({name: str(value)})
        return msgspec.structs.replace(call, request=Request(request.method, url, request.headers, request.body))
    content = {} if request.body is None else msgspec.json.decode(request.body.whole())
    try:
        put(content, name, value)
    except ValueError as error:
        raise NodeFailure.permanent(f"with.pagination.parameter: {error}") from None
    body = json_body(content)
    return msgspec.structs.replace(call, request=Request(request.method, request.url, request.headers, body))
