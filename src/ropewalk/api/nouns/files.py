"""Files over HTTP: content that executions name, and content that is brought for a start."""

from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from pydantic import Field
from starlette.requests import ClientDisconnect

from ropewalk.access.rights import Right
from ropewalk.api.nouns.executions import ExecutionId
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.api.shapes.executions import A_HASH
from ropewalk.api.shapes.problems import Refused
from ropewalk.api.streaming.downloads import attachment
from ropewalk.core.events import Blob
from ropewalk.nodes.files import KEY, File, as_value, file_name, media_type
from ropewalk.service import files
from ropewalk.store.blobs import BlobTooLarge

routes = Routes("/workflow", "Files")

LARGEST_UPLOAD: Final = 2**50
"""What is brought is held to `files.max_mib` on its way, which a server may set as it likes."""
_FILE: Final = {"hash": A_HASH, "size": 1_234, "name": "orders.csv", "type": "text/csv"}

Hash = Annotated[str, Path(alias="hash", pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[
    str | None, Query(min_length=1, max_length=255, description="What the file is called; by default as in the log.")
]


class ExecutionFile(Answer):
    """A file that an execution names; without a name and type if only a large value names it."""

    model_config = exemplified(Answer, _FILE)

    hash: str = Field(description="The SHA-256 of the content.")
    size: int
    name: str | None
    type: str | None


class ExecutionFiles(Answer):
    """The files of an execution, at most a thousand."""

    model_config = exemplified(Answer, {"items": [_FILE]})

    items: list[ExecutionFile]


class Upload(Answer):
    """A file that was brought; `file` is the value to hand on in an input."""

    model_config = exemplified(Answer, {"file": {KEY: _FILE}})

    file: dict[str, Any]


@routes.get("/executions/{executionId}/files", Right.READ_PAYLOADS, response_model=ExecutionFiles)
async def list_execution_files(call: Caller, execution_id: ExecutionId) -> dict[str, Any]:
    """The files that an execution names."""
    await call.execution(execution_id)
    return {"items": await files.list_files(call.backend.store, call.workspace, execution_id)}


@routes.get(
    "/executions/{executionId}/files/{hash}",
    Right.READ_PAYLOADS,
    status_code=200,
    response_class=Response,
    responses={200: {"description": "The content.", "content": {"application/octet-stream": {"schema": {}}}}},
)
async def get_execution_file(call: Caller, execution_id: ExecutionId, digest: Hash, name: Name = None) -> Response:
    """The content of a file that an execution names, to be saved; no browser shows it as a page."""
    await call.execution(execution_id)
    store = call.backend.store
    blob = await files.find_file(store, call.workspace, execution_id, digest)
    return attachment(call, blob, file_name(name or await _name(call, execution_id, blob)))


async def _name(call: Caller, execution: str, blob: Blob) -> str:
    listed = await files.list_files(call.backend.store, call.workspace, execution)
    return next((each["name"] for each in listed if each["hash"] == blob.hash and each["name"]), blob.hash[:12])


@routes.post(
    "/files",
    Right.EXECUTE,
    status_code=201,
    response_model=Upload,
    largest=LARGEST_UPLOAD,
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}}},
)
async def upload_file(
    call: Caller,
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=255, description="What the file is called.")] = "file",
) -> dict[str, Any]:
    """Bring a file for the input of a start: the body is its content, Content-Type its type.

    It is removed after a day unless an execution names it by then.
    """
    call.require()
    largest = call.backend.file_bytes
    try:
        async with call.backend.downloads.reserve(call.actor.subject):
            blob = await files.bring(call.backend.store, call.workspace, request.stream(), largest)
    except BlobTooLarge as error:
        raise Refused(413, f"a file may have {largest:,} bytes here", "body") from error
    except ClientDisconnect as error:
        raise Refused(400, "the body did not come to its end", "body") from error
    kind = media_type(request.headers.get("content-type", ""))
    return {"file": as_value(File(blob.hash, blob.size, file_name(name), kind))}
