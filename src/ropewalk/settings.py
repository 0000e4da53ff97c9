"""The one table of what can be set: its kind, its default, where it may be said, and what it is for."""

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

PREFIX: Final = "ROPEWALK_"


class Kind(StrEnum):
    """What a value is, and how it is written where there is only text."""

    TEXT = "a text"
    INTEGER = "an integer"
    NUMBER = "a number"
    SWITCH = "true or false"
    WORDS = "a list of texts"
    DURATION = "a duration"
    TABLE = "a table of texts"
    TABLES = "a list of tables"
    TABLES_BY_NAME = "a table of tables"


class Setting(Struct, frozen=True, kw_only=True):
    """One thing that can be set. A secret is never shown."""

    name: str
    kind: Kind
    default: Any
    about: str
    flag: str | None = None
    low: float = 0
    high: float = 10**9
    is_secret: bool = False

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.name.upper().replace(".", "_")

    @property
    def span(self) -> str:
        """From where to where a number may go."""
        low, high = (f"{each:,.1f}".removesuffix(".0") for each in (self.low, self.high))
        return f"{low} to {high}"


def _integer(name: str, default: int, about: str, low: int = 0, high: int = 1_000_000, flag: str | None = None
             ) -> Setting:  # fmt: skip
    return Setting(name=name, kind=Kind.INTEGER, default=default, about=about, low=low, high=high, flag=flag)


def _number(name: str, default: float, about: str, low: float = 0.1, high: float = 3_600, flag: str | None = None
             ) -> Setting:  # fmt: skip
    return Setting(name=name, kind=Kind.NUMBER, default=default, about=about, low=low, high=high, flag=flag)


def _switch(name: str, default: bool, about: str, flag: str | None = None) -> Setting:
    return Setting(name=name, kind=Kind.SWITCH, default=default, about=about, flag=flag)


def _text(name: str, default: str | None, about: str, flag: str | None = None, *, is_secret: bool = False) -> Setting:
    return Setting(name=name, kind=Kind.TEXT, default=default, about=about, flag=flag, is_secret=is_secret)


def _words(name: str, about: str, flag: str | None = None) -> Setting:
    return Setting(name=name, kind=Kind.WORDS, default=(), about=about, flag=flag)


def _kept(name: str, default: str | None, about: str) -> Setting:
    return Setting(name=name, kind=Kind.DURATION, default=default, about=about)


