"""Rate limits: those of workspaces, and the slots that were handed out for each."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ropewalk.core.rate_limit import RateLimit, Slots
from ropewalk.store.access import Reader, Transaction

EVERYWHERE: Final = ""
"""What stands for the workspace of a limit that is in the configuration."""

_slots: Final = msgspec.json.Decoder(Slots)


async def of_workspaces(reader: Reader) -> dict[str, dict[str, RateLimit]]:
    """The limits of every workspace that has some, by name."""
    rows = await reader.fetch("workspace_rate_limits")
    return {row[0]: read(row[1]) for row in rows}


def read(text: str | None) -> dict[str, RateLimit]:
    """The limits of a workspace as its row has them."""
    return {} if text is None else msgspec.json.decode(text, type=dict[str, RateLimit])


async def put(tx: Transaction, workspace: str, limits: Mapping[str, RateLimit]) -> None:
    """The limits of a workspace are these."""
    text = msgspec.json.encode(dict(limits)).decode() if limits else None
    await tx.execute("set_rate_limits", text, workspace)


async def lock(tx: Transaction, workspace: str, name: str, rate: RateLimit) -> Slots:
    """The slots that were handed out, kept from others until the end of the transaction."""
    # A row that is not there cannot be locked.
    await tx.execute("ensure_rate_limit", workspace, name, rate.limit, rate.per)
    row = await tx.fetch_one("lock_rate_limit", workspace, name)
    return () if row is None else _slots.decode(row[0])


async def hand_out(tx: Transaction, workspace: str, name: str, rate: RateLimit, slots: Slots) -> None:
    """The slots that were handed out are these."""
    text = msgspec.json.encode(slots).decode()
    await tx.execute("set_rate_limit", rate.limit, rate.per, text, workspace, name)


async def get(reader: Reader, workspace: str, name: str) -> tuple[RateLimit, Slots] | None:
    """The limit that attempts of a workspace wait for, and its slots; None if no slot was ever handed out."""
    row: Any = await reader.fetch_one("get_rate_limit", workspace, name)
    return None if row is None else (RateLimit(row[0], row[1]), _slots.decode(row[2]))
