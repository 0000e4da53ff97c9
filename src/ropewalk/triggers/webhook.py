"""A delivery to a webhook becomes one start: checked on its bytes, made into `event`, and known again by its id."""

import base64
import ipaddress
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import msgspec
import uuid_utils

from ropewalk.core.definition.triggers import credential_types
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, Unavailable
from ropewalk.core.events import ExecutionAccepted, NodeSucceeded
from ropewalk.core.expression import ExpressionError, Scope, compile_template
from ropewalk.core.instant import rfc3339
from ropewalk.core.state import TriggerType
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import NodeFailure
from ropewalk.service import Service
from ropewalk.service.triggers.firing import LONGEST_KEY, Fired, Firing, settings_of
from ropewalk.store import triggers
from ropewalk.store.triggers import Trigger
from ropewalk.triggers.verifying import Delivery, Unverified, verify

LARGEST_BODY: Final = 1024 * 1024
MOST_FIELDS: Final = 1_000
REMEMBERED: Final = 5 * SECOND
"""How long (µs) the key of a sender is good that was changed or taken away meanwhile."""
RESPOND: Final = "respond"
"""The node type that answers the caller of a webhook."""
WITHHELD: Final = frozenset({
    "authorization", "cookie", "proxy-authorization", "webhook-signature", "stripe-signature", "x-hub-signature",
    "x-hub-signature-256", "x-slack-signature", "x-shopify-hmac-sha256",
})  # fmt: skip
"""Headers that prove something: they are not part of the event."""
_IDS: Final = {"hmac": "webhook-id", "github": "x-github-delivery", "shopify": "x-shopify-webhook-id"}
_PARAMETER: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
Parse = Callable[[bytes], Any]
"""Reads the JSON of a body, as strictly as the API does."""
_log = logging.getLogger("ropewalk.triggers")


class NoHook(Exception):
    """There is no such hook for this caller: unknown, switched off and forbidden look the same."""


class BadDelivery(ValueError):
    """The sender may deliver, and what it sent makes no sense."""


