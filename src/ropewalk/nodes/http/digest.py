"""HTTP digest authentication (RFC 7616): a server challenges once, and hears a hash instead of the password."""

import hashlib
import re
import secrets
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk.nodes.http.call import Request
from ropewalk.nodes.http.headers import with_header

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

# The stronger first.
ALGORITHMS: Final = ("SHA-256-SESS", "SHA-256", "MD5-SESS", "MD5")
LONGEST_CHALLENGE: Final = 8_192
_SCHEME: Final = re.compile(r"(?:^|,)\s*([A-Za-z][\w-]*)\s+(?=[\w-]+\s*=)", re.ASCII)
_PARAMETER: Final = re.compile(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))', re.ASCII)


class Challenge(Struct, frozen=True):
    """What a server wants to see hashed."""

    realm: str
    nonce: str
    algorithm: str
    written: str
    opaque: str | None
    has_qop: bool
    is_user_hashed: bool


class Digest:
    """Answers the challenge of a server."""

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self._challenge: Challenge | None = None
        self._count = 0

    async def sign(self, request: Request) -> Request:
        """The request as it is until a server has challenged."""
        if self._challenge is None:
            return request
        self._count += 1
        proof = answer(
            self._challenge, self._username, self._password, request.method, request.url.raw_path_qs, self._count,
            secrets.token_hex(16),
        )  # fmt: skip
        return with_header(request, "Authorization", proof)

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        found = [each for line in headers.getall("WWW-Authenticate", []) for each in challenges_of(line)]
        self._challenge = min(found, key=lambda each: ALGORITHMS.index(each.algorithm), default=None)
        return self._challenge is not None


def challenges_of(header: str) -> list[Challenge]:
    """The digest challenges of a header that can be answered."""
    header = header[:LONGEST_CHALLENGE]
    starts = list(_SCHEME.finditer(header))
    ends = [*(each.start() for each in starts[1:]), len(header)]
    parts = [header[each.end() : end] for each, end in zip(starts, ends, strict=False) if each[1].lower() == "digest"]
    return [made for part in parts if (made := _challenge(part)) is not None]


def _challenge(part: str) -> Challenge | None:
    told = {name.lower(): _plain(quoted) if quoted else plain for name, quoted, plain in _PARAMETER.findall(part)}
    written = told.get("algorithm", "MD5")
    ways = [each.strip().lower() for each in told.get("qop", "").split(",") if each.strip()]
    if not told.get("nonce") or written.upper() not in ALGORITHMS or (ways and "auth" not in ways):
        return None
    return Challenge(
        told.get("realm", ""), told["nonce"], written.upper(), written, told.get("opaque"), bool(ways),
        told.get("userhash", "").lower() == "true",
    )  # fmt: skip


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)


def answer(
    challenge: Challenge, username: str, password: str, method: str, target: str, count: int, chance: str
) -> str:
    """What the header `Authorization` says to a challenge."""

    def hashed(text: str) -> str:
        kind = "sha256" if challenge.algorithm.startswith("SHA-256") else "md5"
        return hashlib.new(kind, text.encode(), usedforsecurity=False).hexdigest()

    secret = hashed(f"{username}:{challenge.realm}:{password}")
    if challenge.algorithm.endswith("-SESS"):
        secret = hashed(f"{secret}:{challenge.nonce}:{chance}")
    action = hashed(f"{method}:{target}")
    turn = f"{count:08x}"
    about = f"{challenge.nonce}:{turn}:{chance}:auth" if challenge.has_qop else challenge.nonce
    user = hashed(f"{username}:{challenge.realm}") if challenge.is_user_hashed else username
    fields = {
        "username": user,
        "realm": challenge.realm,
        "nonce": challenge.nonce,
        "uri": target,
        "response": hashed(f"{secret}:{about}:{action}"),
    }
    if challenge.opaque is not None:
        fields["opaque"] = challenge.opaque
    written = [f'{name}="{_quoted(value)}"' for name, value in fields.items()]
    written += [f"algorithm={challenge.written}"]
    written += [f'qop=auth, nc={turn}, cnonce="{chance}"'] if challenge.has_qop else []
    written += ["userhash=true"] if challenge.is_user_hashed else []
    return f"Digest {', '.join(written)}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
