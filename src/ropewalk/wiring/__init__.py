"""Settings in, objects out: the only place that names concrete things, reads the environment and asks the clock."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ropewalk.core.canonical import writable
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.engines.settings import DEFAULT_POOL, WorkerSettings
from ropewalk.service.retention import run_forever
from ropewalk.store import workspaces
from ropewalk.store.access import Store
from ropewalk.store.address import is_shared
from ropewalk.wiring.settings import DEFAULT_DB, FleetSettings, LogForm, MailSettings, Settings, TelemetrySettings
from ropewalk.wiring.telemetry import watched

if TYPE_CHECKING:
    from ropewalk.access.secret_key import SecretKey
    from ropewalk.api.backend import Backend
    from ropewalk.engines.base import Engine
    from ropewalk.engines.vault import Vault
    from ropewalk.nodes.base import NodeType, Registry
    from ropewalk.nodes.functions import Functions
    from ropewalk.nodes.smtp import SmtpSettings
    from ropewalk.service import Service
    from ropewalk.service.node_types import Load
    from ropewalk.telemetry.metrics import Metrics

__all__ = ["DEFAULT_DB", "FleetSettings", "LogForm", "MailSettings", "Settings", "TelemetrySettings"]

FIRST_SWEEP = 60.0


def node_types(extra: "Iterable[NodeType]" = ()) -> "Registry":
    """The built-in types, those of installed packages, and these."""
    from ropewalk.nodes.base import Registry  # here, since a command that only reads does without node types

    types = Registry.builtin()
    types.load_entry_points()
    for each in extra:
        types.register(each)
    return types


def _smtp(mail: MailSettings) -> "SmtpSettings | None":
    """The mail server that is set, if one is."""
    if mail.host is None:
        return None
    from pydantic import ValidationError  # here, since most stores have no mail server

    from ropewalk.nodes.smtp import SmtpSettings

    named = {"host": mail.host, "port": mail.port, "username": mail.username, "password": mail.password}
    try:
        return SmtpSettings.model_validate({**named, "tls": mail.tls})
    except ValidationError as error:
        raise InvalidInput(
            [Problem(("smtp", *each["loc"]), each["msg"]) for each in error.errors(include_input=False)]
        ) from error


def _sender(mail: MailSettings) -> str | None:
    """Whom mail is from, if that is set."""
    if mail.sender is None:
        return None
    from ropewalk.nodes.email import parse_address

    try:
        parse_address(mail.sender)
    except ValueError as error:
        raise InvalidInput([Problem(("smtp", "sender"), str(error))]) from error
    return mail.sender


@asynccontextmanager
async def open_service(
    settings: Settings,
    types: "Registry | None" = None,
    functions: "Functions | None" = None,
    metrics: "Metrics | None" = None,
    load: "Load | None" = None,
) -> "AsyncIterator[Service]":
    """A Ropewalk on its store, with everything under way taken up again; drained at the end.

    With `load`, other processes of this user may bring it node types.
    """
    # Here, since a command that only reads, or reads the settings, does without an engine and starts the sooner.
    from ropewalk.access.reach import SharedReach
    from ropewalk.engines.credentials import StoredCredentials
    from ropewalk.engines.files import StoredFiles
    from ropewalk.engines.kept_values import StoredValues
    from ropewalk.engines.native.engine import NativeEngine
    from ropewalk.engines.references import References
    from ropewalk.nodes.facilities import Facilities
    from ropewalk.nodes.network import NetworkPolicy
    from ropewalk.service import Service
    from ropewalk.service.node_types import NodeTypeLoader
    from ropewalk.service.speaking import SpokenExecutions

    types = node_types() if types is None else types
    policy = NetworkPolicy(allow=settings.allow_hosts)
    facilities = Facilities(policy, smtp=_smtp(settings.mail), sender=_sender(settings.mail), functions=functions)
    facilities.files_root = settings.files_root
    try:
        async with _opened(settings) as store:
            await _prepare(store, settings)
            reach, references = SharedReach(store), References(settings.credential_env, settings.credential_files)
            facilities.kept_values = StoredValues(store)
            facilities.files = StoredFiles(store, settings.file_bytes)
            facilities.credentials = stored = StoredCredentials(store, _vault(store, settings), reach, references)
            engine: Engine = NativeEngine(store, types, facilities, _of_pool(settings), reach)
            env = {name: writable(value) for name, value in settings.env.items()}
            loader = None if load is None else NodeTypeLoader(types, facilities.functions, load)
            service = Service(store, engine, types, env, settings.limits, loader=loader)
            service.stored_credentials, service.facilities = stored, facilities
            facilities.executions = SpokenExecutions(service)
            async with (
                watched(engine, settings.telemetry, metrics),
                _swept(engine, settings),
                _running(engine),
                _spoken_to(service, settings),
            ):
                try:
                    yield service
                finally:
                    # Before anything else ends: nothing new begins while the rest is being closed.
                    engine.begin_closing()
    finally:
        await facilities.close()


@asynccontextmanager
async def open_backend(
    settings: Settings, types: "Registry | None" = None, functions: "Functions | None" = None
) -> AsyncIterator["Backend"]:
    """What a server's handlers work with, on a Ropewalk of its own."""
    # Here, since a process that does not serve does without the web.
    from ropewalk.api.backend import Backend
    from ropewalk.api.nouns.metrics import ServerMetrics
    from ropewalk.service.metrics import Sampler
    from ropewalk.telemetry.metrics import Metrics

    metrics = Metrics() if settings.telemetry.metrics else None
    async with open_service(settings, types, functions, metrics) as service:
        about = (settings.access, settings.streams, _secret_key(settings), _keys_before(settings))
        backend = await Backend.open(service.store, service.of, *about)
        backend.metrics = None if metrics is None else ServerMetrics(metrics, Sampler(service.store))
        backend.file_bytes = settings.file_bytes
        async with _scheduled(service):
            yield backend


