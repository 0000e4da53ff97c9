"""Signature Version 4 of AWS: a request is signed with a key made for the day, the region and the service."""

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from msgspec.structs import replace
from yarl import URL

from ropewalk.core.duration import SECOND
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.http.call import Request
from ropewalk.nodes.http.headers import with_header

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

ALGORITHM: Final = "AWS4-HMAC-SHA256"
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_HOST: Final = re.compile(
    r"(?:.+\.)?([a-z0-9-]+?)(?:[.-]([a-z]{2}(?:-[a-z]+)+-[0-9]))?\.(?:amazonaws\.com(?:\.cn)?|api\.aws)", re.ASCII
)
# What is signed beside the headers of AWS; others may be changed on the way.
_SIGNED: Final = frozenset({"content-type", "host"})


class AwsSignature:
    """Signs with an access key."""

    def __init__(self, credential: Credential, context: NodeContext) -> None:
        self._values = credential.values
        self._name = credential.name
        # The time of the store, and how long ago that was: a call with many pages takes its time.
        self._now, self._since = context.now, time.monotonic()

    async def sign(self, request: Request) -> Request:
        now = self._now / SECOND + time.monotonic() - self._since
        service, region = self._place(request.url.host or "")
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
        return signed(request, self._values, service, region, stamp)

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        return False

    def _place(self, host: str) -> tuple[str, str]:
        """The service and region that a request is signed for."""
        found = _HOST.fullmatch(host)
        service = self._values.get("service") or (found[1] if found else None)
        if service is None:
            raise NodeFailure.permanent(f"{host} does not tell which service it is: say it in {self._name!r}")
        region = (found[2] if found else None) or self._values.get("region") or "us-east-1"
        return service, region


def signed(request: Request, key: Mapping[str, str], service: str, region: str, stamp: str) -> Request:
    """The request as it is signed at a moment (`20150830T123600Z`)."""
    query, path = _query(request.url), request.url.raw_path or "/"
    # S3 signs the path as it is sent, all others once more escaped.
    sent = _escaped(unquote(path)) if service == "s3" else path
    path = sent if service == "s3" else _escaped(path)
    url = URL(f"{request.url.origin()}{sent}{f'?{query}' if query else ''}", encoded=True)
    content = _content_hash(request, service)
    request = with_header(replace(request, url=url), "X-Amz-Date", stamp)
    if service == "s3":
        request = with_header(request, "X-Amz-Content-Sha256", content)
    if key.get("sessionToken"):
        request = with_header(request, "X-Amz-Security-Token", key["sessionToken"])
    headers = _headers(request)
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"{request.method}\n{path}\n{query}\n{lines}\n{names}\n{content}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = f"{ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    proof = hmac.new(signing_key(key["secretAccessKey"], scope), text.encode(), hashlib.sha256).hexdigest()
    told = f"{ALGORITHM} Credential={key['accessKeyId']}/{scope}, SignedHeaders={names}, Signature={proof}"
    return with_header(request, "Authorization", told)


def signing_key(secret: str, scope: str) -> bytes:
    """The key that signs in a scope: a day, a region, a service."""
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _escaped(path: str) -> str:
    return quote(path, safe="/-_.~")


def _query(url: URL) -> str:
    """The query as it is signed, and sent: all but a few characters escaped, in order."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in url.query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def _headers(request: Request) -> dict[str, str]:
    host = request.url.host_port_subcomponent or ""
    own = {name.lower(): " ".join(value.split()) for name, value in request.headers.items()}
    kept = {name: value for name, value in own.items() if name in _SIGNED or name.startswith("x-amz-")}
    return dict(sorted({**kept, "host": host}.items()))


def _content_hash(request: Request, service: str) -> str:
    """The hash of what is sent; S3 does without where only the end of a stream would tell."""
    if request.body is None:
        return hashlib.sha256(b"").hexdigest()
    if not request.body.is_streamed:
        return hashlib.sha256(request.body.whole()).hexdigest()
    if (known := request.body.known_hash) is not None:
        return known
    if service == "s3":
        return UNSIGNED
    raise NodeFailure.permanent("a form with files cannot be signed for AWS: send the file as it is")
