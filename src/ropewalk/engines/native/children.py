"""Parents and children: a child's end is told to its parent, a parent's verbs to its children.

What one execution has to tell another is a letter, written in the commit of the events that cause it; a second telling
decides nothing.
"""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import uuid_utils

from ropewalk.core.canonical import content_hash
from ropewalk.core.commands import Command, Finish, StartChild
from ropewalk.core.definition.node_type import ARRIVED_PORT
from ropewalk.core.errors import Forbidden, InvalidTransition, RopewalkError, Unavailable, Unfinished
from ropewalk.core.events import Blob, Event, ExecutionAccepted
from ropewalk.core.kinship import (
    ENDS,
    child_request,
    end_of_child,
    never_began,
    reopening_of_child,
    verb_of_parent,
)
from ropewalk.core.reach import refusal, workflow_remedy
from ropewalk.core.signals import ChildEnded, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import StartRequest, Version
from ropewalk.engines.native.live import Live
from ropewalk.engines.runner import cache_key
from ropewalk.nodes.values import Output
from ropewalk.store import executions, workflows

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


class Children:
    """What executions have to tell each other."""

    def __init__(self, engine: "NativeEngine") -> None:
        self._engine = engine

    # What is to be told, written with the events that cause it

    def write_down(self, live: Live, commands: Sequence[Command]) -> None:
        """Put what commands say to other executions into the commit of the events that caused them."""
        for command in commands:
            self._write_down(live, command)

    def _write_down(self, live: Live, command: Command) -> None:
        if isinstance(command, Finish):
            self._tell_parent(live)
        elif isinstance(command, StartChild):
            # To itself: the child is started from the letter, by the worker that owns the parent then.
            self._post(live, live.id, command)
        elif (verb := verb_of_parent(command)) is not None:
            self._post(live, *verb)

    def _tell_parent(self, live: Live) -> None:
        parent = live.accepted.parent
        # Without an end in this commit it was told of with the commit that had it.
        end = next((event for event in reversed(live.events) if type(event) in ENDS), None)
        if parent is not None and end is not None:
            report = end_of_child(parent, end, live.execution.opening, random.random())
            self._post(live, parent.execution, report)

    def _post(self, live: Live, execution: str, signal: Signal | StartChild) -> None:
        letter = str(uuid_utils.uuid7())
        text = msgspec.json.encode(signal).decode()
        live.rows.append(("insert_inbox", (letter, execution, text, live.execution.now)))
        live.post.append((letter, execution, signal))

    # Starting

    async def start(self, letter: str, live: Live, command: StartChild) -> None:
        """Accept the child unless it is there already; one that cannot be started has failed."""
        engine, wait = self._engine, command.wait
        if await executions.load(engine.store, wait.child) is not None:
            engine.commit.add_row("delete_inbox", (letter,))
            return
        if live.execution.ending is not None:
            engine.letters.tell(letter, live, never_began(command, ExecutionState.CANCELLED, "the parent is ending"))
            return
        try:
            request = await self._request(live, command)
        except Unavailable:
            raise
        except RopewalkError as error:
            engine.letters.tell(letter, live, never_began(command, ExecutionState.FAILED, str(error)))
            return
        await engine.start(request, letter)

    async def _request(self, live: Live, command: StartChild) -> StartRequest:
        wait, accepted = command.wait, live.accepted
        if accepted.bounded_by:
            await self._require_reach(accepted, wait.workflow)
        version = await self._engine.versions.of_name(accepted.workspace, wait.workflow, wait.version)
        request = child_request(accepted, command, version)
        await self._check_input(version, wait.input, live)
        return request

    async def _require_reach(self, accepted: ExecutionAccepted, named: str) -> None:
        """Refuses, whether there is such a workflow or not, what is not shared with all who bound the parent."""
        found = await workflows.find(self._engine.store, accepted.workspace, named)
        for actor in accepted.bounded_by:
            if found is None or not await self._engine.reaches.may_call(actor, accepted.workspace, found.id):
                raise Forbidden(refusal(f"the workflow {named!r}", (actor,), workflow_remedy(named)))

    async def _check_input(self, version: Version, value: Any, live: Live) -> None:
        check = version.plan.definition.check_input
        try:
            check(value, is_brief=True)
        except Unfinished:
            await self._engine.computing.of_execution(live.accepted.workspace, live.id, lambda: check(value))

    # Ending

    def cache(self, live: Live, end: ChildEnded) -> None:
        """Keep the output of a child for others of its kind, if the node that waits for it says so.

        Before its parent is told: then the inputs the child was made from are forgotten.
        """
        plan, work = live.execution.plan, live.execution.work(end.node, end.item)
        if work is None or work.attempt != end.attempt or end.state is not ExecutionState.SUCCESS:
            return
        ttl = plan.cache_ttl[work.node]
        # As of any other node, large results are not kept.
        if ttl is not None and end.blob is None:
            inputs = {} if work.inputs is None else work.inputs
            digest = inputs.hash if isinstance(inputs, Blob) else content_hash(inputs)
            key = cache_key(plan.config_hash(work.node), digest, live.accepted.bounded_by)
            self._engine.shelf.cache(live.accepted.workspace, key, Output(end.output, (ARRIVED_PORT,)), ttl)

    # Verbs that concern both

    def tell(self, live: Live, signal: Signal, parent: Live | None) -> list[Event]:
        """Tell an execution; one that is reopened by it takes its parent along, or the request is refused."""
        engine = self._engine
        events = engine.signal(live, signal)
        news = reopening_of_child(live.accepted, events)
        if news is None:
            return events
        if parent is None:
            self._post(live, *news)
            return events
        try:
            is_told = bool(engine.signal(parent, news[1]))
        except InvalidTransition:
            engine.recovery.drop(live)
            raise
        if is_told:
            engine.commit.bind(live, parent)
        return events