@asynccontextmanager
async def _scheduled(service: "Service") -> AsyncIterator[None]:
    """Schedules fire and queues are consumed while a server is up; a command that comes and goes does neither."""
    from ropewalk.triggers.queue import Queues  # here, as in `open_backend`
    from ropewalk.triggers.scheduler import Scheduler

    firing = [asyncio.get_running_loop().create_task(each.run()) for each in (Scheduler(service), Queues(service))]
    try:
        yield
    finally:
        for each in firing:
            each.cancel()
        await asyncio.gather(*firing, return_exceptions=True)


def health_backend(service: "Service", settings: Settings, metrics: "Metrics | None") -> "Backend":
    """What the health port of a worker works with; it signs nothing that another process would have to know again."""
    # Here, as in `open_backend`.
    from ropewalk.api.backend import Backend
    from ropewalk.api.nouns.metrics import ServerMetrics
    from ropewalk.api.shapes.cursors import Cursors
    from ropewalk.service.metrics import Sampler

    backend = Backend(service.store, service.of, Cursors(secrets.token_hex(32)), settings.access)
    backend.metrics = None if metrics is None else ServerMetrics(metrics, Sampler(service.store))
    return backend


def _secret_key(settings: Settings) -> "SecretKey":
    """The key that is set, else the one in its file: beside the store's own file, or with the user's configuration."""
    from ropewalk.access.secret_key import SecretKey, from_file, from_file_or_random

    if settings.key is not None:
        return SecretKey(settings.key)
    is_ours = settings.key_file is not None or not is_shared(settings.db)
    return (from_file if is_ours else from_file_or_random)(_key_path(settings))


def _vault(store: Store, settings: Settings) -> "Vault":
    """What opens the secrets of credentials; the master key is looked for when a secret is first needed."""
    from ropewalk.access.secret_key import master_keys  # here, as in `open_service`
    from ropewalk.engines.vault import Vault

    return Vault(store, lambda: master_keys(store, _master_key(settings), _keys_before(settings)))


