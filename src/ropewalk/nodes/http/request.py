"""`http.request`: one request, its redirects and pages, and an honest word about what went wrong."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator
from yarl import URL

from ropewalk.core.duration import HOUR, MILLISECOND, SECOND, parse_duration
from ropewalk.nodes.base import About, Facilities, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.body import ResponseType
from ropewalk.nodes.http.authentication import TYPES, authentication_of
from ropewalk.nodes.http.call import DEFAULT_TIMEOUT, MOST_REDIRECTS, Authentication, Call, Request, carry_out
from ropewalk.nodes.http.headers import check_header
from ropewalk.nodes.http.pages import PAGINATION_OUTPUT, Pagination, read_pages
from ropewalk.nodes.http.payloads import (
    ArrayFormat,
    Body,
    Scalar,
    attached,
    file_body,
    form_body,
    json_body,
    multipart_body,
    pairs_of,
    required_file,
    text_body,
)
from ropewalk.nodes.http.statuses import Statuses
from ropewalk.nodes.inputs import Inputs

JSON: TypeAlias = Any

LONGEST_URL = 8_192
MOST_HEADERS = 100
BODIES = ("body", "text", "form", "multipart", "file")
PartValue: TypeAlias = Scalar | dict[str, Any]
FormValue: TypeAlias = Scalar | list[Scalar | None] | dict[str, Scalar | None] | None


class HttpRequest(NodeType):
    name = "http.request"
    summary = "Sends an HTTP request and hands on the answer's status, headers and body, or the items of all its pages."
    has_rules = True
    credentials = MappingProxyType({"": TYPES})
    about = About(
        title="HTTP request",
        category="reach",
        icon="globe",
        keywords=("api", "rest", "url", "get", "post", "fetch", "web", "curl", "pagination", "upload", "download"),
        output={
            "type": "object",
            "properties": {
                "status": {"type": "integer", "description": "The status of the answer."},
                "headers": {"type": "object", "description": "Its headers, by name in small letters."},
                "body": {"description": "Its body, read as `responseType` says."},
                **PAGINATION_OUTPUT,
            },
        },
    )

    class Parameters(Inputs):
        method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = Field(
            "GET", description="The method.", examples=["POST"]
        )
        url: str = Field(
            min_length=1, max_length=LONGEST_URL, description="The address.", examples=["https://shop.example/orders"]
        )
        headers: dict[str, str] = Field(
            {}, max_length=MOST_HEADERS, description="Headers by name.", examples=[{"Accept-Language": "de"}]
        )
        query: dict[str, Scalar | list[Scalar | None] | None] = Field(
            {}, description="What is added to the address behind `?`.", examples=[{"page": 2, "tag": ["a", "b"]}]
        )
        array_format: ArrayFormat = Field(
            "repeat",
            description="How lists are written in the query and in `form`: `tag=a&tag=b`, `tag[]=a` or `tag=a,b`.",
            examples=["comma"],
        )
        body: JSON = Field(None, description="Sent as JSON.", examples=[{"orderId": "{{ input.orderId }}"}])
        text: str | None = Field(None, description="Sent as plain text.", examples=["hello"])
        form: dict[str, Scalar | list[Scalar | None] | dict[str, FormValue] | None] | None = Field(
            None,
            description="Sent as a form of a web page is; a field of an object as `object[field]`.",
            examples=[{"amount": 500, "metadata": {"order": "o-17"}}],
        )
        multipart: dict[str, PartValue | list[PartValue | None] | None] | None = Field(
            None,
            description="Sent as a form in parts; the value of a part may be a file.",
            examples=[{"title": "Invoice", "scan": "{{ input.scan }}"}],
        )
        file: dict[str, JSON] | None = Field(
            None, description="A file that is sent as it is.", examples=["{{ nodes.report.output.body }}"]
        )
        timeout: float | str = Field(
            DEFAULT_TIMEOUT,
            description="For the whole request, each page of it: like 30s, or a number of seconds.",
            examples=["30s"],
        )
        follow_redirects: bool = Field(
            True, description="Whether an answer that leads elsewhere is followed.", examples=[False]
        )
        max_redirects: int = Field(MOST_REDIRECTS, ge=0, le=20, description="How often at most.", examples=[1])
        expect_status: Statuses | None = Field(
            None,
            description="The only statuses that count as success: like 404, 2xx or 200-299, or several.",
            examples=[["2xx", 404]],
        )
        response_type: ResponseType = Field(
            "auto",
            description="What the body is read as, by default what the answer says it is; `file` keeps it as a file.",
            examples=["text"],
        )
        pagination: Pagination | None = Field(
            None,
            description="How to go on to the next page; then the items of all pages are handed on.",
            examples=[{"by": "link"}],
        )

        @field_validator("timeout", mode="before")
        @classmethod
        def _sensible(cls, timeout: JSON) -> JSON:
            parse_duration(timeout, MILLISECOND, HOUR)
            return timeout

        @field_validator("headers")
        @classmethod
        def _clean(cls, headers: dict[str, str]) -> dict[str, str]:
            for name, value in headers.items():
                check_header(name, value)
            return headers

        @model_validator(mode="after")
        def _one_body(self) -> Self:
            given = [name for name in BODIES if name in self.model_fields_set and getattr(self, name) is not None]
            if len(given) > 1:
                raise ValueError(f"give at most one of {', '.join(BODIES[:-1])} and {BODIES[-1]}")
            if self.pagination is not None and self.response_type == "file":
                raise ValueError("the items of pages cannot be read from a file; leave responseType out")
            if self.pagination is not None and self.pagination.place == "body" and given not in ([], ["body"]):
                raise ValueError("a page is asked for in the body only if that is JSON")
            return self

    def target(self, parameters: Parameters) -> str | None:
        try:
            return f"{self.name} {_url(parameters).origin()}"
        except (NodeFailure, ValueError):
            return None

    def prepare(self, facilities: Facilities) -> None:
        _ = facilities.http

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        credential = await context.credential("", *TYPES)
        authentication = None if credential is None else authentication_of(credential, context)
        return Output(await outcome_of(parameters, context, authentication))


async def outcome_of(
    parameters: HttpRequest.Parameters, context: NodeContext, authentication: Authentication | None
) -> dict[str, JSON]:
    """What the request is answered, or the items of its pages."""
    call = _call(parameters, context, authentication)
    if parameters.pagination is not None:
        return await read_pages(call, parameters.pagination, context, lambda page: carry_out(page, context))
    answer = await carry_out(call, context)
    return {"status": answer.status, "headers": answer.headers, "body": answer.body}


def _url(parameters: HttpRequest.Parameters) -> URL:
    try:
        url = URL(parameters.url)
        return url.update_query(pairs_of(parameters.query, parameters.array_format)) if parameters.query else url
    except ValueError:
        # Its text would repeat the address, and with it a secret that the query may hold.
        raise NodeFailure.permanent("with.url: is no address") from None


def _call(parameters: HttpRequest.Parameters, context: NodeContext, authentication: Authentication | None) -> Call:
    return Call(
        _request(parameters, context),
        parse_duration(parameters.timeout) / SECOND,
        parameters.follow_redirects,
        parameters.max_redirects,
        parameters.expect_status,
        parameters.response_type,
        authentication,
    )


def _request(parameters: HttpRequest.Parameters, context: NodeContext) -> Request:
    body = _body(parameters, context)
    headers = {"Accept-Encoding": "gzip", "Idempotency-Key": context.idempotency_key}
    if body is not None:
        headers["Content-Type"] = body.type
    given = {name.lower() for name in parameters.headers}
    kept = {name: value for name, value in headers.items() if name.lower() not in given}
    return Request(parameters.method, _url(parameters), kept | parameters.headers, body)


def _body(parameters: HttpRequest.Parameters, context: NodeContext) -> Body | None:
    if parameters.text is not None:
        return text_body(parameters.text)
    if parameters.form is not None:
        return form_body(parameters.form, parameters.array_format)
    if parameters.multipart is not None:
        return multipart_body(_with_files(parameters.multipart, context))
    if parameters.file is not None:
        return file_body(required_file(parameters.file, "with.file"), context.files)
    if parameters.body is not None:
        return json_body(parameters.body)
    return None


def _with_files(fields: Mapping[str, JSON], context: NodeContext) -> dict[str, JSON]:
    if not any(isinstance(part, dict) for given in fields.values() for part in (given, *_inside(given))):
        return dict(fields)
    return {name: attached(given, context.files, f"with.multipart.{name}") for name, given in fields.items()}


def _inside(given: JSON) -> list[JSON]:
    return given if isinstance(given, list) else []
