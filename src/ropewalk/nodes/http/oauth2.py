"""OAuth2: an access token is asked for with a credential, kept for all workers, and renewed if a server refuses it."""

import base64
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

import msgspec
from yarl import URL

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential, Token
from ropewalk.nodes.failure import NodeFailure, shortened
from ropewalk.nodes.http.call import Call, Request, carry_out
from ropewalk.nodes.http.headers import with_header
from ropewalk.nodes.http.payloads import form_body

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

TIMEOUT: Final = 20.0
LONGEST_TOKEN: Final = 16_384
ASSERTION: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTED: Final = 3_600
"""How long what a service account asserts is good (s)."""


class AccessToken:
    """Signs with an access token."""

    def __init__(self, credential: Credential, context: NodeContext) -> None:
        self._credential = credential
        self._context = context
        self._token = ""
        self._refused = ""

    async def sign(self, request: Request) -> Request:
        self._token = await self._context.token(self._credential, self._renew, self._refused)
        return with_header(request, "Authorization", f"Bearer {self._token}")

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        """A token that was refused may have been called back before its time."""
        self._refused = self._token
        return True

    async def _renew(self) -> Token:
        return await new_token(self._credential, self._context)


async def new_token(credential: Credential, context: NodeContext) -> Token:
    """A token that the issuer gives for the credential."""
    # Redirects are not followed: the secret goes to the address that the credential names, and nowhere else.
    call = Call(_request(credential, context), TIMEOUT, follow_redirects=False, expected="2xx", response_type="json")
    try:
        answer = await carry_out(call, context)
    except NodeFailure as failure:
        raise _explained(failure, credential) from None
    return _token(answer.body, credential)


def _request(credential: Credential, context: NodeContext) -> Request:
    values = credential.values
    fields = _grant(credential, context)
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
    secret = values.get("clientSecret")
    if secret is not None and values.get("sendAs", "basic") == "basic":
        login = f"{quote_plus(values['clientId'])}:{quote_plus(secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    elif "clientId" in values:
        fields |= {"client_id": values["clientId"], "client_secret": secret}
    body = form_body(fields, "repeat")
    return Request("POST", URL(values["tokenUrl"]), headers | {"Content-Type": body.type}, body)


def _grant(credential: Credential, context: NodeContext) -> dict[str, Any]:
    values = credential.values
    match credential.type:
        case "google":
            return {"grant_type": ASSERTION, "assertion": _assertion(credential, context.now // SECOND)}
        case "oauth2.refresh":
            grant = {"grant_type": "refresh_token", "refresh_token": values["refreshToken"]}
        case _:
            grant = {"grant_type": "client_credentials", "audience": values.get("audience")}
    return grant | {"scope": values.get("scope")}


def _assertion(credential: Credential, now: int) -> str:
    """What a service account signs to say that it is the one that asks (RFC 7523)."""
    from ropewalk.nodes.signatures import signature  # here, since the library behind it is large

    values = credential.values
    claims = {
        "iss": values["clientEmail"],
        "scope": values.get("scope"),
        "aud": values["tokenUrl"],
        "iat": now,
        "exp": now + ASSERTED,
    }
    signed = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
    try:
        made = signature("rsa-sha256", values["privateKey"], signed.encode())
    except NodeFailure as failure:
        reason = str(failure).removeprefix("with.key: ")
        raise NodeFailure.permanent(f"the private key of the credential {credential.name!r} {reason}") from None
    return f"{signed}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def _token(body: Any, credential: Credential) -> Token:
    found = body if isinstance(body, dict) else {}
    value, kind, lifetime = found.get("access_token"), found.get("token_type", "bearer"), found.get("expires_in")
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TOKEN or not value.isprintable():
        raise NodeFailure.permanent(f"the issuer of the credential {credential.name!r} answered without a token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise NodeFailure.permanent(f"the issuer of the credential {credential.name!r} gave a token of another kind")
    renewed = found.get("refresh_token")
    return Token(value, _seconds(lifetime), renewed if isinstance(renewed, str) and renewed else None)


def _seconds(told: Any) -> float | None:
    """How long a token is good; some issuers write it as text."""
    if isinstance(told, str) and told.isascii() and told.isdecimal():
        told = int(told[:12])
    return float(told) if isinstance(told, int | float) and not isinstance(told, bool) and told > 0 else None


def _explained(failure: NodeFailure, credential: Credential) -> NodeFailure:
    """The failure in words that name the credential, with the issuer's own if it says any."""
    error = failure.error
    said = _said(error.body)
    message = f"the credential {credential.name!r} gets no token: {said or error.message}"
    if error.type is ErrorType.TRANSIENT:
        return NodeFailure.transient(message, error.retry_after, status=error.status)
    if error.type is ErrorType.TIMEOUT:
        return NodeFailure.timeout(message)
    return NodeFailure.permanent(message, status=error.status)


def _said(body: str | None) -> str | None:
    try:
        told = msgspec.json.decode(body or "")
    except msgspec.DecodeError:
        return None
    if not isinstance(told, dict) or not isinstance(told.get("error"), str):
        return None
    described = told.get("error_description")
    return shortened(f"{told['error']}: {described}" if isinstance(described, str) else told["error"], 300)
