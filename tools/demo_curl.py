"""The last part of `make demo`: the service, and a workflow created, published, started and followed by curl alone."""

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

PATIENCE: Final = "30"
TOKEN: Final = "$TOKEN"


class Curl:
    """A server, and the token that opens it."""

    def __init__(self, url: str, token: str) -> None:
        self._api = f"{url}/api/v1"
        self._token = token

    def __call__(self, path: str, *options: str) -> str:
        """Carry a curl out in front of everyone; what it says."""
        words = ["curl", "-sS", "--fail-with-body", "--max-time", PATIENCE, "-H", f"Authorization: Bearer {TOKEN}"]
        words += [*options, self._api + path]
        # In double quotes, as one would write it: the shell puts the token in.
        print(f"$ {shlex.join(words)}".replace(f"'Authorization: Bearer {TOKEN}'", f'"Authorization: Bearer {TOKEN}"'))
        done = subprocess.run(
            [word.replace(TOKEN, self._token) for word in words], check=False, stdout=subprocess.PIPE, text=True
        )
        print(done.stdout.rstrip(), flush=True)
        if done.returncode:
            sys.exit(f"curl ended with {done.returncode}")
        return done.stdout

    def json(self, path: str, *options: str) -> Any:
        return json.loads(self(path, *options))


@contextlib.contextmanager
def server(command: list[str]) -> Iterator[Curl]:
    """`ropewalk up` on a new store; drained at the end."""
    print("$ ropewalk up --port 0 --db service.db &", flush=True)
    words = [*command, "up", "--port", "0", "--db", "service.db", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            print(f"ready at {said['url']}\nTOKEN={said['token'][:12]}… (printed in full, once)", flush=True)
            yield Curl(said["url"], said["token"])
        finally:
            process.terminate()
    if process.returncode:
        sys.exit(f"the server ended with {process.returncode}")


def show(command: list[str], file: str) -> None:
    """The workflow of a YAML file, by curl alone."""
    if shutil.which("curl") is None:
        sys.exit("there is no curl on this machine: install it, and run this again")
    with server(command) as curl:
        body = ("-H", "Content-Type: application/json", "-d")
        saved = curl.json("/workflow/definitions", "-H", "Content-Type: application/yaml", "--data-binary", f"@{file}")
        curl(f"/workflow/definitions/{saved['id']}/publish", *body, json.dumps({"version": saved["version"]}))
        started = curl.json("/workflow/executions/start", *body, json.dumps({"workflowDefinitionId": saved["id"]}))
        curl(f"/workflow/executions/{started['executionId']}/stream", "-N")
        shown = curl.json(f"/workflow/executions/{started['executionId']}")
        if shown["state"] != "SUCCESS":
            sys.exit(f"the execution is {shown['state']}")
