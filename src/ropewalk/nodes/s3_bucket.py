"""How objects in S3, or in a store that speaks like it, are asked for: addresses, signatures, and what refusals mean.

Requests go through the worker's guarded session, as all others do, and follow no redirect.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final
from urllib.parse import quote

from msgspec.structs import replace
from pydantic import AfterValidator, Field
from yarl import URL

from ropewalk.core.duration import SECOND
from ropewalk.nodes.body import ResponseType
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.http.answers import Answer
from ropewalk.nodes.http.aws import ALGORITHM, UNSIGNED, AwsSignature, signing_key
from ropewalk.nodes.http.call import Call, Request, carry_out
from ropewalk.nodes.http.payloads import Body

TYPE: Final = "aws"
LONGEST_KEY: Final = 1_024
_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def _a_key(key: str) -> str:
    if len(key.encode(errors="replace")) > LONGEST_KEY or _CONTROL.search(key):
        raise ValueError(f"must have at most {LONGEST_KEY:,} bytes, and no control characters")
    if key.startswith("/") or not {".", ".."}.isdisjoint(key.split("/")):
        raise ValueError("must have no / in front, and no part that is . or ..")
    return key


BucketName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
Key = Annotated[str, Field(min_length=1), AfterValidator(_a_key)]


class Bucket:
    """A bucket, reached with a credential."""

    def __init__(self, name: str, credential: Credential, context: NodeContext, timeout: float) -> None:
        self.name = name
        self._values: Mapping[str, str] = {**credential.values, "service": "s3"}
        self._region = str(self._values.get("region") or "us-east-1")
        self._base = self._address()
        credential.require_host(self._base.host or "")
        self._signature = AwsSignature(replace(credential, values=self._values), context)
        self._context = context
        self._timeout = timeout

    def _address(self) -> URL:
        """The bucket is part of the host, or of the path where a credential says so or a certificate could not fit."""
        endpoint = self._values.get("endpoint")
        is_in_path = self._values.get("pathStyle", True) if endpoint else "." in self.name
        root = URL(endpoint or f"https://s3.{self._region}.amazonaws.com")
        if is_in_path:
            return root.with_path(f"{root.path.rstrip('/')}/{self.name}")
        return root.with_host(f"{self.name}.{root.host}")

    def url(self, key: str = "", query: Mapping[str, str] | None = None) -> URL:
        """The address of an object, or of the bucket."""
        path = f"{self._base.raw_path.rstrip('/')}/{quote(key, safe='/-_.~')}"
        wanted = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted((query or {}).items()))
        return URL(f"{self._base.origin()}{path}{f'?{wanted}' if wanted else ''}", encoded=True)

    async def ask(
        self,
        method: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        response_type: ResponseType = "text",
    ) -> Answer:
        """What the store answers; a classified failure names what it refuses."""
        request = Request(method, self.url(key, query), dict(headers or {}), body)
        call = Call(
            request,
            timeout=self._timeout,
            follow_redirects=False,
            expected=["2xx"],
            response_type=response_type,
            authentication=self._signature,
        )
        try:
            return await carry_out(call, self._context)
        except NodeFailure as failure:
            raise self._told(failure, key) from failure

    def _told(self, failure: NodeFailure, key: str) -> NodeFailure:
        """The failure in the store's own word, if it said one."""
        error = failure.error
        code = _CODE.search(error.body or "")
        if error.status is None:
            return failure
        told = f"{self.name}{f'/{key}' if key else ''}: {code[1] if code else 'refused'} ({error.status})"
        return NodeFailure(replace(error, message=told))

    def presigned(self, method: str, key: str, seconds: int) -> str:
        """An address that anyone may use once or often until its time is over."""
        if self._values.get("sessionToken"):
            raise NodeFailure.permanent("a temporary key makes no links: its session token would be part of them")
        stamp = datetime.fromtimestamp(self._context.now / SECOND, UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{stamp[:8]}/{self._region}/s3/aws4_request"
        url = self.url(key, {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": f"{self._values['accessKeyId']}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": "host",
        })  # fmt: skip
        canonical = (
            f"{method}\n{url.raw_path}\n{url.raw_query_string}\nhost:{url.host_port_subcomponent}\n\nhost\n{UNSIGNED}"
        )
        text = f"{ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key_of_day = signing_key(self._values["secretAccessKey"], scope)
        proof = hmac.new(key_of_day, text.encode(), hashlib.sha256).hexdigest()
        return f"{url}&X-Amz-Signature={proof}"


async def bucket_of(name: str, timeout: float, context: NodeContext) -> Bucket:
    """The bucket with the credential that the node names."""
    credential = await context.credential("", TYPE)
    if credential is None:
        raise NodeFailure.permanent("names no credential: write `credentials: <name>` beside `with`")
    return Bucket(name, credential, context, timeout)
