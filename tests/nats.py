"""A real NATS server with JetStream for the tests: a private one on loopback, which dies with the test process."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
from nats.js import JetStreamContext

from tests.polling import blocking_until, until
from tests.postgres import _die_with_parent, _free_port

PROGRAM = Path(sys.executable).parent / "nats-server"


class NatsServer:
    """A server on a free port, with its streams in a folder; it can be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = _free_port()
        self._log = folder / "nats.log"
        self._command = [str(PROGRAM), "-js", "-a", "127.0.0.1", "-p", str(self.port), "-sd", str(folder), *options]
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, preexec_fn=_die_with_parent)
        blocking_until(self._is_ready, "the NATS server is ready")

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(self._log.read_text())
        return b"Server is ready" in self._log.read_bytes()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @asynccontextmanager
    async def stream(self, **options: Any) -> AsyncIterator[JetStreamContext]:
        """What publishes and looks."""
        client = await nats.connect(self.url, **options)
        try:
            yield client.jetstream()
        finally:
            await client.close()


async def publish_anew(stream: JetStreamContext, subject: str, data: bytes, name: str) -> None:
    """Publishes a message under an id, as soon as the stream does not know the id any more."""

    async def is_taken() -> bool:
        published = await stream.publish(subject, data, headers={"Nats-Msg-Id": name})
        return not published.duplicate

    await until(is_taken, f"the stream takes {name} again")
