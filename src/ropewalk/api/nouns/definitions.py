"""Workflow definitions: every save is the next version for ever, one of them is published."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import Header, Path, Query, Response
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import Call
from ropewalk.api.doors.request_bodies import LARGEST_DEFINITION
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import BY_NAME, LONGEST_NAME, NAMED, Body, Cursor, Limit, Page, page
from ropewalk.api.shapes.definitions import (
    Definition,
    DefinitionChanged,
    DefinitionDifference,
    DefinitionSummary,
    DefinitionVersion,
    DefinitionVersionDocument,
    SavedDefinition,
    Verdict,
)
from ropewalk.api.shapes.documents import DRAFT, REQUEST, Manuscript, line_of, value_of, with_lines
from ropewalk.api.shapes.problems import Refused
from ropewalk.core.errors import Invalid, InvalidDefinition, NotFound
from ropewalk.service import definitions
from ropewalk.service.credential_checks import require_credentials
from ropewalk.service.reach import require_reach
from ropewalk.store import workflows
from ropewalk.store.workflows import Outdated, Workflow

routes = Routes("/workflow/definitions", "Definitions")

LATEST_POSSIBLE: Final = 2**53
NO_NUL: Final = r"^[^\x00]*$"

DefinitionId = Annotated[str, Path(alias="definitionId", max_length=LONGEST_NAME, pattern=NAMED, description=BY_NAME)]
VersionNumber = Annotated[int, Path(ge=1, le=LATEST_POSSIBLE)]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=1_024, description="The ETag of the latest version, as it was read."),
]
Publish = Annotated[bool, Query(description="Whether starts take this version from now on.")]


class PublishBody(Body):
    """Which version."""

    version: int = Field(ge=1, le=LATEST_POSSIBLE, examples=[2])


# Saving


@routes.post("", Right.EDIT, status_code=201, response_model=SavedDefinition, problems=(409,),
             largest=LARGEST_DEFINITION, openapi_extra=REQUEST)  # fmt: skip
async def create_definition(
    call: Caller, manuscript: Manuscript, response: Response, publish: Publish = False
) -> dict[str, Any]:
    """Save a workflow under a name that is not taken, as its version 1."""
    call.require()
    async with call.turn(len(manuscript.body)):
        with with_lines():
            document = await manuscript.read()
        with with_lines(document):
            about = (call.service, value_of(document), call.actor.subject)
            saved = await definitions.create(*about, is_published=publish, may_use=call.may_use)
    return await _saved(call, saved, response)


@routes.post("/validate", Right.READ, response_model=Verdict, largest=LARGEST_DEFINITION, openapi_extra=DRAFT)
async def validate_definition(call: Caller, manuscript: Manuscript) -> dict[str, Any]:
    """Check a document as a save would, with every problem and its place; nothing is stored."""
    document = None
    try:
        async with call.turn(len(manuscript.body)):
            document = await manuscript.read()
            found = await definitions.check(call.service, value_of(document))
            for actor in call.bounded_by:
                await require_reach(call.service, found, actor)
            service = call.service
            await require_credentials(service.store, service.workspace, found, service.types, call.may_use)
    except InvalidDefinition as error:
        return {"valid": False, "hash": None, "problems": _problems(error, document)}
    return {"valid": True, "hash": found.content_hash, "problems": []}


def _problems(error: Invalid, document: Any) -> list[dict[str, Any]]:
    return [{"field": each.where, "message": each.message, "line": line_of(each, document)} for each in error.problems]


@routes.post("/{definitionId}/versions", Right.EDIT, status_code=201, response_model=SavedDefinition,
             problems=(409, 412, 428), largest=LARGEST_DEFINITION, openapi_extra=REQUEST,
             responses={200: {"description": "The latest says the same.", "model": SavedDefinition}})  # fmt: skip
async def save_definition_version(
    call: Caller,
    definition_id: DefinitionId,
    manuscript: Manuscript,
    response: Response,
    if_match: IfMatch = None,
    publish: Publish = False,
) -> dict[str, Any]:
    """Save the next version of a workflow, on top of the one whose ETag If-Match names; an archived one comes back."""
    workflow = await call.workflow(definition_id)
    expected, who = _expected(if_match), call.actor.subject
    try:
        async with call.turn(len(manuscript.body)):
            with with_lines():
                document = await manuscript.read()
            with with_lines(document):
                saved = await definitions.revise(
                    call.service, workflow, value_of(document), who, expected=expected, is_published=publish,
                    is_bounded=bool(call.bounded_by), may_use=call.may_use,
                )  # fmt: skip
    except Outdated as error:
        raise Refused(412, str(error), "header.if-match") from error
    if not saved.is_new:
        response.status_code = 200
    return await _saved(call, saved, response)


def _expected(if_match: str | None) -> list[str] | None:
    """The hashes a save may be on top of; None if any will do."""
    if if_match is None:
        raise Refused(428, "say which version this is made from: If-Match with its ETag", "header.if-match")
    if if_match.strip() == "*":
        return None
    # A weak tag never matches: only the whole document is good enough here.
    return [tag.strip().strip('"') for tag in if_match.split(",") if not tag.strip().startswith("W/")]


async def _saved(call: Call, saved: workflows.Saved, response: Response) -> dict[str, Any]:
    version = await definitions.version_of(call.service, saved.workflow, saved.version)
    response.headers["ETag"] = f'"{version.hash}"'
    return {"id": saved.workflow, "version": saved.version, "hash": version.hash}


# Publishing and archiving


@routes.post("/{definitionId}/publish", Right.EDIT, response_model=DefinitionChanged, problems=(409,))
async def publish_definition(call: Caller, definition_id: DefinitionId, body: PublishBody) -> dict[str, Any]:
    """Starts that name no version take this one from now on."""
    workflow = await call.workflow(definition_id)
    changed = await definitions.publish(call.service, workflow, body.version, call.actor.subject)
    return {"id": workflow.id, "changed": changed}


@routes.post("/{definitionId}/archive", Right.EDIT, response_model=DefinitionChanged)
async def archive_definition(call: Caller, definition_id: DefinitionId) -> dict[str, Any]:
    """No new starts; what is queued still runs, and every version is kept."""
    return await _archive(call, definition_id)


@routes.delete("/{definitionId}", Right.EDIT, response_model=DefinitionChanged)
async def delete_definition(call: Caller, definition_id: DefinitionId) -> dict[str, Any]:
    """The same as archiving it: versions are never deleted."""
    return await _archive(call, definition_id)


async def _archive(call: Call, definition_id: str) -> dict[str, Any]:
    workflow = await call.workflow(definition_id)
    return {"id": workflow.id, "changed": await definitions.archive(call.service, workflow, call.actor.subject)}


# Reading


@routes.get("", Right.READ, response_model=Page[DefinitionSummary])
async def list_definitions(
    call: Caller,
    name: Annotated[str, Query(max_length=200, pattern=NO_NUL, description="Only names that begin like this.")] = "",
    archived: Annotated[bool, Query(description="Archived ones too.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """The workflows of the workspace by name."""
    listing = call.listing("definitions", name, archived)
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    shared = await call.shared_workflows()
    if shared is None:
        found = await workflows.listed(
            call.backend.store, call.workspace, after=after, limit=limit, with_archived=archived, prefix=name
        )
    else:
        found = (await _shared(call, shared, lambda each: _fits(each, after, archived, name)))[:limit]
    return page(call.backend.cursors, listing, [definitions.summary_of(each, each.latest) for each in found], limit,
                found[-1].name if found else None)  # fmt: skip


def _fits(workflow: Workflow, after: str, with_archived: bool, prefix: str) -> bool:
    is_wanted = workflow.name > after and workflow.name.startswith(prefix)
    return is_wanted and (with_archived or workflow.archived_at is None)


async def _shared(call: Call, shared: list[str], fits: Callable[[Workflow], bool]) -> list[workflows.Listed]:
    """The shared workflows that fit the filter, by name; there are few."""
    found = []
    for each in shared:
        workflow = await workflows.get(call.backend.store, call.workspace, each)
        newest = await workflows.latest(call.backend.store, each)
        if workflow is not None and newest is not None and fits(workflow):
            found.append(workflows.Listed(**msgspec.structs.asdict(workflow), latest=newest.version))
    return sorted(found, key=lambda workflow: workflow.name)


@routes.get("/{definitionId}", Right.READ, response_model=Definition)
async def get_definition(
    call: Caller,
    definition_id: DefinitionId,
    response: Response,
    show: Annotated[Literal["latest", "published"], Query(description="Which version's document.")] = "latest",
) -> dict[str, Any]:
    """A workflow with the document of its latest version; the ETag is what a save on top of that has to name."""
    workflow = await call.workflow(definition_id)
    newest = await definitions.version_of(call.service, workflow.id, None)
    shown = newest
    if show == "published":
        if workflow.published is None:
            raise NotFound(f"workflow {workflow.name!r} has no published version")
        shown = await definitions.version_of(call.service, workflow.id, workflow.published)
    response.headers["ETag"] = f'"{shown.hash}"'
    about = {"version": shown.version, "hash": shown.hash, "document": definitions.document_of(shown)}
    return definitions.summary_of(workflow, newest.version) | about


@routes.get("/{definitionId}/versions", Right.READ, response_model=Page[DefinitionVersion])
async def list_definition_versions(
    call: Caller, definition_id: DefinitionId, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """The versions of a workflow, newest first."""
    workflow = await call.workflow(definition_id)
    listing = call.listing("versions", workflow.id)
    before = LATEST_POSSIBLE if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await workflows.versions(call.backend.store, workflow.id, before=before, limit=limit)
    return page(call.backend.cursors, listing, [definitions.version_summary_of(each) for each in found], limit,
                found[-1].version if found else None)  # fmt: skip


@routes.get("/{definitionId}/versions/{version}", Right.READ, response_model=DefinitionVersionDocument)
async def get_definition_version(
    call: Caller, definition_id: DefinitionId, version: VersionNumber, response: Response
) -> dict[str, Any]:
    """One version with its document."""
    workflow = await call.workflow(definition_id)
    found = await definitions.version_of(call.service, workflow.id, version)
    response.headers["ETag"] = f'"{found.hash}"'
    return definitions.version_summary_of(found) | {"document": definitions.document_of(found)}


@routes.get("/{definitionId}/diff", Right.READ, response_model=DefinitionDifference)
async def diff_definition(
    call: Caller,
    definition_id: DefinitionId,
    before: Annotated[int, Query(alias="from", ge=1, le=LATEST_POSSIBLE)],
    after: Annotated[int, Query(alias="to", ge=1, le=LATEST_POSSIBLE)],
) -> Any:
    """What the version `to` changes in the version `from`."""
    workflow = await call.workflow(definition_id)
    found = await definitions.compare(call.service, workflow.id, before, after)
    return msgspec.to_builtins(found)
