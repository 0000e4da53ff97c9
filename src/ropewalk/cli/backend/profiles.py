"""Servers people have logged in to: addresses in a file, tokens in the keyring or a file that only its user can read.

    ~/.config/ropewalk/profiles.toml     [work]
                                         url = "https://ropewalk.example"
                                         workspace = "acme"              # if not the key's own
    ~/.config/ropewalk/tokens.toml       "https://ropewalk.example" = "rw_…"     # 0600; only without a keyring

A token is looked for under the server's address: in ROPEWALK_TOKEN, the keyring, the file. It is never an option, since
every user of a machine can read the command lines of the others.
"""

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.errors import InvalidInput, RopewalkError, Unauthenticated

DEFAULT: Final = "default"
SERVICE: Final = "ropewalk"
TOKEN: Final = "ROPEWALK_TOKEN"
_OWNER_ONLY: Final = 0o600


class Server(Struct, frozen=True, omit_defaults=True):
    """Where a server is, and which of its workspaces is meant; None is the home of the key."""

    url: str
    workspace: str | None = None


def folder() -> Path:
    """Where profiles are kept."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "~")).expanduser() / ".config"
    return Path(home) / "ropewalk"


# Profiles


def profiles() -> dict[str, Server]:
    """Every server by the name it was given."""
    return {name: _server(name, value) for name, value in _read(_profiles_file()).items()}


def profile(name: str) -> Server:
    """The server of this name."""
    known = profiles()
    if name not in known:
        there = f"there are {', '.join(sorted(known))}" if known else "there is none"
        raise InvalidInput(
            f"there is no profile {name!r}, {there}: make one with `ropewalk login --profile {name} URL`"
        )
    return known[name]


def keep_profile(name: str, server: Server) -> Path:
    """Remembers a server under a name; where."""
    tables = {**profiles(), name: server}
    text = "\n".join(f"[{json.dumps(each)}]\n{_lines(msgspec.to_builtins(found))}" for each, found in tables.items())
    return _write(_profiles_file(), text)


def _profiles_file() -> Path:
    return folder() / "profiles.toml"


def _server(name: str, value: Any) -> Server:
    try:
        return msgspec.convert(value, Server)
    except msgspec.ValidationError as error:
        raise RopewalkError(f"{_profiles_file()} cannot be used: profile {name!r}: {error}") from error


# Tokens


def token_for(url: str) -> str:
    """The token for a server; what was set for this command wins."""
    found = os.environ.get(TOKEN) or _from_keyring(url) or _from_file(url)
    if not found:
        raise Unauthenticated(f"there is no token for {url}: set {TOKEN}, or log in with `ropewalk login {url}`")
    return found


def keep_token(url: str, token: str) -> str:
    """Remembers a token as safely as this machine allows; where, in words."""
    keyring = _keyring()
    if keyring is not None:
        keyring.set_password(SERVICE, url, token)
        return "in the keyring"
    path = _write(_tokens_file(), _lines({**_read(_tokens_file()), url: token}))
    return f"in {path}, which only you can read; with the package `keyring` installed it would be in the keyring"


def _tokens_file() -> Path:
    return folder() / "tokens.toml"


def _from_keyring(url: str) -> str | None:
    keyring = _keyring()
    return None if keyring is None else keyring.get_password(SERVICE, url)


def _keyring() -> ModuleType | None:
    """The keyring, if the package is installed and has a safe place on this machine."""
    try:
        keyring = import_module("keyring")
    except ImportError:
        return None
    # Where there is no safe place, the package says so with a keyring that refuses everything.
    return keyring if keyring.get_keyring().priority > 0 else None


def _from_file(url: str) -> str | None:
    path = _tokens_file()
    found = _read(path).get(url)
    if found is not None and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InvalidInput(f"others can read {path}: chmod 600 it, and have the tokens in it replaced")
    return None if found is None else str(found)


# Files


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RopewalkError(f"{path} cannot be used: {error}") from error


def _lines(values: Mapping[str, str]) -> str:
    """Text as TOML writes it, which for strings is as JSON does."""
    return "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in values.items())


def _write(path: Path, text: str) -> Path:
    """Write the file whole or not at all; no other user can read it at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _OWNER_ONLY)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
    return path
