"""What can be set, where it may be said, and what holds: flags over environment over one file over defaults.

One table says it all. The environment's name of a setting is its own in capitals (`server.port` is
ROPEWALK_SERVER_PORT); in the file, what is before the dot is a table.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.canonical import is_text
from ropewalk.core.duration import DAY, format_duration, parse_duration
from ropewalk.core.errors import InvalidInput, Problem

FILE: Final = "ropewalk.toml"
PREFIX: Final = "ROPEWALK_"
NAMES_FILE: Final = "ROPEWALK_CONFIG"
DEFAULT: Final = "default"
LONGEST_KEPT: Final = 100 * 365 * DAY
_CAPITAL: Final = re.compile(r"(?<=[a-z])[A-Z]")
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")


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


def _seconds(name: str, default: float, about: str, low: float = 0.1, high: float = 3_600, flag: str | None = None
             ) -> Setting:  # fmt: skip
    return Setting(name=name, kind=Kind.NUMBER, default=default, about=about, low=low, high=high, flag=flag)


def _switch(name: str, default: bool, about: str, flag: str | None = None) -> Setting:
    return Setting(name=name, kind=Kind.SWITCH, default=default, about=about, flag=flag)


def _text(name: str, default: str | None, about: str, *, is_secret: bool = False) -> Setting:
    return Setting(name=name, kind=Kind.TEXT, default=default, about=about, is_secret=is_secret)


def _words(name: str, about: str, flag: str | None = None) -> Setting:
    return Setting(name=name, kind=Kind.WORDS, default=(), about=about, flag=flag)


def _kept(name: str, default: str | None, about: str) -> Setting:
    return Setting(name=name, kind=Kind.DURATION, default=default, about=about)


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        name="db",
        kind=Kind.TEXT,
        default="ropewalk.db",
        flag="--db",
        about="The store: a file, or postgresql://user@host/database.",
    ),
    _text("key", None, "The secret key of the store's servers; the same for all of them.", is_secret=True),
    _text("key_file", None, "The file it is in, if it is not said; beside a file, else in the user's configuration."),
    _words("nodes", "Modules or .py files with node types.", "--nodes"),
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
    _integer("execution.max_mib", 1_024, "How much one execution may store (MiB): its log and its large values.", 1),
    _seconds("drain", 10.0, "How long running nodes may take when a worker leaves (s).", 0, flag="--drain"),
    Setting(
        name="pool",
        kind=Kind.TEXT,
        default="default",
        flag="--pool",
        about="The pool whose nodes a worker carries out; any but `default` owns no executions.",
    ),
    _seconds("lease", 15.0, "Not heard of for so long (s), a worker of a fleet counts as dead.", 1, flag="--lease"),
    _integer(
        "health_port",
        0,
        "The port at which `ropewalk worker` tells of its health and figures; 0 is none.",
        0,
        65_535,
        "--health-port",
    ),
    _seconds("runner.lease", 120.0, "Not heard of for so long (s), an external runner loses its runs.", 1),
    _switch("notify", True, "Workers of a fleet wake each other.", "--no-notify"),
    _switch("pooled", False, "A transaction pooler is in front of the database.", "--pooled"),
    _switch("dispatcher.enabled", True, "`ropewalk up` executes; if not, it accepts only.", "--no-dispatch"),
    _integer("dispatcher.attempts", 3, "How often a start that cannot be dispatched is tried before it fails.", 1, 100),
    _integer("dispatcher.batch", 100, "How many starts a worker claims at once.", 1, 10_000),
    _integer("breaker.minimum_calls", 10, "With fewer calls in the window the breaker of a target stays closed.", 1),
    Setting(
        name="breaker.failure_rate",
        kind=Kind.NUMBER,
        default=50.0,
        low=1,
        high=100,
        about="Which share of the calls in the window must have failed to open it (%).",
    ),
    _seconds("breaker.window", 60.0, "The window they are counted in (s)."),
    _seconds("breaker.cooldown", 30.0, "How long an open breaker lets nothing through (s)."),
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
    Setting(name="server.host", kind=Kind.TEXT, default="127.0.0.1", about="Where to listen.", flag="--host"),
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
    _seconds("server.drain", 10.0, "How long requests may take when the server leaves (s).", 0),
    _seconds("server.header_timeout", 10.0, "How long the headers of a request may take (s)."),
    _seconds("server.body_timeout", 30.0, "How long the body of a request may take (s)."),
    _seconds("server.idle_timeout", 15.0, "How long a connection stays open between requests (s)."),
    _seconds("server.write_timeout", 20.0, "How long somebody may not read what is sent to them (s)."),
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
    _seconds("streams.stalled", 10.0, "How long a reader may take nothing before it is cut off (s).", 1),
    # Our own client takes half a minute of silence for a line that is dead.
    _seconds("streams.beat", 15.0, "After how much silence (s) a stream gives a sign of life.", 1, 20),
    _text("smtp.host", None, "The mail server of `email.send`, where a node names none; `allow_hosts` if not public."),
    _integer("smtp.port", 587, "Its port.", 1, 65_535),
    _text("smtp.tls", "starttls", "How it is spoken to: starttls, tls or none."),
    _text("smtp.username", None, "Who logs in there, if anybody."),
    _text("smtp.password", None, "With which password.", is_secret=True),
    _text("smtp.sender", None, "Whom mail is from, where a node does not say."),
    _switch("telemetry.metrics", True, "A server keeps figures and shows them at /metrics."),
    Setting(
        name="telemetry.otlp_endpoint",
        kind=Kind.TEXT,
        default=None,
        about="Where traces are sent by OTLP over HTTP; OTEL_EXPORTER_OTLP_ENDPOINT is heeded too.",
    ),
    Setting(name="telemetry.service_name", kind=Kind.TEXT, default="ropewalk", about="What it is called in traces."),
    Setting(
        name="telemetry.log",
        kind=Kind.TEXT,
        default="plain",
        about="How servers and workers log: plain for people; console or json for structured lines with every id.",
    ),
    _kept("retention.executions", "30d", "How long executions are kept after their end."),
    _kept("retention.letters", "30d", "How long dead letters are kept after they are resolved."),
    _kept("retention.audit", None, "How long the audit log is kept; for good if nothing is said."),
)
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
_TABLES: Final = {name.partition(".")[0] for name in _BY_NAME if "." in name}
ENV_PREFIX: Final = "ROPEWALK_ENV_"
OTLP_VARIABLE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
OTHERS: Final = (
    NAMES_FILE,
    "ROPEWALK_SERVER",
    "ROPEWALK_TOKEN",
    "ROPEWALK_PROFILE",
    "ROPEWALK_ALLOW_HTTP",
    "ROPEWALK_BENCH_DIR",
)
"""Names in the environment that are no settings of a server or worker, and are read elsewhere."""


class Found(Struct, frozen=True):
    """A setting as it holds, and who said so."""

    setting: Setting
    value: Any
    origin: str


class Configuration:
    """Everything that can be set, as it holds. `file` is the one that was read, None if there is none."""

    def __init__(self, found: Mapping[str, Found], file: str | None) -> None:
        self._found = found
        self.file = file

    def __getitem__(self, name: str) -> Any:
        return self._found[name].value

    def __iter__(self) -> Iterator[Found]:
        return iter(self._found.values())

    def is_set(self, name: str) -> bool:
        """Whether anybody said something about it."""
        return self._found[name].origin != DEFAULT


def resolve(flags: Mapping[str, Any] | None = None, environment: Mapping[str, str] = os.environ,
            file: str | None = None, folder: str | None = ".") -> Configuration:  # fmt: skip
    """What flags (by the setting's name; None was not said), environment and file say together.

    The file is the one named, else the environment's, else `ropewalk.toml` of the folder if there is one; no folder, no
    file.
    """
    path, said = _file(file or environment.get(NAMES_FILE), folder)
    layers = (
        {name: (value, _BY_NAME[name].flag or name) for name, value in (flags or {}).items() if value is not None},
        _said_by(environment),
        {name: (value, str(path)) for name, value in said.items()},
    )
    found = {setting.name: _found(setting, layers) for setting in SETTINGS}
    return Configuration(found, None if path is None else str(path))


def _found(setting: Setting, layers: Sequence[Mapping[str, tuple[Any, str]]]) -> Found:
    for layer in layers:
        if setting.name in layer:
            value, origin = layer[setting.name]
            return Found(setting, _checked(setting, value, origin), origin)
    return Found(setting, setting.default, DEFAULT)


# The environment


def _said_by(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    said: dict[str, tuple[Any, str]] = {
        setting.name: (_from_text(setting, environment[setting.variable]), setting.variable)
        for setting in SETTINGS
        if environment.get(setting.variable)
    }
    if environment.get(OTLP_VARIABLE) and "telemetry.otlp_endpoint" not in said:
        said["telemetry.otlp_endpoint"] = (environment[OTLP_VARIABLE], OTLP_VARIABLE)
    names = {name.removeprefix(ENV_PREFIX): value for name, value in environment.items() if name.startswith(ENV_PREFIX)}
    if names:
        said["env"] = (names, f"{ENV_PREFIX}…")
    return said


def _from_text(setting: Setting, text: str) -> Any:
    """The value of a text; one that cannot be read is left as it is, and refused with the others."""
    match setting.kind:
        case Kind.TEXT | Kind.DURATION:
            return text
        case Kind.WORDS:
            return text.replace(",", " ").split()
        case Kind.SWITCH:
            return text.lower() in _YES if text.lower() in (*_YES, *_NO) else text
        case Kind.INTEGER | Kind.NUMBER | Kind.TABLE | Kind.TABLES | Kind.TABLES_BY_NAME:
            try:
                return json.loads(text)
            except ValueError:
                return text


def strangers(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names in the environment that look like settings and are none."""
    known = {*(setting.variable for setting in SETTINGS), *OTHERS}
    return tuple(
        name
        for name in sorted(environment)
        if name.startswith(PREFIX) and not name.startswith(ENV_PREFIX) and name not in known
    )


# The file


def _file(named: str | None, folder: str | None) -> tuple[Path | None, dict[str, Any]]:
    if named is None and (folder is None or not (Path(folder) / FILE).exists()):
        return None, {}
    path = Path(named) if named is not None else Path(folder or ".") / FILE
    said = dict(_flattened(_read(path)))
    problems = [_unknown(name) for name in said if name not in _BY_NAME]
    if problems:
        raise InvalidInput([Problem((), f"{path} cannot be used: {each}") for each in problems])
    return path, said


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix in (".yaml", ".yml"):
            return _read_yaml(text, str(path))
        return tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"{path} cannot be used: {reason}") from error