class Sent(msgspec.Struct, frozen=True):
    """A request to a hook."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Response(msgspec.Struct, frozen=True):
    """What a `respond` node answers."""

    status: int = 200
    headers: dict[str, str] = {}
    body: Any = None


class Hooks:
    """Takes deliveries for the webhooks of all workspaces."""

    def __init__(self, service: Service, parse: Parse) -> None:
        self._service = service
        self._store = service.store
        self._firing = Firing(service)
        self._parse = parse
        self._secrets: dict[tuple[str, str], tuple[int, Credential | None]] = {}

    async def find(self, token: str, method: str, address: str) -> Trigger:
        """The webhook with this address, if it takes such a request; before the body is read."""
        found = await triggers.by_token(self._store, token)
        if found is None or found.removed_at is not None or not found.is_enabled or found.kind != TriggerType.WEBHOOK:
            raise NoHook
        settings = settings_of(found)
        if method not in settings.get("methods", ["POST"]):
            raise _refused(found, f"it takes no {method}")
        if not _is_allowed(address, settings.get("allowFrom", [])):
            raise _refused(found, f"{address} is not among those it takes deliveries from")
        return found

    async def event(self, trigger: Trigger, sent: Sent) -> tuple[dict[str, Any], str]:
        """What expressions see, and the key by which the delivery is known again; NoHook if it proves nothing."""
        settings, now = settings_of(trigger), self._store.now()
        await self._verify(trigger, settings, Delivery(sent.headers, sent.body, now))
        parameters = _parameters(settings.get("path", ""), sent.path)
        if parameters is None:
            raise _refused(trigger, f"its path is not {settings.get('path', '')!r}")
        event: dict[str, Any] = {
            "method": sent.method,
            "path": sent.path,
            "params": parameters,
            "query": _fields(sent.query),
            "headers": {name: value for name, value in sent.headers.items() if name not in WITHHELD},
            "receivedAt": rfc3339(now),
            **body_of(sent.headers.get("content-type", ""), sent.body, self._parse),
        }
        key = _key(settings, event, sent.headers)
        return {**event, "deliveryId": key}, key

    async def _verify(self, trigger: Trigger, settings: Mapping[str, Any], delivery: Delivery) -> None:
        values: Mapping[str, Any] = {}
        wanted = credential_types(settings)
        try:
            if wanted:
                values = await self._secret(trigger, str(settings.get("credential", "")), wanted)
            verify(delivery, settings, values)
        except Unverified as error:
            raise _refused(trigger, str(error)) from None
        except NodeFailure as error:
            if error.error.type is ErrorType.TRANSIENT:
                # The sender is to try again: a 404 would be the end of it.
                raise Unavailable(error.error.message) from error
            raise _refused(trigger, error.error.message) from None

    async def _secret(self, trigger: Trigger, name: str, wanted: Sequence[str]) -> Mapping[str, Any]:
        credentials = self._service.stored_credentials
        if credentials is None:
            raise NodeFailure.permanent("there are no credentials here")
        now, about = self._store.now(), (trigger.workspace, name)
        until, found = self._secrets.get(about, (0, None))
        if found is None or now >= until:
            found = await credentials.get(*about)
            self._secrets[about] = (now + REMEMBERED, found)
        if found.type not in wanted:
            raise NodeFailure.permanent(f"the credential {name!r} is of type {found.type}, not {' or '.join(wanted)}")
        return found.values

    async def response(self, execution: str) -> Response | None:
        """What the `respond` node of an execution says, as soon as it says it; None if the execution ends without."""
        responders: frozenset[str] = frozenset()
        async for _, event in self._service.follow(execution):
            match event:
                case ExecutionAccepted(workflow=workflow, version=number):
                    version = await self._service.engine.versions.version(workflow, number)
                    nodes = version.plan.definition.nodes
                    responders = frozenset(node["id"] for node in nodes if node["type"] == RESPOND)
                case NodeSucceeded(node=node, output=output, blob=blob) if node in responders:
                    text = None if blob is None else await self._store.blobs.get(blob.hash)
                    return msgspec.convert(output if text is None else msgspec.json.decode(text), Response)
        return None

    async def deliver(self, trigger: Trigger, event: Mapping[str, Any], key: str) -> Fired:
        """Start what the delivery asks for, once; Unavailable if too much waits already."""
        return await self._firing.fire(trigger, key, event)


def _refused(trigger: Trigger, why: str) -> NoHook:
    """Told in the log, for the operator; the sender hears what any stranger hears."""
    _log.warning("a delivery to webhook %s of workflow %s is refused: %s", trigger.name, trigger.workflow, why)
    return NoHook()


def _is_allowed(address: str, allowed: Sequence[str]) -> bool:
    if not allowed:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in ipaddress.ip_network(each, strict=False) for each in allowed)


def _parameters(template: str, path: str) -> dict[str, str] | None:
    """The parameters of a path like `orders/{id}`; None if it is another path."""
    wanted, given = [part for part in template.split("/") if part], [part for part in path.split("/") if part]
    if len(wanted) != len(given):
        return None
    found: dict[str, str] = {}
    for one, other in zip(wanted, given, strict=True):
        if (name := _PARAMETER.fullmatch(one)) is not None:
            found[name[1]] = unquote(other)
        elif one != other:
            return None
    return found


def body_of(kind: str, body: bytes, parse: Parse) -> dict[str, Any]:
    """The body as expressions see it: JSON, a form or text; what is none of these is `bodyBase64`."""
    media = kind.partition(";")[0].strip().lower()
    if not body:
        return {"body": None}
    if media == "application/json" or media.endswith("+json"):
        return {"body": parse(body)}
    text = _text_of(body)
    if text is None:
        return {"body": None, "bodyBase64": base64.b64encode(body).decode()}
    return {"body": _fields(text) if media == "application/x-www-form-urlencoded" else text}


def _text_of(body: bytes) -> str | None:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _fields(text: str) -> dict[str, Any]:
    """The fields of a query or a form; those that come more than once are lists."""
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise BadDelivery(f"more than {MOST_FIELDS} fields were sent") from error
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _key(settings: Mapping[str, Any], event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """By what the delivery is known again: what its author says, else the id that its sender gives it."""
    if "dedupeKey" in settings:
        scope = Scope()
        scope.event = event
        try:
            value = compile_template(settings["dedupeKey"]).resolve(scope)
        except ExpressionError as error:
            raise BadDelivery(f"dedupeKey: {error}") from error
        if value is not None:
            return _text(value)
    auth = settings.get("auth", "hmac")
    named = headers.get(_IDS.get(auth, "idempotency-key"))
    if named is None and auth in ("stripe", "slack") and isinstance(event.get("body"), dict):
        named = event["body"].get("id" if auth == "stripe" else "event_id")
    return f"random:{uuid_utils.uuid7()}" if named is None else _text(named)


def _text(value: Any) -> str:
    written = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if not 0 < len(written) <= LONGEST_KEY:
        raise BadDelivery(f"the id of a delivery has 1 to {LONGEST_KEY} characters")
    return written
