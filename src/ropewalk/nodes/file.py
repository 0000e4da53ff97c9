"""`file.*`: files in the folder that a workspace has on the workers' disk."""

import hashlib
import mimetypes
from collections.abc import AsyncIterator
from datetime import timedelta
from io import FileIO
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from ropewalk.core.reach import Reached, refusal
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.files import FILE_SCHEMA, UNKNOWN_TYPE, File, as_value, file_of
from ropewalk.nodes.folder import Folder, Found, Writing, on_a_thread, path_problem
from ropewalk.nodes.globbing import LONGEST_PATTERN, listed, pattern_problem
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.moments import EPOCH, written

JSON: TypeAlias = Any
CHUNK: Final = 512 * 1024
LONGEST_TEXT: Final = 4 * 1024 * 1024
MOST_LISTED: Final = 10_000


def _a_path(path: str) -> str:
    if problem := path_problem(path):
        raise ValueError(problem)
    return path


def _a_folder(path: str) -> str:
    if problem := path_problem(path.rstrip("/"), may_be_empty=True):
        raise ValueError(problem)
    return path.rstrip("/")


def _a_pattern(pattern: str) -> str:
    if problem := pattern_problem(pattern):
        raise ValueError(problem)
    return pattern


Path = Annotated[str, AfterValidator(_a_path)]
IfExists = Literal["replace", "fail", "keep"]

PATH: Final = {"type": "string", "description": "The path in the workspace's folder."}
SIZE: Final = {"type": "integer", "description": "How many bytes there are."}
MODIFIED: Final = {"type": "string", "description": "When it was changed last."}


class FileNode(NodeType):
    """A type that works in the folder of the workspace."""

    has_rules = True
    reaches = MappingProxyType({"path": Reached.FILES})
    words: ClassVar[tuple[str, ...]] = ("disk", "folder", "directory", "local", "path")


def folder_of(context: NodeContext, what: str) -> Folder:
    """The folder of the workspace; a permanent failure for what is bounded by a share, or where no root is set."""
    if bounded_by := context.bounded_by:
        raise NodeFailure.permanent(refusal(what, bounded_by))
    if context.facilities.files_root is None:
        raise NodeFailure.permanent(
            "workspaces have no folders where this node runs: set files.root, for instance with ROPEWALK_FILES_ROOT, "
            "to a folder that all workers reach"
        )
    return Folder(context.facilities.files_root, context.workspace)


def _missing(path: str) -> NodeFailure:
    return NodeFailure.permanent(f"there is no file {path!r} in the workspace's folder")


def _moment(seconds: float) -> str:
    return written(EPOCH + timedelta(seconds=int(seconds)))


