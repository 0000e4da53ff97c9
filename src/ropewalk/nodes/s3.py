"""`s3.*`: objects of S3, or of a store that speaks like it, by credential."""

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, TypeAlias
from urllib.parse import unquote_plus

from pydantic import Field, field_validator, model_validator

from ropewalk.core.duration import DAY, HOUR, SECOND, parse_duration
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.files import FILE_SCHEMA, media_type
from ropewalk.nodes.http.answers import Answer
from ropewalk.nodes.http.payloads import Body, file_body, json_body, required_file, text_body
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.moments import EPOCH, written
from ropewalk.nodes.s3_bucket import TYPE, Bucket, BucketName, Key, bucket_of
from ropewalk.nodes.xml import read_xml

JSON: TypeAlias = Any

MOST_LISTED = 10_000
PAGE = 1_000
MOST_DELETED = 1_000
AT_ONCE = 8
LONGEST_LINK = 7 * DAY
KEY = {"type": "string", "description": "The key of the object."}
SIZE = {"type": "integer", "description": "How many bytes it has."}
ETAG = {"type": ["string", "null"], "description": "What the store knows this content by."}


class InBucket(Inputs):
    """Which bucket, and how long it may take."""

    bucket: BucketName = Field(description="The bucket.", examples=["reports"])
    timeout: float | str = Field(
        "60s", description="How long a request may take: like 30s, 5m, or a number of seconds.", examples=["5m"]
    )

    @field_validator("timeout", mode="before")
    @classmethod
    def _sensible(cls, timeout: JSON) -> JSON:
        parse_duration(timeout, SECOND // 10, HOUR)
        return timeout

    @property
    def seconds(self) -> float:
        return parse_duration(self.timeout, SECOND // 10) / SECOND


class OfObject(InBucket):
    """Which object."""

    key: Key = Field(description="The key of the object.", examples=["2026/{{ input.month }}.csv"])


class S3Node(NodeType):
    """A type that works on a bucket."""

    credentials = MappingProxyType({"": (TYPE,)})
    has_rules = True
    words: ClassVar[tuple[str, ...]] = ("s3", "aws", "bucket", "object", "storage", "minio", "r2")

    def target(self, parameters: InBucket) -> str | None:
        return f"s3:{parameters.bucket}"

    async def bucket(self, parameters: InBucket, context: NodeContext) -> Bucket:
        return await bucket_of(parameters.bucket, parameters.seconds, context)


class S3Get(S3Node):
    name = "s3.get"
    summary = "Reads an object of a bucket, as a file, as text or as JSON."
    about = About(
        title="Read from S3",
        category="reach",
        icon="cloud-download",
        keywords=(*S3Node.words, "download", "read"),
        output={
            "type": "object",
            "properties": {
                "content": {"description": "The file, the text or the value.", "anyOf": [FILE_SCHEMA, {}]},
                "size": SIZE,
                "etag": ETAG,
                "type": {"type": ["string", "null"], "description": "Its media type."},
                "modified": {"type": ["string", "null"], "description": "When it was written, as the store says it."},
            },
        },
    )

    class Parameters(OfObject):
        read_as: Literal["file", "text", "json"] = Field(
            "file", description="Whether the content is handed on as a file, as text or as JSON.", examples=["json"]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        bucket = await self.bucket(parameters, context)
        answer = await bucket.ask("GET", parameters.key, response_type=parameters.read_as)
        headers = answer.headers
        about = {"type": headers.get("content-type"), "modified": headers.get("last-modified")}
        return Output({"content": answer.body, "size": answer.size, "etag": _etag(answer), **about})


class S3Put(S3Node):
    name = "s3.put"
    summary = "Writes an object into a bucket: a file, a text or a JSON value."
    about = About(
        title="Write to S3",
        category="reach",
        icon="cloud-upload",
        keywords=(*S3Node.words, "upload", "write", "store"),
        output={"type": "object", "properties": {"key": KEY, "size": SIZE, "etag": ETAG}},
    )

    class Parameters(OfObject):
        file: dict[str, JSON] | None = Field(
            None, description="A file; it is streamed.", examples=["{{ nodes.report.output }}"]
        )
        text: str | None = Field(None, description="A text.", examples=["hello"])
        value: JSON = Field(None, description="A value, written as JSON.", examples=[{"total": 12.5}])
        content_type: str | None = Field(
            None, max_length=200, description="The media type; by default that of the file, or what fits.",
            examples=["text/csv"],
        )  # fmt: skip

        @model_validator(mode="after")
        def _one_of_them(self) -> Self:
            if len({"file", "text", "value"} & self.model_fields_set) != 1:
                raise ValueError("give one of file, text and value")
            return self

        def body(self, context: NodeContext) -> Body:
            """What is sent."""
            if self.file is not None:
                return file_body(required_file(self.file, "with.file"), context.files)
            return text_body(self.text) if self.text is not None else json_body(self.value)

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        bucket = await self.bucket(parameters, context)
        body = parameters.body(context)
        headers = {"Content-Type": media_type(parameters.content_type or body.type)}
        answer = await bucket.ask("PUT", parameters.key, headers=headers, body=body)
        return Output({"key": parameters.key, "size": body.size, "etag": _etag(answer)})


class S3List(S3Node):
    name = "s3.list"
    summary = "Lists the objects of a bucket whose keys begin in one way."
    about = About(
        title="List S3",
        category="reach",
        icon="list-tree",
        keywords=(*S3Node.words, "list", "keys", "prefix"),
        output={
            "type": "object",
            "properties": {
                "objects": {
                    "type": "array",
                    "description": "The objects by key: `{key, size, etag, modified}` each.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "key": KEY,
                            "size": SIZE,
                            "etag": ETAG,
                            "modified": {"type": "string", "description": "When it was written."},
                        },
                    },
                },
                "prefixes": {"type": "array", "description": "The beginnings of keys up to the delimiter."},
                "isTruncated": {"type": "boolean", "description": "Whether there are more."},
                "continuation": {"type": ["string", "null"], "description": "What to give to go on there."},
            },
        },
    )

    class Parameters(InBucket):
        prefix: str = Field("", max_length=1_024, description="How the keys begin.", examples=["2026/"])
        limit: int = Field(1_000, ge=1, le=MOST_LISTED, description="At most so many objects.", examples=[100])
        delimiter: str = Field(
            "", max_length=16, examples=["/"],
            description="Keys that go on after it are only told by their beginning: `/` lists one folder.",
        )  # fmt: skip
        continuation: str | None = Field(
            None, max_length=4_096, description="Where to go on: as an earlier list said.",
            examples=["{{ nodes.first.output.continuation }}"],
        )  # fmt: skip

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        bucket = await self.bucket(parameters, context)
        objects: list[JSON] = []
        prefixes: list[str] = []
        going_on, left = parameters.continuation, parameters.limit
        seen = {going_on}
        while True:
            page = _listing(await bucket.ask("GET", query=_asked(parameters, going_on, min(left, PAGE))))
            objects += page["objects"]
            prefixes += page["prefixes"]
            left = parameters.limit - len(objects) - len(prefixes)
            going_on = page["continuation"]
            if going_on is None or left <= 0:
                break
            if going_on in seen:
                raise NodeFailure.permanent(f"{bucket.name}: the store lists the same page again and again")
            seen.add(going_on)
        told = {"objects": objects, "prefixes": prefixes, "isTruncated": going_on is not None}
        return Output({**told, "continuation": going_on})


def _asked(how: S3List.Parameters, going_on: str | None, most: int) -> dict[str, str]:
    query = {"list-type": "2", "encoding-type": "url", "max-keys": str(most), "prefix": how.prefix}
    more = {"delimiter": how.delimiter, "continuation-token": going_on or ""}
    return query | {name: value for name, value in more.items() if value}


def _listing(answer: Answer) -> dict[str, Any]:
    """A page of a list; a permanent failure if the store answers something else."""
    try:
        found = read_xml(answer.body, ["Contents", "CommonPrefixes"])["ListBucketResult"]
        return {
            "objects": [_object(each) for each in found.get("Contents", ())],
            "prefixes": [unquote_plus(each["Prefix"]) for each in found.get("CommonPrefixes", ())],
            "continuation": found.get("NextContinuationToken") if found.get("IsTruncated") == "true" else None,
        }
    except (NodeFailure, KeyError, TypeError, AttributeError, ValueError) as error:
        raise NodeFailure.permanent("the store answers what is no list of objects") from error


def _object(found: dict[str, str]) -> JSON:
    about = {"key": unquote_plus(found["Key"]), "size": int(found["Size"])}
    return {**about, "etag": (found.get("ETag") or "").strip('"') or None, "modified": found.get("LastModified")}


class S3Delete(S3Node):
    name = "s3.delete"
    summary = "Removes objects from a bucket; one that is not there is no failure."
    about = About(
        title="Remove from S3",
        category="reach",
        icon="trash-2",
        keywords=(*S3Node.words, "delete", "remove"),
        output={"type": "object", "properties": {"deleted": {"type": "array", "description": "The keys."}}},
    )

    class Parameters(InBucket):
        key: Key | None = Field(None, description="The key of the object.", examples=["2026/may.csv"])
        keys: list[Key] | None = Field(
            None, min_length=1, max_length=MOST_DELETED, description="Several keys.", examples=[["a.csv", "b.csv"]]
        )

        @model_validator(mode="after")
        def _one_of_both(self) -> Self:
            if (self.key is None) == (self.keys is None):
                raise ValueError("give key or keys")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        bucket = await self.bucket(parameters, context)
        keys = parameters.keys or [parameters.key or ""]
        turns = asyncio.Semaphore(AT_ONCE)

        async def delete(key: str) -> None:
            async with turns:
                await bucket.ask("DELETE", key)

        async with asyncio.TaskGroup() as group:
            for key in keys:
                group.create_task(delete(key))
        return Output({"deleted": keys})


class S3Presign(S3Node):
    name = "s3.presign"
    summary = "Makes a link by which others read or write one object for a time, without a login."
    about = About(
        title="Make a link to S3",
        category="reach",
        icon="link",
        keywords=(*S3Node.words, "presign", "signed url", "link", "share"),
        output={
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The link. Who has it needs no login."},
                "expiresAt": {"type": "string", "description": "Until when it holds."},
            },
        },
    )

    class Parameters(OfObject):
        method: Literal["GET", "PUT"] = Field("GET", description="To read, or to write.", examples=["PUT"])
        expires: float | str = Field(
            "1h", description="How long the link holds: like 15m, 1h, at most 7d.", examples=["15m"]
        )

        @field_validator("expires", mode="before")
        @classmethod
        def _a_length(cls, expires: JSON) -> JSON:
            parse_duration(expires, SECOND, LONGEST_LINK)
            return expires

    def target(self, parameters: InBucket) -> str | None:
        return None

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        bucket = await self.bucket(parameters, context)
        seconds = parse_duration(parameters.expires) // SECOND
        until = EPOCH + timedelta(seconds=context.now // SECOND + seconds)
        url = bucket.presigned(parameters.method, parameters.key, seconds)
        return Output({"url": url, "expiresAt": written(until)})


def _etag(answer: Answer) -> str | None:
    told = answer.headers.get("etag")
    return told.strip('"') if isinstance(told, str) else None
