"""What commands ask about credentials, asked of a server."""

from typing import Any

from ropewalk.client import AsyncClient
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput, NotFound


async def carried_out(client: AsyncClient, request: str, about: dict[str, Any]) -> JSON:
    """The same answers as `service/credential_requests.py` gives on a store."""
    match request:
        case "list":
            return [each async for each in client.credentials(about["limit"])]
        case "types":
            return await client.credential_types()
        case "show":
            return await client.credential(about["name"])
        case "set":
            return await _set(client, about)
        case "remove":
            return await client.remove_credential(about["name"])
        case "test":
            return await client.test_credential(about["name"])
        case "shares":
            return [each async for each in client.credential_shares(about["name"], about["limit"])]
        case "share":
            return await client.share_credential(about["name"], about["subject"])
        case "unshare":
            return (await client.unshare_credential(about["name"], about["subject"]))["changed"]
        case "rotate":
            return {"rewrapped": await client.rotate_master_key()}
    raise InvalidInput(f"there is no request {request!r} about credentials")


async def _set(client: AsyncClient, about: dict[str, Any]) -> JSON:
    name, kind, values, hosts = about["name"], about.get("type"), about.get("values", {}), about.get("hosts")
    try:
        found = await client.credential(name)
    except NotFound:
        if kind is None:
            raise NotFound(f"there is no credential {name!r}; give --type to make one") from None
        return await client.create_credential(name, kind, values, hosts=hosts or ())
    if kind not in (None, found["type"]):
        raise InvalidInput(f"{name!r} is of the type {found['type']}: remove it first to make one of another type")
    return await client.change_credential(name, values, hosts=hosts)