SETTINGS: Final[tuple[Setting, ...]] = (
    _text("db", "ropewalk.db", "The store: a file, or postgresql://user@host/database.", "--db"),
    _text("key", None, "The secret key of the store's servers; the same for all of them.", is_secret=True),
    _text("key_file", None, "The file it is in, if it is not said; beside a file, else in the user's configuration."),
    _text("key_before", None, "The secret key from before, read while the master key is rotated.", is_secret=True),
    _words("credentials.env", "Variables that credentials may refer to as `env:NAME`; `PAY_*` is all that begin so."),
    _words("credentials.files", "Folders with files that credentials may refer to as `file:/path`."),
    _words("nodes", "Modules, .py files or YAML declarations with node types.", "--nodes"),
    _words("allow_hosts", "Hosts that are not public and that nodes may speak to all the same."),
    Setting(
        name="env",
        kind=Kind.TABLE,
        default={},
        is_secret=True,
        about="What expressions see as `env`. In the environment: ROPEWALK_ENV_NAME is `env.NAME`.",
    ),
    _integer("hands", 5_000, "How many nodes a worker carries out at once."),
    _integer("slots", 20_000, "How many executions a worker has in hand at once.", 1, flag="--slots"),
    _integer(
        "execution.max_mib", 1_024, "How much one execution may store (MiB): its log, its large values, its files.", 1
    ),
    _text(
        "files.root", None, "Below which folder each workspace has its own, for `file.*`; one that all workers reach."
    ),
    _integer("files.max_mib", 1_024, "How large one file may be (MiB).", 1, 1_048_576),
    _number("drain", 10.0, "How long running nodes may take when a worker leaves (s).", 0, flag="--drain"),
    _text(
        "pool", "default", "The pool whose nodes a worker carries out; any but `default` owns no executions.", "--pool"
    ),
    _number("lease", 15.0, "Not heard of for so long (s), a worker of a fleet counts as dead.", 1, flag="--lease"),
    _integer(
        "health_port",
        0,
        "The port at which `ropewalk worker` tells of its health and figures; 0 is none.",
        0,
        65_535,
        "--health-port",
    ),
    _number("runner.lease", 120.0, "Not heard of for so long (s), an external runner loses its runs.", 1),
    _switch("notify", True, "Workers of a fleet wake each other.", "--no-notify"),
    _switch("pooled", False, "A transaction pooler is in front of the database.", "--pooled"),
    _switch("dispatcher.enabled", True, "`ropewalk up` executes; if not, it accepts only.", "--no-dispatch"),
    _integer("dispatcher.attempts", 3, "How often a start that cannot be dispatched is tried before it fails.", 1, 100),
    _integer("dispatcher.batch", 100, "How many starts a worker claims at once.", 1, 10_000),
    _integer("breaker.minimum_calls", 10, "With fewer calls in the window the breaker of a target stays closed.", 1),
    _number(
        "breaker.failure_rate", 50.0, "Which share of the calls in the window must have failed to open it (%).", 1, 100
    ),
    _number("breaker.window", 60.0, "The window they are counted in (s)."),
    _number("breaker.cooldown", 30.0, "How long an open breaker lets nothing through (s)."),
    _integer(
        "breaker.probes", 3, "How many calls it lets through at once after that, to see whether it is back.", 1, 100
    ),
    _integer(
        "breaker.successes", 2, "How many of them must succeed to close it again; one that fails opens it.", 1, 100
    ),
    Setting(
        name="breaker.rules",
        kind=Kind.TABLES,
        default=(),
        about="Other numbers for the targets of a node type (`type`), of hosts like a pattern (`host`), or of both.",
    ),
    Setting(
        name="rate_limits",
        kind=Kind.TABLES_BY_NAME,
        default={},
        about="How many calls may begin in which time, by name: `limit`, `per`, and `hosts` whose calls keep it too.",
    ),
    _text("server.host", "127.0.0.1", "Where to listen.", "--host"),
    _integer("server.port", 8470, "The port to listen on; 0 is any that is free.", 0, 65_535, "--port"),
    _switch(
        "server.allow_remote", False, "Let other machines in, if the host is reached from there.", "--allow-remote"
    ),
    _integer(
        "server.workers",
        1,
        "How many processes execute, on PostgreSQL; if several, not the server.",
        1,
        64,
        "--workers",
    ),
    _number("server.drain", 10.0, "How long requests may take when the server leaves (s).", 0),
    _number("server.header_timeout", 10.0, "How long the headers of a request may take (s)."),
    _number("server.body_timeout", 30.0, "How long the body of a request may take (s)."),
    _number("server.idle_timeout", 15.0, "How long a connection stays open between requests (s)."),
    _number("server.write_timeout", 20.0, "How long a client may not read what is sent to it (s)."),
    _integer("server.connections", 10_000, "How many connections there may be.", 1),
    _integer("server.connections_per_address", 2_500, "How many of them from one address.", 1),
    Setting(
        name="access.issuers",
        kind=Kind.TABLES,
        default=(),
        about="Whose tokens prove who people are: `issuer`, `audience`, `jwks_url` and more.",
    ),
    _words("access.origins", "Where our own pages are shown, if a proxy shows them elsewhere."),
    _integer("access.rate_per_actor", 1_000, "Requests per second of one caller; twice as many at once; 0: any."),
    _integer("access.rate_per_address", 500, "The same of one address before it has said who it is; 0: any."),
    _integer("access.failures_per_minute", 30, "Failed logins from one address in a minute; as many at once; 0: any."),
    _integer("streams.readers", 5_000, "How many live streams a server has open at once.", 1),
    _integer("streams.per_actor", 100, "How many of them are one caller's.", 1),
    _integer("streams.kept", 10_000, "How many events each keeps; a reader that is further behind is cut off.", 1),
    _integer("streams.kept_mib", 4, "How large they are together at the most (MiB), once for all readers.", 1, 1_024),
    _number("streams.stalled", 10.0, "How long a reader may take nothing before it is cut off (s).", 1),
    # Our own client takes half a minute of silence for a line that is dead.
    _number("streams.beat", 15.0, "After how much silence (s) a stream gives a sign of life.", 1, 20),
    _text("smtp.host", None, "The mail server of `email.send`, where a node names none; `allow_hosts` if not public."),
    _integer("smtp.port", 587, "Its port.", 1, 65_535),
    _text("smtp.tls", "starttls", "How it is spoken to: starttls, tls or none."),
    _text("smtp.username", None, "The user that logs in there, if the server wants one."),
    _text("smtp.password", None, "With which password.", is_secret=True),
    _text("smtp.sender", None, "Whom mail is from, where a node does not say."),
    _switch("telemetry.metrics", True, "A server keeps figures and shows them at /metrics."),
    _text(
        "telemetry.otlp_endpoint",
        None,
        "Where traces are sent by OTLP over HTTP; OTEL_EXPORTER_OTLP_ENDPOINT is heeded too.",
    ),
    _text("telemetry.service_name", "ropewalk", "What it is called in traces."),
    _text(
        "telemetry.log",
        "plain",
        "How servers and workers log: plain for people; console or json for structured lines with every id.",
    ),
    _kept("retention.executions", "30d", "How long executions are kept after their end."),
    _kept("retention.letters", "30d", "How long dead letters are kept after they are resolved."),
    _kept("retention.audit", None, "How long the audit log is kept; for good if nothing is said."),
)