def _keys_before(settings: Settings) -> "list[SecretKey]":
    """The keys that are accepted while keys are rotated: the one that is set, and the one in the file beside it."""
    from ropewalk.access.secret_key import SecretKey, in_file

    set_before = [] if settings.key_before is None else [SecretKey(settings.key_before)]
    kept = None if settings.is_thrown_away else in_file(f"{_key_path(settings)}.before")
    return set_before if kept is None else [*set_before, kept]


def _master_key(settings: Settings) -> "SecretKey":
    """As `_secret_key`; but what would be encrypted with a key of this process alone could never be read again."""
    from ropewalk.access.secret_key import SecretKey, from_file

    if settings.key is not None:
        return SecretKey(settings.key)
    if settings.is_thrown_away:
        return SecretKey.random()
    return from_file(_key_path(settings))


def known_keys(settings: Settings) -> "list[SecretKey]":
    """The secret keys that are set, or in their files; none is made."""
    from ropewalk.access.secret_key import SecretKey, in_file

    own = SecretKey(settings.key) if settings.key is not None else in_file(_key_path(settings))
    return [*([] if own is None else [own]), *_keys_before(settings)]


def _key_path(settings: Settings) -> str:
    if settings.key_file is not None:
        return settings.key_file
    if not is_shared(settings.db):
        return f"{os.path.realpath(settings.db)}.key"
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "ropewalk", "key")


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Store]:
    # Here, as in `open_service`.
    from importlib.metadata import version as installed_version

    version = installed_version("ropewalk")
    store: Store
    guard: AbstractAsyncContextManager[None] = nullcontext()
    if is_shared(settings.db):
        fleet = settings.fleet
        # Here, since a process that works on a file does without the driver, and starts sooner.
        from ropewalk.store.postgres import PostgresStore

        store = await PostgresStore.open(
            settings.db,
            version=version,
            pool=fleet.pool,
            slots=settings.worker.executions if settings.worker.claims else 0,
            lease_seconds=fleet.lease_seconds,
            beat_seconds=fleet.lease_seconds / 3,
            notify=fleet.notify,
            pooled=fleet.pooled,
        )
    else:
        from ropewalk.store.sqlite import SqliteStore, guarded

        file = await SqliteStore.open(settings.db, version=version, is_thrown_away=settings.is_thrown_away)
        store, guard = file, guarded(file)
    try:
        async with guard:
            yield store
    finally:
        await store.close()


def _of_pool(settings: Settings) -> WorkerSettings:
    """A worker of a pool carries out the runs of its pool, and owns no executions."""
    worker, pool = settings.worker, settings.fleet.pool
    return replace(worker, pool=pool, claims=worker.claims and pool == DEFAULT_POOL)


async def _prepare(store: Store, settings: Settings) -> None:
    async with store.transaction() as tx:
        await workspaces.ensure_default(tx, store.now())
        if settings.default_slots is not None or not store.is_shared:
            await workspaces.override_slots(tx, workspaces.DEFAULT, settings.default_slots)


@asynccontextmanager
async def _running(engine: "Engine") -> AsyncIterator[None]:
    try:
        await engine.open()
        yield
    finally:
        await engine.close()


@asynccontextmanager
async def _swept(engine: "Engine", settings: Settings) -> AsyncIterator[None]:
    """What is old goes while a worker lives; not in the first minute, which is all that many have."""

    async def sweep() -> None:
        await asyncio.sleep(FIRST_SWEEP)
        await run_forever(engine.store, settings.retention, custody=engine.custody)

    sweeping = asyncio.get_running_loop().create_task(sweep()) if settings.worker.claims else None
    try:
        yield
    finally:
        if sweeping is not None:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)


def _spoken_to(service: "Service", settings: Settings) -> AbstractAsyncContextManager[None]:
    """Other processes of this machine reach the one owner of a file through its socket.

    A shared store needs none, and no other process knows of one that is thrown away.
    """
    # Here, as in `open_service`.
    from ropewalk.control.server import listening
    from ropewalk.store.sqlite import SqliteStore

    store = service.store
    if settings.is_thrown_away or not isinstance(store, SqliteStore):
        return nullcontext()
    return listening(service, store)
