"""Settings in, objects out: the only place that names concrete things, reads the environment and asks the clock."""

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.access.rates import Limits as Rates
from ropewalk.access.rates import Rate
from ropewalk.access.settings import AccessSettings, Issuer
from ropewalk.configuration import LONGEST_KEPT, Configuration, Found, Kind, resolve
from ropewalk.core.breaker import BreakerPolicies
from ropewalk.core.call_settings import breaker_policies, rate_limits
from ropewalk.core.canonical import writable
from ropewalk.core.definition import DEFAULT_LIMITS, Limits
from ropewalk.core.duration import parse_duration
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.engines.native.settings import DEFAULT_POOL, NativeSettings
from ropewalk.service.retention import Policy, run_forever
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.store import workspaces
from ropewalk.store.access import Store
from ropewalk.store.address import is_shared, path_of

if TYPE_CHECKING:
    from ropewalk.access.secret_key import SecretKey
    from ropewalk.api.office import Office
    from ropewalk.engines.native.engine import NativeEngine
    from ropewalk.nodes.base import NodeType, Registry
    from ropewalk.nodes.functions import Functions
    from ropewalk.nodes.smtp import SmtpSettings
    from ropewalk.service import Service
    from ropewalk.service.learning import Load
    from ropewalk.telemetry.metrics import Metrics

DEFAULT_DB = "ropewalk.db"
FIRST_SWEEP = 60.0
METRICS_EVERY = 15.0
SENDING = 10.0
"""How long the receiver of telemetry is waited for (s)."""

_log = logging.getLogger("ropewalk.telemetry")


class FleetSettings(Struct, frozen=True, kw_only=True):
    """How a worker lives with others on a shared store."""

    pool: str = "default"
    lease_seconds: float = 15.0
    notify: bool = True
    pooled: bool = False


class LogForm(StrEnum):
    """How servers and workers log."""

    PLAIN = "plain"
    CONSOLE = "console"
    JSON = "json"


class TelemetrySettings(Struct, frozen=True, kw_only=True):
    """What operators see: figures of a server, where traces go, and how structured the log is."""

    metrics: bool = True
    log: LogForm = LogForm.PLAIN
    otlp_endpoint: str | None = None
    service_name: str = "ropewalk"


