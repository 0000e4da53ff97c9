"""Which value of each setting holds: flags over environment over one file over defaults.

`settings` has the table. The environment's name of a setting is its own in capitals (`server.port` is
ROPEWALK_SERVER_PORT); in the file, what is before the dot is a table.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.canonical import is_text
from ropewalk.core.duration import DAY, format_duration, parse_duration
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.settings import PREFIX, SETTINGS, Kind, Setting

FILE: Final = "ropewalk.toml"
NAMES_FILE: Final = "ROPEWALK_CONFIG"
DEFAULT: Final = "default"
LONGEST_KEPT: Final = 100 * 365 * DAY
_CAPITAL: Final = re.compile(r"(?<=[a-z])[A-Z]")
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")


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
        """Whether a flag, the environment or the file says something about it."""
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
