"""What a doctor looks at on this machine and around a file: one finding per thing, with what to do about it."""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ropewalk.cli.backend.project import Project
from ropewalk.cli.commands.doctor.credentials import master_key
from ropewalk.cli.commands.doctor.findings import Finding, Health
from ropewalk.cli.commands.doctor.postgres import examined_server, set_aside
from ropewalk.cli.views.text import clock, lapse
from ropewalk.core.errors import RopewalkError
from ropewalk.modules import catalogue
from ropewalk.nodes.base import Registry
from ropewalk.store.errors import NoStore
from ropewalk.store.migrations import known_migrations
from ropewalk.store.private_files import is_open_to_others
from ropewalk.store.sqlite import SqliteReader, owner_info
from ropewalk.store.sqlite.connection import FLOOR, library_version
from ropewalk.store.sqlite.store import MUCH_AHEAD

SYNCS: Final = 20
SLOW_SYNC: Final = 0.05
LITTLE_SPACE: Final = 1024**3
MOST_FILES: Final = 100_000
_PYTHON: Final = (3, 11)


async def examined(project: Project) -> list[Finding]:
    """Everything worth a look, on this machine and around the store."""
    if project.is_shared:
        return [_python(), *await examined_server(project), _node_types(project), *_entry_points()]
    folder = str(Path(project.db).resolve().parent)
    around: list[Callable[[], Finding]] = [_python, _sqlite, lambda: _space(folder), lambda: _sync(folder)]
    found = [check() for check in around]
    found += [_owner(project), *await _store(project), _blobs(project), _node_types(project), *_entry_points()]
    return found


def _python() -> Finding:
    here = platform.python_version()
    if tuple(map(int, platform.python_version_tuple()[:2])) < _PYTHON:
        return Finding("Python", Health.FAULT, here, "Python 3.11 or newer is needed")
    return Finding("Python", Health.OK, here)


def _sqlite() -> Finding:
    here, is_new_enough = library_version()
    if is_new_enough:
        return Finding("SQLite", Health.OK, here)
    return Finding("SQLite", Health.FAULT, here, f"SQLite {'.'.join(map(str, FLOOR))} or newer is needed")


def _space(folder: str) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk space", Health.FAULT, f"{folder}: {error.strerror}", "make the directory, or name another")
    if free < LITTLE_SPACE:
        return Finding(
            "disk space", Health.WARNING, f"{free / 2**20:,.0f} MiB free", "make room before the store needs it"
        )
    return Finding("disk space", Health.OK, f"{free / 2**30:,.1f} GiB free")


def _sync(folder: str) -> Finding:
    """How long the disk takes to promise something: the price of every commit."""
    try:
        taken = sorted(_synced(folder))[SYNCS // 2]
    except OSError as error:
        return Finding("fsync", Health.FAULT, f"{folder}: {error.strerror}", "the store's directory must be writable")
    value = f"{taken * 1000:.2f} ms"
    if taken > SLOW_SYNC:
        return Finding("fsync", Health.WARNING, value, "every commit waits for this; a local disk is faster")
    return Finding("fsync", Health.OK, value)


def _synced(folder: str) -> Iterator[float]:
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            yield time.perf_counter() - began


def _owner(project: Project) -> Finding:
    try:
        owner = owner_info(project.db)
    except (RopewalkError, OSError) as error:
        return Finding("owner", Health.WARNING, str(error), "try again in a moment")
    if owner is None:
        return Finding("owner", Health.OK, "no process executes on the store")
    value = f"process {owner.pid} on {owner.host} since {clock(owner.started_at)}"
    if owner.socket is None:
        return Finding(
            "owner", Health.WARNING, f"{value}, without a control socket", "commands cannot reach it: restart it"
        )
    return Finding("owner", Health.OK, f"{value}, listening on {owner.socket}")


async def _store(project: Project) -> list[Finding]:
    path = Path(project.db)
    if not path.exists():
        return [Finding("store", Health.OK, f"{path} does not exist yet; `ropewalk run` makes it")]
    try:
        reader = await SqliteReader.open(project.db)
    except NoStore as error:
        return [Finding("store", Health.OK, str(error))]
    except RopewalkError as error:
        return [Finding("store", Health.FAULT, str(error))]
    try:
        about = [_size(path), _privacy(path), await _schema(reader), await _clock(project, reader)]
        return [*about, *await master_key(project, reader), *await set_aside(project, reader)]
    finally:
        await reader.close()


def _size(path: Path) -> Finding:
    log = Path(f"{path}-wal")
    pending = log.stat().st_size if log.exists() else 0
    return Finding(
        "store", Health.OK, f"{path}, {path.stat().st_size / 2**20:,.1f} MiB + {pending / 2**20:,.1f} of log"
    )


def _privacy(path: Path) -> Finding:
    """Whether other users of this machine can read payloads, or the key."""
    file = os.path.realpath(path)
    beside = [file, *(f"{file}{end}" for end in ("-wal", "-shm", ".key", ".blobs"))]
    found = [each for each in beside if is_open_to_others(each)]
    if found:
        remedy = "start a command that executes on it once: it takes these rights away; or chmod go= them"
        return Finding("privacy", Health.WARNING, f"other users may read {', '.join(found)}", remedy)
    return Finding("privacy", Health.OK, "other users can read nothing of it")


async def _schema(reader: SqliteReader) -> Finding:
    # A reader opens nothing but what has exactly our schema.
    applied = await reader.fetch("applied_migrations")
    return Finding("schema", Health.OK, f"version {len(applied)} of {len(known_migrations())}")


async def _clock(project: Project, reader: SqliteReader) -> Finding:
    """The store's time never goes back; once a clock was ahead, waits until a moment end early for good."""
    latest, now = await reader.fetch_one("latest_mark"), time.time_ns() // 1000
    ahead = 0 if latest is None or latest[0] is None else latest[0] - now
    if ahead > MUCH_AHEAD:
        value = f"{clock(now)}; the store is {lapse(ahead)} ahead, so waits until a moment end that much early"
        remedy = "set this machine's clock if it is wrong; if it is right, stop what works on the store and say "
        return Finding("clock", Health.WARNING, value, f"{remedy}`{project.hint('reset-clock')}`")
    return Finding("clock", Health.OK, clock(now))


def _blobs(project: Project) -> Finding:
    root = Path(f"{Path(project.db).resolve()}.blobs")
    if not root.exists():
        return Finding("blobs", Health.OK, "none")
    files = size = unfinished = 0
    for folder, _, names in os.walk(root):
        for name in names:
            files += 1
            size += os.lstat(os.path.join(folder, name)).st_size
            unfinished += name.endswith(".unfinished")
        if files > MOST_FILES:
            break
    count = f"{'more than ' if files > MOST_FILES else ''}{files:,} files, {size / 2**20:,.1f} MiB"
    return Finding("blobs", Health.OK, f"{count}, {unfinished} unfinished" if unfinished else count)


def _node_types(project: Project) -> Finding:
    """What an execution here could use, the project's own modules included."""
    try:
        known = catalogue(project.nodes).types.infos()
    except RopewalkError as error:
        return Finding("node types", Health.FAULT, str(error), "mend the module, or name others with --nodes")
    return Finding("node types", Health.OK, f"{len(known)} known")


def _entry_points() -> list[Finding]:
    problems = Registry.builtin().load_entry_points()
    remedy = "mend or remove the package that brings it"
    return [Finding(f"node type {each.name}", Health.WARNING, each.reason, remedy) for each in problems]
