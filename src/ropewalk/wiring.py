"""Settings in, objects out: the only place that names concrete things, reads the environment and asks the clock."""

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version as installed_version
from typing import Self

from msgspec import Struct

from ropewalk.control import listening
from ropewalk.core.definition import DEFAULT_LIMITS, Limits
from ropewalk.engines.native.engine import NativeEngine, NativeSettings
from ropewalk.nodes.base import Facilities, NodeType, Registry
from ropewalk.nodes.functions import Functions
from ropewalk.nodes.network import NetworkPolicy
from ropewalk.service import Service
from ropewalk.store import workspaces
from ropewalk.store.sqlite import SqliteStore

DEFAULT_DB = "ropewalk.db"
PREFIX = "ROPEWALK_"
ENV_PREFIX = "ROPEWALK_ENV_"


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be set, with what holds if nothing is. `slots` limits the workspaces it names."""

    db: str = DEFAULT_DB
    native: NativeSettings = NativeSettings()
    limits: Limits = DEFAULT_LIMITS
    slots: Mapping[str, int] = {}
    allow_hosts: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, db: str | None = None) -> Self:
        """What the environment says. `ROPEWALK_ENV_NAME` is what expressions see as `env.NAME`, and nothing else is."""
        hosts = environment.get(f"{PREFIX}ALLOW_HOSTS", "").replace(",", " ").split()
        hands = environment.get(f"{PREFIX}HANDS")
        return cls(
            db=path_of(db or environment.get(f"{PREFIX}DB", DEFAULT_DB)),
            native=NativeSettings() if hands is None else NativeSettings(hands=int(hands)),
            allow_hosts=tuple(hosts),
            env={
                name.removeprefix(ENV_PREFIX): value
                for name, value in environment.items()
                if name.startswith(ENV_PREFIX)
            },
        )


def path_of(url: str) -> str:
    """The file of `sqlite:///file.db`, or of a plain path."""
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url


def node_types(extra: Iterable[NodeType] = ()) -> Registry:
    """The built-in types, those of installed packages, and these."""
    types = Registry.builtin()
    types.load_entry_points()
    for each in extra:
        types.register(each)
    return types


@asynccontextmanager
async def open_service(
    settings: Settings, types: Registry | None = None, functions: Functions | None = None
) -> AsyncIterator[Service]:
    """A Ropewalk on the embedded store, with everything under way taken up again; drained at the end."""
    types = node_types() if types is None else types
    store = await SqliteStore.open(settings.db, version=installed_version("ropewalk"))
    facilities = Facilities(NetworkPolicy(allow=settings.allow_hosts), functions=functions)
    try:
        async with store.transaction() as tx:
            await workspaces.ensure_default(tx, store.now())
        engine = NativeEngine(store, types, facilities, settings.native, limit=settings.slots.get)
        await engine.open()
        try:
            service = Service(store, engine, types, settings.env, settings.limits)
            async with listening(service):
                yield service
        finally:
            await engine.close()
    finally:
        await facilities.close()
        await store.close()