class MailSettings(Struct, frozen=True, kw_only=True):
    """The mail server of nodes that name none, and whom their mail is from; without a host there is none."""

    host: str | None = None
    port: int = 587
    tls: str = "starttls"
    username: str | None = None
    password: str | None = None
    sender: str | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be set, with what holds if nothing is.

    `default_slots` limits the workspace of the embedded mode; none does, unless it is measured or tried.
    `is_thrown_away` is for the file of a test: it is not synced to the disk, and its time can be moved.
    """

    db: str = DEFAULT_DB
    is_thrown_away: bool = False
    key: str | None = None
    key_file: str | None = None
    native: NativeSettings = NativeSettings()
    fleet: FleetSettings = FleetSettings()
    limits: Limits = DEFAULT_LIMITS
    default_slots: int | None = None
    retention: Policy = Policy()
    access: AccessSettings = AccessSettings()
    streams: StreamLimits = StreamLimits()
    telemetry: TelemetrySettings = TelemetrySettings()
    mail: MailSettings = MailSettings()
    allow_hosts: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """What a configuration says."""
        said = configuration
        return cls(
            db=path_of(said["db"]),
            key=said["key"],
            key_file=said["key_file"],
            native=_worker(said),
            fleet=FleetSettings(
                pool=said["pool"], lease_seconds=said["lease"], notify=said["notify"], pooled=said["pooled"]
            ),
            retention=_retention(said),
            access=_access(said),
            streams=StreamLimits(**{name: said[f"streams.{name}"] for name in StreamLimits.__struct_fields__}),
            telemetry=TelemetrySettings(
                log=_log_form(said["telemetry.log"]),
                **{name: said[f"telemetry.{name}"] for name in ("metrics", "otlp_endpoint", "service_name")},
            ),
            mail=MailSettings(**{name: said[f"smtp.{name}"] for name in MailSettings.__struct_fields__}),
            allow_hosts=said["allow_hosts"],
            env=said["env"],
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, db: str | None = None) -> Self:
        """What the environment says. `ROPEWALK_ENV_NAME` is what expressions see as `env.NAME`, and nothing else is."""
        return cls.of(resolve({"db": db}, environment, folder=None))


def _worker(said: Configuration) -> NativeSettings:
    return NativeSettings(
        hands=said["hands"], executions=said["slots"], drain_seconds=said["drain"], runner_lease=said["runner.lease"],
        claim_batch=said["dispatcher.batch"], dispatch_attempts=said["dispatcher.attempts"],
        execution_bytes=said["execution.max_mib"] * 2**20,
        breaker=_breakers(said),
        rate_limits=rate_limits(said["rate_limits"], ("rate_limits",)),
    )  # fmt: skip


def _breakers(said: Configuration) -> BreakerPolicies:
    numbers = {each.setting.name.removeprefix("breaker."): each for each in said if _is_number_of_breaker(each)}
    spans = {name: (each.setting.low, each.setting.high) for name, each in numbers.items()}
    return breaker_policies({name: each.value for name, each in numbers.items()}, said["breaker.rules"], spans)


def _is_number_of_breaker(found: Found) -> bool:
    return found.setting.name.startswith("breaker.") and found.setting.kind in (Kind.INTEGER, Kind.NUMBER)


def _retention(said: Configuration) -> Policy:
    audit = said["retention.audit"]
    return Policy(
        executions=parse_duration(said["retention.executions"], longest=LONGEST_KEPT),
        letters=parse_duration(said["retention.letters"], longest=LONGEST_KEPT),
        audit=None if audit is None else parse_duration(audit, longest=LONGEST_KEPT),
    )


def _access(said: Configuration) -> AccessSettings:
    try:
        issuers = msgspec.convert(said["access.issuers"], tuple[Issuer, ...])
    except msgspec.ValidationError as error:
        raise InvalidInput([Problem(("access", "issuers"), str(error))]) from error
    limits = Rates(
        per_actor=_rate(said["access.rate_per_actor"]), per_address=_rate(said["access.rate_per_address"]),
        failures=_per_minute(said["access.failures_per_minute"]),
    )  # fmt: skip
    return AccessSettings(issuers=issuers, limits=limits, origins=said["access.origins"])


def _log_form(word: str) -> LogForm:
    try:
        return LogForm(word)
    except ValueError as error:
        known = ", ".join(LogForm)
        raise InvalidInput([Problem(("telemetry", "log"), f"must be one of {known}, not {word!r}")]) from error


def _rate(per_second: int) -> Rate | None:
    return Rate(per_second, 2 * per_second) if per_second else None


def _per_minute(count: int) -> Rate | None:
    return Rate(count / 60, count) if count else None


def node_types(extra: "Iterable[NodeType]" = ()) -> "Registry":
    """The built-in types, those of installed packages, and these."""
    from ropewalk.nodes.base import Registry  # here, since whoever only looks does without node types

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
    # Here, since whoever only looks, or reads the settings, does without an engine and starts the sooner.
    from ropewalk.access.reach import SharedReach
    from ropewalk.engines.native.engine import NativeEngine
    from ropewalk.engines.native.kept_values import StoredValues
    from ropewalk.nodes.facilities import Facilities
    from ropewalk.nodes.network import NetworkPolicy
    from ropewalk.service import Service
    from ropewalk.service.learning import Learning

    types = node_types() if types is None else types
    policy = NetworkPolicy(allow=settings.allow_hosts)
    facilities = Facilities(policy, smtp=_smtp(settings.mail), sender=_sender(settings.mail), functions=functions)
    try:
        async with _opened(settings) as store:
            await _prepare(store, settings)
            facilities.kept_values = StoredValues(store)
            engine = NativeEngine(store, types, facilities, _native(settings), SharedReach(store))
            env = {name: writable(value) for name, value in settings.env.items()}
            learning = None if load is None else Learning(types, facilities.functions, load)
            service = Service(store, engine, types, env, settings.limits, learning=learning)
            watched = _watched(engine, settings.telemetry, metrics)
            async with watched, _swept(store, settings), _running(engine), _spoken_to(service, settings):
                try:
                    yield service
                finally:
                    # Before anything else ends: nothing new begins while the rest is being closed.
                    engine.begin_closing()
    finally:
        await facilities.close()


@asynccontextmanager
async def open_office(
    settings: Settings, types: "Registry | None" = None, functions: "Functions | None" = None
) -> AsyncIterator["Office"]:
    """What a server's handlers work with, on a Ropewalk of its own."""
    # Here, since whoever does not serve does without the web.
    from ropewalk.api.metrics import Figures
    from ropewalk.api.office import Office
    from ropewalk.service.sampling import Sampler
    from ropewalk.telemetry.metrics import Metrics

    metrics = Metrics() if settings.telemetry.metrics else None
    async with open_service(settings, types, functions, metrics) as service:
        office = await Office.open(service.store, service.of, settings.access, settings.streams, _secret_key(settings))
        office.figures = None if metrics is None else Figures(metrics, Sampler(service.store))
        yield office