def _read_yaml(text: str, name: str) -> dict[str, Any]:
    # Here, since most have no such file, and its reader takes a while to load.
    from ropewalk.documents import load_document

    found = load_document(text, name=name).value
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} cannot be used: it must be a mapping of settings")
    return found


def _flattened(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if name in _TABLES and isinstance(value, Mapping):
            yield from ((f"{name}.{_own_name(inner, name)}", each) for inner, each in value.items())
        else:
            yield _own_name(name), value


def _own_name(said: str, table: str | None = None) -> str:
    """The name of the setting that is meant: `rateLimits`, as documents write names, is `rate_limits`."""
    own = _CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", str(said))
    return own if (own if table is None else f"{table}.{own}") in _BY_NAME else said


def _unknown(name: str) -> str:
    close = get_close_matches(name, _BY_NAME, n=1)
    hint = f"; did you mean {close[0]}?" if close else "; `ropewalk config show` lists what there is"
    return f"{name} is no setting{hint}"


# Values


def _checked(setting: Setting, value: Any, origin: str) -> Any:
    """The value as it is used; refused with its place if it makes no sense."""
    try:
        return _converted(setting, value)
    except ValueError as error:
        where = origin if origin in (setting.flag, setting.variable) else f"{origin}: {setting.name}"
        raise InvalidInput([Problem((where,), str(error))]) from error


def _converted(setting: Setting, value: Any) -> Any:
    match setting.kind:
        case Kind.TEXT if _is_text(value) and value:
            return value
        case Kind.SWITCH if isinstance(value, bool):
            return value
        case Kind.INTEGER if isinstance(value, int) and not isinstance(value, bool):
            return _in_range(setting, value)
        case Kind.NUMBER if isinstance(value, int | float) and not isinstance(value, bool):
            return float(_in_range(setting, value))
        case Kind.WORDS if isinstance(value, list | tuple) and all(map(_is_text, value)):
            return tuple(value)
        case Kind.DURATION:
            length = parse_duration(value, longest=LONGEST_KEPT)
            return value if isinstance(value, str) else format_duration(length)
        case Kind.TABLE if isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
            return dict(value)
        case Kind.TABLES if isinstance(value, list | tuple) and all(isinstance(each, Mapping) for each in value):
            return tuple(value)
        case Kind.TABLES_BY_NAME if isinstance(value, Mapping) and all(isinstance(v, Mapping) for v in value.values()):
            return dict(value)
    raise ValueError(f"must be {setting.kind}" + ("" if setting.is_secret else f", not {value!r}"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_text(value)


def _in_range(setting: Setting, value: float) -> float:
    if not setting.low <= value <= setting.high:
        raise ValueError(f"must be from {setting.span}, not {value:g}")
    return value
