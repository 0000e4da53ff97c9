"""The port of a worker: whether it lives, whether it can do its work, and its figures.

It answers from the moment the worker has joined until the last of its nodes is handed back: while it drains, it lives
and is not ready. The figures need the same right as those of a server.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from ropewalk.cli.backend.project import Project
from ropewalk.cli.processes.listen_address import require_local
from ropewalk.service import Service
from ropewalk.wiring import Settings, health_backend

if TYPE_CHECKING:
    from ropewalk.api.backend import Backend
    from ropewalk.telemetry.metrics import Metrics

FLAG: Final = "--health-port"
MOST_CONNECTIONS: Final = 100
"""A check of health is brief; a worker's open files are for its nodes."""
DRAIN: Final = 1.0


class HealthPort:
    """A socket that takes connections, and what is counted for those who ask."""

    def __init__(self, listener: socket.socket, metrics: "Metrics | None") -> None:
        from ropewalk.api.doors.server import address_of  # here, as in `open_port`

        self.metrics = metrics
        self.url = address_of(listener)
        self._listener = listener
        self._backend: Backend | None = None

    @asynccontextmanager
    async def answering(self, service: Service, settings: Settings) -> AsyncIterator[None]:
        """Answers about this service until the block ends."""
        from ropewalk.api.app import create_health_app  # here, as in `open_port`
        from ropewalk.api.doors.connection_monitor import ConnectionLimits
        from ropewalk.api.doors.server import ServerSettings, serving

        self._backend = backend = health_backend(service, settings, self.metrics)
        limits = ConnectionLimits(connections=MOST_CONNECTIONS, per_address=MOST_CONNECTIONS)
        app = create_health_app(backend, version("ropewalk"))
        async with serving(app, self._listener, ServerSettings(limits=limits, drain=DRAIN)):
            yield

    def leave(self) -> None:
        """From now on the worker lives and is not ready."""
        assert self._backend is not None, "only a worker that has joined leaves"
        self._backend.is_leaving = True


def open_port(project: Project) -> HealthPort | None:
    """The port that is set, if one is; opened before the worker joins, so that one that is taken is said at once."""
    said = project.configuration
    if not said["health_port"]:
        return None
    if not said["server.allow_remote"]:
        require_local(said["server.host"])
    # Here, since most workers have no such port, and do without the web.
    from ropewalk.api.doors.server import listen
    from ropewalk.telemetry.metrics import Metrics

    listener = listen(said["server.host"], said["health_port"], FLAG)
    return HealthPort(listener, Metrics() if project.settings.telemetry.metrics else None)
