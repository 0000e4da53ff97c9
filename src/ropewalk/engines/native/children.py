"""Children: executions that a node of another one asks for.

Their parent has asked itself for them, by its own inbox, so that the worker which owns the parent starts them.
"""

from typing import Any

from ropewalk.core.commands import StartChild
from ropewalk.core.errors import Forbidden, RopewalkError, Unavailable, Unfinished
from ropewalk.core.events import ExecutionAccepted
from ropewalk.core.kinship import child_request, never_began
from ropewalk.core.reach import refusal, workflow_remedy
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Reaches, StartRequest, Version
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.starting import Starting
from ropewalk.engines.native.telling import Telling
from ropewalk.engines.versions import Versions
from ropewalk.store import executions, workflows
from ropewalk.store.access import Store


class Children:
    """Starts children, and tells parents of those that cannot be started."""

    def __init__(self, store: Store, versions: Versions, computing: Computing, reaches: Reaches, commit: GroupCommit,
                 telling: Telling, starting: Starting) -> None:  # fmt: skip
        self._store = store
        self._versions = versions
        self._computing = computing
        # Asked by executions of actors who are no members of their workspace, and by no other.
        self._reaches = reaches
        self._commit = commit
        self._telling = telling
        self._starting = starting

    async def start(self, letter: str, live: Live, command: StartChild) -> None:
        """Accept the child unless it is there already; one that cannot be started has failed."""
        if await executions.load(self._store, command.wait.child) is not None:
            self._commit.add_row("delete_inbox", (letter,))
            return
        if live.execution.ending is not None:
            ended = never_began(command, ExecutionState.CANCELLED, "the parent is ending")
            self._telling.hand_over(letter, live, ended)
            return
        try:
            request = await self._request(live, command)
        except Unavailable:
            raise
        except RopewalkError as error:
            self._telling.hand_over(letter, live, never_began(command, ExecutionState.FAILED, str(error)))
            return
        await self._starting.start(request, letter)

    async def _request(self, live: Live, command: StartChild) -> StartRequest:
        wait, accepted = command.wait, live.accepted
        if accepted.bounded_by:
            await self._require_reach(accepted, wait.workflow)
        version = await self._versions.of_name(accepted.workspace, wait.workflow, wait.version)
        request = child_request(accepted, command, version)
        await self._check_input(version, wait.input, live)
        return request

    async def _require_reach(self, accepted: ExecutionAccepted, named: str) -> None:
        """Refuses, whether there is such a workflow or not, what is not shared with all who bound the parent."""
        found = await workflows.find(self._store, accepted.workspace, named)
        for actor in accepted.bounded_by:
            if found is None or not await self._reaches.may_call(actor, accepted.workspace, found.id):
                raise Forbidden(refusal(f"the workflow {named!r}", (actor,), workflow_remedy(named)))

    async def _check_input(self, version: Version, value: Any, live: Live) -> None:
        check = version.plan.definition.check_input
        try:
            check(value, is_brief=True)
        except Unfinished:
            await self._computing.of_execution(live.accepted.workspace, live.id, lambda: check(value))
