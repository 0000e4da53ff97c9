"""Settings in, objects out: the only place that names concrete things, reads the environment and asks the clock."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.metadata import version as installed_version
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.control import listening
from ropewalk.core.definition import DEFAULT_LIMITS, Limits
from ropewalk.engines.native.engine import NativeEngine, NativeSettings
from ropewalk.engines.native.offers import DEFAULT_POOL
from ropewalk.nodes.base import Facilities, NodeType, Registry
from ropewalk.nodes.functions import Functions
from ropewalk.nodes.network import NetworkPolicy
from ropewalk.service import Service
from ropewalk.service.retention import Policy, run_forever
from ropewalk.store import workspaces
from ropewalk.store.access import Store
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.sqlite import SqliteStore

DEFAULT_DB = "ropewalk.db"
PREFIX = "ROPEWALK_"
ENV_PREFIX = "ROPEWALK_ENV_"
FIRST_SWEEP = 60.0


class FleetSettings(Struct, frozen=True, kw_only=True):
    """How a worker lives with others on a shared store."""

    pool: str = "default"
    lease_seconds: float = 15.0
    notify: bool = True
    pooled: bool = False


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be set, with what holds if nothing is. `slots` limits the workspaces it names."""

    db: str = DEFAULT_DB
    native: NativeSettings = NativeSettings()
    fleet: FleetSettings = FleetSettings()
    limits: Limits = DEFAULT_LIMITS
    slots: Mapping[str, int] = {}
    retention: Policy = Policy()
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


def is_shared(db: str) -> bool:
    """Whether this names a store that several workers may have."""
    return db.startswith(("postgres://", "postgresql://"))


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
    """A Ropewalk on its store, with everything under way taken up again; drained at the end."""
    types = node_types() if types is None else types
    facilities = Facilities(NetworkPolicy(allow=settings.allow_hosts), functions=functions)
    try:
        async with _opened(settings) as store:
            await _prepare(store, settings)
            engine = NativeEngine(store, types, facilities, _native(settings))
            service = Service(store, engine, types, settings.env, settings.limits)
            async with _swept(store, settings), _running(engine), _spoken_to(service, store):
                try:
                    yield service
                finally:
                    # Before anything else ends: nothing new begins while the rest is being closed.
                    engine.is_closing = True
    finally:
        await facilities.close()


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Store]:
    version = installed_version("ropewalk")
    store: Store
    if is_shared(settings.db):
        fleet = settings.fleet
        store = await PostgresStore.open(
            settings.db,
            version=version,
            pool=fleet.pool,
            slots=settings.native.executions if settings.native.claims else 0,
            lease_seconds=fleet.lease_seconds,
            beat_seconds=fleet.lease_seconds / 3,
            notify=fleet.notify,
            pooled=fleet.pooled,
        )
    else:
        store = await SqliteStore.open(settings.db, version=version)
    try:
        yield store
    finally:
        await store.close()


def _native(settings: Settings) -> NativeSettings:
    """A worker of a pool carries out the runs of its pool, and owns no executions."""
    native, pool = settings.native, settings.fleet.pool
    return replace(native, pool=pool, claims=native.claims and pool == DEFAULT_POOL)


async def _prepare(store: Store, settings: Settings) -> None:
    async with store.transaction() as tx:
        await workspaces.ensure_default(tx, store.now())
        if settings.slots or not store.is_shared:
            await workspaces.override_slots(tx, workspaces.DEFAULT, settings.slots.get(workspaces.DEFAULT))


@asynccontextmanager
async def _running(engine: NativeEngine) -> AsyncIterator[None]:
    await engine.open()
    try:
        yield
    finally:
        await engine.close()


@asynccontextmanager
async def _swept(store: Store, settings: Settings) -> AsyncIterator[None]:
    """What is old goes while a worker lives; not in the first minute, which is all that many have."""

    async def sweep() -> None:
        await asyncio.sleep(FIRST_SWEEP)
        await run_forever(store, settings.retention)

    sweeping = asyncio.get_running_loop().create_task(sweep()) if settings.native.claims else None
    try:
        yield
    finally:
        if sweeping is not None:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)


def _spoken_to(service: Service, store: Store) -> AbstractAsyncContextManager[None]:
    """Other processes of this machine reach the one owner of a file through its socket; a shared store needs none."""
    return listening(service, store) if isinstance(store, SqliteStore) else nullcontext()
