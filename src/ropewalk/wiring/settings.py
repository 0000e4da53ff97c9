"""Everything that can be set, as the parts of Ropewalk are given it."""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Self

import msgspec
from msgspec import Struct

from ropewalk.access.rates import Limits as Rates
from ropewalk.access.rates import Rate
from ropewalk.access.settings import AccessSettings, Issuer
from ropewalk.configuration import LONGEST_KEPT, Configuration, Found, resolve
from ropewalk.core.breaker import BreakerPolicies
from ropewalk.core.call_settings import breaker_policies, rate_limits
from ropewalk.core.definition import DEFAULT_LIMITS, Limits
from ropewalk.core.duration import parse_duration
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service.retention import Policy
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.settings import Kind
from ropewalk.store.address import path_of

DEFAULT_DB = "ropewalk.db"


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
    key_before: str | None = None
    credential_env: tuple[str, ...] = ()
    credential_files: tuple[str, ...] = ()
    worker: WorkerSettings = WorkerSettings()
    fleet: FleetSettings = FleetSettings()
    limits: Limits = DEFAULT_LIMITS
    default_slots: int | None = None
    retention: Policy = Policy()
    access: AccessSettings = AccessSettings()
    streams: StreamLimits = StreamLimits()
    telemetry: TelemetrySettings = TelemetrySettings()
    mail: MailSettings = MailSettings()
    file_bytes: int = 2**30
    files_root: str | None = None
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
            key_before=said["key_before"],
            credential_env=said["credentials.env"],
            credential_files=said["credentials.files"],
            worker=_worker(said),
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
            file_bytes=said["files.max_mib"] * 2**20,
            files_root=said["files.root"],
            allow_hosts=said["allow_hosts"],
            env=said["env"],
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, db: str | None = None) -> Self:
        """What the environment says. `ROPEWALK_ENV_NAME` is what expressions see as `env.NAME`, and nothing else is."""
        return cls.of(resolve({"db": db}, environment, folder=None))


def _worker(said: Configuration) -> WorkerSettings:
    return WorkerSettings(
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
