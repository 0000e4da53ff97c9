"""Workflows in a store that this process executes on: every save is the next version, one of them is published."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Conflict, InvalidDefinition
from ropewalk.local.listing import Json, paged, workflow_of
from ropewalk.service import Service, definitions
from ropewalk.store import workflows
from ropewalk.store.workflows import Saved
from ropewalk.workflow import Workflow

if TYPE_CHECKING:
    from ropewalk.client import definition_answers as answers

BY: Final = "local"
_TRIES: Final = 5
_NEWEST: Final = 2**53
Source = Workflow | Mapping[str, JSON]


class DefinitionVerbs:
    """What can be done with workflows."""

    service: Service

    def document_of(self, workflow: Source) -> dict[str, JSON]:
        """The document to be checked, with the node types it needs made known."""
        raise NotImplementedError

    # Looking

    async def definitions(self, name: str = "", *, archived: bool = False
                          ) -> "AsyncIterator[answers.DefinitionSummary]":  # fmt: skip
        """The workflows whose name begins like this, by name."""
        store, workspace = self.service.store, self.service.workspace

        async def read(after: str, size: int) -> list[Json]:
            found = await workflows.listed(
                store, workspace, after=after, limit=size, with_archived=archived, prefix=name
            )
            return [definitions.summary_of(each, each.latest) for each in found]

        async for each in paged(read, "", None, lambda each: each["name"]):
            yield each

    async def definition(self, workflow: str) -> "answers.Definition":
        """The workflow of this id or name, with its latest document."""
        found = await workflow_of(self.service, workflow)
        newest = await definitions.version_of(self.service, found.id, None)
        about = {"version": newest.version, "hash": newest.hash, "document": definitions.document_of(newest)}
        return cast("answers.Definition", definitions.summary_of(found, newest.version) | about)

    async def versions(self, workflow: str) -> "AsyncIterator[answers.Version]":
        """The versions of the workflow of this id or name, the newest first."""
        found = await workflow_of(self.service, workflow)

        async def read(before: int, size: int) -> list[Json]:
            kept = await workflows.versions(self.service.store, found.id, before=before, limit=size)
            return [definitions.version_summary_of(each) for each in kept]

        async for each in paged(read, _NEWEST, None, lambda each: each["version"]):
            yield each

    async def version(self, workflow: str, version: int) -> "answers.VersionDocument":
        """One version of the workflow of this id or name, with its document."""
        found = await workflow_of(self.service, workflow)
        kept = await definitions.version_of(self.service, found.id, version)
        return cast(
            "answers.VersionDocument",
            definitions.version_summary_of(kept) | {"document": definitions.document_of(kept)},
        )

    async def diff(self, workflow: str, before: int, after: int) -> dict[str, Any]:
        """What one version changes in another."""
        found = await workflow_of(self.service, workflow)
        changes: dict[str, Any] = msgspec.to_builtins(await definitions.compare(self.service, found.id, before, after))
        return changes

    async def validate(self, workflow: Source) -> "answers.Verdict":
        """Everything that is wrong with a workflow; nothing is stored."""
        try:
            checked = await definitions.check(self.service, self.document_of(workflow))
        except InvalidDefinition as error:
            wrong = [{"field": each.where, "message": each.message, "line": None} for each in error.problems]
            return {"valid": False, "hash": None, "problems": wrong}  # type: ignore[typeddict-item]
        return {"valid": True, "hash": checked.content_hash, "problems": []}

    # Saving

    async def save(self, workflow: Source, *, publish: bool = False, on: str | None = None) -> "answers.Saved":
        """Save the next version of the workflow's name, or its first; the same content is the same version.

        `on` is the hash of the version it was made from: Conflict if there is a later one.
        """
        document = self.document_of(workflow)
        for tries_left in reversed(range(_TRIES)):
            try:
                saved = await self._saved(document, on, publish=publish)
                kept = await definitions.version_of(self.service, saved.workflow, saved.version)
                return {"id": saved.workflow, "version": saved.version, "hash": kept.hash}
            except Conflict:
                if on is not None or not tries_left:
                    raise
        raise AssertionError("the last try answers or raises")

    async def _saved(self, document: dict[str, JSON], on: str | None, *, publish: bool) -> Saved:
        """Another process may create the workflow after it was looked for: Conflict then."""
        service, name = self.service, document.get("name")
        known = await workflows.find(service.store, service.workspace, name) if isinstance(name, str) else None
        if known is None or known.name != name:
            return await definitions.create(service, document, BY, is_published=publish)
        expected = None if on is None else [on]
        return await definitions.revise(service, known, document, BY, expected=expected, is_published=publish)

    async def publish_version(self, workflow: str, version: int) -> "answers.Changed":
        """Starts that name no version take this one from now on."""
        found = await workflow_of(self.service, workflow)
        return {"id": found.id, "changed": await definitions.publish(self.service, found, version, BY)}

    async def archive(self, workflow: str) -> "answers.Changed":
        """No new starts by its name; what is queued still runs, and every version is kept."""
        found = await workflow_of(self.service, workflow)
        return {"id": found.id, "changed": await definitions.archive(self.service, found, BY)}
