"""`--reload`: a server or a worker that starts anew when the files of its node types change.

The files are looked at four times a second. When they have changed and then stayed the same for one look, a process of
its own tries to import them: if it cannot, this process says so and goes on with what it has. Else it drains, as on
SIGTERM, and the program is replaced by itself: the same process, arguments and socket, so that no client is refused.
"""

import asyncio
import importlib.util
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn

import click

from ropewalk.cli.backend.project import Project
from ropewalk.cli.processes.watching import Interrupts
from ropewalk.cli.views.progress import View
from ropewalk.core.errors import InvalidInput, RopewalkError
from ropewalk.modules import catalogue, is_file

EVERY: Final = 0.25
"""How often the files are looked at (s)."""
LONGEST_IMPORT: Final = 60.0
SOCKET: Final = "--socket"
_ONCE: Final = "--new-token"
Stamps = dict[Path, tuple[int, int] | None]
"""When each file was last written, and how long it is; None if it is not there."""

reload_option = click.option(
    "--reload", is_flag=True, help="Start anew, gracefully, when the files of --nodes change; for development."
)
socket_option = click.option(SOCKET, "number", type=int, hidden=True)
"""Given by a server that replaces itself: the number of the socket that it listens on already."""


class Reload:
    """The files of the node types, watched from its making on; what they import beside them is watched too."""

    def __init__(self, project: Project, view: View) -> None:
        if not project.nodes:
            raise InvalidInput("--reload watches the files of node types, and none are named: add --nodes FILE")
        self._nodes, self._view = project.nodes, view
        self._seen = _stamps(map(_file, self._nodes))
        self.has_changed = False
        # Python knows bytecode by the second its source was written in, and a file may be written twice in one.
        sys.dont_write_bytecode = True

    async def wait(self) -> None:
        """Returns when there is something new that can be imported."""
        while True:
            await asyncio.sleep(EVERY)
            if names := self._changed():
                await self._until_quiet()
                if await self._is_importable():
                    break
        self.has_changed = True
        self._view.say(f"{', '.join(names)} changed; starting anew")

    def settle(self) -> None:
        """Waits, if the files have changed once more while this process drained, until they can be imported."""
        is_new = bool(self._changed())
        while is_new and not asyncio.run(self._is_importable()):
            while not self._changed():
                time.sleep(EVERY)

    def _changed(self) -> list[str]:
        """The names of the files that are not as they were when they were looked at last."""
        found = _stamps([*self._seen, *_beside(self._nodes)])
        names = [path.name for path, stamp in self._seen.items() if found[path] != stamp]
        self._seen = found
        return names

    async def _until_quiet(self) -> None:
        """An editor may write a file in several steps."""
        await asyncio.sleep(EVERY)
        while self._changed():
            await asyncio.sleep(EVERY)

    async def _is_importable(self) -> bool:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-B", "-m", __name__, *self._nodes,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            said, _ = await asyncio.wait_for(process.communicate(), LONGEST_IMPORT)
        except TimeoutError:
            process.kill()
            said = f"importing {', '.join(self._nodes)} takes more than {LONGEST_IMPORT:g} s".encode()
        if process.returncode == 0:
            return True
        why = said.decode(errors="replace").strip() or f"importing ended with code {process.returncode}"
        self._view.say(f"{why}; going on as before until it is mended")
        return False


async def asked_or_changed(asked: Interrupts, reload: Reload | None) -> None:
    """Waits for a signal, or for a change that is worth a new start."""
    waits = [asyncio.ensure_future(each.wait()) for each in (asked, reload) if each is not None]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


def is_due(asked: Interrupts, reload: Reload | None) -> bool:
    """Whether to start anew: not if a signal has come while this process drained."""
    return reload is not None and reload.has_changed and not asked.is_asked


def start_anew(reload: Reload | None, socket: int | None = None) -> NoReturn:
    """Replaces this program by itself; `socket` is handed on."""
    if reload is not None:
        reload.settle()
    words = _arguments(sys.orig_argv)
    if socket is not None:
        os.set_inheritable(socket, True)
        words += [SOCKET, str(socket)]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, words)


def _arguments(given: list[str]) -> list[str]:
    """The same words, without those that are for the first start, and without what an earlier new start has added."""
    place = given.index(SOCKET) if SOCKET in given else len(given)
    return [each for each in given[:place] if each != _ONCE]


def _file(name: str) -> Path:
    """The file of a module; one that was not imported yet may not be found, and is watched once it was."""
    if is_file(name):
        return Path(name).resolve()
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return Path(name if spec is None or spec.origin is None else spec.origin)


def _beside(nodes: Iterable[str]) -> list[Path]:
    """The files that were imported from the folders of these modules; not what is installed there."""
    folders = {_file(name).parent for name in nodes}
    loaded = [Path(each) for module in list(sys.modules.values()) if (each := getattr(module, "__file__", None))]
    return [each for each in loaded if not folders.isdisjoint(each.parents) and "site-packages" not in each.parts]


def _stamps(files: Iterable[Path]) -> Stamps:
    return {each: _stamp(each) for each in dict.fromkeys(files)}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _try(nodes: list[str]) -> int:
    """Imports these modules, and prints why if that is impossible."""
    try:
        catalogue(nodes)
    except RopewalkError as error:
        print(error)
        return 1
    except Exception as error:  # noqa: BLE001 -- any error that the module raises is for its author to mend
        print(f"{', '.join(nodes)} cannot be imported: {type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_try(sys.argv[1:]))