class FileRead(FileNode):
    name = "file.read"
    summary = "Reads a file in the workspace's folder: as a file to hand on, or as text."
    about = About(
        title="Read a file",
        category="reach",
        icon="file-down",
        keywords=(*FileNode.words, "load", "open", "import"),
        output={
            "type": "object",
            "properties": {
                "path": PATH,
                "size": SIZE,
                "modifiedAt": MODIFIED,
                "file": {**FILE_SCHEMA, "description": "The file, unless `as` says text."},
                "text": {"type": "string", "description": "The text, if `as` says so."},
            },
        },
    )

    class Parameters(Inputs):
        path: Path = Field(description="Which file.", examples=["reports/may.csv"])
        as_: Literal["file", "text"] = Field(
            "file", alias="as", examples=["text"],
            description="What is handed on: a `file` of any size, or its `text` (UTF-8, 4 MiB at most).",
        )  # fmt: skip
        type: str | None = Field(
            None, max_length=128, description="The media type; by default what the name says.", examples=["text/csv"]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        path = parameters.path
        folder = folder_of(context, f"the file {path!r}")
        try:
            opened = await on_a_thread(folder.open, path)
        except FileNotFoundError:
            raise _missing(path) from None
        try:
            found = await on_a_thread(folder.stat, path)
            about = {"path": path, "modifiedAt": _moment(found.modified if found else 0)}
            if parameters.as_ == "text":
                text = await on_a_thread(_text, opened, path)
                return Output({**about, "size": len(text.encode()), "text": text})
            kind = parameters.type or mimetypes.guess_type(path)[0] or UNKNOWN_TYPE
            file = await context.files.write(_chunks(opened), path, kind)
        finally:
            opened.close()
        return Output({**about, "size": file.size, "file": as_value(file)})


async def _chunks(opened: FileIO) -> AsyncIterator[bytes]:
    while chunk := await on_a_thread(opened.read, CHUNK):
        yield chunk


def _text(opened: FileIO, path: str) -> str:
    content = opened.read(LONGEST_TEXT + 1) or b""
    while chunk := opened.read(LONGEST_TEXT + 1 - len(content)):
        content += chunk
    if len(content) > LONGEST_TEXT:
        raise NodeFailure.permanent(f"{path!r} is larger than {LONGEST_TEXT // 2**20} MiB: read it as a file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NodeFailure.permanent(f"{path!r} is no UTF-8 text: read it as a file") from None


class FileWrite(FileNode):
    name = "file.write"
    summary = "Writes a file in the workspace's folder: whole under its name, or not at all."
    about = About(
        title="Write a file",
        category="reach",
        icon="file-up",
        keywords=(*FileNode.words, "save", "store", "export"),
        output={
            "type": "object",
            "properties": {
                "path": PATH,
                "size": SIZE,
                "written": {"type": "boolean", "description": "Whether it was; not if it was kept as it was."},
            },
        },
    )

    class Parameters(Inputs):
        path: Path = Field(
            description="Which file; folders on its way are made.", examples=["reports/{{ execution.id }}.csv"]
        )
        file: dict[str, JSON] | None = Field(
            None, description="The file whose content is written.", examples=["{{ nodes.fetch.output.body }}"]
        )
        text: str | None = Field(None, description="The text that is written, as UTF-8.", examples=["id,total\n"])
        if_exists: IfExists = Field(
            "replace", examples=["fail"],
            description="What if there is one: `replace` it, `fail` unless it has the same content, or `keep` it.",
        )  # fmt: skip

        @model_validator(mode="after")
        def _one(self) -> Self:
            if (self.file is None) == (self.text is None):
                raise ValueError("give one of file and text")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        folder = folder_of(context, f"the file {parameters.path!r}")
        file = file_of(parameters.file)
        if parameters.file is not None and file is None:
            raise NodeFailure.permanent("with.file: is no file; give the value that a node or an upload gave")
        writing = await on_a_thread(folder.write, parameters.path)
        try:
            size, digest = await _fill(writing, _content(file, parameters.text or "", context))
            is_written = await on_a_thread(_finish, folder, writing, parameters, digest)
        finally:
            await on_a_thread(writing.close)
        return Output({"path": parameters.path, "size": size, "written": is_written})


async def _content(file: File | None, text: str, context: NodeContext) -> AsyncIterator[bytes]:
    if file is None:
        yield text.encode(errors="replace")
        return
    async for chunk in context.files.read(file):
        yield chunk


async def _fill(writing: Writing, chunks: AsyncIterator[bytes]) -> tuple[int, str]:
    size, summed = 0, hashlib.sha256()
    async for chunk in chunks:
        await on_a_thread(writing.add, chunk)
        summed.update(chunk)
        size += len(chunk)
    return size, summed.hexdigest()


def _finish(folder: Folder, writing: Writing, how: FileWrite.Parameters, digest: str) -> bool:
    try:
        writing.finish(replaces=how.if_exists == "replace")
    except FileExistsError:
        # An attempt that is repeated finds what the first has written.
        if how.if_exists == "keep" or _digest(folder, how.path) == digest:
            return False
        raise NodeFailure.permanent(f"there is a file {how.path!r} already, with other content") from None
    return True


def _digest(folder: Folder, path: str) -> str:
    summed = hashlib.sha256()
    with folder.open(path) as opened:
        while chunk := opened.read(CHUNK):
            summed.update(chunk)
    return summed.hexdigest()


class FileList(FileNode):
    name = "file.list"
    summary = "Lists the files in the workspace's folder, by a pattern if wanted."
    about = About(
        title="List files",
        category="reach",
        icon="folder-search",
        keywords=(*FileNode.words, "glob", "pattern", "find", "dir", "ls"),
        output={
            "type": "object",
            "properties": {
                "files": {
                    "type": "array",
                    "description": "What was found, folder by folder in the order of the names.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": PATH,
                            "name": {"type": "string", "description": "The last part of the path."},
                            "size": SIZE,
                            "modifiedAt": MODIFIED,
                            "isFolder": {"type": "boolean", "description": "Whether it is a folder."},
                        },
                    },
                },
                "hasMore": {"type": "boolean", "description": "Whether there is more than was listed."},
            },
        },
    )

    class Parameters(Inputs):
        path: Annotated[str, AfterValidator(_a_folder)] = Field(
            "", description="In which folder; by default that of the workspace.", examples=["reports"]
        )
        pattern: Annotated[str, AfterValidator(_a_pattern)] = Field(
            "*", max_length=LONGEST_PATTERN, examples=["**/*.csv"],
            description="Which paths below it: `*`, `?` and `[…]` are in one part, `**` is any number of parts.",
        )  # fmt: skip
        limit: int = Field(1_000, ge=1, le=MOST_LISTED, description="How many are listed at most.", examples=[100])
        folders: bool = Field(False, description="Whether folders are listed too.", examples=[True])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        folder = folder_of(context, "the workspace's folder")
        about = (folder, parameters.path, parameters.pattern)
        try:
            found, has_more = await on_a_thread(listed, *about, parameters.limit, folders=parameters.folders)
        except FileNotFoundError:
            raise NodeFailure.permanent(f"there is no folder {parameters.path!r} in the workspace's folder") from None
        return Output({"files": [_told(each) for each in found], "hasMore": has_more})


