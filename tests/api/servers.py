"""`ropewalk up` as a process of its own, for what only a process can show: signals, crashes, many connections."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

PATIENCE = 60.0


class UpServer:
    """A running server; `token` is the one it printed, if it was the first on its store."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, token: str | None) -> None:
        self.process = process
        self.url = url
        self.token = token

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx2.Response:
        """One request under /api/v1, with the token that was printed unless another is given."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return httpx2.request(method, f"{self.url}/api/v1{path}", headers=headers, timeout=PATIENCE, **more)

    def rest(self) -> str:
        """What it still said, when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def kill(self) -> None:
        """As a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def terminate(self) -> int:
        """As an operator does; how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def up(folder: Path, *options: str) -> Iterator[UpServer]:
    """A server that is ready; it does not outlive the block."""
    command = [sys.executable, "-m", "ropewalk", "up", "--json", *(() if "--port" in options else ("--port", "0"))]
    with (
        (folder / "up.log").open("ab") as log,
        subprocess.Popen(
            [*command, *options],
            cwd=folder,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder), "XDG_CONFIG_HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            said = _first_line(process)
            yield UpServer(process, said["url"], said["token"])
        finally:
            process.kill()


def _first_line(process: "subprocess.Popen[str]") -> dict[str, str]:
    """Where it is; what it has to say of its store comes before."""
    assert process.stdout is not None
    patience = threading.Timer(PATIENCE, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            found: dict[str, str] = json.loads(line)
            if "url" in found:
                return found
    finally:
        patience.cancel()
    raise AssertionError("the server ended before it was ready; up.log says why")
