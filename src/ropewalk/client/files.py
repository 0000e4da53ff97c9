"""Files: brought for the input of a start, and taken from the execution that names them."""

import hashlib
import mimetypes
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from ropewalk.client.talking import Save, SendFile, Series, Talk, get, insist, post, whole
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput, Problem, Unavailable

PATH: Final = "/workflow/executions"
CHUNK: Final = 256 * 1024
_HASH: Final = re.compile("[0-9a-f]{64}")


class FileVerbs(Speaker):
    """Bringing files, and taking them."""

    @verb
    def upload(self, path: str | os.PathLike[str], *, name: str | None = None, type: str | None = None) -> Talk[JSON]:  # noqa: A002
        """Bring a file; the value to use in an input. It goes after a day unless an execution names it by then."""
        name = name or Path(path).name
        kind = type or mimetypes.guess_type(name)[0] or "application/octet-stream"
        # Content is kept under its hash: brought twice, it is there once.
        request = post("/workflow/files", params={"name": name}, headers={"Content-Type": kind}, repeats=True)
        reply = yield from insist(SendFile(request, os.fspath(path)), self.line.patience)
        return reply.json()["file"]

    @verb
    def download(self, execution: str, file: JSON, to: str | os.PathLike[str] | None = None) -> Talk[str]:
        """Save a file that an execution names, given as its value or its hash; the path it was saved to.

        By default that is its name, in this folder. It is there whole, or not at all.
        """
        about = _about(file)
        target = os.fspath(to) if to is not None else _safe_name(about.get("name") or about["hash"][:12])
        place = f"{PATH}/{quote(execution, safe='')}/files/{about['hash']}"
        yield from insist(Save(get(place), target, about["hash"]), self.line.patience)
        return target

    @listing
    def files(self, execution: str) -> Series[dict[str, Any]]:
        """The files that an execution names, each with `hash`, `size`, `name` and `type`."""
        return whole(f"{PATH}/{quote(execution, safe='')}/files", self.line.patience)


def _about(file: JSON) -> Mapping[str, Any]:
    about = {"hash": file} if isinstance(file, str) else file.get("$file", file) if isinstance(file, Mapping) else {}
    if not _HASH.fullmatch(str(about.get("hash"))):
        raise InvalidInput([Problem(("file",), "is no file: give its value, or its hash")])
    return about


def _safe_name(name: str) -> str:
    """The last part of a name that a workflow has chosen: it leads into no other folder."""
    last = re.split(r"[/\\]", name)[-1].lstrip(".").replace("\0", "")
    return last or "file"


class Saving:
    """A file that comes to be under its name once it is whole, and is what its hash says."""

    def __init__(self, path: str, digest: str) -> None:
        self._path, self._digest = path, digest
        self._part = f"{path}.{os.getpid()}.part"
        self._summed = hashlib.sha256()
        self._file = FileIO(self._part, "w")

    def add(self, chunk: bytes) -> None:
        """The next bytes."""
        self._summed.update(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._file.write(rest) :]

    def finish(self) -> None:
        """Nothing follows; Unavailable if it is not all there."""
        if self._summed.hexdigest() != self._digest:
            raise Unavailable("the file did not come whole: try again")
        self._file.close()
        os.replace(self._part, self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._part)