def _told(found: Found) -> dict[str, JSON]:
    name, at = found.path.rpartition("/")[2], _moment(found.modified)
    return {"path": found.path, "name": name, "size": found.size, "modifiedAt": at, "isFolder": found.is_folder}


class FileMove(FileNode):
    name = "file.move"
    summary = "Gives a file in the workspace's folder another name or place, at once."
    about = About(
        title="Move a file",
        category="reach",
        icon="file-symlink",
        keywords=(*FileNode.words, "rename", "archive"),
        output={"type": "object", "properties": {"path": {**PATH, "description": "Where it is now."}}},
    )

    class Parameters(Inputs):
        path: Path = Field(description="Which file.", examples=["inbox/may.csv"])
        to: Path = Field(description="Its new path; folders on its way are made.", examples=["done/may.csv"])
        if_exists: Literal["replace", "fail"] = Field(
            "fail", description="What if there is one: `replace` it, or `fail`.", examples=["replace"]
        )

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        folder, path, to = folder_of(context, f"the file {parameters.path!r}"), parameters.path, parameters.to
        try:
            await on_a_thread(folder.move, path, to, replaces=parameters.if_exists == "replace")
        except FileExistsError:
            raise NodeFailure.permanent(f"there is a file {to!r} already") from None
        except FileNotFoundError:
            # An attempt that is repeated finds what the first has done.
            if context.attempt == 1 or await on_a_thread(folder.stat, to) is None:
                raise _missing(path) from None
        return Output({"path": to})


class FileDelete(FileNode):
    name = "file.delete"
    summary = "Deletes a file, or an empty folder, in the workspace's folder."
    about = About(
        title="Delete a file",
        category="reach",
        icon="file-x",
        keywords=(*FileNode.words, "remove", "unlink", "clean up"),
        output={
            "type": "object",
            "properties": {"deleted": {"type": "boolean", "description": "Whether there was one."}},
        },
    )

    class Parameters(Inputs):
        path: Path = Field(description="Which file.", examples=["inbox/may.csv"])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        folder = folder_of(context, f"the file {parameters.path!r}")
        return Output({"deleted": await on_a_thread(folder.delete, parameters.path)})
