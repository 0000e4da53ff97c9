"""What actors with whom single workflows are shared may save, and may hand to another actor's execution."""

from collections.abc import Iterable

from ropewalk.core.definition import Definition
from ropewalk.core.errors import Forbidden, InvalidDefinition, Problem
from ropewalk.core.reach import OUT_OF_REACH, Need, credential_remedy, needs, refusal, workflow_remedy
from ropewalk.service.reading import recorded
from ropewalk.service.starting import MOST_PROBLEMS
from ropewalk.service.verbs import Service
from ropewalk.store import credentials, workflows


async def require_reach(service: Service, definition: Definition, actor: str) -> None:
    """Refuses a definition, naming every place, that reaches what is not shared with this actor.

    A workflow whose name is computed is looked at when it is called, an execution when it is spoken to.
    """
    problems = []
    for need in _needs(service, definition):
        if need.credential is not None:
            if not await _may_use(service, actor, need.credential):
                problems.append(Problem(need.path, refusal(need.what, (actor,), credential_remedy(need.credential))))
        elif need.is_computed:
            continue
        elif need.workflow is None:
            problems.append(Problem(need.path, refusal(need.what, (actor,))))
        elif not await _may_call(service, actor, need.workflow):
            problems.append(Problem(need.path, refusal(need.what, (actor,), workflow_remedy(need.workflow))))
    if problems:
        raise InvalidDefinition(problems[:MOST_PROBLEMS])


async def _may_call(service: Service, actor: str, named: str) -> bool:
    found = await workflows.find(service.store, service.workspace, named)
    return found is not None and await service.engine.reaches.may_call(actor, service.workspace, found.id)


async def _may_use(service: Service, actor: str, named: str) -> bool:
    found = await credentials.get(service.store, service.workspace, named)
    return found is not None and await service.engine.reaches.may_use(actor, service.workspace, found.id)


async def require_no_wider(service: Service, execution: str, bounded_by: Iterable[str]) -> None:
    """Refuses values of these actors for an execution that reaches beyond what is shared with them.

    A value may name what is called next: it would be called in the name of the actor that started the execution.
    """
    actors = tuple(bounded_by)
    if not actors:
        return
    story = await recorded(service.store, execution)
    if all(actor in story.accepted.bounded_by for actor in actors):
        return
    if found := _needs(service, story.plan.definition):
        remedy = "replay the execution, or ask a member of the workspace to do this"
        raise Forbidden(
            f"the execution reaches {found[0].what}, which may be {OUT_OF_REACH} of {' and '.join(actors)}, and "
            f"values of an actor with a share alone are not for it: {remedy}"
        )


def _needs(service: Service, definition: Definition) -> list[Need]:
    infos = service.types.infos()
    used = dict.fromkeys(str(node["type"]) for node in definition.nodes)
    return needs(definition.document, {name: infos[name].reaches for name in used if name in infos})
