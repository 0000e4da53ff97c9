"""Definitions as the outside keeps them: which version a start takes."""

from ropewalk.core.errors import InvalidTransition
from ropewalk.engines.base import Version
from ropewalk.service.verbs import Service
from ropewalk.store.workflows import Workflow


async def startable(service: Service, workflow: Workflow, version: int | None) -> Version:
    """The version a start takes: the one asked for, else the one published."""
    if workflow.archived_at is not None:
        raise InvalidTransition(f"workflow {workflow.name!r} is archived: save it again to start it")
    wanted = workflow.published if version is None else version
    if wanted is None:
        raise InvalidTransition(f"workflow {workflow.name!r} has no published version: publish one, or name one")
    return await service.engine.memory.version(workflow.id, wanted)