def office_for_health(service: "Service", settings: Settings, metrics: "Metrics | None") -> "Office":
    """What the health port of a worker works with; it signs nothing that another process would have to know again."""
    # Here, as in `open_office`.
    from ropewalk.api.cursors import Cursors
    from ropewalk.api.metrics import Figures
    from ropewalk.api.office import Office
    from ropewalk.service.sampling import Sampler

    office = Office(service.store, service.of, Cursors(secrets.token_hex(32)), settings.access)
    office.figures = None if metrics is None else Figures(metrics, Sampler(service.store))
    return office


def _secret_key(settings: Settings) -> "SecretKey":
    """The key that is set, else the one in its file: beside the store's own file, or with the user's configuration."""
    from ropewalk.access.secret_key import SecretKey, from_file, from_file_or_random

    if settings.key is not None:
        return SecretKey(settings.key)
    if settings.key_file is not None:
        return from_file(settings.key_file)
    if not is_shared(settings.db):
        return from_file(f"{os.path.realpath(settings.db)}.key")
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return from_file_or_random(os.path.join(home, "ropewalk", "key"))


@asynccontextmanager
async def _watched(
    engine: "NativeEngine", settings: TelemetrySettings, metrics: "Metrics | None"
) -> AsyncIterator[None]:
    """What the engine does is counted and traced, as far as anybody wants to know; else it has no observer."""
    if metrics is None and settings.otlp_endpoint is None and settings.log is LogForm.PLAIN:
        yield
        return
    # Here, since most commands do without them.
    from ropewalk.engines.native.observing import watch
    from ropewalk.telemetry.metrics import Metrics
    from ropewalk.telemetry.traces import open_spans
    from ropewalk.telemetry.watch import Watch

    endpoint = settings.otlp_endpoint
    spans = None if endpoint is None else open_spans(endpoint, settings.service_name)
    kept = Metrics() if metrics is None else metrics
    kept.count_stale_writes(lambda: engine.store.stale_writes)
    kept.count_rewinds(lambda: len(engine.store.rewinds))
    observer = Watch(kept, spans)
    watch(engine, observer)
    try:
        async with nullcontext() if endpoint is None else _sent(engine.store, kept, endpoint, settings.service_name):
            yield
    finally:
        await _on_a_thread(observer.close)


@asynccontextmanager
async def _sent(store: Store, metrics: "Metrics", endpoint: str, service_name: str) -> AsyncIterator[None]:
    """The figures are sent now and then, and at the end."""
    from ropewalk.service.sampling import Sampler
    from ropewalk.telemetry.sending import Sender

    sender, sampler = Sender(metrics, endpoint, service_name), Sampler(store)

    async def send() -> None:
        while True:
            await asyncio.sleep(METRICS_EVERY)
            try:
                metrics.show(await sampler.sample())
                await _on_a_thread(sender.send)
            except Exception:  # noqa: BLE001 -- the figures of one moment; those of the next are sent again
                _log.exception("the metrics cannot be sent now; it is tried again")

    sending = asyncio.get_running_loop().create_task(send())
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await _on_a_thread(sender.close)


async def _on_a_thread(send: Callable[[], None]) -> None:
    """Send something to a receiver that may be silent, or have a name without an answer; abandoned if it takes long."""
    from ropewalk.nodes.work import Threads  # here, as in `open_service`

    threads = Threads(1)
    try:
        async with asyncio.timeout(SENDING):
            await threads.call(send, {})
    except TimeoutError:
        _log.warning("telemetry could not be sent within %g s: is the receiver there?", SENDING)
    finally:
        threads.close()


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Store]:
    # Here, as in `open_service`.
    from importlib.metadata import version as installed_version

    version = installed_version("ropewalk")
    store: Store
    guard: AbstractAsyncContextManager[None] = nullcontext()
    if is_shared(settings.db):
        fleet = settings.fleet
        # Here, since whoever works on a file does without the driver, and starts the sooner.
        from ropewalk.store.postgres import PostgresStore

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
        from ropewalk.store.sqlite import SqliteStore, guarded

        file = await SqliteStore.open(settings.db, version=version, is_thrown_away=settings.is_thrown_away)
        store, guard = file, guarded(file)
    try:
        async with guard:
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
        if settings.default_slots is not None or not store.is_shared:
            await workspaces.override_slots(tx, workspaces.DEFAULT, settings.default_slots)


@asynccontextmanager
async def _running(engine: "NativeEngine") -> AsyncIterator[None]:
    try:
        await engine.open()
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
