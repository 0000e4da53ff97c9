"""What commands ask about credentials, by name: the process that owns the store is asked the same over its socket."""

from typing import Any

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput, NotFound
from ropewalk.service.credential_types import shown_types
from ropewalk.service.credentials import CredentialVerbs


async def carried_out(verbs: CredentialVerbs, request: str, about: dict[str, Any], by: str) -> JSON:
    """The answer to a request as JSON; InvalidInput if there is no such request."""
    match request:
        case "list":
            return await verbs.listed(after=about.get("after", ""), limit=about["limit"])
        case "types":
            return shown_types()
        case "show":
            return await verbs.get(about["name"])
        case "set":
            return await _set(verbs, about, by)
        case "remove":
            return await verbs.remove(about["name"], by)
        case "test":
            return await verbs.test(about["name"], by)
        case "shares":
            return await verbs.permits(about["name"], limit=about["limit"])
        case "share":
            return await verbs.share(about["name"], about["subject"], by)
        case "unshare":
            return await verbs.unshare(about["name"], about["subject"], by)
        case "rotate":
            return await verbs.rotate(by)
    raise InvalidInput(f"there is no request {request!r} about credentials")


async def _set(verbs: CredentialVerbs, about: dict[str, Any], by: str) -> JSON:
    """Change the credential of this name, or make it if it is new and its type is said."""
    name, kind, values, hosts = about["name"], about.get("type"), about.get("values", {}), about.get("hosts")
    try:
        found = await verbs.get(name)
    except NotFound:
        if kind is None:
            raise NotFound(f"there is no credential {name!r}; give --type to make one") from None
        return await verbs.create(name, kind, values, hosts or [], by)
    if kind not in (None, found["type"]):
        raise InvalidInput(f"{name!r} is of the type {found['type']}: remove it first to make one of another type")
    return await verbs.change(name, values, hosts, by)
