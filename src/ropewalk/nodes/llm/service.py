"""Where models are: an address and a key by credential, one call, and what its failures mean."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace
from yarl import URL

from ropewalk.core.errors import ErrorType
from ropewalk.core.retry import classify_status
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import LONGEST_MESSAGE, NodeFailure, shortened
from ropewalk.nodes.http.call import Call, Request, carry_out
from ropewalk.nodes.http.payloads import json_body

JSON: TypeAlias = Any

TYPES: Final = ("openai", "anthropic")
ANTHROPIC_VERSION: Final = "2023-06-01"
LONGEST_REASON: Final = 300
SPENT: Final = ("insufficient_quota", "billing_hard_limit_reached")
"""What services call an account without money: the status says "later", and later it is the same."""


async def credential_of(context: NodeContext, slot: str = "") -> Credential:
    """The credential of the node; a permanent failure if it names none."""
    found = await context.credential(slot, *TYPES)
    if found is None:
        raise NodeFailure.permanent("credentials: name a credential of type openai or anthropic")
    return found


async def ask(context: NodeContext, credential: Credential, path: str, body: JSON, timeout: float) -> dict[str, JSON]:
    """What the service answers; a classified failure if that is no JSON object, or says that it failed."""
    url = URL(str(credential.values["baseUrl"]).rstrip("/") + path)
    credential.require_host(url.host or "")
    request = Request("POST", url, _headers(credential), json_body(body))
    # No redirect is followed: prompts go to the service that the credential names, and nowhere else.
    call = Call(request, timeout, follow_redirects=False, expected="2xx", response_type="json")
    try:
        answer = (await carry_out(call, context)).body
    except NodeFailure as failure:
        raise _explained(failure) from failure
    if not isinstance(answer, dict):
        raise NodeFailure.permanent(f"{url.host} answered JSON that is no object")
    if isinstance(answer.get("error"), dict):
        raise _failed(answer["error"])
    return answer


def _headers(credential: Credential) -> dict[str, str]:
    common = {"Accept": "application/json", "Accept-Encoding": "gzip", "Content-Type": "application/json"}
    key = str(credential.values["apiKey"])
    if credential.type == "anthropic":
        return common | {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
    organization = credential.values.get("organization")
    extra = {"OpenAI-Organization": str(organization)} if organization else {}
    return common | {"Authorization": f"Bearer {key}"} | extra


def _explained(failure: NodeFailure) -> NodeFailure:
    """The failure with the service's own reason; permanent where its status promises what will not be."""
    error = failure.error
    said = _said(error.body)
    if said is None:
        return failure
    message = shortened(f"{error.message}: {_reason(said)}", LONGEST_MESSAGE)
    is_spent = said.get("code") in SPENT or said.get("type") in SPENT
    kind = ErrorType.PERMANENT if is_spent else error.type
    wish = None if is_spent else error.retry_after
    return NodeFailure(replace(error, type=kind, message=message, retry_after=wish))


def _said(body: str | None) -> Mapping[str, JSON] | None:
    """What the service says of the error, if the body is as both protocols have it."""
    try:
        told = msgspec.json.decode(body or "")
    except (msgspec.DecodeError, RecursionError):
        return None
    error = told.get("error") if isinstance(told, dict) else None
    return error if isinstance(error, dict) else None


def _reason(said: Mapping[str, JSON]) -> str:
    return shortened(str(said.get("message") or said.get("type") or "no reason is given"), LONGEST_REASON)


def _failed(said: Mapping[str, JSON]) -> NodeFailure:
    """A failure in an answer whose status says that all is well, as some gateways have it."""
    code = said.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    message = f"the model failed: {_reason(said)}"
    if status is not None and classify_status(status) is ErrorType.PERMANENT:
        return NodeFailure.permanent(message, status=status)
    return NodeFailure.transient(message, status=status)
